"""One kernel on one GPU: make its input, run it, check its output, and gather what is reported about it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.sim.watch import Watch
from lockstep.spec import registry
from lockstep.spec.causes import CAUSES

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.profile import Profile
    from lockstep.sim.device.run import Run, Share

__all__ = ["Job", "Result", "complaint", "events", "execute", "failed", "guard", "measured", "prepare", "profiles",
           "why_one_thread"]  # fmt: skip

Result = dict[str, Any]  # with the keys of the JSON output


@dataclass(frozen=True)
class Job:
    """A run to be made.

    ``settings`` override parameters of the GPU's description; ``strict`` and ``profile`` are those of the ``Gpu``.
    ``energy``: the result has what takes energy, by launch and interval. ``secondary``, of which kernel, size and seed
    count, runs at the same time; with ``repeat`` again and again, until the first has ended. ``trace``: the folder of
    a trace that is replayed in the place of the kernel. ``threads`` of the host leave the result as it is.
    """

    kernel: str
    gpu: str = "gtx480"
    size: str = "small"
    seed: int = 1
    mechanisms: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    strict: bool = False
    profile: bool = False
    energy: bool = False
    secondary: Job | None = None
    repeat: bool = False
    trace: str = field(default="", repr=False)
    threads: int = field(default=1, repr=False)

    @property
    def command(self) -> str:
        """The command that runs it, from the same folder where it names files by relative paths."""
        inputs = ["--size", self.size, "--seed", str(self.seed)]
        words = ["lockstep", "run", *(["--trace", self.trace] if self.trace else [self.kernel]), "--gpu", self.gpu]
        words += [] if self.trace else inputs
        if self.mechanisms:
            words += ["--with", ",".join(self.mechanisms)]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value}"]
        words += ["--strict"] * self.strict + ["--profile"] * self.profile + ["--energy"] * self.energy
        if self.secondary:
            words += ["--secondary", self.secondary.kernel, "--secondary-size", self.secondary.size]
        return shlex.join([*words, *["--repeat"] * self.repeat])

    @property
    def asked(self) -> Result:
        """The entries of a result that say how it was asked for; others may ask for the same run in another way."""
        return {"command": self.command, "mechanisms": list(self.mechanisms), "settings": dict(self.settings)}


def failed(job: Job, message: str) -> Result:
    """The result of a job that came to no end: nothing was measured."""
    from lockstep.sim import kernels

    kernel = kernels.name_of(kernels.file_of(job.kernel))
    asked = {"kernel": kernel, "gpu": job.gpu, "size": job.size, "seed": job.seed, "strict": job.strict}
    return {**job.asked, **asked, "checked": False, "message": message}


def complaint(result: Result) -> str:
    """Why a result cannot be used, in a line; empty if it is right."""
    if result["checked"] or "trace" in result:
        return ""
    message: str = result["message"]
    return f"wrong result: {message}" if "cycles" in result else message


def execute(job: Job, watch: Watch | None = None, attach: Callable[[Gpu], None] | None = None) -> Result:
    """Run a job; the result has the keys of the JSON output.

    ``kwips`` (thousand warp instructions per second) counts the time of the launches alone; ``wall_seconds`` also that
    of making, copying and checking data. Neither contains compilation. ``attach`` is called with the device before its
    machine is made, unless it asks for that itself. Raises :class:`UsageError`.
    """
    from lockstep.sim import kernels
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.study.sources import code_version

    watch = watch or Watch()
    version = code_version()
    kernel = kernels.find(job.kernel, job.size)
    gpu = Gpu(
        job.gpu, job.mechanisms, dict(job.settings), watch.progress, strict=job.strict, profile=job.profile,
        threads=job.threads,
    )  # fmt: skip
    gpu.on_print = watch.printed
    runs: list[Run] = []
    gpu.after_launch.append(runs.append)
    watch.phase(f"{kernel.name}: loading {kernel.ptx.name}")
    module = gpu.load(kernel.ptx, kernel.registers)
    prepare(gpu, watch, attach)
    start = time.perf_counter()
    watch.phase(f"{kernel.name}: making input, size {job.size}")
    data = guard(kernel.name, "setup", lambda: kernel.setup(job.size, job.seed))
    watch.phase(f"{kernel.name} on {gpu.description.name}")
    outputs = guard(kernel.name, "run", lambda: kernel.run(gpu, module, data))
    watch.phase(f"{kernel.name}: checking")
    check = guard(kernel.name, "reference", lambda: kernels.check(kernel, outputs, data))
    wall = time.perf_counter() - start
    told = {"checked": check.passed, "compared": check.compared, "message": check.message}
    return {"kernel": kernel.name, "code_version": version, "wall_seconds": wall, **told, **measured(job, gpu, runs)}


def prepare(gpu: Gpu, watch: Watch, attach: Callable[[Gpu], None] | None) -> None:
    """Make the machine of a device, after ``attach`` has been called with it."""
    watch.phase("preparing the model: the first time, it is compiled: about 1 min 40 s on two idle cores")
    if attach:
        attach(gpu)
    _ = gpu.machine


def measured(job: Job, gpu: Gpu, runs: Sequence[Run]) -> Result:
    """What a result says of the launches of a job, all that have run on a device."""
    from lockstep.sim.device import description

    simulated = sum(run.wall_seconds for run in runs)
    cycles = sum(run.cycles for run in runs)
    instructions = sum(run.warp_instructions for run in runs)
    return {
        **job.asked,
        "gpu": gpu.description.name,
        "size": job.size,
        "seed": job.seed,
        "strict": job.strict,
        "launches": len(runs),
        "cycles": cycles,
        "warp_instructions": instructions,
        "thread_instructions": sum(run.thread_instructions for run in runs),
        "ipc": instructions / cycles if cycles else 0.0,
        "kwips": instructions / simulated / 1000 if simulated else 0.0,
        "one_thread": why_one_thread(runs),
        "stats": gpu.stats,
        "functions": _functions(runs, gpu),
        "per_sm": gpu.per_sm,
        "printed": "".join(run.printed for run in runs),
        "timeline": [{name: column.tolist() for name, column in run.timeline.items()} for run in runs],
        "configuration": description.values(gpu.description),
        **({"profile": {"causes": CAUSES, "functions": profiles(runs)}} if job.profile else {}),
        **({"events": [events(run) for run in runs]} if job.energy else {}),
    }


def why_one_thread(runs: Sequence[Run]) -> str:
    """Why a launch could not have had several threads of the host; empty: all could."""
    return next((run.one_thread for run in runs if run.one_thread), "")


def profiles(launches: Sequence[Run | Share]) -> list[dict[str, Any]]:
    """The profile of every kernel function, over all its launches."""
    found: dict[str, Profile] = {}
    for each in launches:
        if each.profile:
            found[each.kernel] = found[each.kernel] + each.profile if each.kernel in found else each.profile
    return [profile.as_json() for profile in found.values()]


def events(run: Run) -> dict[str, Any]:
    """What takes energy in a launch, by interval."""
    from lockstep.sim.device.timeline import increases

    names = (statistic for use in registry.energy(run.gpu.mechanisms) for statistic in use.statistics)
    counts = increases(run.intervals, run.gpu, names)
    return {
        "kernel": run.kernel,
        "core_cycle": run.intervals.ends.tolist(),
        "counts": {name: grown.tolist() for name, grown in counts.items()},
    }


def _functions(runs: Sequence[Run], gpu: Gpu) -> list[dict[str, Any]]:
    """The launches of every kernel function, added up, in the order in which they first ran."""
    from lockstep.sim.device import statistics

    launches: dict[str, list[Run]] = {}
    for run in runs:
        launches.setdefault(run.kernel, []).append(run)
    result = []
    for name, own in launches.items():
        raw: dict[str, Any] = {}
        for run in own:
            raw = statistics.accumulate(raw, run.raw)
        cycles = sum(run.cycles for run in own)
        stats = statistics.compute(raw, gpu.description)
        result.append({"name": name, "launches": len(own), "cycles": cycles, "stats": stats})
    return result


def guard(kernel: str, what: str, function: Callable[[], Any]) -> Any:
    """Call into a ``kernel.py``; what goes wrong in there is its author's mistake, told in one line."""
    from lockstep.models.stop import ModelFault
    from lockstep.sim.errors import UsageError

    try:
        return function()
    except (UsageError, ModelFault, BrokenPipeError):
        raise
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        place = ""
        while trace is not None:
            file = Path(trace.tb_frame.f_code.co_filename)
            if file.name == "kernel.py" or file.stem == kernel:
                place = f" at {file}:{trace.tb_lineno}"
            trace = trace.tb_next
        raise UsageError(f"{kernel}: {what}(){place}: {type(error).__name__}: {error}") from error
