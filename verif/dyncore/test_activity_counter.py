"""ActivityCounter, case by case; ``bench_activity_counter.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.dyncore import activity_counter
from lockstep.rtl.dyncore.activity_counter import ActivityCounter
from lockstep.verif.bench import Bench

WINDOW = 300


class Counter(Bench):
    def __init__(self) -> None:
        super().__init__(activity_counter, window=WINDOW)

    def cycles(self, active: list[int]) -> int:
        """The count after some cycles."""
        for self.i["active"] in active:
            self.step()
        return int(self.o["count"])


def test_each_cycle_is_counted_in_the_next() -> None:
    counter = Counter()
    assert counter.cycles([0] * (WINDOW - 1) + [1]) == 0
    assert counter.cycles([0] * WINDOW) == 1
    assert counter.cycles([1] * WINDOW) == WINDOW - 1
    assert counter.cycles([1] * WINDOW) == WINDOW


def test_the_count_of_a_window_holds_through_the_next() -> None:
    counter = Counter()
    counter.cycles([1] * 100 + [0] * (WINDOW - 100))
    assert {counter.cycles([1]) for _ in range(WINDOW - 1)} == {100}


@pytest.mark.parametrize("window", [15, 65536])
def test_windows_are_checked(window: int) -> None:
    with pytest.raises(ValueError, match=f"window must be 16 to 65535, not {window}"):
        ActivityCounter(window=window)
