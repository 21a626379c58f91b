"""How good models of a sample are, and what a forest says about characteristics and kernels (Chen, 3.4 and 3.5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lockstep.sim.study.power.models import Linear, Trees, forest, linear, single_tree
from lockstep.sim.study.power.sample import Sample
from lockstep.sim.watch import Watch

__all__ = [
    "error", "forests_left_out", "left_out", "most_important", "partial_dependence", "proximity", "scaled",
    "squared_error",
]  # fmt: skip

Fit = Callable[[np.ndarray, np.ndarray, int], Trees | Linear]

QUANTILES = np.linspace(0, 1, 21)
"""Of a characteristic, at which its partial dependence is given."""


def error(predicted: np.ndarray, watts: np.ndarray) -> float:
    """The mean error, in percent of the watts."""
    return float(100 * np.mean(np.abs(predicted - watts) / watts))


def squared_error(predicted: np.ndarray, watts: np.ndarray) -> float:
    return float(np.mean((predicted - watts) ** 2))


def forests_left_out(sample: Sample, trees: int, seed: int, watch: Watch) -> np.ndarray:
    """Watts of each kernel, predicted by a forest that was grown without it."""
    return _left_out(sample, lambda values, watts, fold: forest(values, watts, trees, [seed, fold])[0], watch,
                     f"seed {seed}: ")  # fmt: skip


def left_out(sample: Sample, watch: Watch) -> dict[str, np.ndarray]:
    """Likewise by the tree and the linear model."""
    return {
        "tree": _left_out(sample, lambda values, watts, fold: single_tree(values, watts), watch),
        "linear": _left_out(sample, lambda values, watts, fold: linear(values, watts), watch),
    }


def _left_out(sample: Sample, fit: Fit, watch: Watch, what: str = "") -> np.ndarray:
    assert sample.watts is not None
    found = []
    for fold, kernel in enumerate(sample.kernels):
        watch.phase(f"{what}without {kernel}, {fold + 1} of {len(sample.kernels)}")
        others = np.arange(len(sample.kernels)) != fold
        model = fit(sample.values[others], sample.watts[others], fold)
        found.append(model.predict(sample.values[[fold]])[0])
    return np.array(found)


def partial_dependence(grown: Trees, values: np.ndarray, column: int, at_mean: bool = False) -> np.ndarray:
    """Rows of a value of a characteristic and the forest's watts there.

    The mean over all kernels, each with its other characteristics; or ``at_mean``, with the means of the others.
    """
    places = np.unique(np.quantile(values[:, column], QUANTILES))
    others = values.mean(axis=0, keepdims=True) if at_mean else values
    rows = np.tile(others, (len(places), 1))
    rows[:, column] = np.repeat(places, len(others))
    return np.column_stack([places, grown.predict(rows).reshape(len(places), -1).mean(axis=1)])


def proximity(grown: Trees, values: np.ndarray) -> np.ndarray:
    """The share of the trees in which two kernels end in the same leaf."""
    leaves = grown.leaves(values)
    return np.array([(leaves == row).mean(axis=1) for row in leaves])


def scaled(near: np.ndarray) -> np.ndarray:
    """Places in the plane whose distances come near 1 - proximity: classical scaling. The farthest is on the right, and
    above."""
    size = len(near)
    centring = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(-0.5 * centring @ (1 - near) ** 2 @ centring)
    places = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
    return np.asarray(places * np.where(places[np.abs(places).argmax(axis=0), [0, 1]] < 0, -1, 1))


def most_important(importance: np.ndarray) -> Sequence[int]:
    """Characteristics, the most important one first; those alike stay in order."""
    found: list[int] = np.argsort(-importance, kind="stable").tolist()
    return found
