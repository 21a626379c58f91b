"""DYNCORE: power, fewer cores, and larger GPUs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce.chapters.dyncta.measures import Runs, listed, speed_up
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    CORES_OFF,
    DYNCORE,
    DYNCTA,
    MESHED,
    MESHES,
    NORMALLY_OFF,
    OFF,
    STUDIED,
)
from lockstep.sim.study.reproduce.chapters.dyncta.texts import ASLEEP, LARGER_WHY


def efficiency(runs: Runs, name: str, what: str, gated: bool = True) -> float:
    """Instructions per watt, to the baseline's; every run has the same instructions."""
    base, own = runs[f"{name}, {BASE}"], runs[f"{name}, {what}"]
    return base.cycles / own.cycles * base.power / (own.power if gated else own.ungated)


def power_table(runs: Runs, names: Sequence[str]) -> Table:
    """Figures 12 and 13."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        base, dyncta, dyncore = (runs[f"{name}, {what}"] for what in (BASE, DYNCTA, DYNCORE))
        rows.append((
            name, speed_up(runs, name, DYNCORE), base.waves, dyncore.told, dyncore.asleep,
            dyncta.power / base.power, dyncore.power / base.power, dyncore.ungated / base.power,
            efficiency(runs, name, DYNCTA), efficiency(runs, name, DYNCORE),
            efficiency(runs, name, DYNCORE, gated=False),
        ))  # fmt: skip
    values = list(zip(*(row[1:] for row in rows), strict=True))
    rows.append(("mean", *map(statistics.mean, values)))
    if len(names) == len(APPLICATIONS):
        rows.append(("Kayiran, mean", 1.21, None, None, None, 1.02, 0.83, 0.92, 1.26, 1.52, 1.33))
    columns = (
        "", "DYNCORE's speed-up", "waves", "told", "asleep", "power, DYNCTA", "DYNCORE, gated", "not gated",
        "efficiency, DYNCTA", "DYNCORE, gated", "not gated",
    )  # fmt: skip
    return Table("power", "Speed, power and instructions per watt (Kayiran figures 12, 13)", columns, rows)


def asleep_text(runs: Runs, names: Sequence[str]) -> str:
    """Why power falls less than the paper's."""
    base, own = ([runs[f"{name}, {what}"] for name in names] for what in (BASE, DYNCORE))
    could = statistics.mean((1 - o.told + o.act) / (1 + b.act) for b, o in zip(base, own, strict=True))
    return ASLEEP.format(
        told=statistics.mean(run.told for run in own), asleep=statistics.mean(run.asleep for run in own), could=could,
        busy=sum(run.told < OFF / 2 for run in own),
    )  # fmt: skip


def off_table(runs: Runs) -> Table:
    """Figure 7: fewer cores, statically."""
    rows: list[tuple[Any, ...]] = []
    for name in STUDIED:
        each = [speed_up(runs, name, what, f", {off} cores off", "") for what in (BASE, DYNCTA) for off in CORES_OFF]
        without = speed_up(runs, name, DYNCTA)
        rows.append((name, *each[: len(CORES_OFF)], *(value / without for value in each[len(CORES_OFF) :])))
    columns = ("", *(f"{off} off" for off in CORES_OFF), *(f"{off} off, DYNCTA" for off in CORES_OFF))
    return Table("off", "Speed with cores off from the start, to that with all 30 (Kayiran figure 7)", columns, rows)


def turned_off(runs: Runs, off: int) -> dict[str, tuple[float, float, float]]:
    """Speed, power and instructions per watt to the baseline's where DYNCORE may turn off so many cores."""
    what = DYNCTA if off == 0 else DYNCORE if off == NORMALLY_OFF else f"{DYNCORE}, {off} off"
    return {
        name: (
            speed_up(runs, name, what),
            runs[f"{name}, {what}"].power / runs[f"{name}, {BASE}"].power,
            efficiency(runs, name, what),
        )
        for name in MESHED
    }


def off_means(runs: Runs) -> dict[int, tuple[float, float, float]]:
    """Of speed, a geometric mean; of power and of instructions per watt, means. By the number of cores."""
    found = {}
    for off in (0, *CORES_OFF):
        speeds, powers, efficiencies = zip(*turned_off(runs, off).values(), strict=True)
        found[off] = statistics.geometric_mean(speeds), statistics.mean(powers), statistics.mean(efficiencies)
    return found


def dyncore_off_table(runs: Runs) -> Table:
    """Figure 14a."""
    counts = (0, *CORES_OFF)
    each = {off: {**turned_off(runs, off), "mean": mean} for off, mean in off_means(runs).items()}
    rows = [(name, *(each[off][name][measure] for measure in range(3) for off in counts)) for name in (*MESHED, "mean")]
    columns = ("", *(f"{what}, {off}" for what in ("speed-up", "power", "efficiency") for off in counts))
    return Table("dyncore-off", "DYNCORE by the cores that it may turn off (Kayiran figure 14a)", columns, rows)


def meshes_table(runs: Runs) -> Table:
    """Figure 14b, beside the same applications on 30 cores."""
    rows: list[tuple[Any, ...]] = []
    for name in MESHED:
        row: list[Any] = [name, speed_up(runs, name, DYNCORE), runs[f"{name}, {BASE}"].waves]
        for mesh in MESHES:
            base, own = (runs[f"{name}, {what}, {mesh}"] for what in (BASE, DYNCORE))
            row += [base.cycles / own.cycles, own.power / base.power, base.act, base.waves]
        rows.append(tuple(row))
    values = list(zip(*(row[1:] for row in rows), strict=True))
    rows.append(("mean", *map(statistics.mean, values)))
    columns = ["", "speed-up, 30", "waves, 30"]
    columns += [f"{what}, {mesh[6:]}" for mesh in MESHES for what in ("speed-up", "power", "RACT", "waves")]
    rows.append(("Kayiran, mean of 31", 1.21, None, 1.09, 0.9, None, None, 1.27, 0.68, None, None))
    return Table("meshes", "DYNCORE on 56 and 110 cores (Kayiran figure 14b)", columns, rows)


def larger_text(runs: Runs) -> str:
    """Why the larger GPUs gain less than the paper's."""
    few = [name for name in MESHED if runs[f"{name}, {BASE}, {MESHES[-1]}"].waves < 0.5]
    gpus = ["", *(f", {mesh}" for mesh in MESHES)]
    thirty, *others = (statistics.mean(speed_up(runs, name, DYNCORE, gpu) for name in STUDIED) for gpu in gpus)
    return LARGER_WHY.format(
        most=listed([name for name in MESHED if name not in STUDIED]), thirty=thirty,
        others=listed([f"{mean:.3f}" for mean in others]), few=len(few), count=len(MESHED),
    )  # fmt: skip
