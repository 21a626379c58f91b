"""What it costs to look at a run: ``python -m lockstep.verif.observing [KERNEL...]``.

Each kernel runs plainly and observed, by turns, so that all meet the same machine; the shortest processor times of the
launches are compared. *plain* has one interval for the whole launch, and so have profile, timeline and around-stop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from lockstep.sim import Gpu, kernels
from lockstep.sim.device.trace.trace import Trace
from lockstep.sim.output import table

KERNELS = ("saxpy", "gemm", "spmv", "transpose-columns")
TURNS = 20
Ways = dict[str, Callable[[Gpu], None]]


def _one_interval(gpu: Gpu) -> None:
    gpu.every = 1 << 60


def _profile(gpu: Gpu) -> None:
    _one_interval(gpu)
    gpu.profile = True


def _trace(gpu: Gpu, around_stop: int | None) -> None:
    _one_interval(gpu)
    gpu.tracing = Trace(around_stop=around_stop)


WAYS: Ways = {
    "plain": _one_interval,
    "intervals": lambda gpu: None,
    "profile": _profile,
    "timeline": lambda gpu: _trace(gpu, None),
    "around-stop": lambda gpu: _trace(gpu, 2000),
}


def seconds(name: str, attach: Callable[[Gpu], None]) -> float:
    """Processor time of the launches of a kernel."""
    kernel = kernels.find(name)
    gpu = Gpu("gtx480")
    _ = gpu.machine
    attach(gpu)
    module, data = gpu.load(kernel.ptx), kernel.setup("small", 1)
    start = time.process_time()
    kernel.run(gpu, module, data)
    return time.process_time() - start


def main(names: Sequence[str]) -> None:
    rows = []
    for name in names or KERNELS:
        turns = [{way: seconds(name, attach) for way, attach in WAYS.items()} for _ in range(TURNS)]
        least = {way: min(turn[way] for turn in turns) for way in WAYS}
        rows += [(name, way, taken, f"{taken / least['plain'] - 1:+.1%}") for way, taken in least.items()]
    table("processor time of launches, the shortest of several", ("kernel", "", "seconds", "more"), rows)


if __name__ == "__main__":
    main(sys.argv[1:])
