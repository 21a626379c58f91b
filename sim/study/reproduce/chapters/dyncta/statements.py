"""The paper's statements, and why some do not hold here."""

from __future__ import annotations

import statistics

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce.chapters.dyncta.dynamic import variation_speeds
from lockstep.sim.study.reproduce.chapters.dyncta.measures import (
    Runs,
    best_limit,
    busy_kind,
    geometric,
    in_turn,
    kind_of,
    speed_up,
    sweep_speeds,
    swept_runs,
    with_values,
)
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    COUNTS,
    DYNCORE,
    DYNCTA,
    NARROW,
    SLOWER,
    STUDIED,
    SWEPT,
    TWO_LEVEL,
    VARIED,
    C,
    M,
    X,
)
from lockstep.sim.study.reproduce.chapters.dyncta.texts import REASONS

NEAR = 0.02


def statements_table(runs: Runs) -> Table:
    """The paper's statements, and whether they hold here."""
    names = list(APPLICATIONS)
    speeds = {name: speed_up(runs, name, DYNCTA) for name in names}
    best = {name: best_limit(runs, name) for name in names}
    base = {name: runs[f"{name}, {BASE}"] for name in names}
    kinds = {kind: [name for name in names if APPLICATIONS[name].kind == kind] for kind in (C, M, X)}
    alike = [name for name in names if kind_of(base[name]) == APPLICATIONS[name].kind]
    better = [name for name in names if best[name][0] > 1.05]
    at_best = [name for name in names if speeds[name] >= best[name][0] * (1 - NEAR / 2)]
    lower = [name for name in names if runs[f"{name}, {DYNCTA}"].latency < base[name].latency]
    latency = geometric(runs[f"{name}, {DYNCTA}"].latency / base[name].latency for name in names)
    power = {what: statistics.mean(runs[f"{name}, {what}"].power / base[name].power for name in names)
             for what in (DYNCTA, DYNCORE)}  # fmt: skip
    two_level = geometric(speeds[name] / speed_up(runs, name, TWO_LEVEL) for name in names)
    dyncore = statistics.mean(speed_up(runs, name, DYNCORE) for name in names)
    means = {kind: geometric(speeds[name] for name in kinds[kind]) for kind in kinds}
    usual = geometric(speed_up(runs, name, DYNCTA) for name in STUDIED)
    thresholds = [geometric(variation_speeds(runs, variation).values()) / usual for variation in list(VARIED)[:2]]
    narrow = geometric(speed_up(runs, name, NARROW) for name in names)
    sweeps = {name: sweep_speeds(swept_runs(runs, name)) for name in SWEPT}
    fastest = 1 + sweeps["CP"].index(max(sweeps["CP"]))
    rows: list[tuple[str, bool, str]] = [
        (
            "a smaller static limit pays by more than 5 % in about half of the applications (15 of 31)",
            0.35 <= len(better) / len(names) <= 0.65,
            f"in {len(better)} of {len(names)}: {', '.join(better)}",
        ),
        (
            "it pays most in IIX (4.9) and PVC (3.5)",
            {*sorted(names, key=lambda name: -best[name][0])[:2]} == {"IIX", "PVC"},
            with_values({name: best[name][0] for name in sorted(names, key=lambda name: -best[name][0])[:4]}),
        ),
        (
            "DYNCTA pays most in PVC (3.6), IIX (2.9), SAD (2.9) and KM (1.9)",
            {*sorted(names, key=lambda name: -speeds[name])[:4]} == {"PVC", "IIX", "SAD", "KM"},
            with_values({name: speeds[name] for name in ("PVC", "IIX", "SAD", "KM")}),
        ),
        (
            "it pays on average, and most in Type-M applications",
            geometric(speeds.values()) > 1 and means[M] > max(means[C], means[X]),
            f"geometric means: {with_values(means)}",
        ),
        (
            "it comes near the best static limit: 1.28 of 1.39 (geometric: 1.18 of 1.25)",
            geometric(speeds.values()) > (1 + geometric(value for value, _ in best.values())) / 2,
            f"{geometric(speeds.values()):.3f} of {geometric(value for value, _ in best.values()):.3f} (geometric)",
        ),
        (
            "in 10 of 31 it is at least as good as the best static limit",
            len(at_best) >= len(names) / 3,
            f"within 1 %, in {len(at_best)}: {', '.join(at_best)}",
        ),
        (
            "four applications lose more than 2 %: NW, BLK, PFF, SCP",
            {name for name in names if speeds[name] < 0.98} <= {"NW", "BLK", "PFF", "SCP"},
            with_values({name: speeds[name] for name in names if speeds[name] < 0.98}) or "none",
        ),
        (
            "Type-X applications gain nothing, and LIB has too few CTAs to gain",
            all(abs(speeds[name] - 1) < NEAR for name in (*kinds[X], "LIB")),
            with_values({name: speeds[name] for name in (*kinds[X], "LIB")}),
        ),
        (
            "the classes of table 2",
            alike == names,
            f"{len(alike)} of {len(names)} are alike; not: "
            + ", ".join(f"{name} ({kind_of(base[name])[-1]})" for name in names if name not in alike),
        ),
        (
            "lat_rt falls in most applications, by 18 % on average",
            len(lower) > len(names) / 2,
            f"in {len(lower)} of {len(names)}; by {1 - latency:.1%} (geometric)",
        ),
        (
            "AES is the fastest with one CTA",
            max(sweeps["AES"]) == sweeps["AES"][0] > 1,
            in_turn(sweeps["AES"]),
        ),
        (
            "JPEG gains from a few CTAs, and loses with more",
            max(sweeps["JPEG"]) > max(1, sweeps["JPEG"][0]) * 1.01,
            in_turn(sweeps["JPEG"]),
        ),
        (
            "MM gains with every CTA, but little after the second",
            sorted(sweeps["MM"]) == sweeps["MM"] and sweeps["MM"][0] < sweeps["MM"][1],
            in_turn(sweeps["MM"]),
        ),
        (
            "CP is the fastest with three",
            fastest == 3,
            f"with {fastest}: {in_turn(sweeps['CP'])}",
        ),
        ("DYNCTA is faster than two-level scheduling, by 12.5 % on average", two_level > 1, f"{two_level:.3f}"),
        (
            "DYNCORE is faster than the baseline, and not as fast as DYNCTA (1.21 to 1.28)",
            1 < dyncore < statistics.mean(speeds.values()),
            f"{dyncore:.3f} to {statistics.mean(speeds.values()):.3f}",
        ),
        (
            "DYNCTA draws a little more power (2 %), DYNCORE less (17 %)",
            1 < power[DYNCTA] < 1.1 and power[DYNCORE] < 1,
            with_values(power),
        ),
        (
            "DYNCTA's speed-up hardly changes with its thresholds (0.7 to 1.6 %)",
            all(abs(value - 1) < NEAR for value in thresholds),
            ", ".join(f"{value - 1:+.1%}" for value in thresholds),
        ),
        (
            "C_mem counts cycles in which the L1 refuses requests: ours, else the limit rises where memory is busiest",
            narrow < geometric(speeds.values()),
            f"without: {narrow:.3f}, with: {geometric(speeds.values()):.3f} (geometric)",
        ),
    ]
    return Table("statements", "What the paper says, and what is so here", ("Kayiran", "so here", "figures"), rows)


def reasons_text(runs: Runs) -> str:
    base = {name: runs[f"{name}, {BASE}"] for name in APPLICATIONS}
    different = [name for name, run in base.items() if X == kind_of(run) != APPLICATIONS[name].kind]
    own, jpeg, mm, cp = runs[f"KM, {DYNCTA}"], *(swept_runs(runs, name) for name in ("JPEG", "MM", "CP"))
    fastest = min(mm, key=lambda run: run.cycles)
    slow = {n: speed_up(runs, "JPEG", f"{n}", f", {SLOWER}") for n in COUNTS}
    jpeg_slow = max(slow, key=lambda n: slow[n])
    return REASONS.format(
        slower=SLOWER, jpeg_slow=jpeg_slow, jpeg_gain=slow[jpeg_slow] - 1, jpeg=jpeg[-1].memory,
        jpeg_dram=jpeg[-1].bandwidth, jpeg_trip=jpeg[-1].latency / jpeg[0].latency,
        mm=1 + mm.index(fastest), mm_low=fastest.memory, mm_high=mm[-1].memory,
        cp=1 + min(range(len(cp)), key=lambda n: cp[n].cycles), cp_small=best_limit(runs, "CP")[1],
        sad=base["SAD"].misses, sad_best=best_limit(runs, "SAD")[0] - 1, aes=base["AES"].act, km=own.paused,
        km_own=own.latency, km_static=runs["KM, 1"].latency,
        different=len(different), empty=sum(busy_kind(base[name]) == APPLICATIONS[name].kind for name in different),
    )  # fmt: skip
