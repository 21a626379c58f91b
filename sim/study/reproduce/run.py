"""Runs the jobs of a chapter, in several processes; what has ended is kept."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job, Result, complaint
from lockstep.sim.study.sweep.runner import results
from lockstep.sim.study.sweep.schedulers import cores, local
from lockstep.sim.watch import Watch

__all__ = ["run"]


def run(jobs: Mapping[str, Job], watch: Watch, processes: int | None = None) -> dict[str, Result]:
    """The results of the jobs, by name. Raises :class:`UsageError` for one that fails or computes something wrong."""
    names = list(jobs)
    found = {}
    for position, result in results(list(jobs.values()), local(processes or cores()), watch, kept=True, retry=True):
        if trouble := complaint(result):
            raise UsageError(f"{names[position]}: {trouble}")
        found[names[position]] = result
    return {name: found[name] for name in names}
