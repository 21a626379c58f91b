"""`lockstep reproduce`: published or independent figures beside ours."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.study import page
from lockstep.sim.study.reproduce import CHAPTERS, chapter
from lockstep.sim.study.sweep.schedulers import cores


def arguments(to: ArgumentParser) -> None:
    to.add_argument("chapter", choices=CHAPTERS)
    to.add_argument("-o", dest="folder", metavar="DIR", default="reproduce",
                    help="folder of the page (default: reproduce)")  # fmt: skip
    to.add_argument("--quick", action="store_true", help="only a few of the runs")
    shared.jobs(to, "runs at the same time")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    if options.jobs is not None and options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    chosen = chapter(options.chapter)
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    with Display(processes=options.jobs or cores()) as watch:
        results = chosen.run(chosen.jobs(options.quick), watch, options.jobs)
    written = chosen.page(results)
    if options.json != "-":
        for block in written.blocks:
            if isinstance(block, page.Table):
                table(block.title, block.columns, block.rows)
        print("\n".join(f"written to {path}" for path in page.write(written, Path(options.folder), options.chapter)))
    tables = [{"title": block.title, "columns": block.columns, "rows": block.rows}
              for block in written.blocks if isinstance(block, page.Table)]  # fmt: skip
    return shared.finish(options, tables, [])
