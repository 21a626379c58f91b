"""Where runs are made: in processes of this machine, by Dask, or by Slurm. See :data:`runner.Scheduler`."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from lockstep.sim.errors import UsageError
from lockstep.sim.study import store
from lockstep.sim.study.job import Job, Result, failed
from lockstep.sim.study.sweep.runner import Scheduler, Task, make
from lockstep.sim.watch import Watch

__all__ = ["SCHEDULERS", "cores", "dask", "local", "slurm"]

SCHEDULERS = ("local", "dask", "slurm")

ATTEMPTS = 2  # at a run whose process dies: it may have been killed for another reason
LOST = "the process that ran it was killed, twice; it may need more memory than there is"

PATIENCE = 10  # seconds to reach a Dask scheduler
INTERVAL = 0.5  # seconds between two looks at what Slurm's tasks have done


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def local(processes: int) -> Scheduler:
    """Run in ``processes`` processes, or, if that is 1, in this one."""

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
        resource_tracker.ensure_running()  # to start it would let interrupts through
        with ThreadPoolExecutor(self._count, initializer=_leave_interrupts) as threads:
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


def _leave_interrupts() -> None:
    """Let no interrupt come to this thread, and to processes that it starts, from their first instruction on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])


def _begin() -> None:
    """End with the parent, however it ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch(sentinel: int) -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Let no interrupt come before the end of the block, and none ever to threads and processes that begin in it."""
    resource_tracker.ensure_running()  # to start it would let interrupts through
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def dask(address: str, processes: int) -> Scheduler:
    """Run by the Dask scheduler at an address, or, without one, in ``processes`` processes of this machine.

    Workers elsewhere need this version of Lockstep, and the files of kernels and GPUs under the same names; they keep
    results in their own stores, and what they measure is kept here, too.
    """
    try:
        from distributed import Client, LocalCluster, as_completed
    except ImportError:
        raise UsageError("--scheduler dask needs Dask: pip install 'lockstep-sm[dask]'") from None

    def schedule(tasks: Sequence[Task], kept: bool, watch: Watch) -> Iterator[tuple[str, Result]]:
        options = dict(n_workers=min(processes, len(tasks)), threads_per_worker=1, dashboard_address=None)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is said in the results
        with ExitStack() as stack:
            with _interrupts_later():
                cluster = address or stack.enter_context(LocalCluster(**options, silence_logs=logging.CRITICAL))
                try:
                    client = stack.enter_context(Client(cluster, timeout=PATIENCE))
                except (OSError, ValueError) as error:
                    raise UsageError(f"--scheduler dask={address}: {error}") from None
            futures = {
                client.submit(make, job, key, kept, key=f"lockstep-{key}", pure=False): (job, key) for job, key in tasks
            }
            for future in as_completed(futures):
                job, key = futures[future]
                lost = future.exception()
                result = failed(job, f"Dask: {type(lost).__name__}: {lost}") if lost else future.result()
                if "cycles" in result and kept and not store.find(job, key):
                    store.keep(key, result)
                yield key, result

    return schedule


def slurm(parameters: Mapping[str, Any], count: int, logs: Path) -> Scheduler:
    """Run by Slurm, as an array of ``count`` tasks that share the runs; needs a shared file system.

    ``parameters`` are those of submitit's executor. Where there is no Slurm, submitit starts the tasks on this machine.
    """
    try:
        import submitit
    except ImportError:
        raise UsageError("--scheduler slurm needs submitit: pip install 'lockstep-sm[slurm]'") from None
    executor = submitit.AutoExecutor(folder=logs)
    try:
        executor.update_parameters(**parameters)
    except (NameError, TypeError, ValueError, AssertionError) as error:
        raise UsageError(f"[slurm]: {error}") from None

    def schedule(tasks: Sequence[Task], kept: bool, watch: Watch) -> Iterator[tuple[str, Result]]:
        shares = [tasks[first::count] for first in range(min(count, len(tasks)))]
        arrays = executor.map_array(_make_all, shares)
        left = {key: job for job, key in tasks}
        try:
            for share, array in zip(shares, arrays, strict=True):
                while not (ended := array.done()):
                    yield from _arrived(left)
                    time.sleep(INTERVAL)
                error = array.exception() if ended else None
                made = dict(zip((key for _, key in share), [] if error else array.result(), strict=False))
                for job, key in share:
                    if left.pop(key, None):
                        lost = f"its Slurm task came to no end; {array.paths.stderr} says why"
                        yield key, made.get(key) or store.find(job, key) or failed(job, lost)
        finally:
            for array in arrays:
                array.cancel(check=False)

    return schedule


def _make_all(tasks: Sequence[Task]) -> list[Result]:
    return [make(job, key, True) for job, key in tasks]


def _arrived(left: dict[str, Job]) -> Iterator[tuple[str, Result]]:
    """Those of the results that are in the store by now."""
    for key, job in list(left.items()):
        if found := store.find(job, key):
            del left[key]
            yield key, found
