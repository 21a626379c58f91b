"""The mechanism: its effect counted by hand, and a run in which no SM sleeps."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.verif import combinations
from lockstep.verif.models.micro import Bench

STEPS = 16


def slope(settings: dict[str, Any], **launch: int) -> float:
    """Core cycles per addition, in a chain of them."""

    def cycles(count: int) -> int:
        return Bench("add.s32 %r3, %r3, %r1;\n" * count, settings, mechanisms=["odd-gate"])(**launch).cycles

    return (cycles(4 * STEPS) - cycles(3 * STEPS)) / STEPS


@pytest.mark.parametrize(("warps", "period", "expected"), [(1, 2, 17), (2, 1, 17), (2, 2, 18), (2, 5, 20)])
def test_a_warp_in_an_odd_slot_waits_for_its_cycle(warps: int, period: int, expected: int) -> None:
    """A result takes 17 cycles; the warp in slot 1 then waits for the next multiple of the period."""
    settings = {"pipelines.integer.latency": 17, "odd_gate.period": period}
    assert slope(settings, block=32 * warps) == expected


@pytest.mark.parametrize("period", [2, 7])
@pytest.mark.parametrize("name", ["saxpy", "bfs"])
def test_skipping_changes_nothing(name: str, period: int) -> None:
    one, other = (combinations.run(name, ["odd-gate"], skip, {"odd_gate.period": period}) for skip in (True, False))
    assert not one.wrong and one.raw == other.raw
