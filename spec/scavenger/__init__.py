"""Scavenger (Kloosterman's thesis, chapter 5): two kernels on one SM, one of them with a performance target."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.scavenger import parameters

JOINED = Mechanism(
    name="scavenger",
    doc="shares an SM between two kernels, one with a target (Kloosterman, chapter 5): its hardware as one block",
    unit=parameters.UNIT,
    arguments=lambda gpu: {parameters.UNIT: parameters.SHIPPED},
    parts=parameters.parts,
)
