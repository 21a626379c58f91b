"""The golden model of the warp scheduler, case by case; ``bench_warp_scheduler.py`` has the random runs."""

from __future__ import annotations

import hashlib
import random

import pytest

from lockstep.models.blocks import FOREVER
from lockstep.models.jit import view
from lockstep.models.parameters import SCHEDULERS
from lockstep.models.scheduling import warp_scheduler
from lockstep.verif.bench import Bench, interpreted, mask, seeded
from lockstep.verif.scheduling.bench_warp_scheduler import stimulate

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


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_idle_cycles_change_nothing(policy: str) -> None:
    rng = seeded()
    bench = configured(policy, 8)
    idle = 0
    for _ in range(3000):
        stimulate(view(bench.io).i, rng, WARPS)
        if rng.random() < 0.5:
            bench.i["request"] = bench.i["start"] = bench.i["finish"] = 0
        bench.comb()
        steps = min(bench.idle(), rng.randrange(1, 5))
        stepped, skipped = bench.copy(), bench.copy()
        for _ in range(steps):
            stepped.cycle()
        skipped.skip(steps)
        assert stepped.bytes() == skipped.bytes()
        idle += steps > 0
        bench.step()
    assert idle > 100


def test_idle_when_nothing_can_be_granted() -> None:
    bench = configured("gto", 1)
    bench.comb()
    assert bench.idle() == FOREVER


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_reset_in_mid_run_gives_a_fresh_record(policy: str) -> None:
    rng = seeded()
    bench = configured(policy, 8)
    for _ in range(200):
        stimulate(view(bench.io).i, rng, WARPS)
        bench.cycle()
    bench.i["start"], bench.i["finish"], bench.i["long_latency"] = (1 << WARPS) - 1, 0, 0
    for _ in range(20):  # whatever the state holds is in use
        bench.cycle()
        bench.i["start"], bench.i["request"] = 0, mask(rng, WARPS)
    bench.reset()
    bench.i["start"] = bench.i["finish"] = bench.i["request"] = bench.i["long_latency"] = 0
    bench.comb()
    fresh = configured(policy, 8)
    fresh.comb()
    assert bench.bytes() == fresh.bytes()


def run(seed: int) -> str:
    """A digest of all state and ports over a random run with every policy."""
    rng = random.Random(seed)
    digest = hashlib.sha256()
    for policy in SCHEDULERS:
        bench = configured(policy, 6)
        for _ in range(400):
            stimulate(view(bench.io).i, rng, WARPS)
            bench.cycle()
            digest.update(bench.bytes())
    return digest.hexdigest()


def test_interpreted_run_is_identical() -> None:
    seed = seeded().randrange(1 << 32)
    assert interpreted(run, seed) == run(seed)
