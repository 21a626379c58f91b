"""Scavenger (Kloosterman's thesis, chapter 5): two kernels on one SM, one of them with a performance target."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.scavenger import parameters, statistics, storage

_TENANT = "lockstep.models.scavenger.tenant"

MECHANISM = Mechanism(
    name="scavenger",
    doc="lets a second kernel use what the first leaves of an SM, at a target of its speed (Kloosterman, chapter 5)",
    tenants=dict.fromkeys(("gates", "limits", "events", "monitors"), _TENANT),
    requires=("preemption",),
    sections={"scavenger": parameters.Scavenger},
    check=parameters.check,
    blocks=parameters.BLOCKS,
    unit=parameters.UNIT,
    arguments=parameters.arguments,
    parts=parameters.parts,
    copies=parameters.copies,
    statistics=statistics.STATISTICS,
    shown=statistics.SHOWN,
    laws=statistics.laws,
    storage=storage.STORAGE,
    grids=2,
)
