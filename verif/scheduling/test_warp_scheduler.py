"""The golden model of the warp scheduler, case by case; ``bench_warp_scheduler.py`` has the random runs."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lockstep.models.scheduling import warp_scheduler
from lockstep.models.time import NEVER
from lockstep.rtl import configuration
from lockstep.rtl.netlist import Netlist
from lockstep.rtl.scheduling.warp_scheduler import WarpScheduler
from lockstep.sim.device import description
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif.bench import Bench
from lockstep.verif.scheduling.bench_warp_scheduler import policies, word
from lockstep.verif.trial.mechanisms import registered


def configured(policy: str, active_warps: int = 1, patience: int = 0) -> Bench:
    bench = Bench(warp_scheduler)
    bench.i["policy"], bench.i["active_warps"] = SCHEDULERS.index(policy), active_warps
    bench.i["patience"] = patience
    return bench


def among(policy: str, *slots: int, active_warps: int = 1, patience: int = 0) -> Bench:
    """Warps in some slots, the oldest first."""
    bench = configured(policy, active_warps, patience)
    for slot in slots:
        bench.i["start"] = 1 << slot
        bench.cycle()
    bench.i["start"] = 0
    return bench


def mask(*slots: int) -> int:
    return word(slots)


def granted(bench: Bench, *requests: int, **inputs: int) -> int | None:
    """Who is granted in one cycle. Inputs keep their values, but for ``refused`` and ``hint``."""
    bench.i["request"], bench.i["refused"], bench.i["hint"] = mask(*requests), 0, 0
    for name, value in inputs.items():
        bench.i[name] = value
    bench.cycle()
    return int(bench.c["grant"]["warp"]) if bench.c["grant"]["valid"] else None


def test_loose_round_robin_is_fair() -> None:
    bench = configured("lrr")
    bench.i["start"] = bench.i["request"] = 0xFFFF
    bench.cycle()
    bench.i["start"] = 0
    order = []
    for _ in range(32):
        bench.cycle()
        order.append(int(bench.c["grant"]["warp"]))
    assert order == [*range(16), *range(16)]


def test_a_round_robin_comes_back_when_all_others_that_wait_have_had_their_turn() -> None:
    bench = among("lrr", 3, 1, 0, 2)  # by slot, whatever their age
    assert [granted(bench, 1), granted(bench, 0, 1, 3), granted(bench, 0, 1, 2), granted(bench, 1, 2)] == [1, 3, 0, 1]


def test_a_greedy_round_robin_leaves_a_warp_only_when_it_does_not_request() -> None:
    bench = among("greedy-rr", 9, 5, 3)
    requests = ([3, 9], [3, 5, 9], [5, 9], [3, 5, 9], [3, 9], [3, 9], [3, 5])
    assert [granted(bench, *slots) for slots in requests] == [3, 3, 5, 5, 9, 9, 3]


def test_greedy_then_oldest_leaves_a_warp_only_when_it_does_not_request() -> None:
    bench = configured("gto")
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


@pytest.mark.parametrize("policy", ["gto", "greedy-rr"])
def test_a_new_warp_does_not_inherit_greed(policy: str) -> None:
    bench = configured(policy)
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
    bench = configured("gto")
    bench.comb()
    assert bench.idle() == NEVER


@pytest.mark.parametrize("policy", SCHEDULERS)
def test_who_waits_for_ever_while_nobody_else_ever_waits(policy: str) -> None:
    """Fine round robin alone serves everyone whatever the warps do; the others rely on warps that wait at times."""
    bench = among(policy, 0, 1, 2)
    assert {granted(bench, 0, 1, 2) for _ in range(200)} - {None} == ({0, 1, 2} if policy == "lrr" else {0})


ALL = (0, 1, 2, 3, 4, 5)
CLASSES = {"paused": mask(0, 1, 2, 3), "secondary": mask(0, 1), "owner": mask(5, 3), "non_owner": mask(4, 3, 0)}
ORDER = (5, 4, 3, 2, 1, 0)  # of these classes: 3 is an owner, 1 beside its class is unshared


@pytest.mark.parametrize("policy", [policy for policy in SCHEDULERS if policy != "two-level"])
def test_classes_have_a_fixed_significance(policy: str) -> None:
    bench = among(policy, *ALL)
    granted(bench, **CLASSES)
    left = set(ALL)
    for slot in ORDER:
        assert granted(bench, *left) == slot
        left.remove(slot)


def test_owner_warp_first_is_oldest_first_over_classes() -> None:
    bench, left, order = among("oldest", 5, 2, 0, 4, 1, 3), set(ALL), []
    granted(bench, owner=mask(3, 4), non_owner=mask(5, 0))
    while left:
        slot = granted(bench, *left)
        assert slot is not None
        order.append(slot)
        left.remove(slot)
    assert order == [4, 3, 2, 1, 5, 0]  # owners, unshared, non-owners, each by age


@pytest.mark.parametrize("name", ["paused", "secondary", "non_owner"])
def test_a_class_that_all_belong_to_changes_nothing(name: str) -> None:
    for policy in SCHEDULERS:
        bench, other = (among(policy, *ALL, active_warps=2, patience=1) for _ in range(2))
        rng = random.Random(1)
        for _ in range(100):
            requests = [slot for slot in ALL if rng.random() < 0.5]
            assert granted(bench, *requests) == granted(other, *requests, **{name: mask(*ALL)})


def test_the_policy_decides_inside_the_highest_class() -> None:
    greedy = among("gto", 0, 1, 2, 3)
    granted(greedy, secondary=mask(0, 1))
    assert [granted(greedy, 0, 1, 3), granted(greedy, 0, 2, 3), granted(greedy, 0, 1)] == [3, 3, 0]
    assert granted(greedy, 0, 2, 3) == 2  # the greedy warp is of a lower class
    round_robin = among("lrr", 0, 1, 2, 3)
    granted(round_robin, secondary=mask(1, 3))
    assert [granted(round_robin, *ALL) for _ in range(3)] == [0, 2, 0]


def test_patience_lets_a_warp_go_first_once() -> None:
    bench = among("oldest", 0, 1, patience=3)
    granted(bench, paused=mask(1))
    assert [granted(bench, 0, 1) for _ in range(9)] == [0, 0, 0, 1, 0, 0, 0, 1, 0]


def test_patience_counts_only_what_higher_classes_issue_while_the_warp_requests() -> None:
    bench = among("lrr", 0, 1, 2, patience=2)
    granted(bench, paused=mask(1, 2))
    assert [granted(bench, 1, 2), granted(bench, 1, 2), granted(bench, 1, 2)] == [1, 2, 1]  # its own class
    assert [granted(bench, 0), granted(bench, 0, 2), granted(bench, 0)] == [0, 0, 0]  # once while it requests
    assert granted(bench, 0, 2, refused=1) == 0  # nobody issued
    assert [granted(bench, 0, 2), granted(bench, 0, 2), granted(bench, 0, 2)] == [0, 2, 0]


def test_patience_begins_anew_with_a_new_warp() -> None:
    for last in ("start", "finish"):
        bench = among("oldest", 0, 1, patience=1)
        granted(bench, paused=mask(1))
        assert granted(bench, 0, 1) == 0
        assert granted(bench, 0, **{last: mask(1)}) == 0
        assert granted(bench, 0, start=mask(1), finish=0) == 0
        assert granted(bench, 0, 1, start=0) == 0


def test_the_policy_decides_among_those_whose_patience_has_ended() -> None:
    bench = among("oldest", 3, 0, 1, 2, patience=3)
    granted(bench, paused=mask(0), secondary=mask(0, 1, 2))
    order = [granted(bench, 0, 1, 2, 3) for _ in range(7)]
    assert order == [3, 3, 3, 0, 1, 2, 3]  # by age, although 0 is of the lowest class


def test_patience_at_its_full_length() -> None:
    bench = among("oldest", 0, 1, patience=1024)
    granted(bench, paused=mask(1))
    assert [granted(bench, 0, 1) for _ in range(1025)] == [*[0] * 1024, 1]


def test_without_patience_a_lower_class_waits_for_ever() -> None:
    bench = among("oldest", 0, 1)
    granted(bench, paused=mask(1))
    assert {granted(bench, 0, 1) for _ in range(5000)} == {0}


def test_a_refused_grant_is_none_for_the_state() -> None:
    for policy in SCHEDULERS:
        bench, other = (among(policy, *ALL, active_warps=2, patience=2) for _ in range(2))
        rng = random.Random(policy)
        for _ in range(200):
            inputs = {name: rng.getrandbits(6) for name in ("long_latency", "global_wait", "paused", "owner")}
            requests, refused = [slot for slot in ALL if rng.random() < 0.6], int(rng.random() < 0.3)
            grant = granted(bench, *requests, **inputs, refused=refused, hint=1)
            again = granted(other, *([] if refused else requests), **inputs, hint=1)
            assert refused or grant == again
            assert bench.state.tobytes() == other.state.tobytes()


def test_a_refused_warp_has_its_turn_when_it_comes_back() -> None:
    bench = among("lrr", 0, 1, 2)
    assert [granted(bench, 0, 1, 2), granted(bench, 0, 1, 2, refused=1)] == [0, 1]
    assert [granted(bench, 0, 1, 2), granted(bench, 0, 1, 2)] == [1, 2]  # before another went past it
    assert [granted(bench, 0, 1, 2, refused=1), granted(bench, 1, 2), granted(bench, 0, 2)] == [0, 1, 2]


@pytest.mark.parametrize("policy, other", [("gto", 0), ("greedy-rr", 2)])
def test_greed_outlasts_a_refusal_until_another_issues(policy: str, other: int) -> None:
    bench = among(policy, 0, 1, 2)
    assert [granted(bench, 1, 2), granted(bench, 0, 1, refused=1), granted(bench, 0, 1)] == [1, 1, 1]
    assert [granted(bench, 0, 1, refused=1), granted(bench, 0, 2), granted(bench, 0, 1)] == [1, other, 0]


def test_an_active_warp_yields_to_a_pending_one_of_a_higher_class() -> None:
    bench = among("two-level", 0, 1, 2, 3, active_warps=2)
    for _ in range(3):
        granted(bench)
    granted(bench, secondary=mask(0, 1))
    assert granted(bench, 2, 3) is None  # 0 and 1 are active, and 2 takes the place of the one active longest: 0
    assert granted(bench, 0, 3) is None
    assert granted(bench, 2) == 2
    assert {granted(bench, 2, 3), granted(bench, 2, 3), granted(bench, 2, 3)} == {2, 3}
    granted(bench, secondary=mask(2, 3))  # one per cycle, and they come back
    assert granted(bench, 0) is None
    assert granted(bench, 1) is None
    assert {granted(bench, 0, 1), granted(bench, 0, 1)} == {0, 1}


def test_a_paused_warp_issues_under_two_level_when_no_other_can() -> None:
    bench = among("two-level", 0, 1, 2, active_warps=1)
    granted(bench, paused=mask(2), long_latency=mask(0, 1))
    assert [granted(bench, 2) for _ in range(4)] == [None, None, 2, 2]  # room is seen, 2 becomes active, and issues
    assert granted(bench, 1, 2, long_latency=mask(0)) == 2
    assert granted(bench, 1, 2) == 2  # its last: 1 wants the place
    assert granted(bench, 1, 2) == 1


def test_patience_lets_a_pending_warp_go_without_becoming_active() -> None:
    bench = among("two-level", 0, 1, active_warps=1, patience=4)
    granted(bench, paused=mask(1))
    granted(bench)
    assert [granted(bench, 0, 1) for _ in range(10)] == [0, 0, 0, 0, 1, 0, 0, 0, 0, 1]


def test_simple_p_passes_the_priority_on_while_its_holder_waits_for_a_global_load() -> None:
    bench = among("simple-p", 2, 0, 1)
    granted(bench)
    assert [granted(bench, *ALL), granted(bench, 0, 1), granted(bench, *ALL)] == [2, 0, 2]
    assert granted(bench, 0, 1, global_wait=mask(2)) == 0
    assert [granted(bench, *ALL, global_wait=0), granted(bench, 1, 2), granted(bench, 2)] == [0, 1, 2]
    assert granted(bench, 2, global_wait=mask(0, 1)) == 2  # one warp per cycle: to 1, then to 2
    assert granted(bench, 2) == 2
    assert granted(bench, *ALL, global_wait=0) == 2
    assert granted(bench, global_wait=mask(0, 1, 2)) is None  # where all wait it stays
    assert granted(bench, *ALL, global_wait=0) == 2
    assert granted(bench, *ALL, hint=1) == 2
    assert granted(bench, *ALL, finish=mask(2)) == 2  # its end passes it on
    assert [granted(bench, 0, 1, finish=0), granted(bench, 1)] == [0, 1]


def test_region_p_passes_the_priority_on_at_its_holders_hint() -> None:
    bench = among("region-p", 2, 0, 1)
    granted(bench)
    assert granted(bench, *ALL, hint=1, refused=1) == 2
    assert granted(bench, 0, 1, hint=1) == 0  # not the holder's
    assert granted(bench, *ALL, global_wait=mask(2)) == 2
    assert [granted(bench, *ALL, hint=1), granted(bench, *ALL)] == [2, 0]
    assert [granted(bench, *ALL, hint=1), granted(bench, *ALL, hint=1), granted(bench, *ALL)] == [0, 1, 2]
    bench.i["start"] = mask(5)  # the youngest comes after 1, not before the holder
    assert granted(bench, *ALL, hint=1) == 2
    bench.i["start"] = 0
    assert [granted(bench, *ALL, hint=1) for _ in range(4)] == [0, 1, 5, 2]


def test_idle_until_the_priority_rests_and_active_warps_have_changed_places() -> None:
    bench = among("simple-p", 0, 1, 2)
    bench.i["global_wait"] = mask(0, 1)
    idle = []
    for _ in range(4):
        bench.comb()
        idle.append(bench.idle())
        bench.step()
    assert idle == [0, 0, NEVER, NEVER]
    bench = among("two-level", 0, 1, active_warps=1)
    granted(bench)
    bench.i["paused"], bench.i["request"] = mask(0), 0
    idle = []
    for _ in range(3):  # the class is taken, and 1 becomes active
        bench.comb()
        idle.append(bench.idle())
        bench.step()
    assert idle == [0, 0, NEVER]


def test_sizes_are_checked() -> None:
    with pytest.raises(ValueError, match="warps must be 1 to 64, not 65"):
        WarpScheduler(warps=65)
    with pytest.raises(ValueError, match="patience must be 0 to 4095, not 4096"):
        WarpScheduler(patience=4096)


def bits(**parameters: int) -> dict[str, int]:
    """Register bits of a scheduler, by name; rows and counts together."""
    found: Counter[str] = Counter()
    for register in Netlist(WarpScheduler(**parameters)).registers():
        found[register.name.rstrip("0123456789").rstrip("_")] += register.bits
    return dict(found)


@pytest.mark.exhaustive
@pytest.mark.long
def test_patience_costs_what_the_docstring_says() -> None:
    assert sum(bits().values()) - sum(bits(patience=0).values()) == 312


OF_CLASSES = {"higher", "lower", "urgent", "passes", "anew", "added"}


@pytest.mark.long
def test_one_class_alone_has_no_state_of_classes_and_patience() -> None:
    assert bits(warps=12).keys() - bits(warps=12, classes=0).keys() == OF_CLASSES
    assert bits(warps=12, classes=0, policies=policies("oldest")).keys() == {"live", "older"}


OF_TWO_LEVEL = {"after_last", "active", "waiting", "after_promoted", "filled", "entered"}


@pytest.mark.long
@pytest.mark.parametrize(
    "policy, own",
    [
        ("lrr", {"after_last"}), ("greedy-rr", {"after_last", "greedy"}), ("gto", {"older", "greedy"}),
        ("oldest", {"older"}), ("two-level", OF_TWO_LEVEL),
        ("simple-p", {"older", "holder", "before_holder"}), ("region-p", {"older", "holder", "before_holder"}),
    ],
)  # fmt: skip
def test_one_policy_alone_has_no_state_of_others(policy: str, own: set[str]) -> None:
    assert bits(warps=12, policies=policies(policy)).keys() == {"live"} | OF_CLASSES | own


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_scheduler_has_state_for_its_own_slots_alone() -> None:
    for schedulers in (1, 2, 4):
        found, own = bits(warps=12, schedulers=schedulers), 12 // schedulers
        assert found["live"] == own and found["older"] == own * (own - 1) // 2


def test_a_gpu_has_the_schedulers_that_it_needs() -> None:
    gpu = description.load("gtx980", {"core.scheduler": "lrr", "core.patience": 7})
    assert gpu.core.schedulers == 4
    found = configuration.parameters("scheduling.warp_scheduler", gpu)
    sizes = {"warps": 64, "schedulers": 4, "patience": 7}
    assert found == {**sizes, "classes": 0, "policies": policies("lrr")}


def test_a_gpu_has_classes_where_a_mechanism_sets_them() -> None:
    with registered():
        for name, classes in ("trial-classes", 1), ("trial-gate", 0):
            gpu = description.load("gtx480", selected=[name])
            assert configuration.parameters("scheduling.warp_scheduler", gpu)["classes"] == classes
