"""Other programs, which end with what has started them: a compiler's own children, too, and those of other threads."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

__all__ = ["end_with", "run", "side_by_side"]

PR_SET_PDEATHSIG = 1  # of Linux

Item = TypeVar("Item")
Result = TypeVar("Result")

_running: set[subprocess.Popen[str]] = set()


def run(
    command: Sequence[str],
    cwd: Path | str | None = None,
    env: dict[str, str] | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, and take what it writes. An interrupt, or the end of the time, ends all of it."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8",
        errors="replace", process_group=0,
    ) as process:  # fmt: skip
        _running.add(process)
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            _end(process)
            raise
        finally:
            _running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def end_with(parent: int) -> None:
    """End this process when its parent ends, however that ends; at once if it is no more."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def side_by_side(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Call a function that runs programs on all items, in threads; the results in order.

    Interrupts come to the main thread alone: it ends the programs of the others.
    """
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        futures: list[Future[Result]] = []
        try:
            for item in items:
                futures.append(pool.submit(function, item))  # an interrupt may come when it has begun
            for future in futures:
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while _running or not all(future.done() for future in futures):
                for process in list(_running):
                    _end(process)
                time.sleep(0.05)  # one may be about to start another program
            raise
