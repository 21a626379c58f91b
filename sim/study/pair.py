"""Two kernels on one GPU at the same time: each makes its input, runs, and is checked, as alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.sim.study.job import Job, Result, events, guard
from lockstep.sim.watch import Watch

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.run import Run
    from lockstep.sim.device.streams import HostProgram
    from lockstep.sim.kernels import Kernel

__all__ = ["execute"]


def execute(
    jobs: Sequence[Job], watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None
) -> Result:
    """Run two jobs at once on the GPU of the first; the second gives its kernel, size and seed.

    The result has what is told of the GPU as a whole, with the keys of :func:`lockstep.sim.study.job.execute`, and
    under ``kernels`` an entry for each kernel: ``spans`` are the core cycles of its launches, from the begin of the
    first one on; ``stats`` and ``timeline`` have what can be told of it alone. ``attach`` is called with the device
    before its machine is made. Raises :class:`UsageError`.
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
    if attach:
        attach(gpu)
    _ = gpu.machine
    start = time.perf_counter()
    names = " and ".join(kernel.name for kernel in found)
    watch.phase(f"{names} on {gpu.description.name}")
    ran = gpu.run_programs([_run(kernel, gpu, *given) for kernel, given in zip(found, inputs, strict=True)])
    watch.phase(f"{names}: checking")
    before = {id(run): sum(run.cycles for run in runs[:k]) for k, run in enumerate(runs)}
    ones = enumerate(zip(found, jobs, inputs, ran, strict=True))
    each_one = [_told(*one, runs, stream, before) for stream, one in ones]
    wall, cycles = time.perf_counter() - start, sum(run.cycles for run in runs)
    instructions, simulated = sum(run.warp_instructions for run in runs), sum(run.wall_seconds for run in runs)
    return {
        **job.asked,
        "command": f"{job.command} --secondary {jobs[1].kernel} --secondary-size {jobs[1].size}",
        "code_version": version,
        "kernel": " + ".join(kernel.name for kernel in found),
        "gpu": gpu.description.name,
        "size": job.size,
        "seed": job.seed,
        "strict": job.strict,
        "checked": all(each["checked"] for each in each_one),
        "message": "; ".join(f"{each['kernel']}: {each['message']}" for each in each_one),
        "kernels": each_one,
        "launches": sum(each["launches"] for each in each_one),
        "cycles": cycles,
        "warp_instructions": instructions,
        "thread_instructions": sum(run.thread_instructions for run in runs),
        "ipc": instructions / cycles if cycles else 0.0,
        "wall_seconds": wall,
        "kwips": instructions / simulated / 1000 if simulated else 0.0,
        "stats": gpu.stats,
        "per_sm": gpu.per_sm,
        "printed": "".join(run.printed for run in runs),
        "timeline": [{name: column.tolist() for name, column in run.timeline.items()} for run in runs],
        "configuration": description.values(gpu.description),
        **({"events": [events(run) for run in runs]} if job.energy else {}),
    }


def _setup(kernel: Kernel, job: Job) -> Any:
    return guard(kernel.name, "setup", lambda: kernel.setup(job.size, job.seed))


def _run(kernel: Kernel, gpu: Any, module: Any, data: Any) -> Callable[[], Any]:
    return lambda: guard(kernel.name, "run", lambda: kernel.run(gpu, module, data))


def _told(
    kernel: Kernel, job: Job, given: tuple[Any, Any], program: HostProgram, runs: Sequence[Run], stream: int,
    before: Mapping[int, int],
) -> Result:  # fmt: skip
    """What there is to say of one of the kernels; ``before`` are the core cycles before each run of the machine."""
    from lockstep.sim import kernels
    from lockstep.sim.device.streams import summary

    check = guard(kernel.name, "reference", lambda: kernels.check(kernel, program.result, given[1]))
    return {
        "kernel": kernel.name,
        "size": job.size,
        "seed": job.seed,
        **summary([pending.run for pending in program.launches], before),
        "checked": check.passed,
        "compared": check.compared,
        "message": check.message,
        "timeline": [{name: column.tolist() for name, column in run.timelines[stream].items()} for run in runs],
    }
