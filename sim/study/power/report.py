"""`lockstep power report`: what the models of a sample are worth, and what the forest says, on a page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from lockstep.sim.study.page import Page, Plot, Table, Text
from lockstep.sim.study.power import analysis, plots
from lockstep.sim.study.power.models import LEAF, Trees, fit, forest
from lockstep.sim.study.power.sample import OCCUPANCY, Sample
from lockstep.sim.watch import Watch

__all__ = ["report"]

SHOWN = 4  # characteristics whose partial dependence is shown first, as in figure 3-4, ...
ARCHITECTURE = ("UncoalesMem", "D.Branch", "BankConf", OCCUPANCY)  # ... and those that follow
TITLES = {"forest": "random forest", "tree": "regression tree", "linear": "linear regression"}


def report(sample: Sample, trees: int, seeds: range, at_mean: bool, watch: Watch) -> Page:
    """The page of a sample; the first of the seeds is that of all but the spread."""
    assert sample.watts is not None
    by_seed = [analysis.forests_left_out(sample, trees, seed, watch) for seed in seeds]
    left_out = {"forest": by_seed[0], **analysis.left_out(sample, watch)}
    model = fit(sample, trees, seeds[0])
    importance = forest(sample.values, sample.watts, trees, [seeds[0]])[1]
    coefficients = zip(sample.characteristics, model.linear.coefficients, strict=True)
    return Page(f"Power of {len(sample.kernels)} kernels", [
        Text(sample.note),
        *_errors(sample, left_out, by_seed, seeds, trees),
        *_importance(sample, model.forest, importance, at_mean),
        *_tree(sample, model.tree),
        Table("linear", "Linear regression", ["characteristic", "watts for each"], [
            ["intercept", _short(model.linear.intercept)],
            *([name, _short(each)] for name, each in coefficients),
        ]),
        *_proximity(sample, model.forest),
    ])  # fmt: skip


def _short(value: float) -> str:
    """A number that may be very small or large."""
    return f"{value:.4g}"


def _errors(
    sample: Sample, left_out: dict[str, np.ndarray], by_seed: list[np.ndarray], seeds: range, trees: int
) -> Iterator[Text | Table | Plot]:
    assert sample.watts is not None
    watts = sample.watts
    yield Table("errors", "Errors for each kernel by models of all others", ["model", "mean error, %", "MSE, W²"], [
        [TITLES[name], analysis.error(each, watts), analysis.squared_error(each, watts)]
        for name, each in left_out.items()
    ])  # fmt: skip
    if len(seeds) > 1:
        errors = [analysis.error(each, watts) for each in by_seed]
        yield Text(f"Over {len(seeds)} seeds, the forest's mean error is {min(errors):.3f} to {max(errors):.3f} %, "
                   f"{np.mean(errors):.3f} % on average; with {trees} trees.")  # fmt: skip
    rows = [
        [kernel, float(watts[k]), *(float(each[k]) for each in left_out.values())]
        for k, kernel in enumerate(sample.kernels)
    ]
    columns = ["kernel", "watts of the sample", *(TITLES[name] for name in left_out)]
    yield Table("kernels", "Watts of each kernel, and as models of all others predict them", columns, rows, folded=True)
    yield Plot("predictions", "Watts predicted", partial(plots.predictions, watts, left_out["forest"]))


def _importance(sample: Sample, grown: Trees, importance: np.ndarray, at_mean: bool) -> Iterator[Text | Table | Plot]:
    names = sample.characteristics
    order = analysis.most_important(importance)
    curves = {names[k]: analysis.partial_dependence(grown, sample.values, k, at_mean) for k in order}
    rows = [
        [names[k], float(importance[k]), float(curves[names[k]][:, 1].min()), float(curves[names[k]][:, 1].max())]
        for k in order
    ]
    columns = ["characteristic", "importance", "least watts", "most watts"]
    yield Table("importance", "Importance, of 100, and the range of the partial dependence", columns, rows)
    first = [names[k] for k in order[:SHOWN]]
    shown = [*first, *(name for name in names if name.removesuffix("/s") in ARCHITECTURE and name not in first)]
    values = {name: sample.values[:, names.index(name)] for name in shown}
    others = "all others at their means" if at_mean else "on average over the kernels"
    yield Plot("dependence", f"Partial dependence, {others}; marks are deciles",
               partial(plots.dependences, {name: curves[name] for name in shown}, values))  # fmt: skip


def _tree(sample: Sample, tree: Trees) -> Iterator[Table]:
    yield Table("tree", "Regression tree", ["node", "watts", "kernels"], list(_nodes(sample, tree)))


def _nodes(sample: Sample, tree: Trees) -> Iterator[list[Any]]:
    """A row for each node, behind its parent's."""
    count = np.bincount(tree.leaves(sample.values)[:, 0], minlength=len(tree.watts))
    for node in range(len(tree.watts) - 1, -1, -1):
        if tree.left[node] != LEAF:
            count[node] = count[tree.left[node]] + count[tree.right[node]]

    def below(node: int, depth: int, condition: str) -> Iterator[list[Any]]:
        yield [f"{'· ' * depth}{condition}", tree.watts[node], int(count[node])]
        if tree.left[node] != LEAF:
            name, limit = sample.characteristics[tree.characteristic[node]], _short(tree.threshold[node])
            yield from below(tree.left[node], depth + 1, f"{name} ≤ {limit}")
            yield from below(tree.right[node], depth + 1, f"{name} > {limit}")

    return below(tree.roots[0], 0, "all")


def _proximity(sample: Sample, grown: Trees) -> Iterator[Table | Plot]:
    near = analysis.proximity(grown, sample.values)
    places = analysis.scaled(near)
    closest = (near - 2 * np.eye(len(near))).argmax(axis=1)
    rows = [
        [number, kernel, sample.kernels[closest[number - 1]], float(near[number - 1, closest[number - 1]]),
         *map(float, places[number - 1])]
        for number, kernel in enumerate(sample.kernels, 1)
    ]  # fmt: skip
    columns = ["", "kernel", "nearest", "proximity", "first dimension", "second dimension"]
    yield Table("proximity", "Proximity: the share of trees in which two kernels end in one leaf", columns, rows,
                folded=True)  # fmt: skip
    yield Plot("places", "Kernels by proximity", partial(plots.places, sample.kernels, places))
