"""Gates that do what the RTL does, and some that do not."""

from __future__ import annotations

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.sim.errors import UsageError
from lockstep.synth import equivalence
from lockstep.verif import levels
from lockstep.verif.blocks import declaration

pytestmark = pytest.mark.hardware


class Counter(wiring.Component):
    """Counts in steps, from the ``start``."""

    def __init__(self, step: int = 1, start: int = 0) -> None:
        super().__init__({"enable": In(1), "value": Out(4, init=start)})
        self.step = step

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.enable):
            m.d.sync += self.value.eq(self.value + self.step)
        return m


def test_other_gates_are_not_proved_equal() -> None:
    """Neither those that count otherwise, nor those that a reset gives another value."""
    same = equivalence.compare(Counter(), Counter())
    assert same.points > 0 and same.undecided == []
    assert equivalence.compare(Counter(), Counter(step=3)).undecided
    assert equivalence.compare(Counter(), Counter(start=2)).undecided


def test_the_level_tells_what_it_proves() -> None:
    check = levels._equivalence(declaration("dyncore.core_gate"))
    assert check.passed and check.detail == "22 points of 'odd' are equal in RTL and gates"


def test_blocks_that_are_not_proved_are_no_success() -> None:
    options = levels.Options("gates", 1)
    planned = levels._planned(["dyncore.core_gate", "regless.regless_shard", "modes"], options)
    assert [block for block, _ in planned] == ["dyncore.core_gate"]
    with pytest.raises(UsageError, match=r"regless_shard: its gates are not proved, .*; those of .*core_gate"):
        list(levels._planned(["regless.regless_shard"], options))
