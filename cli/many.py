"""Many runs side by side, as `compare` and `sweep` show and write them."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from lockstep.sim.columns import check_parquet, csv_text, parquet
from lockstep.sim.errors import UsageError, one_line
from lockstep.sim.output import check_writable, write_file, write_json, write_text
from lockstep.sim.study.job import Job, Result, complaint
from lockstep.sim.study.sweep import table as shown
from lockstep.sim.study.sweep.runner import Scheduler, results
from lockstep.sim.watch import Watch

COMPLAINTS = 10  # that are printed; the rest is in the files


def check_outputs(options: Namespace) -> None:
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


def all_results(
    jobs: Sequence[Job], scheduler: Scheduler, watch: Watch, *, kept: bool, retry: bool = False
) -> list[Result]:
    found = dict(results(jobs, scheduler, watch, kept=kept, retry=retry))
    return [found[position] for position in range(len(jobs))]


def to_standard_output(options: Namespace) -> bool:
    return "-" in (options.json, options.csv)


def write(options: Namespace, jobs: Sequence[Job], found: Sequence[Result], as_json: Sequence[Result]) -> None:
    """The table, and the files that the options ask for."""
    if not to_standard_output(options):
        shown.show(jobs, found, _statistics(options))
    if options.json:
        write_json(options.json, as_json)
    if options.csv:
        write_text(options.csv, csv_text(shown.flat(jobs, found)))
    if options.parquet:
        write_file(options.parquet, parquet(shown.flat(jobs, found)))
    if not to_standard_output(options):
        for target in filter(None, (options.json, options.csv, options.parquet)):
            print(f"written to {target}")


def complain(found: Sequence[Result]) -> int:
    """Say which runs failed or were wrong, and which commands repeat them; the exit code."""
    wrong = [result for result in found if complaint(result)]
    for result in wrong[:COMPLAINTS]:
        print(f"lockstep: {one_line(complaint(result))} ({result['command']})", file=sys.stderr)
    if len(wrong) > COMPLAINTS:
        print(f"lockstep: {len(wrong) - COMPLAINTS} more runs failed or were wrong", file=sys.stderr)
    return 1 if wrong else 0
