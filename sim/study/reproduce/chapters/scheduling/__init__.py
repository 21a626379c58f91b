"""Warp scheduling beside chapter 4 of Chen's thesis, on the machine of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lockstep.sim.study.page import Page, Plot, Table, Text, svg
from lockstep.sim.study.reproduce import Chapter, Result
from lockstep.sim.study.reproduce.chapters.scheduling import texts
from lockstep.sim.study.reproduce.chapters.scheduling.runs import (
    COMPARED,
    CTAS,
    ENOUGH,
    FINE,
    FUNCTIONS,
    GREEDY,
    LATENCIES,
    LATENCY,
    MORE,
    MSHRS,
    OVERHEAD,
    OVERHEADS,
    PARTS,
    PEERS,
    POLICIES,
    REGION,
    SIMPLE,
    STUDIED,
    USUAL,
    Runs,
    compiled,
    jobs,
    run_name,
    runs_of,
    values,
)
from lockstep.sim.study.reproduce.chapters.scheduling.statements import (
    ALIKE,
    STALLS,
    TIMES,
    View,
    mean,
    statements_table,
)

LATER = 0.001  # of the time: less is not told
MARKS = (("s", "0.7"), ("o", "0.5"), ("v", "0.3"), ("^", "0.0"))  # of plots: shapes and greys

Curves = Mapping[str, Sequence[float]]


def page(results: Mapping[str, Result]) -> Page:
    runs = runs_of(results)
    names = [name for name in FUNCTIONS if run_name(name, FINE) in runs]
    view = View(runs, names)
    times = {policy: [view.time(name, policy) for name in names] for policy in PEERS}
    stalls = {policy: [view.stalls(name, policy) for name in names] for policy in PEERS}
    whole = set(FUNCTIONS) == set(names)
    blocks: list[Text | Table | Plot] = [
        *map(Text, texts.INTRODUCTION),
        _means(times, stalls, whole),
        Text(texts.MAPPING),
        _kernels(runs, names),
        _by_kernel("times", "Cycles with fine RR, and times to it (Chen figure 4-5)", names, {
            "cycles": [int(view.run(name, FINE).cycles) for name in names],
            "L2 waits": [view.run(name, FINE).waiting for name in names],
            **_labelled(times),
        }),
        Plot("times", "Time to that with fine RR (Chen figure 4-5)", partial(_plot, names, _labelled(times))),
        _by_kernel("stalls", "Stalls to those with fine RR (Chen figure 4-6)", names, {
            **{f"stalls, {POLICIES[each]}": [view.share(name, each) for name in names] for each in (FINE, GREEDY)},
            **_labelled(stalls),
        }),
        Plot("stalls", "Stalls to those with fine RR (Chen figure 4-6)", partial(_plot, names, _labelled(stalls))),
    ]  # fmt: skip
    if whole:
        waiting = len(names) - len(view.unhindered())
        blocks += [
            Text("The machine's parts", 2),
            *_parts(runs),
            Text(texts.MSHR_STUDY.format(waiting=waiting, all=len(names))),
            _enough(runs),
            Text(_late(runs)),
            _tails(runs),
            Text("Sensitivity", 2),
            Text(texts.STUDIES.format(cut=_cut())),
            *_study(runs, CTAS, "ctas", "Stalls by the CTAs of an SM, to those with fine RR (Chen figure 4-7)"),
            *_study(runs, LATENCY, "latency", "Stalls by the cycles to DRAM, to those with fine RR (Chen figure 4-8)"),
            _overheads(runs),
            Text("So here: yes or no", 2),
            *map(Text, texts.RULES),
            statements_table(runs),
            Text(_left()),
        ]
    return Page("Warp scheduling beside its thesis", blocks)


def _means(times: Curves, stalls: Curves, whole: bool) -> Table:
    """The thesis's are over all twelve kernels."""
    rows = [
        (
            POLICIES[policy],
            mean(times[policy]),
            TIMES[policy] if whole else None,
            mean(stalls[policy]),
            STALLS[policy] if whole else None,
        )
        for policy in PEERS
    ]
    title = f"Time and stalls to those with fine RR, geometric means of the kernels: {len(times[REGION])}"
    return Table("means", title, ("", "time", "Chen", "stalls", "Chen"), rows)


def _kernels(runs: Runs, names: Iterable[str]) -> Table:
    """Table 4-3: each figure of ours, and the thesis's behind it."""
    rows = []
    for name in names:
        function, run, listed = FUNCTIONS[name], runs[run_name(name, FINE)], compiled(name)
        theirs = function.published
        pairs = (
            (run.ctas, theirs.ctas),
            (function.warps, theirs.warps),
            (function.resident, theirs.resident),
            (listed.ptx_instructions, theirs.instructions),
            (listed.global_loads, theirs.loads),
            (len(listed.memory_regions), theirs.regions),
        )
        ours = f"{function.kernel}: `{function.name}`"
        rows.append((name, ours, function.size, *(value for pair in pairs for value in pair)))
    measures = (
        "CTAs",
        "warps of a CTA",
        "CTAs of an SM by its limits",
        "PTX instructions",
        "global loads",
        "memory regions",
    )
    columns = ("Chen", "here", "size", *(column for measure in measures for column in (measure, "Chen")))
    return Table("kernels", "The kernels (Chen table 4-3)", columns, rows, marked=True)


def _by_kernel(key: str, title: str, names: Sequence[str], columns: Curves) -> Table:
    rows = [(name, *each) for name, *each in zip(names, *columns.values(), strict=True)]
    return Table(key, title, ("", *columns), rows)


def _labelled(numbers: Curves) -> Curves:
    return {POLICIES[policy]: each for policy, each in numbers.items()}


def _parts(runs: Runs) -> Iterator[Text | Table]:
    """Fine round robin's time without each part of the machine, to that with it."""
    ratios = {
        part: [runs[run_name(name, FINE, changes)].cycles / runs[run_name(name, FINE)].cycles for name in FUNCTIONS]
        for part, changes in PARTS.items()
    }
    without = [part for part, each in ratios.items() if all(abs(ratio - 1) <= ALIKE for ratio in each)]
    yield Text(texts.PARTS.format(without=", ".join(without) or "none"))
    yield _by_kernel("parts", "Fine RR's time with another part, to that with table 4-2's", list(FUNCTIONS), ratios)


def _enough(runs: Runs) -> Table:
    """Times and stalls with more MSHRs, to those of fine round robin with as many, and their means with both."""
    usual, more = View(runs), View(runs, changes=ENOUGH)
    rows: list[tuple[Any, ...]] = [
        (name, more.run(name, FINE).cycles / usual.run(name, FINE).cycles, more.run(name, FINE).waiting,
         *_to_fine(more, name))
        for name in FUNCTIONS
    ]  # fmt: skip
    before = zip(*(_to_fine(usual, name) for name in FUNCTIONS), strict=True)
    after = zip(*(row[3:] for row in rows), strict=True)
    means = ("mean", mean([row[1] for row in rows]), None, *map(mean, after))
    rows += [means, (f"mean with {USUAL[MSHRS]}", None, None, *map(mean, before))]
    columns = [f"{measure}, {POLICIES[policy]}" for measure in ("time", "stalls") for policy in PEERS]
    title = (
        f"With {ENOUGH[MSHRS]} MSHRs in each L2 slice: fine RR's time to that with {USUAL[MSHRS]}, and all to fine RR"
    )
    return Table("mshrs", title, ("", "fine RR", "L2 waits", *columns), rows)


def _to_fine(view: View, name: str) -> list[float]:
    """The times of the other policies, and then their stalls."""
    return [
        *(view.time(name, policy) for policy in PEERS),
        *(view.stalls(name, policy) for policy in PEERS),
    ]


def _late(runs: Runs) -> str:
    late = [
        f"in {name}, region-p stalls less than simple-p, but its SMs have no CTA in {region.empty:.1%} of the launch, "
        f"those of simple-p in {simple.empty:.1%}, which is {region.cycles / simple.cycles - 1:.1%} faster"
        for name in FUNCTIONS
        for region, simple in [(runs[run_name(name, REGION)], runs[run_name(name, SIMPLE)])]
        if region.stalls < simple.stalls and region.cycles > (1 + LATER) * simple.cycles
    ]
    return texts.TAILS.format(tails="; ".join(late) or "here, whoever stalls less is faster")


def _tails(runs: Runs) -> Table:
    """The cycles that stalls do not count."""
    rows = [
        (name, *(runs[run_name(name, policy)].empty for policy in POLICIES), runs[run_name(name, FINE)].round_trip)
        for name in FUNCTIONS
    ]
    columns = ("", *POLICIES.values(), "cycles to the L2 and back, fine RR")
    return Table("tails", "Share of the launch in which an SM has no CTA, and the way of a line", columns, rows)


def _cut() -> str:
    """Which kernels end early in the study of CTAs."""
    last = {name: MORE[len(values(name, CTAS)) - 1] for name in STUDIED[CTAS]}
    return " and ".join(f"{name} ends at c{more:+}" for name, more in last.items() if more != MORE[-1])


def _study(runs: Runs, key: str, name: str, title: str) -> Iterator[Table | Plot]:
    """A sensitivity study of stalls: every kernel with every policy, and their means."""
    curves = View(runs).curves(key)
    labels = [f"c{point:+}" if point else "c" for point in MORE] if key == CTAS else [f"{each}" for each in LATENCIES]
    common = min(len(curve) for each in curves.values() for curve in each.values())  # points that every kernel has
    means = {
        policy: [mean(point) for point in zip(*(curve[:common] for curve in each.values()), strict=True)]
        for policy, each in curves.items()
    }
    rows = [(each, policy, curves[policy][each]) for each in STUDIED[key] for policy in COMPARED]
    rows += [("mean", policy, each) for policy, each in means.items()]
    filled = [(each, POLICIES[policy], *curve, *[None] * (len(labels) - len(curve))) for each, policy, curve in rows]
    yield Table(name, title, ("", "", *labels), filled)
    yield Plot(name, f"{title}: means", partial(_plot, labels[:common], _labelled(means), "-"))


def _overheads(runs: Runs) -> Table:
    view, more = View(runs), OVERHEADS[1:]
    rows: list[tuple[Any, ...]] = [
        (name, *(view.slowdown(name, policy, each) for policy in COMPARED for each in more))
        for name in STUDIED[OVERHEAD]
    ]
    rows.append(("mean", *(mean([row[column] for row in rows]) for column in range(1, len(rows[0])))))
    columns = ("", *(f"{POLICIES[policy]}, {each}" for policy in COMPARED for each in more))
    return Table("overhead", "Time to that with a scheduler overhead of 1 cycle (Chen figure 4-9)", columns, rows)


def _left() -> str:
    """What the causes that were tried leave."""
    lengths = [compiled(name).ptx_instructions / each.published.instructions for name, each in FUNCTIONS.items()]
    return texts.LEFT.format(least=min(lengths), most=max(lengths))


def _plot(names: Sequence[str], series: Curves, line: str = "") -> str:
    """Values in columns: marks that a ``line`` joins, if there is one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4))
    axes = figure.subplots()
    for k, (label, numbers) in enumerate(series.items()):
        mark, grey = MARKS[k]
        axes.plot(range(len(names)), numbers, linestyle=line or "none", marker=mark, color=grey, label=label)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names, rotation=60 if len(names) > 7 else 0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, ncols=len(series))
    return svg(figure)


CHAPTER = Chapter("Warp scheduling beside its thesis", jobs, page)
