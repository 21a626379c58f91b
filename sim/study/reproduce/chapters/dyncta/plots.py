"""The chapter's plots."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lockstep.sim.study.page import svg
from lockstep.sim.study.reproduce.chapters.dyncta.measures import Runs, sweep_speeds, swept_runs
from lockstep.sim.study.reproduce.chapters.dyncta.runs import APPLICATIONS, COMPUTE, DYNCTA, LIMIT, SHOWN, SIZE, SWEPT
from lockstep.sim.study.reproduce.plots import GREYS, axes_side_by_side

MARKS = (("o", "0.0"), ("s", "0.5"), ("^", "0.7"), ("v", "0.3"))  # of plots: shapes and greys


def sorted_bars(values: Mapping[str, float]) -> str:
    names = sorted(values, key=lambda name: values[name])
    figure, (axes,) = axes_side_by_side()
    axes.bar(range(len(names)), [values[name] for name in names], color=GREYS[1], edgecolor="black", linewidth=0.4)
    axes.axhline(COMPUTE, color="black", linewidth=0.6, linestyle="--")
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_ylim(0, 1)
    axes.set_xlim(-0.6, len(names) - 0.4)
    return svg(figure)


def sweep_plot(runs: Runs) -> str:
    figure, plots = axes_side_by_side(len(SWEPT))
    for axes, name in zip(plots, SWEPT, strict=True):
        each = swept_runs(runs, name)
        most = each[-1]
        measures = {
            "IPC": sweep_speeds(each),
            "lat_rt": [run.latency / most.latency for run in each],
            "util": [run.occupied / most.occupied for run in each],
        }
        for (mark, grey), (label, values) in zip(MARKS, measures.items(), strict=False):
            axes.plot(range(1, len(each) + 1), values, marker=mark, color=grey, label=label)
        axes.set_title(name if SWEPT[name] == SIZE else f"{name}, {SWEPT[name]}")
        axes.set_xlabel("CTAs of a core, at most")
        axes.set_ylim(bottom=0)
    plots[0].legend(frameon=False)
    return svg(figure)


def limits_plot(runs: Runs) -> str:
    figure, plots = axes_side_by_side(len(SHOWN))
    for axes, name in zip(plots, SHOWN, strict=True):
        times, limits, begin = [], [], 0.0
        for launch in runs[f"{name}, {DYNCTA}"].over_time:
            times += [(begin + cycle) / 1e6 for cycle in launch["core_cycle"]]
            limits += launch[f"{LIMIT[0]}.limit"]
            begin += launch["core_cycle"][-1]
        axes.step(times, limits, color="black", linewidth=0.9, where="pre")
        axes.set_title(name)
        axes.set_xlabel("million core cycles")
        axes.set_ylim(0, APPLICATIONS[name].most + 0.5)
        axes.set_xlim(0, math.ceil(times[-1] * 100) / 100)
    plots[0].set_ylabel("limit")
    return svg(figure)
