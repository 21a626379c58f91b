"""The plots of `lockstep power report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lockstep.sim.study.page import svg

__all__ = ["dependences", "places", "predictions"]

DECILES = np.linspace(0.1, 0.9, 9)


def predictions(watts: np.ndarray, predicted: np.ndarray) -> str:
    """Watts predicted over those of the sample."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    ends = [min(watts.min(), predicted.min()), max(watts.max(), predicted.max())]
    axes.plot(ends, ends, color="0.6", linewidth=0.8)
    axes.scatter(watts, predicted, s=16, color="black")
    axes.set_xlabel("watts of the sample")
    axes.set_ylabel("watts that the forest predicts")
    return svg(figure)


def dependences(curves: Mapping[str, np.ndarray], values: Mapping[str, np.ndarray]) -> str:
    """Partial dependences side by side, on one scale, each with the deciles of its characteristic."""
    from matplotlib.figure import Figure

    columns = 4
    height = -(-len(curves) // columns)
    figure = Figure(figsize=(11, 2.5 * height), layout="constrained")
    every = figure.subplots(height, columns, squeeze=False, sharey=True).reshape(-1)
    for axes, (name, curve) in zip(every, curves.items(), strict=False):
        axes.plot(*curve.T, color="black", drawstyle="steps-post")
        for decile in np.quantile(values[name], DECILES):
            axes.axvline(decile, 0, 0.05, color="black", linewidth=0.8)
        axes.set_xlabel(name)
    for axes in every[len(curves) :]:
        axes.set_visible(False)
    for axes in every[::columns]:
        axes.set_ylabel("watts")
    return svg(figure)


def places(kernels: Sequence[str], near: np.ndarray) -> str:
    """The kernels as numbers where scaling puts them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.subplots()
    axes.scatter(near[:, 0], near[:, 1], s=0)
    for number, place in enumerate(near, 1):
        axes.annotate(str(number), place, ha="center", va="center", fontsize=8)
    axes.set_xlabel("first dimension")
    axes.set_ylabel("second dimension")
    return svg(figure)
