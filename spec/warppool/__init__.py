"""WarpPool (Kloosterman's thesis, chapter 3)."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.warppool import parameters, statistics, storage

MECHANISM = Mechanism(
    name="warppool",
    doc="merges requests of several warps before the L1, and sends them in a chosen order (Kloosterman, chapter 3)",
    tenants={"path": "lockstep.models.warppool.path"},
    grids=2,
    sections={"warppool": parameters.WarpPool},
    check=parameters.check,
    blocks=parameters.BLOCKS,
    unit=parameters.UNIT,
    arguments=parameters.arguments,
    parts=parameters.parts,
    copies=parameters.copies,
    statistics=statistics.STATISTICS,
    laws=statistics.laws,
    measures={"lines per request": "warppool.lines_per_request"},
    # geometric means of section 3.4.2, figures 3.11 to 3.13
    published={"speed-up": 1.38, "lines per request": 1.08, "misses": 0.77},
    storage=storage.STORAGE,
)
