"""`lockstep report`: runs on one page of HTML."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lockstep.cli import options as shared
from lockstep.sim.output import check_writable, write_text
from lockstep.sim.study import report
from lockstep.sim.study.page import html


def arguments(to: ArgumentParser) -> None:
    shared.saved_runs(to)
    to.add_argument("-o", dest="file", metavar="FILE.html", default="report.html",
                    help="the page (default: report.html)")  # fmt: skip


def command(options: Namespace) -> int:
    check_writable(options.file)
    runs = report.read(options.files)
    write_text(options.file, html(report.page(runs)))
    if options.file != "-":
        print(f"written to {options.file}")
    return 0
