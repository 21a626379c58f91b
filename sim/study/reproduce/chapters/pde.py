"""Asynchronous solvers of partial differential equations beside chapter 2 of Chen's thesis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lockstep.sim.kernels.solvers import Blocks, Scheme
from lockstep.sim.study.job import Result
from lockstep.sim.study.page import Page, Plot, Table, Text, svg
from lockstep.sim.study.pde.machines import C1060, GTX580, SMALL, Machine
from lockstep.sim.study.pde.tasks import (
    EPSILONS,
    MOST_STEPS,
    POISSON,
    SHADING,
    Agreement,
    Emulation,
    Image,
    Search,
    Timing,
    run,
)
from lockstep.sim.study.reproduce import Chapter
from lockstep.sim.study.reproduce.plots import axes_side_by_side

BASE, COARSE, UD, FOUR, COMBINED = "Base", "Coarse", "UD", "4W", "4W-combine"
EXCHANGE = {BASE: "none", COARSE: "none", UD: "up-down", FOUR: "four-way", COMBINED: "combined"}
STRIPE, SQUARE, RANDOM = "stripe", "square", "random"


class Name(NamedTuple):
    """A scheme as the thesis calls it."""

    kind: str
    order: str

    def __str__(self) -> str:
        return self.kind if self.kind == BASE else f"{self.kind} {self.order}"


THE_BASE, THE_BEST = Name(BASE, STRIPE), Name(COMBINED, SQUARE)
EIGHT = (THE_BASE, Name(COARSE, STRIPE), *(Name(kind, order) for order in (STRIPE, SQUARE) for kind in (UD, FOUR, COMBINED)))
THIRTEEN = (  # of figure 2-13
    THE_BASE, Name(COARSE, STRIPE), Name(UD, STRIPE), THE_BEST, Name(COARSE, RANDOM), Name(COMBINED, RANDOM),
)  # fmt: skip
SWEPT = (Name(UD, STRIPE), Name(FOUR, SQUARE), THE_BEST)  # in figure 2-11
QUICK = (THE_BASE, Name(COARSE, STRIPE), Name(UD, STRIPE), Name(FOUR, SQUARE), THE_BEST)
FULL, QUICK_EXTENT, FEW_EXTENT = (480, 480), (300, 192), (180, 160)
STEPS, SHORT, QUICK_STEPS, MEASURED = (10, 20, 60, 100), (20, 40, 60), (20, 40), (10, 30)
INTERVALS, USUAL_INTERVAL, THREADS = (1, 2, 4, 10), 4, (0, 32, 64, 128)
DEGREES = (1.5, 2, 3, 4, 8, 16, 32)
HOST = 10e-6  # seconds of a launch and its test on the host
HOSTS = (0.0, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6)
SEED = 1

TOLERANCE, ALIKE, SAME = 0.25, 0.15, 0.02
"""What a figure may differ by from the thesis's; from its own others to be called flat; to make no difference."""

INTRODUCTION = (
    "Chapter 2 of Chen's thesis solves two equations, Poisson image editing and 3-D shape from shading, in blocks that "
    "CTAs hold in their scratchpads. *Base* returns to the host after each step; *Coarse* after n steps; in *UD*, *4W* and "
    "*4W-combine*, CTAs exchange boundaries meanwhile, through global memory, without waiting for each other: those above "
    "and below, all four, and all four with packed columns. Blocks are given to CTAs in *stripes* or *squares*. Generated "
    "by `lockstep reproduce pde`; nothing was tuned to it. It needs `pip install 'lockstep-sm[cuda]'`.",
    "*Where figures come from.* Cycles of a step come from the cycle model, with the whole grid: launches of {measured} steps, "
    "and a line through both. Numbers of steps come from an emulator of blocks, since they are out of the model's reach: "
    "resident CTAs go through their phases together. It has no packed columns: 4W-combine has 4W's steps. The last table "
    "but one has both, where the model reaches the end. Times are launches, each of so many cycles, and {host:.0f} us of "
    "the host for each launch and its test: assumed, and swept below.",
    "In the model a load has the value that memory has when it issues, so that no copy is ever stale: all figures about "
    "convergence are of L1s that are off, as in the thesis, but for its figure 2-10, which needs lines with values.",
    "The images are made, and the thesis gives no threshold: a residual of {poisson:g} for Poisson and {shading:g} for "
    "3DShape, the largest of all nodes, in double precision on the host, with values between 0 and about 1. `C1060` is "
    "`gtx580` with settings (30 SMs with one scheduler and eight lanes, 16 KB of scratchpad, almost no L2), not a "
    "description: its requests are those of whole warps, its latencies Fermi's. Up to {most:,} steps are emulated.",
)


# ---------------------------------------------------------------------------------------------------------------- tasks


def scheme(name: Name, machine: Machine, steps: int, interval: int = USUAL_INTERVAL, threads: int = -1) -> Scheme:
    steps = 1 if name.kind == BASE else steps
    interval = interval if EXCHANGE[name.kind] != "none" else 1
    threads = machine.communicating if threads < 0 else threads
    return Scheme(EXCHANGE[name.kind], name.order, steps, interval, threads, seed=SEED)


def _emulation(problem: str, machine: Machine, name: Name, steps: int, interval: int, extent: tuple[int, int]) -> Emulation:
    """Without packed columns: they change no value that is read."""
    kind = FOUR if name.kind == COMBINED else name.kind
    return Emulation(problem, machine.name, scheme(Name(kind, name.order), machine, steps, interval, 0), extent)


class Case(NamedTuple):
    """A point of a figure."""

    problem: str
    machine: Machine
    name: Name
    steps: int
    interval: int = USUAL_INTERVAL
    threads: int = -1
    extent: tuple[int, int] = FULL

    def emulation(self) -> Emulation:
        return _emulation(self.problem, self.machine, self.name, self.steps, self.interval, self.extent)

    def timings(self) -> list[Timing]:
        counts = (1,) if self.name.kind == BASE else MEASURED
        name = Name(self.name.kind, STRIPE)  # which block a CTA has makes no difference that is looked at here
        made = (scheme(name, self.machine, n, self.interval, self.threads) for n in counts)
        return [Timing(self.problem, self.machine.name, each, self.extent) for each in made]


def _cases(quick: bool) -> list[Case]:
    if quick:
        return [Case(p, SMALL, name, n, extent=QUICK_EXTENT) for p in (SHADING, POISSON) for name in QUICK for n in QUICK_STEPS]
    found = [Case(p, C1060, name, n) for p in (POISSON, SHADING) for name in EIGHT for n in STEPS]
    found += [Case(p, GTX580, name, GTX580.best_steps) for p in (POISSON, SHADING) for name in (THE_BASE, THE_BEST)]
    found += [Case(SHADING, GTX580, name, n) for name in THIRTEEN for n in SHORT]
    found += [Case(SHADING, C1060, name, C1060.best_steps, l) for name in SWEPT for l in INTERVALS]
    return found + [Case(SHADING, C1060, THE_BEST, C1060.best_steps, l, c) for l in (1, USUAL_INTERVAL) for c in THREADS]


def _agreements(quick: bool) -> list[Agreement]:
    """On two SMs, with as many CTAs for each as on the whole GPU."""
    names = QUICK if quick else (*QUICK, Name(UD, SQUARE), Name(FOUR, STRIPE), Name(COARSE, RANDOM))
    found = []
    for name in names:
        how = scheme(name, GTX580, 20)
        found.append(Agreement(SHADING, GTX580.name, how, FEW_EXTENT, 2, 1e-3))
        if not quick and name.kind != BASE:
            found.append(Agreement(POISSON, GTX580.name, how, FEW_EXTENT, 2, 5e-3))
    return found


def _image(problem: str, quick: bool) -> Image:
    machine, extent = (SMALL, QUICK_EXTENT) if quick else (GTX580, FULL)
    return Image(problem, machine.name, scheme(THE_BEST, machine, machine.best_steps), extent, 3)


def jobs(quick: bool) -> dict[str, Any]:
    tasks: list[Any] = [_image(problem, quick) for problem in (POISSON, SHADING)]
    for case in _cases(quick):
        tasks += [*case.timings(), case.emulation()]
    tasks += _agreements(quick)
    tasks += [Search(degree) for degree in (DEGREES[1:6:2] if quick else DEGREES)]
    return {repr(task): task for task in tasks}


# -------------------------------------------------------------------------------------------------------------- results


class Results:
    """What was measured, by what was asked for."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = results

    def of(self, task: Any) -> Result:
        return self._results[repr(task)]

    def has(self, task: Any) -> bool:
        return repr(task) in self._results

    def steps(self, case: Case) -> int:
        return int(self.of(case.emulation())["steps"])

    def converged(self, case: Case) -> bool:
        return bool(self.of(case.emulation())["converged"])

    def cycles(self, case: Case) -> float:
        """Of a launch, in the model."""
        measured = [self.of(task)["cycles"] for task in case.timings()]
        if case.name.kind == BASE:
            return float(measured[0])
        slope = (measured[1] - measured[0]) / (MEASURED[1] - MEASURED[0])
        return float(measured[0] + slope * (case.steps - MEASURED[0]))

    def slope(self, case: Case) -> float:
        """Cycles of a step of a block in a CTA, without what a launch begins and ends with."""
        measured = [self.of(task)["cycles"] for task in case.timings()]
        rows, columns = case.extent
        waves = rows * columns / (case.machine.blocks.width * case.machine.blocks.height * case.machine.blocks.resident)
        return float(measured[1] - measured[0]) / (MEASURED[1] - MEASURED[0]) / waves

    def per_step(self, case: Case, host: float = HOST) -> float:
        """Seconds."""
        steps = 1 if case.name.kind == BASE else case.steps
        return (self.cycles(case) / case.machine.hertz + host) / steps

    def seconds(self, case: Case, host: float = HOST) -> float:
        """Until the equations are solved."""
        return self.steps(case) * self.per_step(case, host)

    def host(self, base: Case, best: Case, times: float = 5) -> float:
        """The host's time with which a step of Base takes so many times as long as one of the other."""
        one, other = (self.cycles(case) / case.machine.hertz for case in (base, best))
        return (times * other / best.steps - one) / (1 - times / best.steps)


# ----------------------------------------------------------------------------------------------------------------- page


def page(results: Mapping[str, Result]) -> Page:
    found = Results(results)
    quick = not found.has(_image(POISSON, False))
    words = {"measured": " and ".join(map(str, MEASURED)), "host": HOST * 1e6, "poisson": EPSILONS[POISSON],
             "shading": EPSILONS[SHADING], "most": MOST_STEPS}  # fmt: skip
    blocks: list[Text | Table | Plot] = [
        *(Text(text.format(**words)) for text in INTRODUCTION),
        *(Plot(f"images-{problem.lower()}", f"{problem}: what is given, and what is found (emulator)",
               partial(_images, problem, found.of(_image(problem, quick)))) for problem in (POISSON, SHADING)),
        _threads(),
    ]  # fmt: skip
    if quick:
        for problem in (POISSON, SHADING):
            blocks += _schemes(found, problem, SMALL, QUICK, QUICK_STEPS, QUICK_EXTENT, "no figure: a smaller grid")
    else:
        blocks += _whole(found)
    blocks += [Text("The emulator beside the model", 2), _agreement(found, quick)]
    blocks += [Text("Breadth-first search", 2), _searches(found, DEGREES)]
    if not quick:
        blocks += [Text("So here: yes or no", 2), _statements(found)]
    return Page("Asynchronous solvers beside their thesis", blocks)


def _whole(found: Results) -> list[Text | Table | Plot]:
    blocks: list[Text | Table | Plot] = []
    for problem, figure in ((POISSON, "Chen figure 2-7"), (SHADING, "Chen figure 2-8")):
        blocks += _schemes(found, problem, C1060, EIGHT, STEPS, FULL, figure)
    blocks += [_both(found), _hosts(found)]
    blocks += [_intervals(found), _communicating(found)]
    return blocks + _schemes(found, SHADING, GTX580, THIRTEEN, SHORT, FULL, "Chen figure 2-13")


def _threads() -> Table:
    """Table 2-1."""
    rows = []
    for machine in (GTX580, C1060):
        wide, high = machine.blocks.width, machine.blocks.height
        arrays = 5 * 4 * (wide + 2) * (high + 2)
        rows.append((machine.name, f"{wide} x {high}", wide * high // 2, machine.communicating, 2 * (wide + high), arrays))
    columns = ("GPU", "block", "computing threads", "communicating threads", "boundary nodes", "bytes of scratchpad")
    return Table("threads", "Threads and what they move (Chen table 2-1 and section 2.3.2)", columns, rows)


def _schemes(
    found: Results, problem: str, machine: Machine, names: Sequence[Name], steps: Sequence[int], extent: tuple[int, int],
    figure: str,
) -> list[Text | Table | Plot]:  # fmt: skip
    """Time and steps by n."""
    rows = []
    for name in names:
        cases = [Case(problem, machine, name, n, extent=extent) for n in steps]
        counts = [f"{found.steps(case):,}" if found.converged(case) else f"more than {MOST_STEPS:,}" for case in cases]
        times = [found.seconds(case) for case in cases]
        if name.kind == BASE:
            counts[1:] = [""] * (len(steps) - 1)
        shown = [times[0], *[None] * (len(steps) - 1)] if name.kind == BASE else times
        rows.append((str(name), *counts, *shown))
    columns = ("", *(f"steps, n = {n}" for n in steps), *(f"seconds, n = {n}" for n in steps))
    key = f"{problem}-{machine.name}".lower().replace(", ", "-").replace(" ", "-")
    title = f"{problem} on {machine.name}: steps (emulator) and seconds (model and emulator), by steps of a launch ({figure})"
    plotted = {str(name): [Case(problem, machine, name, n, extent=extent) for n in steps] for name in names}
    return [Table(key, title, columns, rows), Plot(key, title, partial(_curves, found, plotted, steps))]


def _curves(found: Results, plotted: Mapping[str, Sequence[Case]], steps: Sequence[int]) -> str:
    figure, each = axes_side_by_side(2, 4.2)
    measures: tuple[tuple[str, Callable[[Case], float]], ...] = (("seconds", found.seconds), ("steps", found.steps))
    for axes, (label, measure) in zip(each, measures, strict=True):
        for k, (name, cases) in enumerate(plotted.items()):
            axes.plot(steps, [measure(case) for case in cases], marker="so^vDPX*."[k % 9], markersize=5,
                      color=str(0.08 * k), linewidth=0.8, label=name)  # fmt: skip
        axes.set(xlabel="steps of a launch", ylabel=label, yscale="log")
    each[1].legend(frameon=False, fontsize=7)
    return svg(figure)


def _both(found: Results) -> Table:
    """Figure 2-9."""
    rows = []
    published = {(POISSON, "C1060"): (53.6, 11.4), (SHADING, "C1060"): (95.4, 22.2), (POISSON, "gtx580"): (21.2, 4.1),
                 (SHADING, "gtx580"): (40.1, 12.2)}  # fmt: skip
    for problem in (POISSON, SHADING):
        for machine in (C1060, GTX580):
            base, best = _pair(problem, machine)
            theirs = published[problem, machine.name]
            rows.append((problem, machine.name, best.steps, found.steps(base), found.steps(best), found.seconds(base),
                         found.seconds(best), found.seconds(base) / found.seconds(best), theirs[0] / theirs[1],
                         found.per_step(base) / found.per_step(best), found.host(base, best) * 1e6,
                         5 * found.steps(base) / found.steps(best)))  # fmt: skip
    columns = ("", "", "n", "steps, Base", f"steps, {THE_BEST}", "seconds, Base", f"seconds, {THE_BEST}", "speed-up", "Chen",
               "Base's time per step, to the other's", "us of the host that make it 5", "speed-up with these")  # fmt: skip
    return Table("both", "Base and the best of the thesis on both GPUs (Chen figure 2-9)", columns, rows)


def _pair(problem: str, machine: Machine) -> tuple[Case, Case]:
    base = Case(problem, machine, THE_BASE, machine.best_steps)
    return base, base._replace(name=THE_BEST)


def _hosts(found: Results) -> Table:
    rows = []
    for problem in (POISSON, SHADING):
        for machine in (C1060, GTX580):
            base, best = _pair(problem, machine)
            rows.append((problem, machine.name, *(found.seconds(base, h) / found.seconds(best, h) for h in HOSTS)))
    columns = ("", "", *(f"{host * 1e6:.0f} us" for host in HOSTS))
    return Table("hosts", f"Speed-up of {THE_BEST} over Base by the host's time for a launch", columns, rows)


def _intervals(found: Results) -> Table:
    """Figure 2-11."""
    rows: list[tuple[Any, ...]] = []
    for name in SWEPT:
        for interval in INTERVALS:
            case = Case(SHADING, C1060, name, C1060.best_steps, interval)
            requests = found.of(case.timings()[1])["l2.accesses"]
            rows.append((str(name), interval, found.steps(case), found.slope(case), requests, found.seconds(case)))
    coarse = Case(SHADING, C1060, Name(COARSE, STRIPE), C1060.best_steps)
    rows.append((f"{coarse.name}: computing alone", None, found.steps(coarse), found.slope(coarse),
                 found.of(coarse.timings()[1])["l2.accesses"], found.seconds(coarse)))  # fmt: skip
    columns = ("", "l", "steps", "cycles of a step", f"requests in {MEASURED[1]} steps", "seconds")
    return Table("intervals", f"3DShape on C1060, n = {C1060.best_steps}, by steps between exchanges (Chen figure 2-11)", columns, rows)


def _communicating(found: Results) -> Table:
    """Figure 2-12."""
    rows = []
    for interval in (1, USUAL_INTERVAL):
        cases = [Case(SHADING, C1060, THE_BEST, C1060.best_steps, interval, threads) for threads in THREADS]
        rows.append((interval, *map(found.slope, cases), *map(found.seconds, cases)))
    columns = ("l", *(f"cycles of a step, {c}" for c in THREADS), *(f"seconds, {c}" for c in THREADS))
    return Table("communicating", f"3DShape on C1060, {THE_BEST}, by communicating threads (Chen figure 2-12)", columns, rows)


def _agreement(found: Results, quick: bool) -> Table:
    rows = []
    for task in _agreements(quick):
        result, how = found.of(task), task.scheme
        name = f"{how.exchange}, {how.order}, n = {how.steps}"
        rows.append((task.problem, name, task.epsilon, result["model"], result["emulator"],
                     result["emulator"] / result["model"], result["apart"]))  # fmt: skip
    title = f"Steps until the residual is below epsilon, on two SMs and {FEW_EXTENT[1]} x {FEW_EXTENT[0]} nodes"
    columns = ("", "scheme", "epsilon", "model", "emulator", "ratio", "largest difference of the fields")
    return Table("agreement", title, columns, rows)


def _searches(found: Results, degrees: Sequence[float]) -> Table:
    """Figure 2-2."""
    rows = []
    for degree in degrees:
        if found.has(Search(degree)):
            result = found.of(Search(degree))
            barriers, launches = result["barriers"] / GTX580.hertz, result["launches"] / GTX580.hertz
            rows.append((degree, result["levels"], result["reached"], barriers * 1e6, launches * 1e6,
                         (barriers + HOST) * 1e6, (launches + result["levels"] * HOST) * 1e6))  # fmt: skip
    rows.sort(key=lambda row: row[1])
    columns = ("edges of a vertex", "levels", "vertices reached", "us, barriers", "us, launches", "us, barriers, with the host",
               "us, launches, with the host")  # fmt: skip
    return Table("searches", "Breadth-first search by one CTA, 3,072 vertices, in the model (Chen figures 2-1 and 2-2)", columns, rows)


def _images(problem: str, result: Result) -> str:
    constants, fields = np.array(result["constants"]), np.array(result["fields"])
    if problem == POISSON:
        shown = {"source": constants[0], "background": constants[1], "found": fields[0]}
    else:
        shown = {"brightness": constants[0], "f": fields[0], "g": fields[1]}
    figure, each = axes_side_by_side(len(shown), 3.8)
    for axes, (name, image) in zip(each, shown.items(), strict=True):
        axes.imshow(image, cmap="gray", interpolation="none")
        axes.set(title=name, xticks=[], yticks=[])
    return svg(figure)


# ----------------------------------------------------------------------------------------------------------- statements


def _statements(found: Results) -> Table:
    rows = [(text, "yes" if holds else "no", why) for text, holds, why in _judged(found)]
    return Table("statements", "What the thesis says, and whether it holds here", ("thesis", "here", "figures"), rows)


def _near(value: float, published: float) -> bool:
    return abs(value / published - 1) <= TOLERANCE


def _judged(found: Results) -> Iterator[tuple[str, bool, str]]:
    yield from _speeds(found)
    for problem in (POISSON, SHADING):
        yield from _orders(found, problem)
    yield from _sensitivity(found)
    yield from _random(found)
    searches = [found.of(Search(degree)) for degree in DEGREES]
    searches.sort(key=lambda each: each["levels"])
    gaps = [each["launches"] - each["barriers"] + (each["levels"] - 1) * HOST * GTX580.hertz for each in searches]
    rising = all(a <= b for a, b in zip(gaps, gaps[1:], strict=False))
    yield ("breadth-first search: launches take longer than barriers, by more with each level", min(gaps) > 0 and rising,
           ", ".join(f"{each['levels']} levels: {gap:,.0f} cycles" for each, gap in zip(searches, gaps, strict=True)))  # fmt: skip


def _speeds(found: Results) -> Iterator[tuple[str, bool, str]]:
    for problem, machine, speed in ((POISSON, C1060, 4.7), (SHADING, C1060, 4.3), (POISSON, GTX580, 5.2), (SHADING, GTX580, 3.3)):
        base, best = _pair(problem, machine)
        ours = 5 * found.steps(base) / found.steps(best)
        yield (f"{problem} on {machine.name}: {THE_BEST} is {speed} times as fast as Base, whose step takes 5 times as long",
               _near(ours, speed), f"{ours:.2f} with as many; {found.seconds(base) / found.seconds(best):.2f} with {HOST * 1e6:.0f} us of the host")  # fmt: skip
    for problem, speed in ((POISSON, 2.52), (SHADING, 2.37)):
        ours = found.seconds(_pair(problem, C1060)[0]) / found.seconds(_pair(problem, GTX580)[0])
        yield f"{problem}: gtx580 runs Base {speed} times as fast as C1060", _near(ours, speed), f"{ours:.2f}"
    ratio = found.seconds(_pair(SHADING, C1060)[1]) / found.seconds(_pair(POISSON, C1060)[1])
    yield "3DShape takes about twice as long as Poisson", _near(ratio, 2), f"{ratio:.2f}"


def _orders(found: Results, problem: str) -> Iterator[tuple[str, bool, str]]:
    ranking = (Name(FOUR, SQUARE), Name(FOUR, STRIPE), Name(UD, STRIPE), Name(COARSE, STRIPE))
    times = [found.seconds(Case(problem, C1060, name, C1060.best_steps)) for name in ranking]
    yield (f"{problem} on C1060, n = {C1060.best_steps}: fastest are 4W square, 4W stripe, UD, Coarse, in this order",
           all(a < b for a, b in zip(times, times[1:], strict=False)),
           ", ".join(f"{name}: {value:.3g} s" for name, value in zip(ranking, times, strict=True)))  # fmt: skip
    base = found.steps(_pair(problem, C1060)[0])
    others = [found.steps(Case(problem, C1060, name, n)) for name in EIGHT[1:] for n in STEPS]
    yield f"{problem}: Base needs the fewest steps", base < min(others), f"{base:,}, the others {min(others):,} or more"
    for order in (SQUARE, STRIPE):
        values = [found.seconds(Case(problem, C1060, Name(FOUR, order), n)) for n in STEPS[1:]]
        yield (f"{problem}: 4W {order} is flat in n from 20", max(values) / min(values) - 1 <= ALIKE,
               f"the slowest takes {max(values) / min(values):.2f} times as long as the fastest")  # fmt: skip
    gains = [found.seconds(Case(problem, C1060, Name(FOUR, order), C1060.best_steps)) /
             found.seconds(Case(problem, C1060, Name(COMBINED, order), C1060.best_steps)) for order in (STRIPE, SQUARE)]  # fmt: skip
    yield (f"{problem}: with l = {USUAL_INTERVAL}, packed columns gain nothing", all(abs(gain - 1) <= SAME for gain in gains),
           ", ".join(f"{gain:.3f}" for gain in gains))  # fmt: skip


def _sensitivity(found: Results) -> Iterator[tuple[str, bool, str]]:
    def case(name: Name, interval: int, threads: int = -1) -> Case:
        return Case(SHADING, C1060, name, C1060.best_steps, interval, threads)

    compute = found.slope(case(Name(COARSE, STRIPE), USUAL_INTERVAL))
    ud = [found.slope(case(Name(UD, STRIPE), 1)) / compute]
    four = [found.slope(case(name, 1)) / compute for name in SWEPT if name.kind != UD]
    yield ("with l = 1, UD's step takes 1.1 to 1.3 times as long as computing (6,000-7,000 to 5,500 cycles)",
           all(1.1 <= each <= 1.3 for each in ud), ", ".join(f"{each:.2f}" for each in ud) + f"; computing: {compute:,.0f} cycles")  # fmt: skip
    yield ("with l = 1, 4W's takes 1.8 to 2.2 times as long (10,000-12,000 cycles)", all(1.8 <= each <= 2.2 for each in four),
           ", ".join(f"{each:.2f}" for each in four))  # fmt: skip
    gain = found.slope(case(Name(FOUR, SQUARE), 1)) / found.slope(case(THE_BEST, 1))
    yield "with l = 1, packed columns gain time", gain > 1 + SAME, f"{gain:.3f}"
    two = found.slope(case(THE_BEST, 2)) / compute
    yield "communicating takes as long as computing at about l = 2", 1 <= two <= 1 + ALIKE, f"a step takes {two:.2f} times as long"
    more = found.slope(case(THE_BEST, USUAL_INTERVAL)) / compute
    yield f"from l = {USUAL_INTERVAL} computing takes longer", more <= 1 + 0.1, f"a step takes {more:.2f} times as long"
    best = {str(name): min(INTERVALS, key=lambda l, name=name: found.seconds(case(name, l))) for name in SWEPT}  # type: ignore[misc]
    yield f"l = {USUAL_INTERVAL} is best", {*best.values()} == {USUAL_INTERVAL}, ", ".join(f"{name}: {l}" for name, l in best.items())
    one = {threads: found.seconds(case(THE_BEST, 1, threads)) for threads in THREADS}
    yield ("with l = 1, 128 communicating threads are best", min(one, key=lambda each: one[each]) == 128,
           ", ".join(f"{threads}: {value:.3g} s" for threads, value in one.items()))  # fmt: skip
    yield "with l = 1, none is slightly better than 32", 1 - ALIKE <= one[0] / one[32] < 1, f"{one[0] / one[32]:.2f}"
    usual = {threads: found.seconds(case(THE_BEST, USUAL_INTERVAL, threads)) for threads in THREADS}
    yield (f"with l = {USUAL_INTERVAL}, none is slower than 32", usual[0] > usual[32],
           ", ".join(f"{threads}: {value:.3g} s" for threads, value in usual.items()))  # fmt: skip


def _random(found: Results) -> Iterator[tuple[str, bool, str]]:
    at = {name: Case(SHADING, GTX580, name, GTX580.best_steps) for name in THIRTEEN}
    stripe, mixed, exchanged = at[Name(COARSE, STRIPE)], at[Name(COARSE, RANDOM)], at[Name(COMBINED, RANDOM)]
    yield ("in random order, Coarse needs fewer steps and less time than in stripes",
           found.steps(mixed) < found.steps(stripe) and found.seconds(mixed) < found.seconds(stripe),
           f"{found.steps(mixed):,} to {found.steps(stripe):,}, {found.seconds(mixed):.3g} to {found.seconds(stripe):.3g} s")  # fmt: skip
    ratio = found.steps(exchanged) / found.steps(mixed)
    yield "in random order, communication gains nothing", abs(ratio - 1) <= 0.05, f"{ratio:.2f} times the steps"
    rest = {str(name): found.seconds(case) for name, case in at.items() if name.kind != BASE}
    yield f"{THE_BEST} is the fastest", min(rest, key=lambda each: rest[each]) == str(THE_BEST), _listed(rest)


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name}: {value:.3g} s" for name, value in values.items())


CHAPTER = Chapter("Asynchronous solvers beside their thesis", jobs, page, run)
