"""DYNCTA: speed-ups, what holds it back, and what changes under variations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce.chapters.dyncta.measures import (
    Runs,
    best_limit,
    best_run,
    geometric,
    listed,
    speed_up,
)
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    DYNCTA,
    NARROW,
    START,
    STARTS,
    STUDIED,
    TWO_LEVEL,
    VARIED,
    is_own,
)
from lockstep.sim.study.reproduce.chapters.dyncta.texts import STARTING

PUBLISHED = {
    "thresholds halved": "0.7 to 1.6 % less",
    "thresholds by half more": "0.7 to 1.6 % less",
    "windows of 4096 cycles": "0.1 % less",
    "from a limit of 1": "very similar",
    START: "not as good",
    "32 MSHRs": "0.3 % less",
    "16 MSHRs": "0.6 % less",
    "DRAM at 1107 MHz": "at most 1 % less",
    "DRAM at 1333 MHz": "at most 1 % less",
}

MEANS, GEOMETRIC = (1.28, 1.39), (1.18, 1.25)
"""The paper's speed-ups over all applications, of DYNCTA and of the best static limit."""


def compared_speeds(runs: Runs, names: Sequence[str], whole: bool) -> dict[str, list[float]]:
    compared = {"DYNCTA": [speed_up(runs, name, DYNCTA) for name in names]}
    compared["best limit"] = [best_limit(runs, name)[0] for name in names]
    if whole:
        compared = {"two-level": [speed_up(runs, name, TWO_LEVEL) for name in names], **compared}
    return compared


def speeds_table(runs: Runs, names: Sequence[str], whole: bool) -> Table:
    """Figure 10."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        others = [speed_up(runs, name, what) for what in (TWO_LEVEL, NARROW)] if whole else []
        application = APPLICATIONS[name]
        own = speed_up(runs, name, DYNCTA), application.dynamic, best_limit(runs, name)[0], application.static
        rows.append((name, *others, *own))
    *compared, dynamic_speeds, _, best, _ = list(zip(*(row[1:] for row in rows), strict=True))
    for title, mean, published in (("mean", statistics.mean, MEANS), ("geometric mean", geometric, GEOMETRIC)):
        dynamic, static = published if whole else (None, None)
        rows.append((title, *map(mean, compared), mean(dynamic_speeds), dynamic, mean(best), static))
    own_columns = ["DYNCTA", "Kayiran's DYNCTA", "best limit", "Kayiran's best"]
    columns = ["", *(["two-level", NARROW] if whole else []), *own_columns]
    return Table("dyncta", "Speed-up over the baseline (Kayiran figure 10)", columns, rows)


def latencies_table(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        base, own = runs[f"{name}, {BASE}"], runs[f"{name}, {DYNCTA}"]
        rows.append((name, base.latency, own.latency / base.latency, own.occupied / base.occupied, own.limit))
    columns = ("", "lat_rt, baseline", "lat_rt, to it", "util, to it", "mean limit")
    return Table("latency", "Round trip and utilisation with DYNCTA (Kayiran figure 11)", columns, rows)


def apart_table(runs: Runs, names: Sequence[str]) -> Table:
    """Where the best static limit leaves DYNCTA behind, and why."""
    rows = []
    for name in names:
        (best, at), own = best_limit(runs, name), runs[f"{name}, {DYNCTA}"]
        if best > 1.05 * speed_up(runs, name, DYNCTA):
            static = best_run(runs, name)
            rows.append((
                name, best, at, speed_up(runs, name, DYNCTA), own.limit, own.windows, own.rose, own.fell, own.paused,
                static.latency, own.latency,
            ))  # fmt: skip
    columns = (
        "", "best", "at", "DYNCTA", "mean limit", "windows", "rose", "fell", "some paused", "lat_rt, static", "DYNCTA",
    )  # fmt: skip
    return Table("apart", "What holds DYNCTA back", columns, rows)


def starting_text(runs: Runs) -> str:
    lost = {
        name: (1 - speed_up(runs, name, DYNCTA), 1 - speed_up(runs, name, DYNCTA, f", {START}", "")) for name in STARTS
    }
    start = [name for name, (own, most) in lost.items() if most < own / 2]
    others = [name for name in STARTS if name not in start]
    return STARTING.format(start=listed(start), others=listed(others), paused=runs[f"FFT, {DYNCTA}"].paused)


def starts_table(runs: Runs) -> Table:
    """Where DYNCTA loses: with a start at the most."""
    rows = []
    for name in STARTS:
        base, own, most = (runs[f"{name}, {what}"] for what in (BASE, DYNCTA, f"{DYNCTA}, {START}"))
        rows.append((
            name, own.windows, base.cycles / own.cycles, base.cycles / most.cycles,
            *(1 - run.occupied for run in (base, own, most)), *(run.latency for run in (base, own, most)),
        ))  # fmt: skip
    columns = (
        "", "windows", "speed-up", START, "tail, baseline", "DYNCTA", START, "lat_rt, baseline", "DYNCTA", START,
    )  # fmt: skip
    return Table("starts", "What DYNCTA's start costs where it loses", columns, rows)


def variation_speeds(runs: Runs, variation: str) -> dict[str, float]:
    """DYNCTA's speed-ups under a variation."""
    base = "" if is_own(VARIED[variation]) else None
    return {name: speed_up(runs, name, DYNCTA, f", {variation}", base) for name in STUDIED}


def varied_table(runs: Runs) -> Table:
    usual = {name: speed_up(runs, name, DYNCTA) for name in STUDIED}
    rows: list[tuple[Any, ...]] = [("as it is", geometric(usual.values()), *[None] * 5)]
    for variation in VARIED:
        speeds = variation_speeds(runs, variation)
        changes = {name: speeds[name] / usual[name] for name in STUDIED}
        largest = max(STUDIED, key=lambda name: abs(math.log(changes[name])))
        others = geometric(change for name, change in changes.items() if name != largest)
        rows.append((
            variation, geometric(speeds.values()), _percent(geometric(changes.values())), PUBLISHED[variation],
            largest, _percent(changes[largest]), _percent(others),
        ))  # fmt: skip
    title = "DYNCTA's speed-up under variations (Kayiran sections 4.1, 5.3)"
    return Table("varied", title, ("", "speed-up", "change", "Kayiran", "most in", "by", "the others"), rows)


def _percent(change: float) -> str:
    return f"{100 * (change - 1):+.1f} %"
