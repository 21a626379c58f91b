"""Warps in odd slots issue in one of ``period`` cycles only, as in the example of ``docs/add-a-mechanism.md``."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Mechanism, Parameters
from lockstep.spec.parameters import Gpu, integer
from lockstep.spec.statistics import CYCLES, counted

BLOCK = "odd_gate.turnstile"


@dataclass(frozen=True, kw_only=True)
class OddGate:
    """Every other cycle by default."""

    period: int = integer(2, 1, 256, "core cycles", "between two cycles in which warps in odd slots may issue")


def arguments(gpu: Gpu) -> Parameters:
    """The constructor arguments of the block."""
    return {BLOCK: dict(warps=gpu.core.warps, period=gpu.sections["odd_gate"].period)}


MECHANISM = Mechanism(
    name="odd-gate",
    doc="warps in odd slots issue in one of a number of cycles only",
    tenants={"gates": "lockstep.models.odd_gate.tenant"},
    sections={"odd_gate": OddGate},
    blocks=(BLOCK,),
    arguments=arguments,
    statistics=(
        counted(
            "odd_gate.closed_core_cycles",
            CYCLES,
            "odd_gate.closed",
            "a slot that has a warp was held back",
        ),
    ),
)
