"""`lockstep bench`: the speed of the model."""

from __future__ import annotations

import os
import platform
from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.study.job import execute
from lockstep.spec.statistics import ratio

BENCHMARK = ("saxpy", "gemm", "hotspot", "spmv", "bfs", "sgemm", "mri-q")


def arguments(to: ArgumentParser) -> None:
    to.add_argument("kernels", metavar="KERNEL", nargs="*")
    shared.one_gpu(to)
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    results = []
    with Display(options.json) as watch:
        for kernel in options.kernels or BENCHMARK:
            job = shared.job(options, kernel)
            results.append(execute(job, watch))
    for result in results:
        result["machine"] = machine()
        seconds = ratio(result["warp_instructions"], 1000 * result["kwips"])
        result["seconds_per_launch"] = ratio(seconds, result["launches"])
    if options.json != "-":
        columns = ("kernel", "warp instructions", "cycles", "IPC", "seconds", "kwips", "launches", "ms each", "checked")
        what = f"{options.gpu} with {', '.join(job.mechanisms)}" if job.mechanisms else options.gpu
        table(f"{what}, {options.size}; kwips: thousand warp instructions per second, one core", columns, [
            (r["kernel"], r["warp_instructions"], r["cycles"], r["ipc"], r["wall_seconds"], r["kwips"], r["launches"],
             1000 * r["seconds_per_launch"], r["checked"])
            for r in results
        ])  # fmt: skip
        print(machine())
    return shared.finish(options, results, results)


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
