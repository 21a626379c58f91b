"""Runs a job: one kernel, or two at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep.sim.study import job as alone
from lockstep.sim.study import pair
from lockstep.sim.study.job import Job, Result
from lockstep.sim.watch import Watch

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu

__all__ = ["execute"]


def execute(job: Job, watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None) -> Result:
    """Run a job, as :func:`lockstep.sim.study.job.execute` or :func:`lockstep.sim.study.pair.execute` does."""
    return (pair if job.secondary else alone).execute(job, watch, attach)
