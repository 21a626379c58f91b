"""How many registers warps use in a window of time (Kloosterman's thesis, figure 4.2). It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import integer
from lockstep.spec.statistics import Counts, of_sm, ratio


@dataclass(frozen=True, kw_only=True)
class WorkingSet:
    window: int = integer(100, 1, 1 << 20, "core cycles", "a register that is used more than once in it counts once")


def _mean(c: Counts) -> float:
    window: int = c.gpu.sections["working_set"].window
    return ratio(c("working_set.registers") * window, c("sm.cycles"))


MECHANISM = Mechanism(
    name="working-set",
    doc="counts the registers that warps use in windows of time, and changes nothing (Kloosterman, figure 4.2)",
    tenants={"events": "lockstep.models.working_set.tenant"},
    sections={"working_set": WorkingSet},
    statistics=(
        of_sm("working_set.registers", "registers",
              "warp registers that instructions read or write in a window, a mean of an SM with work", _mean),
    ),
)  # fmt: skip
