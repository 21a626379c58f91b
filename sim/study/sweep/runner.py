"""Runs many jobs, each as often as it must be: what has been kept is not run again, and equal jobs are run once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

from lockstep.models import cache
from lockstep.sim.errors import UsageError
from lockstep.sim.study import store
from lockstep.sim.study.execution import execute
from lockstep.sim.study.job import Job, Result, failed
from lockstep.sim.watch import Watch

__all__ = ["Scheduler", "Task", "make", "results"]

Task = tuple[Job, str]
"""A job and its key."""

Scheduler = Callable[[Sequence[Task], bool, Watch], Iterator[tuple[str, Result]]]
"""Runs tasks by :func:`make`, wherever; yields keys and results as they come. The other arguments are those of make."""


def make(job: Job, key: str, kept: bool, watch: Watch | None = None) -> Result:
    """The result of a job, which is kept if it is one that would come again; of a job that fails, :func:`failed`.

    With ``kept``, processes that want the same result at the same time share the work.
    """
    from lockstep.models.stop import ModelFault

    with cache.alone(f"run {key}") if kept else nullcontext():
        if kept and (found := store.find(job, key)):
            return found
        try:
            store.unchanged(job, key)
        except UsageError as error:
            return failed(job, str(error))
        try:
            result = execute(job, watch)
        except (UsageError, ModelFault) as error:
            result = failed(job, str(error))
        except BrokenPipeError:
            raise
        except (MemoryError, OSError) as error:  # of the surroundings: the next time it may work
            return failed(job, f"{type(error).__name__}: {error}")
        if kept:
            try:
                store.unchanged(job, key)
            except UsageError as error:
                return failed(job, str(error))
            store.keep(key, result)
        return result


def results(
    jobs: Sequence[Job], scheduler: Scheduler, watch: Watch, *, kept: bool, retry: bool = False
) -> Iterator[tuple[int, Result]]:
    """The results of jobs, by their positions: first those that are there, then the others as they come.

    ``kept``: they are looked for in the store, and end there; ``retry``: except for those that failed.
    """
    positions: dict[str, list[int]] = {}
    there: list[tuple[list[int], Result]] = []
    for position, job in enumerate(jobs):
        try:
            positions.setdefault(store.key(job), []).append(position)
        except UsageError as error:  # its settings contradict each other
            there.append(([position], failed(job, str(error))))
    missing = []
    for key, [first, *_] in positions.items():
        found = store.find(jobs[first], key) if kept else None
        if found and retry and not found["checked"]:
            store.drop(key)
            found = None
        if found:
            there.append((positions[key], found))
        else:
            missing.append((jobs[first], key))

    count = Counter[bool]()
    for places, result in there:
        count[result["checked"]] += len(places)
        yield from _at(places, result, jobs)
    watch.runs(count.total(), len(jobs), count[False])
    for key, result in scheduler(missing, kept, watch) if missing else ():
        count[result["checked"]] += len(positions[key])
        watch.runs(count.total(), len(jobs), count[False])
        yield from _at(positions[key], result, jobs)


def _at(positions: Sequence[int], result: Result, jobs: Sequence[Job]) -> Iterator[tuple[int, Result]]:
    for position in positions:
        yield position, {**result, **jobs[position].asked}
