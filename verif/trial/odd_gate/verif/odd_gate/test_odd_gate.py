"""The mechanism: its effect counted by hand; ``verif/test_skipping.py`` runs it without skipping."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from lockstep.rtl.odd_gate.turnstile import Turnstile
from lockstep.spec.odd_gate import OddGate
from lockstep.verif.models.micro import Bench

STEPS = 16


def slope(settings: dict[str, Any], **launch: int) -> float:
    """Core cycles per addition, in a chain of them."""

    def cycles(count: int) -> int:
        bench = Bench("add.s32 %r3, %r3, %r1;\n" * count, settings, mechanisms=["odd-gate"])
        return bench(**launch).cycles

    return (cycles(4 * STEPS) - cycles(3 * STEPS)) / STEPS


@pytest.mark.parametrize(("warps", "period", "expected"), [(1, 2, 17), (2, 1, 17), (2, 2, 18), (2, 5, 20)])
def test_a_warp_in_an_odd_slot_waits_for_its_cycle(warps: int, period: int, expected: int) -> None:
    """A result takes 17 cycles; the warp in slot 1 then waits for the next multiple of the period."""
    settings = {"pipelines.integer.latency": 17, "odd_gate.period": period}
    assert slope(settings, block=32 * warps) == expected


def test_the_hardware_has_every_period() -> None:
    assert fields(OddGate)[0].metadata["high"] == Turnstile.LARGEST["period"]
