"""`lockstep compare`: kernels in several configurations, side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from lockstep.cli import many
from lockstep.cli import options as shared
from lockstep.sim.output import Display, table
from lockstep.sim.study import comparison
from lockstep.sim.study.job import Result
from lockstep.sim.study.sweep.axes import Axes, setting_axes
from lockstep.sim.study.sweep.schedulers import cores, local


def arguments(to: ArgumentParser) -> None:
    to.add_argument("kernels", metavar="KERNEL", nargs="+")
    to.add_argument("--with", dest="mechanisms", metavar="M[,M]", action="append",
                         help="mechanisms to run together, or baseline for none; may be given several "
                    "times")  # fmt: skip
    to.add_argument("--gpu", metavar="NAME|FILE.toml", action="append", help="may be given several times")
    shared.inputs(to)
    shared.parameters(to, "each value of a parameter: l1.mshrs=16,32,64", "KEY=VALUE[,VALUE]")
    shared.many_runs(to)
    shared.json(to)


def command(options: Namespace) -> int:
    many.check_outputs(options)
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
    processes = options.jobs or cores()
    with Display(options.json, processes) as watch:
        found = many.all_results(jobs, local(processes), watch, kept=False)
    many.write(options, jobs, found, found)
    if not many.to_standard_output(options):
        _limited(found, options.size)
    return many.complain(found)


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
    ], keys=2)  # fmt: skip
