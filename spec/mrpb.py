"""MRPB, the memory request prioritisation buffer (Jia et al., HPCA 2014), as Kloosterman's thesis compares with it."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.frame import COALESCER, coalescer
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import MAX_WARPS, integer

MAX_REQUESTS = 32  # of a queue


@dataclass(frozen=True, kw_only=True)
class Mrpb:
    """Six times WarpPool's 64 tags by default."""

    warps_per_queue: int = integer(1, 1, MAX_WARPS, "warps", "warps of a group, which share a queue")
    requests: int = integer(8, 1, MAX_REQUESTS, "requests", "entries of a queue")


MECHANISM = Mechanism(
    name="mrpb",
    doc="queues requests by group of warps before the L1, drains one group at a time (Jia et al.; Kloosterman, 3.4.1)",
    tenants={"path": "lockstep.models.mrpb.path"},
    grids=2,
    sections={"mrpb": Mrpb},
    blocks=(COALESCER,),
    arguments=coalescer,
)
