"""ScavengerUnit, case by case; ``bench_scavenger_unit.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.scavenger import scavenger_unit
from lockstep.rtl import registry
from lockstep.rtl.scavenger.scavenger_unit import ScavengerUnit
from lockstep.spec.scavenger.control import End, State
from lockstep.spec.scavenger.fixed import IPC, WARPS
from lockstep.spec.scavenger.parameters import SHIPPED, UNIT, parts
from lockstep.verif.bench import Bench
from lockstep.verif.scavenger.bench_scavenger_unit import CONFIGURATIONS

ODD = CONFIGURATIONS["odd"]
TARGETING = 51  # cycles
VERDICT = {"odd": 9, "shipped": 14}  # cycles from the last one that is compared to the end of a profile
PAIRS = [(1, 4), (2, 2), (3, 1)]
Row = tuple[int, int]


class Sm(Bench):
    """The model, with a primary that has all its CTAs, issues two instructions in each cycle, and is to have 90 %."""

    def __init__(self, configuration: str = "odd", pairs: list[Row] = PAIRS, **parameters: int) -> None:
        super().__init__(scavenger_unit, **CONFIGURATIONS[configuration] | parameters)
        i = self.i
        i["percent"], i["instructions"], i["lanes"] = 90, 2, 40
        i["primary_cta_warps"] = i["secondary_cta_warps"] = 2
        for i["load"]["payload"]["primary"], i["load"]["payload"]["secondary"] in pairs:
            i["load"]["valid"] = 1
            self.step()
        i["load"]["valid"] = 0
        i["primary_ctas"] = 2

    def set(self, **inputs: int) -> None:
        for name, value in inputs.items():
            self.i[name] = value

    @property
    def stage(self) -> State:
        return State(int(self.o["state"]))

    def until(self, state: State, most: int = 2000) -> int:
        """Cycles up to the first one in this state."""
        for cycle in range(most):
            if self.stage == state:
                return cycle
            self.step()
        raise AssertionError(f"{self.stage.name}, not {state.name}")

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def end(self) -> tuple[int, End]:
        """Cycles up to the end of a run, and why it ends."""
        cycles = 0
        while not self.o["ends"]["valid"]:
            self.step()
            cycles += 1
        return cycles, End(int(self.o["ends"]["payload"]))

    def shares(self, of: str) -> Row:
        return int(self.o[f"primary_{of}"]), int(self.o[f"secondary_{of}"])


@pytest.mark.parametrize("configuration", ["odd", "shipped"])
def test_from_a_kernel_to_its_run(configuration: str) -> None:
    """The earliest end of a profile is that of the predictor; as shipped, after 20,112 + 14 cycles."""
    sm, p = Sm(configuration), CONFIGURATIONS[configuration]
    assert sm.until(State.CLEARING) == sm.until(State.PROFILING) == 1
    cycles = p["minimum"] + 16 * (p["comparisons"] - 1) + VERDICT[configuration]
    assert sm.until(State.TARGETING, cycles + 1) == cycles
    assert sm.until(State.RUNNING) == TARGETING
    assert sm.o["predicted"] == 2 * IPC.one and sm.o["target"] == round(1.8 * IPC.one)
    assert sm.shares("limit") == (3, 1), "the fewest of the secondary's CTAs"
    assert sm.shares("warps") == (p["warps"], 0) and sm.shares("requests") == (p["requests"], 0)


BLOCKERS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "a CTA of the secondary": ({"secondary_ctas": 1}, {"secondary_ctas": 0}),
    "a context": ({"writing": 1}, {"writing": 0}),
    "a CTA of the primary": ({"left": 1, "fits": 1}, {"left": 0}),
    "the first CTA of the primary": ({"left": 1, "primary_ctas": 0}, {"primary_ctas": 1}),
}
"""Inputs with which it waits, and without."""


@pytest.mark.parametrize("what", BLOCKERS)
def test_what_a_profile_waits_for(what: str) -> None:
    """It counts from the second cycle on without it."""
    sm = Sm()
    waits, goes_on = BLOCKERS[what]
    sm.set(**waits)
    sm.steps(30)
    assert sm.stage == State.CLEARING
    sm.set(**goes_on)
    assert sm.until(State.PROFILING) == 1
    sm.i["secondary_ctas"] = sm.i["writing"] = 1  # nor does it stop again
    sm.steps(5)
    assert sm.stage == State.PROFILING


@pytest.mark.parametrize("left, fits", [(1, 0), (0, 1)])
def test_no_further_cta_of_the_primary_comes(left: int, fits: int) -> None:
    sm = Sm()
    sm.i["left"], sm.i["fits"] = left, fits
    sm.step()
    assert sm.until(State.PROFILING) == 1


def test_without_a_pair_nothing_is_shared() -> None:
    sm = Sm(pairs=[])
    sm.steps(500)
    assert sm.stage == State.CLEARING and not sm.o["shares"]
    assert sm.shares("limit") == (ODD["ctas"], 0) and sm.shares("warps") == (ODD["warps"], 0)


@pytest.mark.parametrize("state", [State.CLEARING, State.PROFILING, State.TARGETING, State.RUNNING])
def test_without_a_primary_the_secondary_has_all(state: State) -> None:
    sm = Sm()
    sm.until(state)
    sm.i["primary_ctas"] = 0
    sm.i["left"] = 1  # one may still come
    sm.step()
    assert sm.stage != State.FREE
    sm.i["left"] = 0
    sm.step()
    assert sm.stage == State.FREE
    for of in ("ctas", "warps", "requests"):
        assert sm.shares("limit" if of == "ctas" else of) == (ODD[of], ODD[of])
    assert bool(sm.o["ends"]["valid"]) == (state == State.RUNNING)
    if state == State.RUNNING:
        assert sm.o["ends"]["payload"] == End.GONE


def test_a_profile_that_is_cut_short_sets_no_target() -> None:
    sm = Sm()
    sm.until(State.TARGETING)
    sm.steps(TARGETING - 3)
    sm.i["primary_ctas"] = 0
    sm.steps(100)
    assert sm.o["target"] == 0


@pytest.mark.parametrize("name", ["begins", "clear"])
def test_another_kernel_begins_a_profile_at_once(name: str) -> None:
    sm = Sm()
    sm.until(State.RUNNING)
    sm.steps(10)
    sm.i[name] = 1
    sm.step()
    sm.i[name] = 0
    assert sm.stage == State.CLEARING and sm.o["ends"]["payload"] == End.KERNEL
    if name == "begins":
        assert sm.until(State.PROFILING) == 1
    else:
        sm.steps(100)
        assert sm.stage == State.CLEARING and not sm.o["shares"], "until pairs are loaded"


def _ends(instructions: int, lanes: int = 40, lines: int = 0, bucket: int | None = None) -> tuple[int, End]:
    """How a run ends, in which these are what each cycle has."""
    sm = Sm()
    i = sm.i
    i["sample"]["valid"] = 1
    i["memory_instructions"], i["requests"] = 1, 4
    sm.until(State.RUNNING)
    i["instructions"], i["lanes"], i["requests"] = instructions, lanes, 4 + lines
    if bucket is not None:
        i["sample"]["payload"] = bucket
    return sm.end()


# The profile has 120 cycles, so that means count from the end of the second beat on.
BEAT, ABOVE = ODD["interval"], ODD["above"]


def test_a_run_ends_by_lanes() -> None:
    """20 in the profile, then 12.5: beats 2, 3 and 4, and 22 cycles."""
    assert _ends(2, 25) == ((1 + ABOVE) * BEAT + 22, End.LANES)


def test_a_run_ends_by_requests() -> None:
    """4 in the profile, then 8: beats 2, 3 and 4, and 43 cycles."""
    assert _ends(2, 40, 4) == ((1 + ABOVE) * BEAT + 43, End.REQUESTS)


def test_a_run_ends_by_pcs() -> None:
    """Another bucket in all cycles: beat 2, and 64 cycles."""
    assert _ends(2, 40, 0, 5) == (2 * BEAT + 64, End.PCS)


def test_the_longest_run() -> None:
    """What tells it is no cycle of the run."""
    assert _ends(2) == (ODD["longest"] + 1, End.LENGTH)


def test_a_fallback_and_what_follows() -> None:
    """1.8 behind in each cycle: below -5 after three, and then for 61; the unit follows a cycle later."""
    sm = Sm()
    sm.until(State.RUNNING)
    sm.i["instructions"] = 0
    assert sm.end() == (3 + ODD["duration"] + 1, End.FALLBACK)
    assert sm.stage == State.ALONE
    assert sm.shares("limit") == (ODD["ctas"], 0) and sm.shares("requests") == (ODD["requests"], 0)
    assert sm.until(State.CLEARING) == ODD["time"] and sm.until(State.PROFILING) == 1


def test_another_kernel_ends_a_time_alone() -> None:
    """The run after its profile is a whole one, and begins before the time would be over."""
    sm = Sm(time=1000)
    sm.until(State.RUNNING)
    sm.i["instructions"] = 0
    sm.until(State.ALONE)
    sm.i["begins"], sm.i["instructions"] = 1, 2
    sm.step()
    sm.i["begins"] = 0
    assert sm.until(State.PROFILING) == 1
    sm.until(State.RUNNING)
    assert sm.end() == (ODD["longest"] + 1, End.LENGTH)


def test_a_run_begins_with_half_of_what_the_secondary_had() -> None:
    """And ``clear`` forgets it."""
    sm = Sm()
    sm.until(State.RUNNING)
    sm.i["instructions"], sm.i["active"], sm.i["ready"] = 7, 4, 4  # too fast, and all slack
    sm.steps(4 * BEAT)
    had, requests = sm.shares("warps")[1], sm.shares("requests")[1]
    assert had > 2 and requests > 2 and sm.shares("limit") == (3, 1)
    sm.i["begins"], sm.i["instructions"] = 1, 2
    sm.step()
    sm.i["begins"] = 0
    sm.until(State.RUNNING)
    assert sm.shares("warps") == (ODD["warps"] - had // 2, had // 2)
    assert sm.shares("requests") == (ODD["requests"] - requests // 2, requests // 2)
    sm.i["clear"] = 1
    sm.step()
    sm.i["clear"] = 0
    assert (sm.state["first_warps"], sm.state["first_requests"]) == (ODD["warps"], ODD["requests"])


def _after_a_beat(sm: Sm, of: int) -> int:
    """The allocation after the first beat of a run, in 256ths."""
    sm.until(State.RUNNING)
    sm.steps(2 * BEAT - 1)
    return int(sm.state["pid_controller"][of]["io"]["o"]["allocation"])


@pytest.mark.parametrize("ready, active, slack", [(1, 4, 64), (1, 3, 85), (4, 4, 256), (0, 0, 256), (0, 4, 0)])
def test_slack_of_warps(ready: int, active: int, slack: int) -> None:
    """Too fast by 0.2, in the beat and, so far, in no entry of the window: 32 cycles of 64 in the second.

    e_s = -0.2, and e_l is the mean of 63 errors and a zero.
    """
    sm = Sm()
    sm.i["ready"], sm.i["active"] = ready, active
    found = _after_a_beat(sm, 0)
    target = round(1.8 * IPC.one)
    short, long_term = 2 * IPC.one - target, round(63 * (2 * IPC.one - target) / 64)
    change = slack * ODD["scale"] * (ODD["proportional"] * short + ODD["integral"] * long_term) / 64 / IPC.one
    assert found == ODD["warps"] * WARPS.one - round(change)


@pytest.mark.parametrize("stall, outstanding, slack", [(0, 61, 0), (0, 0, 256), (40, 30, 64), (40, 40, 0), (40, 61, 0)])
def test_slack_of_requests(stall: int, outstanding: int, slack: int) -> None:
    """Of 61, or of what there was at a stall; a stall with nothing outstanding says nothing."""
    sm = Sm()
    sm.until(State.RUNNING)
    sm.i["stalled"], sm.i["primary_outstanding"] = 1, stall
    sm.step()
    sm.i["stalled"] = 0
    sm.i["primary_outstanding"], sm.i["secondary_outstanding"] = outstanding // 2, outstanding - outstanding // 2
    sm.steps(2 * BEAT + 20)
    assert sm.state["slack"][1] == slack and sm.state["stalled_with"] == (stall or ODD["requests"])


def test_the_stall_that_is_known_outlives_a_run_but_no_other_kernels() -> None:
    sm = Sm()
    sm.until(State.RUNNING)
    sm.i["stalled"], sm.i["secondary_outstanding"] = 1, 17
    sm.step()
    sm.i["begins"] = 1
    sm.steps(2)
    assert sm.stage == State.CLEARING and sm.state["stalled_with"] == 17
    sm.i["clear"] = 1
    sm.step()
    assert sm.state["stalled_with"] == ODD["requests"]


def test_as_shipped_the_parts_are_those_that_ship() -> None:
    for block, arguments in parts(**SHIPPED).items():
        name, _, number = block.partition("[")
        if number in ("", "0]"):
            registry.component(name)(**arguments)
    component = registry.component(UNIT)(**SHIPPED)
    assert len(component.parts) == 12 and component.parts["pid_controller_1"].latency <= SHIPPED["interval"]


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"entry": 24}, "entries x entry must be a power of two, at most 8192, not 48"),
        ({"entry": 1024, "entries": 16}, "entries x entry must be a power of two, at most 8192, not 16384"),
        ({"interval": 69}, "interval must be"),
        ({"percent": 1}, "scavenger_unit takes warps, .*, all of them"),
    ],
)
def test_arguments_are_checked(wrong: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ScavengerUnit(**{**ODD, **wrong})
