"""The golden model of the warp scheduler, case by case; ``bench_warp_scheduler.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.blocks import FOREVER
from lockstep.models.scheduling import warp_scheduler
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif.bench import Bench

WARPS = 64


def configured(policy: str, active_warps: int) -> Bench:
    bench = Bench(warp_scheduler)
    bench.i["policy"], bench.i["active_warps"] = SCHEDULERS.index(policy), active_warps
    return bench


def test_loose_round_robin_is_fair() -> None:
    bench = configured("lrr", 1)
    bench.i["start"] = bench.i["request"] = 0xFFFF
    bench.cycle()
    bench.i["start"] = 0
    order = []
    for _ in range(32):
        bench.cycle()
        order.append(int(bench.c["grant"]["warp"]))
    assert order == [*range(16), *range(16)]


def test_greedy_then_oldest_leaves_a_warp_only_when_it_does_not_request() -> None:
    bench = configured("gto", 1)
    for slot in (5, 3, 9):  # 5 is the oldest
        bench.i["start"] = 1 << slot
        bench.cycle()
    bench.i["start"] = 0
    order = []
    for requests in ([3, 9], [3, 5, 9], [5, 9], [3, 5, 9], [3, 9]):
        bench.i["request"] = sum(1 << slot for slot in requests)
        bench.cycle()
        order.append(int(bench.c["grant"]["warp"]))
    assert order == [3, 3, 5, 5, 3]


def test_a_new_warp_does_not_inherit_greed() -> None:
    bench = configured("gto", 1)
    bench.i["start"] = 1 << 2
    bench.cycle()
    bench.i["start"] = 1 << 7
    bench.cycle()
    bench.i["start"], bench.i["request"] = 0, 1 << 7
    bench.cycle()
    bench.i["start"] = bench.i["finish"] = 1 << 7
    bench.cycle()
    bench.i["start"] = bench.i["finish"] = 0
    bench.i["request"] = 1 << 7 | 1 << 2
    bench.comb()
    assert bench.c["grant"]["warp"] == 2


def test_two_level_keeps_to_its_active_set_and_serves_everyone() -> None:
    bench = configured("two-level", 4)
    bench.i["start"] = bench.i["request"] = (1 << 16) - 1
    bench.cycle()
    bench.i["start"] = 0
    seen: set[int] = set()
    for _ in range(8):
        recent = set()
        for _ in range(20):
            bench.cycle()
            if bench.c["grant"]["valid"]:
                recent.add(int(bench.c["grant"]["warp"]))
        assert len(recent) == 4
        seen |= recent
        bench.i["long_latency"] = sum(1 << slot for slot in recent)
        bench.i["request"] = 0xFFFF & ~int(bench.i["long_latency"])
    assert seen == set(range(16))


def test_idle_when_nothing_can_be_granted() -> None:
    bench = configured("gto", 1)
    bench.comb()
    assert bench.idle() == FOREVER
