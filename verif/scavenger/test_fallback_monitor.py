"""FallbackMonitor, case by case; ``bench_fallback_monitor.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.scavenger import fallback_monitor
from lockstep.rtl.netlist import Netlist
from lockstep.rtl.scavenger.fallback_monitor import FallbackMonitor
from lockstep.spec.scavenger.fixed import IPC, LEAD
from lockstep.verif.bench import Bench

LIMIT, DURATION, TIME = 10, 20, 30


class Monitor(Bench):
    """The model in a run."""

    def __init__(self, **parameters: int) -> None:
        super().__init__(fallback_monitor, **dict(limit=LIMIT, duration=DURATION, time=TIME) | parameters)
        self.i["run"] = 1

    def cycles(self, count: int, target: float, issued: int) -> list[tuple[int, int]]:
        """What the outputs are after each of so many cycles."""
        self.i["target"], self.i["issued"] = IPC.code(target), issued
        seen = []
        for _ in range(count):
            self.step()
            seen.append((int(self.o["alone"]), int(self.o["profile"])))
        return seen


def test_behind_for_the_duration() -> None:
    """One instruction behind in each cycle: below -10 from the 11th on; in the 31st the duration is over."""
    monitor = Monitor()
    seen = monitor.cycles(31 + TIME + 3, 2, 1)
    assert [alone for alone, _ in seen] == [0] * 30 + [1] * TIME + [0] * 4
    assert [k for k, (_, profile) in enumerate(seen) if profile] == [30 + TIME]


def test_the_limit_itself_is_not_below_it() -> None:
    monitor = Monitor()
    monitor.cycles(10, 2, 1)
    assert not any(alone for alone, _ in monitor.cycles(500, 1, 1))
    monitor.cycles(1, 1 + 1 / IPC.one, 1)
    assert monitor.cycles(DURATION, 1, 1)[-1] == (1, 0)


def test_one_cycle_at_the_limit_begins_the_duration_anew() -> None:
    monitor = Monitor()
    monitor.cycles(11, 2, 1)
    monitor.cycles(DURATION - 3, 1, 1)
    monitor.cycles(1, 1, 2)
    monitor.cycles(1, 2, 1)
    seen = monitor.cycles(DURATION + 2, 1, 1)
    assert [alone for alone, _ in seen].index(1) == DURATION - 1


def test_what_was_ahead_counts() -> None:
    """Forty instructions ahead, then one behind in each cycle: fifty cycles until the limit."""
    monitor = Monitor()
    monitor.cycles(20, 1, 3)
    assert [alone for alone, _ in monitor.cycles(100, 2, 1)].index(1) == 50 + DURATION


def test_a_run_begins_with_0() -> None:
    monitor = Monitor()
    monitor.cycles(25, 2, 1)
    monitor.i["run"] = 0
    monitor.step()
    monitor.i["run"] = 1
    assert [alone for alone, _ in monitor.cycles(40, 2, 1)].index(1) == 30


@pytest.mark.parametrize("cycles", [20, 31, 31 + TIME - 1])
def test_clear_ends_a_run_and_a_time_alone(cycles: int) -> None:
    """Without a profile; what follows is a run from its beginning."""
    monitor = Monitor()
    monitor.cycles(cycles, 2, 1)
    monitor.i["clear"] = 1
    assert monitor.cycles(3, 2, 1) == [(0, 0)] * 3
    monitor.i["clear"] = 0
    seen = monitor.cycles(31, 2, 1)
    assert [alone for alone, _ in seen] == [0] * 30 + [1] and not any(profile for _, profile in seen)


def test_the_sum_has_the_format_of_the_thesis_s_longest_run() -> None:
    bits = {register.name: register.bits for register in Netlist(FallbackMonitor()).registers()}
    assert bits["sum"] == LEAD.bits == 38


def test_arguments_are_checked() -> None:
    for wrong, text in (
        ({"limit": 2097152}, "limit must be 0 to 2097151, not 2097152"),
        ({"duration": 101, "longest": 100}, "duration must be 1 to 100, not 101"),
        ({"time": 0}, "time must be 1 to 1048575, not 0"),
    ):
        with pytest.raises(ValueError, match=text):
            FallbackMonitor(**wrong)
