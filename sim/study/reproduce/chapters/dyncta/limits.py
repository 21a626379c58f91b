"""Static limits of CTAs, and the classes of applications."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce.chapters.dyncta.measures import (
    Runs,
    best_limit,
    best_run,
    kind_of,
    speed_up,
    sweep_speeds,
    swept_runs,
    why_different,
)
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    COUNTS,
    EASED,
    FEW,
    SIZE,
    SLOWER,
    SWEPT,
    limits_of,
)


def static_table(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        application, (best, at) = APPLICATIONS[name], best_limit(runs, name)
        each = [speed_up(runs, name, f"{n}") if n in limits_of(name) else None for n in COUNTS]
        rows.append((
            name, application.kernel, application.most, application.brought, *each, best, at, application.static,
        ))  # fmt: skip
    columns = ("Kayiran", "here", "N", "brought", *map(str, COUNTS), "best", "at", "Kayiran's best")
    return Table("static", "Speed-up of static limits of CTAs", columns, rows)


def eased_table(runs: Runs) -> Table:
    """The gain of the best limits, and what takes it away."""
    rows: list[tuple[Any, ...]] = []
    for what, (names, _) in EASED.items():
        for name in names:
            best, at = best_limit(runs, name)
            base, static = runs[f"{name}, {BASE}"], best_run(runs, name)
            pairs = [(run.latency, run.misses, run.rows, run.bandwidth) for run in (base, static)]
            eased = runs[f"{name}, {BASE}, {what}"]
            speeds = [speed_up(runs, name, f"{n}", f", {what}") for n in FEW]
            gain = speed_up(runs, name, BASE, f", {what}", "")
            before = itertools.chain(*zip(*pairs, strict=True))
            rows.append((name, best, at, *before, what, gain, eased.misses, eased.rows, max(1.0, *speeds)))
    columns = (
        "", "best", "at", "lat_rt", "at best", "L1 misses", "at best", "rows hit", "at best", "DRAM used", "at best",
        "with", "speed-up", "L1 misses", "rows hit", "best",
    )  # fmt: skip
    return Table("eased", "What the best limits gain, and what takes it away", columns, rows)


def sweeps_table(runs: Runs) -> Table:
    """Figure 4 in figures, with a slower DRAM for JPEG."""
    most = max(APPLICATIONS[name].most for name in SWEPT)
    rows: list[tuple[Any, ...]] = []
    for name, size in SWEPT.items():
        each = swept_runs(runs, name)
        blank = [None] * (most - len(each))
        for what, values in {
            "IPC": sweep_speeds(each),
            "util": [run.occupied / each[-1].occupied for run in each],
            "lat_rt": [run.latency / each[-1].latency for run in each],
            "C_mem": [run.memory for run in each],
        }.items():
            rows.append((f"{name}, {what}", size, each[-1].waves, *values, *blank))
    slow = {n: speed_up(runs, "JPEG", f"{n}", f", {SLOWER}") for n in COUNTS}
    rows.append((f"JPEG, IPC, {SLOWER}", SIZE, None, *(slow.get(n) for n in range(1, most)), 1.0))
    columns = ("", "size", "waves", *map(str, range(1, most + 1)))
    title = "IPC, utilisation and latency by the limit, to those of N, and C_mem (Kayiran figure 4)"
    return Table("sweeps", title, columns, rows)


def classes_table(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        run = runs[f"{name}, {BASE}"]
        shares = run.act, 1 - run.occupied, run.memory, run.blocked, run.idle, run.misses
        rows.append((name, *shares, kind_of(run), APPLICATIONS[name].kind))
    columns = ("", "RACT", "empty", "C_mem", "blocked", "C_idle", "L1 misses", "here", "Kayiran")
    return Table("classes", "What the cores of the baseline do (Kayiran figure 3, table 2)", columns, rows)


def different_table(runs: Runs, names: Sequence[str]) -> Table:
    """Where the class is not the paper's, and why."""
    rows = []
    for name in names:
        run, kind = runs[f"{name}, {BASE}"], APPLICATIONS[name].kind
        if kind_of(run) != kind:
            measures = run.act, *run.parts.values(), run.waves, run.bandwidth, run.intensity
            rows.append((name, kind_of(run), kind, *measures, why_different(run, kind)))
    parts = "empty", "memory", "latency", "pipelines"
    columns = ("", "here", "Kayiran", "RACT", *parts, "waves", "DRAM", "intensity", "because")
    return Table("different", "Where our class is not the paper's", columns, rows)
