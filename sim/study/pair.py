"""Two kernels on one GPU at the same time: each makes its input, runs, and is checked, as alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.sim.study.job import Job, Result, guard
from lockstep.sim.watch import Watch

if TYPE_CHECKING:
    from lockstep.sim.device.run import Run
    from lockstep.sim.device.streams import HostProgram
    from lockstep.sim.kernels import Kernel

__all__ = ["execute"]


def execute(jobs: Sequence[Job], watch: Watch | None = None) -> Result:
    """Run two jobs at once on the GPU of the first; the second gives its kernel, size and seed.

    The result has what is told of the GPU as a whole, with the keys of :func:`lockstep.sim.study.job.execute`, and
    under ``kernels`` an entry for each kernel: ``spans`` are the core cycles of its launches, from the begin of the
    first one on, and ``stats`` what can be told of it alone. Raises :class:`UsageError`.
    """
    from lockstep.sim import kernels
    from lockstep.sim.device import description
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.errors import UsageError
    from lockstep.sim.study.sources import code_version

    watch, job = watch or Watch(), jobs[0]
    version, found = code_version(), [kernels.find(each.kernel) for each in jobs]
    for kernel, each in zip(found, jobs, strict=True):
        if each.size not in kernel.sizes:
            raise UsageError(f"{kernel.name}: has no size {each.size!r}; it has {', '.join(kernel.sizes)}")
    gpu = Gpu(job.gpu, job.mechanisms, dict(job.settings), watch.progress, strict=job.strict)
    gpu.on_print = watch.printed
    runs: list[Run] = []
    gpu.after_launch.append(runs.append)
    gpu.streams.require_mechanisms()
    inputs = []
    for kernel, each in zip(found, jobs, strict=True):
        watch.phase(f"{kernel.name}: loading {kernel.ptx.name}, and making input, size {each.size}")
        module, data = gpu.load(kernel.ptx, kernel.registers), _setup(kernel, each)
        inputs.append((module, data))
    watch.phase("preparing the model: the first time, it is compiled: about 1 min 40 s on two idle cores")
    _ = gpu.machine
    start = time.perf_counter()
    names = " and ".join(kernel.name for kernel in found)
    watch.phase(f"{names} on {gpu.description.name}")
    ran = gpu.run_programs([_run(kernel, gpu, *given) for kernel, given in zip(found, inputs, strict=True)])
    watch.phase(f"{names}: checking")
    before = {id(run): sum(run.cycles for run in runs[:k]) for k, run in enumerate(runs)}
    each_one = [_told(*one, before) for one in zip(found, jobs, inputs, ran, strict=True)]
    wall, cycles = time.perf_counter() - start, sum(run.cycles for run in runs)
    instructions, simulated = sum(run.warp_instructions for run in runs), sum(run.wall_seconds for run in runs)
    return {
        **job.asked,
        "command": f"{job.command} --secondary {jobs[1].kernel} --secondary-size {jobs[1].size}",
        "code_version": version,
        "gpu": gpu.description.name,
        "size": job.size,
        "seed": job.seed,
        "strict": job.strict,
        "checked": all(each["checked"] for each in each_one),
        "message": "; ".join(f"{each['kernel']}: {each['message']}" for each in each_one),
        "kernels": each_one,
        "cycles": cycles,
        "warp_instructions": instructions,
        "ipc": instructions / cycles if cycles else 0.0,
        "wall_seconds": wall,
        "kwips": instructions / simulated / 1000 if simulated else 0.0,
        "stats": gpu.stats,
        "configuration": description.values(gpu.description),
    }


def _setup(kernel: Kernel, job: Job) -> Any:
    return guard(kernel.name, "setup", lambda: kernel.setup(job.size, job.seed))


def _run(kernel: Kernel, gpu: Any, module: Any, data: Any) -> Callable[[], Any]:
    return lambda: guard(kernel.name, "run", lambda: kernel.run(gpu, module, data))


def _told(kernel: Kernel, job: Job, given: tuple[Any, Any], program: HostProgram, before: Mapping[int, int]) -> Result:
    """What there is to say of one of the kernels; ``before`` are the core cycles before each run of the machine."""
    from lockstep.sim import kernels
    from lockstep.sim.device import statistics

    check = guard(kernel.name, "reference", lambda: kernels.check(kernel, program.result, given[1]))
    launches = [pending.run for pending in program.launches]
    raw: dict[str, Any] = {}
    for launch in launches:
        raw = statistics.accumulate(raw, launch.raw)
    cycles, instructions = sum(each.cycles for each in launches), sum(each.warp_instructions for each in launches)
    return {
        "kernel": kernel.name,
        "size": job.size,
        "seed": job.seed,
        "launches": len(launches),
        "cycles": cycles,
        "warp_instructions": instructions,
        "thread_instructions": sum(each.thread_instructions for each in launches),
        "ipc": instructions / cycles if cycles else 0.0,
        "checked": check.passed,
        "compared": check.compared,
        "message": check.message,
        "spans": [[before[id(each.together)] + cycle for cycle in (each.began, each.ended)] for each in launches],
        "stats": statistics.compute(raw, launches[0].gpu, some=True) if launches else {},
    }
