"""`lockstep sweep`: what a file describes, except for what has been run before."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.cli import many
from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, write_json
from lockstep.sim.study import store
from lockstep.sim.study.job import Job, Result, complaint, failed
from lockstep.sim.study.sweep.file import load
from lockstep.sim.study.sweep.runner import Scheduler
from lockstep.sim.study.sweep.schedulers import SCHEDULERS, cores, dask, local, slurm
from lockstep.spec.words import closest


def arguments(to: ArgumentParser) -> None:
    to.add_argument("what", nargs="?", choices=("run", "status"), default="run", help="status: show which runs are "
                    "done, missing and failed (default: run)")  # fmt: skip
    to.add_argument("file", metavar="FILE.toml", help="what to run: see docs/sweeps.md")
    to.add_argument("--scheduler", metavar="local|dask[=ADDRESS]|slurm", default="local",
                       help="where to run (default: local)")  # fmt: skip
    to.add_argument("--retry", action="store_true", help="repeat the runs that failed")
    shared.many_runs(to)
    shared.json(to)


def command(options: Namespace) -> int:
    axes, parameters = load(Path(options.file))
    jobs = axes.jobs()
    if options.what == "status":
        return _status(options, jobs)
    many.check_outputs(options)
    scheduler = _scheduler(options, parameters)
    axes.check_kernels()
    store.tidy()
    with _Quiet(options.json, options.jobs or cores()) as watch:
        found = many.all_results(jobs, scheduler, watch, kept=True, retry=options.retry)
    many.write(options, jobs, found, [_lasting(result) for result in found])
    code = many.complain(found)
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
    """Show which results are there and which are missing; loads no kernel."""
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
