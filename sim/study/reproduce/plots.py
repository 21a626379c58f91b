"""Plots of chapters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.sim.study.page import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GREYS", "axes_side_by_side", "bars"]

GREYS = ("0.85", "0.55", "0.2", "0.0")


def axes_side_by_side(count: int = 1, height: float = 3.2) -> tuple[Any, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, height))
    return figure, figure.subplots(1, count, squeeze=False)[0]


def bars(names: Sequence[str], series: Mapping[str, Sequence[float]]) -> str:
    """Bars side by side for every application; the highest are cut, and have their values above them."""
    figure, (axes,) = axes_side_by_side()
    width = 0.8 / len(series)
    every = sorted(value for values in series.values() for value in values)
    top = max(2.0, every[-max(1, len(every) // 8)] * 1.1)
    for k, (label, values) in enumerate(series.items()):
        places = [place + (k - (len(series) - 1) / 2) * width for place in range(len(names))]
        axes.bar(places, [min(value, top) for value in values], width, color=GREYS[k], edgecolor="black",
                 linewidth=0.4, label=label)  # fmt: skip
        for place, value in zip(places, values, strict=True):
            if value > top:
                axes.text(place, 1.02 * top, f"{value:.1f}", ha="center", va="bottom", fontsize=7, rotation=90)
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if every[-1] > top:
        axes.set_ylim(0, 1.15 * top)
    axes.legend(frameon=False, ncols=len(series), loc="lower left", bbox_to_anchor=(0, 1.08))
    return svg(figure)
