"""SlidingWindow, case by case; ``bench_sliding_window.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.scavenger import sliding_window
from lockstep.rtl.scavenger.sliding_window import SlidingWindow
from lockstep.spec.scavenger.fixed import ERROR
from lockstep.verif.bench import Bench


class Window(Bench):
    def __init__(self, entries: int = 16, cycles: int = 512, bits: int = 8, signed: int = 0) -> None:
        super().__init__(sliding_window, entries=entries, cycles=cycles, bits=bits, signed=signed)

    def after(self, value: int, cycles: int) -> int:
        """The total after some cycles with a value."""
        self.i["value"] = value
        for _ in range(cycles):
            self.step()
        return int(self.o["total"])


@pytest.mark.parametrize("entries, cycles", [(16, 512), (128, 64)])
def test_both_readings_of_the_window_have_8192_cycles(entries: int, cycles: int) -> None:
    """The first value counts in the second cycle: 32 lanes in each cycle, but for one."""
    window = Window(entries, cycles)
    assert window.after(32, 8192) == 32 * 8191
    assert window.after(32, cycles) == 32 * 8192
    assert window.after(0, 8192) == 32  # which is in the oldest entry
    assert window.after(0, cycles) == 0


def test_the_total_changes_with_entries_only() -> None:
    window = Window()
    assert [window.after(1, 511), window.after(1, 1), window.after(1, 511), window.after(1, 1)] == [0, 511, 511, 1023]


def test_errors_are_in_two_s_complement() -> None:
    """A mean error of -0.25 over 8,192 cycles, and then as much above."""
    window = Window(bits=ERROR.bits, signed=1)
    total = window.after(ERROR.port(ERROR.code(-0.25)), 8193)
    window.after(0, 511)
    assert total == (1 << 33) + ERROR.code(-0.25) * 8191
    assert window.after(ERROR.port(ERROR.code(0.25)), 4097) < 1 << 33


def test_a_run_begins_with_zeros() -> None:
    window = Window()
    window.after(200, 5000)
    window.i["clear"] = 1
    assert window.after(200, 1) == 0
    window.i["clear"] = 0
    assert window.after(0, 8192) == 0


@pytest.mark.parametrize(
    "wrong, text",
    [
        ({"entries": 129}, "entries must be 1 to 128, not 129"),
        ({"cycles": 1}, "cycles must be 2 to 1024, not 1"),
        ({"bits": 21}, "bits must be 1 to 20, not 21"),
        ({"signed": 2}, "signed must be 0 to 1, not 2"),
    ],
)
def test_parameters_are_checked(wrong: dict[str, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        SlidingWindow(**wrong)
