"""Where the simulator's own time goes: shares of the parts of the model, sampled (``lockstep bench --profile``).

The code is compiled with marks (``models/marks.py``), in a process of its own, since this one may have it without.
While a launch runs, a timer interrupts it every :data:`INTERVAL`, and the part that is at work is counted.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypedDict

from lockstep.sim.study.execution import execute
from lockstep.sim.study.job import Job, Result

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu

__all__ = ["INTERVAL", "Shares", "during", "sampled"]

INTERVAL = 0.001  # seconds; a sample takes up to 20 microseconds
ABBREVIATED = ("LSU", "L1", "L2", "DRAM")


class Shares(TypedDict):
    """Shares of the time of launches; their standard error is at most 0.5 / √samples."""

    samples: int
    interval_seconds: float
    parts: dict[str, float]


def sampled(job: Job, run: Callable[[Job], Result] | None = None) -> Result:
    """The result of a job, run in another process, with the key ``own_time`` (:class:`Shares`) besides."""
    with _environment(LOCKSTEP_MARKS="1"), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(run or _run, job).result()


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Let processes that begin here find these variables."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(job: Job) -> Result:
    counts: dict[str, int] = {}
    result = execute(job, attach=lambda gpu: follow(gpu, counts))
    return {**result, "own_time": shares(counts)}


def follow(gpu: Gpu, counts: dict[str, int]) -> None:
    """Sample all launches of a device from now on."""
    machine = gpu.machine
    launch = machine.launch

    def launched(*arguments: Any) -> Any:
        with during(counts):
            return launch(*arguments)

    vars(machine)["launch"] = launched


@contextmanager
def during(counts: dict[str, int]) -> Iterator[None]:
    """Add to ``counts`` how often each part is at work, as long as this lasts."""
    from lockstep.models import marks
    from lockstep.models.jit import address

    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    marks.WORDS[:] = 0
    libc.signal(signal.SIGALRM, address(marks.sample))  # for good: a signal that comes late would end the process
    signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for part in marks.Part:
            name = part.name if part.name in ABBREVIATED else part.name.lower()
            counts[name] = counts.get(name, 0) + int(marks.WORDS[1 + part])


def shares(counts: Mapping[str, int]) -> Shares:
    samples = sum(counts.values())
    parts = {name: count / samples if samples else 0.0 for name, count in counts.items()}
    return {"samples": samples, "interval_seconds": INTERVAL, "parts": parts}
