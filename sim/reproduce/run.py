"""Runs many jobs, in several processes, and keeps what has ended."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from lockstep.sim.errors import UsageError
from lockstep.sim.job import Job, Watch, execute
from lockstep.sim.reproduce import store


def run(jobs: Mapping[str, Job], watch: Watch, processes: int | None = None) -> dict[str, dict[str, Any]]:
    """The results of the jobs, by name. Raises :class:`UsageError` for one whose kernel computed something wrong."""
    results = {name: found for name, job in jobs.items() if (found := store.find(job)) is not None}
    left = [name for name in jobs if name not in results]

    def add(name: str, result: dict[str, Any]) -> None:
        if not result["checked"]:
            raise UsageError(f"{name}: wrong result: {result['message']}")
        store.keep(jobs[name], result)
        results[name] = result
        watch.phase(f"{len(results)} of {len(jobs)} runs: {name}")

    if left:  # alone, since it may have to compile the model, which the others then find
        add(left[0], execute(jobs[left[0]], watch))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes or os.cpu_count(), context) as pool:
        running = {pool.submit(execute, jobs[name]): name for name in left[1:]}
        try:
            for done in as_completed(running):
                add(running[done], done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise
    return {name: results[name] for name in jobs}
