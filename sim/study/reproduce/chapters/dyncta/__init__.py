"""DYNCTA and DYNCORE beside their paper (Kayiran et al.), on the 30-core GPU of its table 1 and on its meshes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lockstep.sim.study.job import Result
from lockstep.sim.study.page import Page, Plot, Table, Text
from lockstep.sim.study.reproduce import Chapter
from lockstep.sim.study.reproduce.chapters.dyncta.cores import (
    asleep_text,
    dyncore_off_table,
    efficiency,
    larger_text,
    meshes_table,
    off_table,
    power_table,
)
from lockstep.sim.study.reproduce.chapters.dyncta.dynamic import (
    apart_table,
    compared_speeds,
    latencies_table,
    speeds_table,
    starting_text,
    starts_table,
    varied_table,
)
from lockstep.sim.study.reproduce.chapters.dyncta.limits import (
    classes_table,
    different_table,
    eased_table,
    static_table,
    sweeps_table,
)
from lockstep.sim.study.reproduce.chapters.dyncta.measures import best_limit, one_cta, run_of
from lockstep.sim.study.reproduce.chapters.dyncta.measures import listed as listed
from lockstep.sim.study.reproduce.chapters.dyncta.plots import limits_plot, sorted_bars, sweep_plot
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    COUNTS,
    DYNCORE,
    DYNCTA,
    STUDIED,
    jobs,
)
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    GPU as GPU,
)
from lockstep.sim.study.reproduce.chapters.dyncta.statements import reasons_text, statements_table
from lockstep.sim.study.reproduce.chapters.dyncta.texts import (
    APART,
    CLASSES,
    DIFFERENT,
    EASE,
    INTRODUCTION,
    LARGER,
    MOTIVATION,
    POWER,
    READING,
    RULES,
    SWEEPS,
    TURNED_OFF,
    VARIATION,
)
from lockstep.sim.study.reproduce.plots import bars


def page(results: Mapping[str, Result]) -> Page:
    runs = {name: run_of(result, APPLICATIONS[name.split(",")[0]].most) for name, result in results.items()}
    names = [name for name in APPLICATIONS if f"{name}, {BASE}" in runs]
    whole = len(names) == len(APPLICATIONS)
    counts = ", ".join(map(str, COUNTS[:-1])) + f" and {COUNTS[-1]}"
    speeds = {"one CTA": [one_cta(runs, name) for name in names], "best": [best_limit(runs, name)[0] for name in names]}
    blocks: list[Text | Table | Plot] = [
        *(Text(text.format(all=len(APPLICATIONS))) for text in INTRODUCTION),
        Text("More CTAs are not always better", 2),
        Text(MOTIVATION.format(counts=counts)),
        static_table(runs, names),
        *((Text(EASE), eased_table(runs)) if whole else ()),
        Plot(
            "static",
            "Speed-up of one CTA on each core, and of the best (Kayiran figure 1)",
            partial(bars, names, speeds),
        ),
        Text(CLASSES),
        classes_table(runs, names),
        Text(DIFFERENT),
        different_table(runs, names),
        Plot(
            "ract",
            "RACT (Kayiran figure 3)",
            partial(sorted_bars, {name: runs[f"{name}, {BASE}"].act for name in names}),
        ),
    ]
    if whole:
        title = "IPC, latency and utilisation by the limit, to those of N (Kayiran figure 4)"
        text = SWEEPS.format(brought=APPLICATIONS["MM"].brought)
        blocks += [Text(text), sweeps_table(runs), Plot("sweep", title, partial(sweep_plot, runs))]
    blocks += [
        Text("DYNCTA", 2),
        *([Text(READING)] if whole else []),
        speeds_table(runs, names, whole),
        Plot("dyncta", "Speed-up (Kayiran figure 10)", partial(bars, names, compared_speeds(runs, names, whole))),
        Plot("limits", "CTAs of a core: N, DYNCTA's mean limit, the best static (Kayiran figure 9)",
             partial(bars, names, {
            "N": [APPLICATIONS[name].most for name in names],
            "DYNCTA": [runs[f"{name}, {DYNCTA}"].limit for name in names],
            "best": [best_limit(runs, name)[1] for name in names],
        })),
        latencies_table(runs, names),
        Text(APART),
        apart_table(runs, names),
    ]  # fmt: skip
    if whole:
        title = "Limit over time, a mean over the cores (Kayiran figure 8)"
        blocks += [Text(starting_text(runs)), starts_table(runs), Plot("time", title, partial(limits_plot, runs))]
    blocks += [
        Text("DYNCORE", 2),
        Text(POWER),
        power_table(runs, names),
        Text(asleep_text(runs, names)),
        Plot("efficiency", "Instructions per watt, to the baseline (Kayiran figure 13)", partial(bars, names, {
            "DYNCTA": [efficiency(runs, name, DYNCTA) for name in names],
            "DYNCORE": [efficiency(runs, name, DYNCORE) for name in names],
        })),
    ]  # fmt: skip
    if whole:
        blocks += [
            Text("Sensitivity", 2),
            off_table(runs),
            Text(TURNED_OFF),
            dyncore_off_table(runs),
            Text(VARIATION.format(kernels=", ".join(STUDIED))),
            varied_table(runs),
            Text(LARGER),
            meshes_table(runs),
            Text(larger_text(runs)),
            Text("So here: yes or no", 2),
            Text(RULES),
            statements_table(runs),
            Text(reasons_text(runs)),
        ]
    return Page("DYNCTA and DYNCORE beside their paper", blocks)


CHAPTER = Chapter("DYNCTA and DYNCORE beside their paper", jobs, page)
