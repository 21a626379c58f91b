"""Skipping changes no cycle, no count and no byte of memory, whatever the parameters of a mechanism.

Every mechanism of the registry is tested here: at the extremes of its parameters (``extremes``), on small kernels.
"""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.core.frame import KINDS
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, slots
from lockstep.spec.registry import MECHANISMS
from lockstep.verif import combinations
from lockstep.verif.extremes import KERNELS, differences, extremes
from lockstep.verif.trial import gate
from lockstep.verif.trial.mechanisms import registered


@pytest.mark.long
@pytest.mark.parametrize(
    "kernel", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name != KERNELS[0])) for name in KERNELS]
)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_skipping_changes_nothing(mechanism: str, kernel: str) -> None:
    assert [line for possible in extremes(mechanism) for line in differences(kernel, mechanism, possible)] == []


@jit
def _sleeps_too_long(state, sm):
    """What the gate holds back changes in every cycle, and it asks for every third one."""
    entry = sm.frame.gate[state.gate]
    now = i64(sm.frame.now)
    for kind in range(KINDS):
        entry.closed[kind] = gate.ODD if now & 1 else 0
    return now + 3


def test_a_gate_that_sleeps_too_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "TENANTS", {"gates": slots(gate.STATE, SM, update=_sleeps_too_long)})
    with registered():
        wrong = differences("reduction", "trial-gate", [{}])
    assert any(line.startswith("reduction with trial-gate: launch 0: gpu.cycles: ") for line in wrong)


@pytest.mark.parametrize(
    ("mechanism", "end", "met"),
    [
        ("warppool", {"warppool.queues": 1}, {"warppool.queues": 1}),
        ("warppool", {"warppool.tags": 8}, {"warppool.tags": 8, "warppool.queues": 1}),  # too many for more queues
        ("dyncore", {"dyncore.off": 127}, {"dyncore.off": 1}),  # all others of two SMs
        ("rfv", {"rfv.percent": 1}, {"rfv.percent": 26}),  # a CTA of reduction has room
    ],
)
def test_the_first_possible_settings_are_met(
    mechanism: str, end: dict[str, Any], met: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[dict[str, Any]] = []
    run = combinations.run

    def noted(*arguments: Any) -> combinations.Observed:
        observed = run(*arguments)
        ran.append(arguments[3])
        return observed

    monkeypatch.setattr(combinations, "run", noted)
    [possible] = [each for each in extremes(mechanism) if each[0] == end]
    assert differences("reduction", mechanism, possible) == []
    assert len(ran) == 2 and ran[0].items() >= met.items()
