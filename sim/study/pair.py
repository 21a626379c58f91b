"""Two kernels on one GPU at the same time: each makes its input, runs, and is checked, as alone.

The second may run again and again, until the first has ended, so that this always has company.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.device.streams import HostProgram
from lockstep.sim.study.job import Job, Result, events, guard, prepare, profiles, why_one_thread
from lockstep.sim.watch import Watch
from lockstep.spec.causes import CAUSES

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.run import Run
    from lockstep.sim.kernels import Kernel

__all__ = ["execute"]


def execute(job: Job, watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None) -> Result:
    """Run a job and its secondary at once. The results of all repetitions are checked.

    The result has what is told of the GPU as a whole, with the keys of :func:`lockstep.sim.study.job.execute`, and
    under ``kernels`` an entry for each kernel: ``spans`` are the core cycles of its launches, from the begin of the
    first one on; ``stats`` and ``timeline`` have what can be told of it alone. ``attach`` is called with the device
    before its machine is made. Raises :class:`UsageError`.
    """
    from lockstep.sim import kernels
    from lockstep.sim.device import description
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.study.sources import code_version

    watch, jobs = watch or Watch(), [each for each in (job, job.secondary) if each]
    version, found = code_version(), [kernels.find(each.kernel, each.size) for each in jobs]
    gpu = Gpu(
        job.gpu, job.mechanisms, dict(job.settings), watch.progress, strict=job.strict, profile=job.profile,
        threads=job.threads,
    )  # fmt: skip
    gpu.on_print = watch.printed
    runs: list[Run] = []
    gpu.after_launch.append(runs.append)
    gpu.streams.require_mechanisms()
    inputs = []
    for kernel, each in zip(found, jobs, strict=True):
        watch.phase(f"{kernel.name}: loading {kernel.ptx.name}, and making input, size {each.size}")
        module, data = gpu.load(kernel.ptx, kernel.registers), _setup(kernel, each)
        inputs.append((module, data))
    prepare(gpu, watch, attach)
    start = time.perf_counter()
    names = " and ".join(kernel.name for kernel in found)
    watch.phase(f"{names} on {gpu.description.name}")
    first, second = (_run(kernel, gpu, *given) for kernel, given in zip(found, inputs, strict=True))
    ran = gpu.run_programs(_company(first, second, gpu) if job.repeat else [_once(first), _once(second)])
    watch.phase(f"{names}: checking")
    before = {id(run): sum(run.cycles for run in runs[:k]) for k, run in enumerate(runs)}
    ones = enumerate(zip(found, jobs, inputs, ran, strict=True))
    each_one = [_told(*one, runs, stream, before) for stream, one in ones]
    wall, cycles = time.perf_counter() - start, sum(run.cycles for run in runs)
    instructions, simulated = sum(run.warp_instructions for run in runs), sum(run.wall_seconds for run in runs)
    return {
        **job.asked,
        "code_version": version,
        "kernel": " + ".join(kernel.name for kernel in found),
        "gpu": gpu.description.name,
        "size": job.size,
        "seed": job.seed,
        "strict": job.strict,
        "checked": all(each["checked"] for each in each_one),
        "message": "; ".join(f"{each['kernel']}: {each['message']}" for each in each_one),
        "kernels": each_one,
        "both": _while_both_ran(ran, runs, before),
        "launches": sum(each["launches"] for each in each_one),
        "cycles": cycles,
        "warp_instructions": instructions,
        "thread_instructions": sum(run.thread_instructions for run in runs),
        "ipc": instructions / cycles if cycles else 0.0,
        "wall_seconds": wall,
        "kwips": instructions / simulated / 1000 if simulated else 0.0,
        "one_thread": why_one_thread(runs),
        "stats": gpu.stats,
        "per_sm": gpu.per_sm,
        "printed": "".join(run.printed for run in runs),
        "timeline": [{name: column.tolist() for name, column in run.timeline.items()} for run in runs],
        "configuration": description.values(gpu.description),
        **({"profile": {"causes": CAUSES, "functions": _profiles(found, ran)}} if job.profile else {}),
        **({"events": [events(run) for run in runs]} if job.energy else {}),
    }


def _setup(kernel: Kernel, job: Job) -> Any:
    return guard(kernel.name, "setup", lambda: kernel.setup(job.size, job.seed))


Outputs = dict[str, Any]


@dataclass(frozen=True)
class _Ran:
    """What a host program has computed: its outputs, those of repetitions only where they differ from the first's."""

    outputs: list[Outputs]
    repetitions: list[int]  # launches of each


def _run(kernel: Kernel, gpu: Gpu, module: Any, data: Any) -> Callable[[], Outputs]:
    return lambda: guard(kernel.name, "run", lambda: kernel.run(gpu, module, data))


def _launches() -> int:
    """How many launches the host program has made, in whose thread this is called."""
    here = HostProgram.here()
    return len(here.launches) if here else 0


def _once(run: Callable[[], Outputs]) -> Callable[[], _Ran]:
    return lambda: _Ran([run()], [_launches()])


def _company(first: Callable[[], Outputs], second: Callable[[], Outputs], gpu: Gpu) -> list[Callable[[], _Ran]]:
    """Two host programs, of which the second repeats what it does until the first has ended."""
    over: list[bool] = []

    def one() -> _Ran:
        done = _once(first)()
        over.append(True)
        return done

    def other() -> _Ran:
        done, here = _Ran([], []), HostProgram.here()
        while not over:
            before = _launches()
            outputs = second()
            done.repetitions.append(_launches() - before)
            if not done.outputs or not _same(outputs, done.outputs[0]):
                done.outputs.append(outputs)
            if here:
                here.free(gpu.memory)
            if not done.repetitions[-1]:
                break  # it launches nothing, and the first would never go on
        return done

    return [one, other]


def _same(outputs: Outputs, first: Outputs) -> bool:
    """Whether two results are the same, bit for bit."""
    arrays = [{name: np.asarray(value) for name, value in each.items()} for each in (outputs, first)]
    return arrays[0].keys() == arrays[1].keys() and all(
        (array.dtype, array.shape, array.tobytes()) == (other.dtype, other.shape, other.tobytes())
        for array, other in ((array, arrays[1][name]) for name, array in arrays[0].items())
    )


def _profiles(found: Sequence[Kernel], ran: Sequence[HostProgram]) -> list[Result]:
    """Of each kernel function, over all its launches, with the kernel whose it is."""
    return [
        {**function, "kernel": f"{kernel.name}: {function['kernel']}"}
        for kernel, program in zip(found, ran, strict=True)
        for function in profiles([pending.run for pending in program.launches])
    ]


def _while_both_ran(ran: Sequence[HostProgram], runs: Sequence[Run], before: Mapping[int, int]) -> Result | None:
    """The core cycles up to the end of the program that ended first, and what each had issued by then."""
    if not all(program.launches for program in ran):
        return None
    last = [program.launches[-1].run for program in ran]
    ends = [before[id(launch.together)] + launch.ended for launch in last]
    stream = ends.index(min(ends))
    cycles, launch = ends[stream], last[stream]
    earlier = {id(run) for run in runs if before[id(run)] < before[id(launch.together)]}
    issued = [0, 0]
    issued[stream] = sum(pending.run.warp_instructions for pending in ran[stream].launches)
    beside = [each.run for each in ran[1 - stream].launches if id(each.run.together) in earlier]
    issued[1 - stream] = launch.beside + sum(each.warp_instructions for each in beside)
    return {"cycles": cycles, "warp_instructions": issued, "ipc": [each / cycles for each in issued]}


def _told(
    kernel: Kernel, job: Job, given: tuple[Any, Any], program: HostProgram, runs: Sequence[Run], stream: int,
    before: Mapping[int, int],
) -> Result:  # fmt: skip
    """What there is to say of one of the kernels; ``before`` are the core cycles before each run of the machine."""
    from lockstep.sim import kernels
    from lockstep.sim.device.run import summary

    done: _Ran = program.result
    checks = [
        guard(kernel.name, "reference", partial(kernels.check, kernel, outputs, given[1])) for outputs in done.outputs
    ]
    check = next((each for each in checks if not each.passed), checks[0])
    times = len(done.repetitions)
    return {
        "kernel": kernel.name,
        "size": job.size,
        "seed": job.seed,
        **summary([pending.run for pending in program.launches], before),
        "checked": check.passed,
        "compared": check.compared,
        "message": check.message + (f", in each of {times} repetitions" if times > 1 and check.passed else ""),
        "repetitions": done.repetitions,
        "timeline": [{name: column.tolist() for name, column in run.timelines[stream].items()} for run in runs],
    }
