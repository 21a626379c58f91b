"""The plots of a report, as SVG. Also without colour, lines are told apart by dashes, points by markers and letters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep.sim.study.page import svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.5  # inches
BAR = 0.28  # inches for a bar and the gap below it
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#DDDDDD", "#CC79A7", "#F0E442")
"""Okabe and Ito's palette for all kinds of colour vision (https://jfly.uni-koeln.de/color/), its black made a grey."""
HATCHES = ("", "////", "xxxx", "....")
MARKERS = "osD^vPX*<>"
DASHES = ("-", "--", "-.", ":")
UNBOUNDED = ("ipc", "milliwatts")  # values over time that are no shares
FAINT = 0.5  # shares that are all below have their own scale
MOST = 60  # characters of a label
NEAR = 0.04  # of an axis: points closer than that share a text

Stacks = Mapping[str, Mapping[str, float]]


@dataclass
class Series:
    """Values over time, each of the interval that ends at its core cycle."""

    cycles: list[float]
    values: dict[str, list[float]]


def _figure(height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def _plain(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _fill(number: int) -> dict[str, Any]:
    """How a bar, or a part of one, looks: each of the first 32 in its own way."""
    turn, colour = divmod(number, len(COLOURS))
    return {"color": COLOURS[colour], "hatch": HATCHES[turn % len(HATCHES)], "edgecolor": "black", "linewidth": 0.6}


def _line(number: int) -> dict[str, Any]:
    """Likewise for lines; neighbours have other dashes, too."""
    turn, colour = divmod(number, len(COLOURS))
    return {"color": COLOURS[colour], "linestyle": DASHES[(colour + turn) % len(DASHES)]}


def _label(text: str) -> str:
    """A text that Matplotlib writes as it is, and not as a formula."""
    return _short(text).replace("$", r"\$")


def _short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[: MOST - 3]}..."


def stacked(stacks: Stacks, scale: Mapping[str, float], code: bool = False) -> str:
    """A horizontal bar for each label, in parts, to its ``scale``. ``code``: labels are lines of source."""
    names = list(next(iter(stacks.values())))
    figure = _figure(1.0 + BAR * len(stacks))
    axes = figure.subplots()
    shown = [_short(label) for label in stacks]
    if code:  # begins at the left, where SVG leaves out blanks
        shown = [label.ljust(max(map(len, shown))).replace(" ", "\N{NO-BREAK SPACE}") for label in shown]
    left = [0.0] * len(stacks)
    for number, name in enumerate(names):
        parts = [stacks[label][name] / scale[label] if scale[label] else 0.0 for label in stacks]
        if any(parts):
            axes.barh(range(len(parts)), parts, 0.7, left, label=name, **_fill(number))
        left = [before + part for before, part in zip(left, parts, strict=True)]
    font: dict[str, Any] = {"fontfamily": "monospace", "fontsize": 8} if code else {}
    axes.set_yticks(range(len(stacks)), [_label(label) for label in shown], **font)
    axes.invert_yaxis()
    axes.set_xlim(0, max([*left, 1e-9]) * 1.01)
    axes.xaxis.set_major_formatter("{x:.0%}" if max(left) <= 1.0001 else "{x:.2f}")
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.legend(frameon=False, ncols=len(names), loc="outside upper left", fontsize=8.5, handlelength=1.8,
                  handletextpad=0.4, columnspacing=1.0)  # fmt: skip
    _plain(axes)
    return svg(figure)


def over_time(runs: Mapping[str, Series], names: Mapping[str, str]) -> str:
    """One panel for each value, by key and name; one line for each run."""
    figure = _figure(2.0 * len(names))
    panels = figure.subplots(len(names), sharex=True, squeeze=False)[:, 0]
    for axes, (key, name) in zip(panels, names.items(), strict=True):
        for k, (label, series) in enumerate((label, each) for label, each in runs.items() if each.values[key]):
            cycles = [0.0, *(cycle / 1000 for cycle in series.cycles)]
            values = [series.values[key][0], *series.values[key]]
            axes.plot(cycles, values, drawstyle="steps-pre", linewidth=1.3, label=label, **_line(k))
        axes.set_ylabel(name)
        peak = max((value for each in runs.values() for value in each.values[key]), default=0.0)
        axes.set_ylim(0, None if key in UNBOUNDED or 0 < peak < FAINT else 1.05)
        axes.set_xlim(left=0)
        axes.grid(color="0.88", linewidth=0.6)
        _plain(axes)
    panels[-1].set_xlabel("thousand core cycles")
    if len(runs) > 1:
        panels[0].legend(frameon=False, ncols=min(len(runs), 13), loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=9)
    return svg(figure)


Spans = Mapping[str, Sequence[tuple[int, int]]]


def beside(spans: Spans, parts: Mapping[str, Series], names: Mapping[str, str]) -> str:
    """Two kernels over the same time: when launches ran, and below it their parts of values, one upon the other."""
    figure = _figure(0.9 + 1.7 * len(names))
    panels = figure.subplots(1 + len(names), sharex=True, height_ratios=[0.5, *[1.0] * len(names)])
    for number, (label, own) in enumerate(spans.items()):
        ran = [(begin / 1000, (end - begin) / 1000) for begin, end in own]
        panels[0].broken_barh(ran, (number - 0.35, 0.7), label=_label(label), **_fill(number))
    panels[0].set_yticks(range(len(spans)), [label.partition(":")[0] for label in spans])
    panels[0].set_ylim(len(spans) - 0.5, -0.5)
    panels[0].set_ylabel("launches")
    for axes, (key, name) in zip(panels[1:], names.items(), strict=True):
        below: list[float] = []
        for number, series in enumerate(parts.values()):
            cycles = [0.0, *(cycle / 1000 for cycle in series.cycles)]
            below = below or [0.0] * len(series.cycles)
            above = [low + value for low, value in zip(below, series.values[key], strict=True)]
            axes.stairs(above, cycles, baseline=below, fill=True, **_fill(number))
            below = above
        axes.set_ylabel(name)
        axes.set_ylim(0, None if key in UNBOUNDED or 0 < max(below, default=0.0) < FAINT else 1.05)
        axes.grid(color="0.88", linewidth=0.6)
        axes.set_axisbelow(True)
    for axes in panels:
        _plain(axes)
    panels[-1].set_xlim(left=0)
    panels[-1].set_xlabel("thousand core cycles")
    panels[0].legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), fontsize=9)
    return svg(figure)


def levels(runs: Stacks, reference: str) -> str:
    """Bars side by side at each level, to those of the reference level."""
    names = list(next(iter(runs.values())))
    figure = _figure(3.4)
    axes = figure.subplots()
    width = 0.8 / len(runs)
    for k, (label, values) in enumerate(runs.items()):
        places = [place + (k - (len(runs) - 1) / 2) * width for place in range(len(names))]
        heights = [values[name] / values[reference] if values[reference] else 0.0 for name in names]
        axes.bar(places, heights, width, label=_label(label), **_fill(k))
        if len(runs) <= 4:
            for place, height in zip(places, heights, strict=True):
                axes.annotate(f"{height:.2f}", (place, height), (0, 2), textcoords="offset points", ha="center",
                              fontsize=8)  # fmt: skip
    axes.set_xticks(range(len(names)), names)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.02), fontsize=9)
    _plain(axes)
    return svg(figure)


def _annotate(axes: Axes, points: Mapping[str, tuple[float, float]]) -> None:
    """Write labels beside points, one text for those that lie together. The axes have their limits by then."""
    texts: dict[tuple[float, float], str] = {}
    seen: dict[tuple[float, float], tuple[float, float]] = {}  # where a text's first point is, by its place on paper
    for label, point in points.items():
        x, y = (axes.transScale + axes.transLimits).transform(point)
        first = next((at for (u, v), at in seen.items() if abs(x - u) < NEAR and abs(y - v) < NEAR), point)
        seen.setdefault((x, y), first)
        texts[first] = f"{texts[first]}, {label}" if first in texts else label
    for point, text in texts.items():
        axes.annotate(text, point, (6, -4), textcoords="offset points", fontsize=9)


def roofline(points: Mapping[str, tuple[float, float]], roofs: Mapping[str, tuple[float, float]]) -> str:
    """Runs below the roofs of their GPUs; a roof is bytes and instructions per second at most."""
    from matplotlib.ticker import NullFormatter

    figure = _figure(4.2)
    axes = figure.subplots()
    ridges = [issue / bandwidth for bandwidth, issue in roofs.values()]
    places = [*(x for x, _ in points.values()), *ridges]
    low, high = 10 ** math.floor(math.log10(min(places) / 1.5)), 10 ** math.ceil(math.log10(max(places) * 1.5))
    for k, (gpu, (bandwidth, issue)) in enumerate(roofs.items()):
        xs = [low, issue / bandwidth, high]
        axes.plot(xs, [min(bandwidth * x, issue) for x in xs], color="black", linewidth=1.2,
                  linestyle=DASHES[k % len(DASHES)], label=_label(f"{gpu}: {bandwidth:.0f} GB/s"))  # fmt: skip
    for k, (label, (x, y)) in enumerate(points.items()):
        axes.plot(x, y, color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markersize=7,
                  markeredgecolor="black", markeredgewidth=0.6, linestyle="none", label=_label(label))  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    _annotate(axes, {label.partition(":")[0]: point for label, point in points.items()})
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("warp instructions per byte of DRAM")
    axes.set_ylabel("billion warp instructions per second")
    axes.grid(which="both", color="0.9", linewidth=0.5)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=9)
    _plain(axes)
    return svg(figure)
