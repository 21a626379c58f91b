"""Runs a job: one kernel, two at the same time, or a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep.sim.study import job as alone
from lockstep.sim.study import pair, replayed
from lockstep.sim.study.job import Job, Result
from lockstep.sim.watch import Watch

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu

__all__ = ["execute"]


def execute(job: Job, watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None) -> Result:
    """Run a job, as ``execute`` of ``sim.study.job``, ``sim.study.pair`` or ``sim.study.replayed`` does."""
    how = replayed if job.trace else pair if job.secondary else alone
    return how.execute(job, watch, attach)
