"""Where runs are made: in processes of this machine, by Dask, or by Slurm. See :data:`runner.Scheduler`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from lockstep.sim.job import Job, Result, Watch, failed
from lockstep.sim.sweep.runner import Scheduler, Task, make

__all__ = ["cores", "local"]

ATTEMPTS = 2  # at a run whose process dies: it may have been killed for another reason
LOST = "the process that ran it was killed, twice; it may need more memory than there is"


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def local(processes: int) -> Scheduler:
    """In so many processes, or for one in this one."""

    def schedule(tasks: Sequence[Task], kept: bool, watch: Watch) -> Iterator[tuple[str, Result]]:
        if processes == 1 or len(tasks) == 1:
            yield from ((key, make(job, key, kept, watch)) for job, key in tasks)
        else:
            for key, result in _Processes(min(processes, len(tasks))).run(tasks, kept):
                watch.printed(result.get("printed", ""))
                yield key, result

    return schedule


class _Processes:
    """A thread for each process: when a process dies, it is clear which run it had, and the others go on."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._context = multiprocessing.get_context("spawn")
        self._own = threading.local()
        self._pools: list[ProcessPoolExecutor] = []
        self._stopped = False

    def run(self, tasks: Sequence[Task], kept: bool) -> Iterator[tuple[str, Result]]:
        with ThreadPoolExecutor(self._count) as threads:
            futures = {threads.submit(self._make, job, key, kept): key for job, key in tasks}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                self._stopped = True
                threads.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                raise
            finally:
                for pool in self._pools:
                    pool.shutdown(wait=False)

    def _make(self, job: Job, key: str, kept: bool) -> Result:
        for _ in range(ATTEMPTS):
            if self._stopped:
                raise CancelledError
            try:
                return self._pool().submit(make, job, key, kept).result()
            except BrokenProcessPool:
                self._own.pool = None
        return failed(job, LOST)

    def _pool(self) -> ProcessPoolExecutor:
        """The process of this thread."""
        if getattr(self._own, "pool", None) is None:
            self._own.pool = ProcessPoolExecutor(1, self._context, _begin)
            self._pools.append(self._own.pool)
        pool: ProcessPoolExecutor = self._own.pool
        return pool


def _begin() -> None:
    """Leave interrupts to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()
