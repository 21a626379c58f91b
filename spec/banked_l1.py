"""An L1 of several banks, as Kloosterman's thesis compares with it (section 3.4.1)."""

from __future__ import annotations

from lockstep.spec.frame import whole_warps
from lockstep.spec.mechanism import Mechanism
from lockstep.spec.statistics import RATIO, of_sm, ratio

BANKS = 8

MECHANISM = Mechanism(
    name="banked-l1",
    doc="an L1 of eight banks: a look-up in each and one miss per cycle, for one instruction (Kloosterman, 3.4.1)",
    tenants={"path": "lockstep.models.banked_l1.path"},
    grids=2,
    check=lambda gpu: whole_warps(gpu, "banked-l1"),
    statistics=(
        of_sm("banked_l1.lines_per_cycle", RATIO, "lines that the banked L1 serves in a cycle in which it has any",
              lambda c: ratio(c("banked_l1.lines"), c("banked_l1.cycles"))),
    ),
    measures={"lines per request": "banked_l1.lines_per_cycle"},
    published={"lines per request": 1.18},  # section 3.4.2.2: lines per cycle
)  # fmt: skip
