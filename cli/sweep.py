"""The commands `compare` and `sweep`: many runs side by side, made anew or kept."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.sim.columns import check_parquet, csv_text, parquet
from lockstep.sim.errors import UsageError, one_line
from lockstep.sim.output import Display, check_writable, table, write_file, write_json, write_text
from lockstep.sim.study import comparison, store
from lockstep.sim.study.job import Job, Result, complaint, failed
from lockstep.sim.study.sweep import table as shown
from lockstep.sim.study.sweep.axes import Axes, setting_axes
from lockstep.sim.study.sweep.file import load
from lockstep.sim.study.sweep.runner import Scheduler, results
from lockstep.sim.study.sweep.schedulers import SCHEDULERS, cores, dask, local, slurm
from lockstep.sim.watch import Watch
from lockstep.spec.words import closest

__all__ = ["compare", "sweep"]

COMPLAINTS = 10  # that are printed; the rest is in the files


def compare(options: Namespace) -> int:
    _check_outputs(options)
    axes = Axes(
        options.kernels,
        options.gpu or ["gtx480"],
        [comparison.mechanisms(text) for text in options.mechanisms or [comparison.BASELINE]],
        setting_axes(options.set),
        [options.size],
        [options.seed],
        options.strict,
    )
    axes.check("compare")
    axes.check_kernels()
    jobs = axes.jobs()
    with Display(options.json) as watch:
        found = _all(jobs, local(options.jobs or cores()), watch, kept=False)
    _write(options, jobs, found, found)
    if not _to_standard_output(options):
        _limited(found, options.size)
    return _complain(found)


def sweep(options: Namespace) -> int:
    axes, parameters = load(Path(options.file))
    jobs = axes.jobs()
    if options.what == "status":
        return _status(options, jobs)
    _check_outputs(options)
    scheduler = _scheduler(options, parameters)
    axes.check_kernels()
    store.tidy()
    with _Quiet(options.json) as watch:
        found = _all(jobs, scheduler, watch, kept=True, retry=options.retry)
    _write(options, jobs, found, [_lasting(result) for result in found])
    code = _complain(found)
    if code:
        print(
            f"lockstep: what failed is kept, too; lockstep sweep {options.file} --retry runs it again", file=sys.stderr
        )
    return code


class _Quiet(Display):
    """Does not show what kernels print: of runs that were kept it would be missing. The JSON has it."""

    def printed(self, text: str) -> None:
        pass


def _lasting(result: Result) -> Result:
    """A result without what another time would differ."""
    return {key: value for key, value in result.items() if key not in ("wall_seconds", "kwips")}


def _scheduler(options: Namespace, parameters: Mapping[str, Any]) -> Scheduler:
    name, _, address = options.scheduler.partition("=")
    processes = options.jobs or cores()
    if name == "dask":
        return dask(address, processes)
    if name not in SCHEDULERS or address:
        known = "local, dask, dask=ADDRESS and slurm"
        raise UsageError(f"--scheduler {options.scheduler}: not known{closest(name, SCHEDULERS)}; known are {known}")
    if name == "slurm":
        return slurm(parameters, processes, store.folder() / "slurm")
    return local(processes)


def _status(options: Namespace, jobs: Sequence[Job]) -> int:
    """What is there and what is missing; loads no kernel."""
    if used := [name for name in ("csv", "parquet", "retry", "statistics") if getattr(options, name)]:
        raise UsageError(f"sweep status: --{'show' if used[0] == 'statistics' else used[0]} works with the sweep alone")
    check_writable(options.json)
    states: dict[str, list[Job]] = {"done": [], "missing": [], "failed": []}
    messages = []
    for job in jobs:
        try:
            result = store.find(job, store.key(job))
        except UsageError as error:
            result = failed(job, str(error))
        states["missing" if result is None else "done" if result["checked"] else "failed"].append(job)
        if result and complaint(result):
            messages.append(f"failed: {complaint(result)} ({job.command})")
    if options.json:
        write_json(options.json, {state: [job.command for job in those] for state, those in states.items()})
    if options.json != "-":
        print(f"{len(jobs)} runs: {', '.join(f'{len(those)} {state}' for state, those in states.items())}")
        print("".join(f"{message}\n" for message in messages), end="")
    return 1 if states["failed"] else 0


def _check_outputs(options: Namespace) -> None:
    """Refuse what cannot be done before anything is."""
    if options.jobs is not None and options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    if options.json == options.csv == "-":
        raise UsageError("--json - and --csv -: only one of them can go to standard output")
    if options.parquet == "-":
        raise UsageError("--parquet -: Parquet needs a file")
    for target in (options.json, options.csv, options.parquet):
        check_writable(target)
    if options.parquet:
        check_parquet()
    shown.check_statistics(_statistics(options))


def _statistics(options: Namespace) -> list[str]:
    return [name for name in options.statistics.split(",") if name]


def _all(jobs: Sequence[Job], scheduler: Scheduler, watch: Watch, *, kept: bool, retry: bool = False) -> list[Result]:
    found = dict(results(jobs, scheduler, watch, kept=kept, retry=retry))
    return [found[position] for position in range(len(jobs))]


def _to_standard_output(options: Namespace) -> bool:
    return "-" in (options.json, options.csv)


def _write(options: Namespace, jobs: Sequence[Job], found: Sequence[Result], as_json: Sequence[Result]) -> None:
    """The table, and the files that the options ask for."""
    if not _to_standard_output(options):
        shown.show(jobs, found, _statistics(options))
    if options.json:
        write_json(options.json, as_json)
    if options.csv:
        write_text(options.csv, csv_text(shown.flat(jobs, found)))
    if options.parquet:
        write_file(options.parquet, parquet(shown.flat(jobs, found)))
    if not _to_standard_output(options):
        for target in filter(None, (options.json, options.csv, options.parquet)):
            print(f"written to {target}")


def _complain(found: Sequence[Result]) -> int:
    """Say which runs failed or were wrong, and by which command they can be seen to; the exit code."""
    wrong = [result for result in found if complaint(result)]
    for result in wrong[:COMPLAINTS]:
        print(f"lockstep: {one_line(complaint(result))} ({result['command']})", file=sys.stderr)
    if len(wrong) > COMPLAINTS:
        print(f"lockstep: {len(wrong) - COMPLAINTS} more runs failed or were wrong", file=sys.stderr)
    return 1 if wrong else 0


def _limited(found: Sequence[Result], size: str) -> None:
    """The table of throughput-limited functions, if a baseline was compared with mechanisms."""
    rows = comparison.limited(found)
    if not rows:
        return
    columns = ("function", "with", "line waits", *comparison.MEASURES)
    means = comparison.means(rows)
    table(f"functions in which a line waits for the L1 in more than {comparison.LIMIT:.0%} of the cycles", columns, [
        *((label, name, waiting, *measures.values()) for label, name, waiting, measures in rows),
        *((f"geometric mean of {count}", name, "", *measures.values()) for name, count, measures in means),
        *(("published", name, "", *(comparison.published(name, m) for m in comparison.MEASURES))
          for name, _, _ in means if size == "steady"),
    ])  # fmt: skip
