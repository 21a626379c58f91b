"""A trace on a GPU: replayed, and reported as a kernel that runs. There is no result to check."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep.sim.study.job import Job, Result, measured, prepare
from lockstep.sim.watch import Watch

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu

__all__ = ["execute", "job"]

MESSAGE = "a trace was replayed: nothing was computed"


def job(folder: str, gpu: str | None = None) -> Job:
    """The job that replays a trace on a GPU; without one, under the configuration of the recording.

    Raises :class:`UsageError`.
    """
    from lockstep.sim.device import description
    from lockstep.sim.errors import UsageError
    from lockstep.sim.traces.read import Trace

    told = Trace(folder).manifest.provenance
    name = told.get("kernel")
    kernel = name if isinstance(name, str) and name.isprintable() else folder
    if gpu is not None:
        return Job(kernel, gpu, trace=folder)
    recorded, mechanisms, settings = told.get("gpu"), told.get("mechanisms", []), told.get("settings", {})
    if recorded not in description.names():
        raise UsageError(f"{folder}: was recorded on no GPU that Lockstep has; --gpu says on which it is replayed")
    known = isinstance(mechanisms, list) and all(isinstance(each, str) for each in mechanisms)
    if not known or not isinstance(settings, dict):
        raise UsageError(f"{folder}/trace.json: provenance: mechanisms must be names, settings an object")
    return Job(kernel, recorded, mechanisms=mechanisms, settings=settings, trace=folder)


def execute(asked: Job, watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None) -> Result:
    """Replay a trace; the result has the keys of :func:`lockstep.sim.study.job.execute`, and ``trace``, its folder.

    ``attach`` is called with the device before its machine is made. Raises :class:`UsageError`.
    """
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.study.sources import code_version
    from lockstep.sim.traces.read import Trace, notes

    watch = watch or Watch()
    version = code_version()
    trace = Trace(asked.trace)
    gpu = Gpu(asked.gpu, asked.mechanisms, dict(asked.settings), watch.progress, threads=asked.threads)
    prepare(gpu, watch, attach)
    from lockstep.sim.traces.replay import replay

    start = time.perf_counter()
    watch.phase(f"{asked.kernel}: replaying on {gpu.description.name}")
    runs = replay(trace, gpu)
    told = {"kernel": asked.kernel, "code_version": version, "checked": False, "compared": 0, "message": MESSAGE}
    about: Result = {"trace": asked.trace, "origin": trace.manifest.origin, "notes": notes(trace)}
    wall = time.perf_counter() - start
    return {**told, **about, "wall_seconds": wall, **measured(asked, gpu, runs)}
