"""`lockstep bench`: the speed of the model."""

from __future__ import annotations

import os
import platform
from argparse import ArgumentParser, Namespace
from typing import Any

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.study.job import Job, execute
from lockstep.sim.watch import Watch
from lockstep.spec.statistics import ratio

BENCHMARK = ("saxpy", "gemm", "hotspot", "spmv", "bfs", "sgemm", "mri-q")


def arguments(to: ArgumentParser) -> None:
    to.add_argument("kernels", metavar="KERNEL", nargs="*")
    shared.one_gpu(to)
    shared.threads(to)
    to.add_argument("--profile", action="store_true", help="show which parts of the model take the time")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    if options.profile and options.threads > 1:
        raise UsageError("--profile: samples one thread; it cannot be given with --threads")
    results = []
    with Display(options.json) as watch:
        for kernel in options.kernels or BENCHMARK:
            job = shared.job(options, kernel)
            results.append(_profiled(job, watch) if options.profile else execute(job, watch))
    shared.why_one_thread(options, results)
    for result in results:
        result["machine"] = machine()
        seconds = ratio(result["warp_instructions"], 1000 * result["kwips"])
        result["seconds_per_launch"] = ratio(seconds, result["launches"])
    if options.json != "-":
        columns = ("kernel", "warp instructions", "cycles", "IPC", "seconds", "kwips", "launches", "ms each", "checked")
        what = f"{options.gpu} with {', '.join(job.mechanisms)}" if job.mechanisms else options.gpu
        cores = "one core" if options.threads == 1 else f"{options.threads} threads"
        table(f"{what}, {options.size}; kwips: thousand warp instructions per second, {cores}", columns, [
            (r["kernel"], r["warp_instructions"], r["cycles"], r["ipc"], r["wall_seconds"], r["kwips"], r["launches"],
             1000 * r["seconds_per_launch"], r["checked"])
            for r in results
        ])  # fmt: skip
        if options.profile:
            show_profile(results)
        print(machine())
    return shared.finish(options, results, results)


def _profiled(job: Job, watch: Watch) -> dict[str, Any]:
    """A result with the shares of the model's parts, from a process of its own."""
    from lockstep.models import cache
    from lockstep.sim.study import own_time

    if cache.is_set("NUMBA_DISABLE_JIT"):
        raise UsageError("--profile: is for compiled code, which NUMBA_DISABLE_JIT leaves out")
    watch.phase(f"{job.kernel} with marks in the model: the first time, it is compiled once more")
    return own_time.sampled(job)


def show_profile(results: list[dict[str, Any]]) -> None:
    """Print the share of each part that has one, in per cent."""
    own = [result["own_time"] for result in results]
    parts = [part for part in own[0]["parts"] if any(each["parts"][part] > 0 for each in own)]
    error = max(50 / max(each["samples"], 1) ** 0.5 for each in own)
    rows = [(each["samples"], *(round(100 * each["parts"][part]) for part in parts)) for each in own]
    named = [(result["kernel"], *row) for result, row in zip(results, rows, strict=True)]
    what = f"per cent of the launches' time, sampled; the standard error is {error:.1f} or less"
    table(what, ("kernel", "samples", *parts), named)


def machine() -> str:
    """CPU, cores, and the versions that matter for speed."""
    import numba
    import numpy

    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    versions = f"Python {platform.python_version()}, Numba {numba.__version__}, NumPy {numpy.__version__}"
    return f"{model}, {os.cpu_count()} cores, {versions}"
