"""The paper's statements, and why some do not hold here."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce.chapters.dyncta.cores import efficiency, off_means
from lockstep.sim.study.reproduce.chapters.dyncta.measures import (
    Runs,
    best_limit,
    busy_kind,
    geometric,
    in_turn,
    kind_of,
    listed,
    speed_up,
    sweep_speeds,
    swept_runs,
    with_values,
)
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    CORES_OFF,
    COUNTS,
    DYNCORE,
    DYNCTA,
    MESHED,
    MESHES,
    SLOWER,
    STUDIED,
    SWEPT,
    TWO_LEVEL,
    C,
    M,
    X,
    limits_of,
)
from lockstep.sim.study.reproduce.chapters.dyncta.texts import REASONS

NEAR = 0.02  # no change
LIKE = 0.25  # of an effect that the paper gives in figures
MOST = ("PVC", "IIX")  # gain most


def statements_table(runs: Runs) -> Table:
    """The paper's statements, and whether they hold here."""
    names = list(APPLICATIONS)
    rows = [*_limit_rows(runs, names), *_dyncta_rows(runs, names), *_sweep_rows(runs), *_dyncore_rows(runs, names)]
    return Table("statements", "What the paper says, and what is so here", ("Kayiran", "so here", "figures"), rows)


Row = tuple[str, bool, str]
"""A statement, whether it holds, and the figures that say so."""


def like(ours: Sequence[float], published: Sequence[float]) -> bool:
    """Whether each effect has the published one's sign, and its size within a quarter."""
    return all(abs(one - other) <= LIKE * abs(other) for one, other in zip(ours, published, strict=True))


def _means(values: Iterable[float]) -> tuple[float, float]:
    each = list(values)
    return statistics.mean(each), geometric(each)


def _limit_rows(runs: Runs, names: Sequence[str]) -> Iterator[Row]:
    """Section 3: static limits, and the classes of applications."""
    best = {name: best_limit(runs, name)[0] for name in names}
    better = [name for name in names if best[name] > 1.05]
    first = sorted(names, key=lambda name: -best[name])
    alike = [name for name in names if kind_of(runs[f"{name}, {BASE}"]) == APPLICATIONS[name].kind]
    yield (
        "a smaller static limit pays by more than 5 % in about half of the applications (15 of 31)",
        like([len(better)], [15]),
        f"in {len(better)} of {len(names)}: {', '.join(better)}",
    )
    yield (
        "it pays most in IIX (4.9) and PVC (3.5)",
        {*first[:2]} == {"IIX", "PVC"},
        with_values({name: best[name] for name in first[:4]}),
    )
    yield _figures_row("the best static limit gains 39 % (geometric: 25 %)", _means(best.values()), (1.39, 1.25))
    yield (
        "the classes of table 2",
        alike == names,
        f"{len(alike)} of {len(names)} are alike; not: "
        + ", ".join(f"{name} ({kind_of(runs[f'{name}, {BASE}'])[-1]})" for name in names if name not in alike),
    )


def _figures_row(statement: str, ours: Sequence[float], published: Sequence[float]) -> Row:
    """A statement with figures relative to the baseline: effects are what is above or below one."""
    return statement, like([one - 1 for one in ours], [other - 1 for other in published]), in_turn(ours)


def _dyncta_rows(runs: Runs, names: Sequence[str]) -> Iterator[Row]:
    """Section 5.1."""
    base = {name: runs[f"{name}, {BASE}"] for name in names}
    own = {name: runs[f"{name}, {DYNCTA}"] for name in names}
    speeds = {name: speed_up(runs, name, DYNCTA) for name in names}
    best = {name: best_limit(runs, name) for name in names}
    mean, middle = _means(speeds.values())
    limited = [name for name in names if limits_of(name)]
    at_best = [name for name in limited if speeds[name] >= best[name][0] * (1 - NEAR / 2)]
    lower = [name for name in names if own[name].latency < base[name].latency]
    latency = geometric(own[name].latency / base[name].latency for name in names)
    misses = [statistics.mean(run.misses for run in each.values()) for each in (base, own)]
    means = {kind: geometric(speeds[name] for name in names if APPLICATIONS[name].kind == kind) for kind in (C, M, X)}
    idle = (*(name for name in names if APPLICATIONS[name].kind == X), "LIB")
    best_middle = geometric(value for value, _ in best.values())
    most, static, dynamic = (
        statistics.mean(values)
        for values in (
            [APPLICATIONS[name].most for name in names],
            [at for _, at in best.values()],
            [run.limit for run in own.values()],
        )
    )
    yield (
        "DYNCTA pays most in PVC (3.6), IIX (2.9), SAD (2.9) and KM (1.9)",
        {*sorted(names, key=lambda name: -speeds[name])[:4]} == {"PVC", "IIX", "SAD", "KM"},
        with_values({name: speeds[name] for name in ("PVC", "IIX", "SAD", "KM")}),
    )
    yield (
        "it pays on average, and most in Type-M applications",
        middle > 1 and means[M] > max(means[C], means[X]),
        f"geometric means: {with_values(means)}",
    )
    yield _figures_row("it gains 28 % (geometric: 18 %)", (mean, middle), (1.28, 1.18))
    yield (
        "it comes near the best static limit: it has 72 % of its gain (18 of 25 %, geometric)",
        middle - 1 >= (1 - LIKE) * 0.18 / 0.25 * (best_middle - 1) > 0,
        f"{middle - 1:.1%} of {best_middle - 1:.1%}",
    )
    yield (
        "so does the mean limit: N is 5.38, the best 2.93, DYNCTA's 2.69",
        abs(dynamic - static) <= LIKE * static,
        f"{most:.2f}, {static:.2f}, {dynamic:.2f}",
    )
    yield (
        "in 10 of 31 it is at least as good as the best static limit",
        like([len(at_best)], [10]),
        f"within 1 %, in {len(at_best)} of {len(limited)} in which a limit can be chosen: {', '.join(at_best)}",
    )
    yield (
        "four applications lose more than 2 %: NW, BLK, PFF, SCP",
        {name for name in names if speeds[name] < 0.98} == {"NW", "BLK", "PFF", "SCP"},
        with_values({name: speeds[name] for name in names if speeds[name] < 0.98}) or "none",
    )
    yield (
        "Type-X applications gain nothing, and LIB has too few CTAs to gain",
        all(abs(speeds[name] - 1) < NEAR for name in idle),
        with_values({name: speeds[name] for name in idle}),
    )
    yield (
        "lat_rt falls in most applications, by 18 % on average",
        len(lower) > len(names) / 2 and like([1 - latency], [0.18]),
        f"in {len(lower)} of {len(names)}; by {1 - latency:.1%} (geometric)",
    )
    yield (
        "L1 misses fall from 71 to 64 % on average",
        like([misses[0] - misses[1]], [0.07]),
        f"from {misses[0]:.1%} to {misses[1]:.1%}",
    )
    two_level = geometric(speeds[name] / speed_up(runs, name, TWO_LEVEL) for name in names)
    yield _figures_row("DYNCTA is faster than two-level scheduling, by 12.5 % on average", (two_level,), (1.125,))


def _sweep_rows(runs: Runs) -> Iterator[Row]:
    """Figure 4."""
    sweeps = {name: sweep_speeds(swept_runs(runs, name)) for name in SWEPT}
    fastest = 1 + sweeps["CP"].index(max(sweeps["CP"]))
    yield "AES is the fastest with one CTA", max(sweeps["AES"]) == sweeps["AES"][0] > 1, in_turn(sweeps["AES"])
    yield (
        "JPEG gains from a few CTAs, and loses with more",
        max(sweeps["JPEG"]) > max(1, sweeps["JPEG"][0]) * 1.01,
        in_turn(sweeps["JPEG"]),
    )
    yield (
        "MM gains with every CTA, but little after the second",
        sorted(sweeps["MM"]) == sweeps["MM"] and sweeps["MM"][0] < sweeps["MM"][1],
        in_turn(sweeps["MM"]),
    )
    yield "CP is the fastest with three", fastest == 3, f"with {fastest}: {in_turn(sweeps['CP'])}"


def _dyncore_rows(runs: Runs, names: Sequence[str]) -> Iterator[Row]:
    """Sections 4.2, 5.2 and 5.3."""
    speeds = [speed_up(runs, name, DYNCORE) for name in names]
    dyncta = statistics.mean(speed_up(runs, name, DYNCTA) for name in names)
    base = [runs[f"{name}, {BASE}"].power for name in names]
    own, core = ([runs[f"{name}, {what}"] for name in names] for what in (DYNCTA, DYNCORE))
    power, gated, ungated = (
        statistics.mean(one / other for one, other in zip(each, base, strict=True))
        for each in ([run.power for run in own], [run.power for run in core], [run.ungated for run in core])
    )
    efficiencies = [
        statistics.mean(efficiency(runs, name, what, with_gates) for name in names)
        for what, with_gates in ((DYNCTA, True), (DYNCORE, True), (DYNCORE, False))
    ]
    yield (
        "DYNCORE is faster than the baseline, and not as fast as DYNCTA",
        1 < statistics.mean(speeds) < dyncta,
        f"{statistics.mean(speeds):.3f} to {dyncta:.3f}",
    )
    yield _figures_row("it gains 21 % (geometric: 12 %)", _means(speeds), (1.21, 1.12))
    yield _figures_row("DYNCTA draws 2 % more power", (power,), (1.02,))
    yield _figures_row("DYNCORE draws 17 % less, 8 % without gating", (gated, ungated), (0.83, 0.92))
    yield _figures_row(
        "instructions per watt: DYNCTA 26 % more, DYNCORE 52 %, 33 % without gating", efficiencies, (1.26, 1.52, 1.33)
    )
    more = off_means(runs)
    turns = list(zip(*more.values(), strict=True))
    rising = [sorted(values, reverse=reverse) for values, reverse in zip(turns, (True, True, False), strict=True)]
    yield (
        "the more cores DYNCORE may turn off, the slower it is, at less power and with more instructions per watt",
        rising == [list(values) for values in turns],
        "; ".join(f"{off}: {in_turn(values)}" for off, values in more.items()),
    )
    losses = {name: 1 - speed_up(runs, name, BASE, f", {max(CORES_OFF)} cores off", "") for name in STUDIED}
    compute, memory = ([losses[name] for name in STUDIED if APPLICATIONS[name].kind == kind] for kind in (C, M))
    yield (
        "with 16 of 30 cores off, Type-C applications lose nearly 16 thirtieths of their speed, Type-M ones less",
        min(compute) >= (1 - LIKE) * max(CORES_OFF) / 30 and max(memory) < min(compute),
        with_values(losses),
    )
    gains = [statistics.mean(speed_up(runs, name, DYNCORE, f", {mesh}") for name in MESHED) for mesh in MESHES]
    powers = [
        statistics.mean(
            runs[f"{name}, {DYNCORE}, {mesh}"].power / runs[f"{name}, {BASE}, {mesh}"].power for name in MESHED
        )
        for mesh in MESHES
    ]
    yield (
        "DYNCORE gains more on 110 cores than on 56 (27 and 9 %), and saves more power (32 and 10 %)",
        gains[1] > gains[0] > 1 and powers[1] < powers[0] < 1,
        f"speed {in_turn(reversed(gains))}; power {in_turn(reversed(powers))}",
    )


def reasons_text(runs: Runs) -> str:
    base = {name: runs[f"{name}, {BASE}"] for name in APPLICATIONS}
    different = [name for name, run in base.items() if X == kind_of(run) != APPLICATIONS[name].kind]
    own, jpeg, mm, cp = runs[f"KM, {DYNCTA}"], *(swept_runs(runs, name) for name in ("JPEG", "MM", "CP"))
    fastest = min(mm, key=lambda run: run.cycles)
    rest = [name for name in APPLICATIONS if name not in MOST]
    dynamic, core, two_level = (
        geometric(speed_up(runs, name, what) for name in rest) for what in (DYNCTA, DYNCORE, TWO_LEVEL)
    )
    slow = {n: speed_up(runs, "JPEG", f"{n}", f", {SLOWER}") for n in COUNTS}
    jpeg_slow = max(slow, key=lambda n: slow[n])
    return REASONS.format(
        slower=SLOWER, jpeg_slow=jpeg_slow, jpeg_gain=slow[jpeg_slow] - 1, jpeg=jpeg[-1].memory,
        jpeg_dram=jpeg[-1].bandwidth, jpeg_trip=jpeg[-1].latency / jpeg[0].latency,
        mm=1 + mm.index(fastest), mm_low=fastest.memory, mm_high=mm[-1].memory,
        cp=1 + min(range(len(cp)), key=lambda n: cp[n].cycles), cp_small=best_limit(runs, "CP")[1],
        sad=base["SAD"].misses, sad_best=best_limit(runs, "SAD")[0] - 1, aes=base["AES"].act, km=own.paused,
        km_own=own.latency, km_static=runs["KM, 1"].latency,
        most=listed(MOST), rest_dyncta=dynamic - 1, rest_dyncore=core - 1, rest_two_level=dynamic / two_level - 1,
        rest_best=geometric(best_limit(runs, name)[0] for name in rest) - 1,
        rest_misses=100 * statistics.mean(base[name].misses - runs[f"{name}, {DYNCTA}"].misses for name in rest),
        different=len(different), empty=sum(busy_kind(base[name]) == APPLICATIONS[name].kind for name in different),
    )  # fmt: skip
