"""`lockstep litmus`: which outcomes of racing programs occur on a GPU, and whether PTX forbids one of them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from lockstep.cli import options as shared
from lockstep.sim.errors import UsageError
from lockstep.sim.output import Display, check_writable, table
from lockstep.sim.study import comparison
from lockstep.sim.study.litmus import SHAPES, Laboratory, Run, rows
from lockstep.sim.study.litmus.shapes import PLACES, Shape
from lockstep.spec.words import closest


def arguments(to: ArgumentParser) -> None:
    to.add_argument("tests", metavar="TEST", nargs="*", help=f"of {', '.join(SHAPES)} (default: all)")
    shared.gpu(to)
    shared.mechanisms(to)
    shared.parameters(to, "a parameter: l1.values=lines, for one kind of values alone")
    shared.seed(to, "the first seed")
    to.add_argument("--seeds", type=int, metavar="N", default=4, help="how many seeds (default: 4)")
    shared.json(to)


def command(options: Namespace) -> int:
    check_writable(options.json)
    shapes = [_shape(name) for name in dict.fromkeys(options.tests)] or list(SHAPES.values())
    if options.seeds < 1:
        raise UsageError(f"--seeds {options.seeds}: must be 1 or more")
    laboratory = Laboratory(options.gpu, comparison.mechanisms(options.mechanisms), shared.settings(options))
    seeds = range(options.seed, options.seed + options.seeds)
    found: list[Run] = []
    for shape in shapes:
        with Display(options.json) as watch:
            watch.phase(f"{shape.name}: {shape.title}")
            runs = list(laboratory.run(shape, seeds))
        found += runs
        if options.json != "-":
            _show(shape, runs, laboratory.kinds)
    shared.write(options, [run.as_json() for run in found])
    return _complain(found)


def _shape(name: str) -> Shape:
    if name not in SHAPES:
        raise UsageError(f"{name}: no litmus test{closest(name, SHAPES)}; known are {', '.join(SHAPES)}")
    return SHAPES[name]


def _show(shape: Shape, runs: Sequence[Run], kinds: Sequence[str]) -> None:
    threads = "; ".join(f"{number}: {text}" for number, text in enumerate(shape.threads) if text)
    columns = ["accesses", "F", "threads in", "outcome", "PTX", *(f"with {kind}" for kind in kinds), "of"]
    if len(shape.fences) == 1:
        columns.remove("F")
    lines = [
        [row.variant.access, *([row.variant.fence] if len(shape.fences) > 1 else []), PLACES[row.variant.place],
         row.outcome.text, "forbids" if row.forbidden else "allows", *(row.counts[kind] for kind in kinds),
         row.instances]
        for row in rows(runs)
    ]  # fmt: skip
    table(f"{shape.name}, {shape.title}: {threads}", columns, lines, keys=len(columns) - len(kinds) - 1)


def _complain(found: Sequence[Run]) -> int:
    """Name the outcomes that must not occur; the exit code."""
    wrong = [(run, outcome) for run in found for outcome in run.wrong]
    for run, outcome in wrong:
        variant = run.variant
        how = f"{variant.access} accesses, fence {variant.fence}, {PLACES[variant.place]}, l1.values = {run.values}"
        often = f"{run.count(outcome)} of {run.instances} times"
        print(f"lockstep: {run.shape.name}, {how}: {outcome.text} {often}, which PTX forbids", file=sys.stderr)
    return 1 if wrong else 0
