"""Warps in odd slots issue in one of ``period`` cycles: the example of ``docs/add-a-mechanism.md``."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Mechanism, Parameters
from lockstep.spec.parameters import Gpu, integer
from lockstep.spec.statistics import CYCLES, counted

GATE = "odd_gate.gate"
MAX_PERIOD = 256


@dataclass(frozen=True, kw_only=True)
class OddGate:
    """Every other cycle by default."""

    period: int = integer(2, 1, MAX_PERIOD, "core cycles", "between two cycles in which warps in odd slots may issue")


def arguments(gpu: Gpu) -> Parameters:
    """The constructor arguments of the block."""
    return {GATE: dict(warps=gpu.core.warps, period=gpu.sections["odd_gate"].period)}


MECHANISM = Mechanism(
    name="odd-gate",
    doc="warps in odd slots issue in one of a number of cycles only",
    tenants={"gates": "lockstep.models.odd_gate.tenant"},
    sections={"odd_gate": OddGate},
    blocks=(GATE,),
    arguments=arguments,
    statistics=(
        counted("odd_gate.closed_core_cycles", CYCLES, "odd_gate.closed", "the gate held back a slot that has a warp"),
    ),
)
