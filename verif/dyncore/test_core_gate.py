"""CoreGate, case by case; ``bench_core_gate.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.dyncore import core_gate
from lockstep.rtl.dyncore.core_gate import CoreGate
from lockstep.verif.bench import Bench

SMS, OFF, WINDOW, THRESHOLD = 30, 8, 2048, 40960  # the paper's
ALL = (1 << OFF) - 1


class Gate(Bench):
    """The model, by decisions."""

    def __init__(self) -> None:
        super().__init__(core_gate, sms=SMS, window=WINDOW, threshold=THRESHOLD)
        for _ in range(WINDOW):
            self.step()

    def window(self, total: int, busy: int = ALL) -> str:
        """A window in which all SMs issued for ``total`` cycles together: what the last ones do after its decision."""
        each = divmod(total, SMS)
        for sm in range(SMS):
            self.i["active"][sm] = each[0] + (sm < each[1])
        self.i["busy"][0] = busy
        for _ in range(WINDOW):
            self.step()
        return "off" if self.o["off"] else "drained" if self.o["drained"] else "awake"


def test_the_paper_s_threshold() -> None:
    gate = Gate()
    said = [gate.window(total) for total in (40961, 40960, 40959, 40960, 40961, 0)]
    assert said == ["awake", "awake", "drained", "drained", "awake", "drained"]


def test_what_is_drained_and_empty_is_off_for_good() -> None:
    gate = Gate()
    assert gate.window(0, 0) == "drained"
    assert gate.window(0, 1) == "drained"
    assert gate.window(SMS * WINDOW, 0) == "off"
    assert gate.window(SMS * WINDOW) == "off"


def test_the_first_window_decides_nothing() -> None:
    gate = Bench(core_gate, sms=SMS, window=WINDOW, threshold=THRESHOLD)
    for _ in range(WINDOW):
        gate.step()
    assert not gate.o["drained"]


def test_sizes_are_checked() -> None:
    for wrong, text in (
        ({"sms": 129}, "sms must be 1 to 128, not 129"),
        ({"off": 31}, "off must be 1 to 30, not 31"),
        ({"window": 31}, "window must be 32 to 65535, not 31"),
    ):
        with pytest.raises(ValueError, match=text):
            CoreGate(**wrong)
