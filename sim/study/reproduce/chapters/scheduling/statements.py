"""The thesis's statements, whether they hold here, and what makes those hold that do not.

A statement is decided on a :class:`View`, for each of the ``READINGS`` of table 4-2. What holds on neither is decided
again on other runs: with ``NO_L1``, without the kernels whose L2 waits, and on the cycles in which SMs have CTAs; each
alone, then together; then without each of the kernels. The first view on which it holds is named as its cause; if there
is none, the cause is open.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lockstep.sim.study.page import Table
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
    NO_L1,
    OLDEST,
    OVERHEAD,
    OVERHEADS,
    PEERS,
    POLICIES,
    REGION,
    SIMPLE,
    SLICES,
    STUDIED,
    USUAL,
    Run,
    Runs,
    Settings,
    compiled,
    run_name,
    values,
)

TIMES = {GREEDY: 0.980, OLDEST: 0.922, SIMPLE: 0.901, REGION: 0.884}  # the thesis's means, to fine RR
STALLS = {GREEDY: 0.867, OLDEST: 0.655, SIMPLE: 0.540, REGION: 0.439}

NEAR, ALIKE = 0.05, 0.01  # what counts as about the same, and as the same
LIKE = 0.25  # of an effect that the thesis gives in figures
HALF = 0.5  # of the time, the L2 waits

OPEN = "open"


@dataclass(frozen=True)
class View:
    """The runs that statements are decided on: those of some kernels, all with ``changes``.

    ``busy``: times are the cycles in which SMs have CTAs, not those of launches.
    """

    runs: Runs
    names: Sequence[str] = tuple(FUNCTIONS)
    changes: Settings = field(default_factory=dict)
    busy: bool = False

    def run(self, name: str, policy: str, key: str = "", value: int = 0) -> Run:
        return self.runs[run_name(name, policy, {**self.changes, **({key: value} if key else {})})]

    def cycles(self, name: str, policy: str, key: str = "", value: int = 0) -> float:
        run = self.run(name, policy, key, value)
        return run.cycles * (1 - run.empty if self.busy else 1)

    def time(self, name: str, policy: str) -> float:
        """To that of fine round robin."""
        return self.cycles(name, policy) / self.cycles(name, FINE)

    def stalls(self, name: str, policy: str, key: str = "", value: int = 0) -> float:
        """To those of fine round robin, without a change of ``key``."""
        return self.run(name, policy, key, value).stalls / self.run(name, FINE).stalls

    def share(self, name: str, policy: str) -> float:
        """The share of their cycles in which schedulers stall."""
        run = self.run(name, policy)
        return run.stalls / run.slots

    def slowdown(self, name: str, policy: str, overhead: int) -> float:
        """The time that a scheduler's overhead adds to its own."""
        return self.cycles(name, policy, OVERHEAD, overhead) / self.cycles(name, policy)

    def studied(self, key: str) -> list[str]:
        return [name for name in STUDIED[key] if name in self.names]

    def curve(self, name: str, policy: str, key: str) -> list[float]:
        """Stalls by the values of a parameter."""
        return [self.stalls(name, policy, key, value) for value in values(name, key)]

    def curves(self, key: str) -> dict[str, dict[str, list[float]]]:
        """Of every policy and kernel in a sensitivity study."""
        return {policy: {name: self.curve(name, policy, key) for name in self.studied(key)} for policy in COMPARED}

    def unhindered(self) -> list[str]:
        """The kernels whose L2 waits for less than half of the time."""
        return [name for name in self.names if self.run(name, FINE).waiting < HALF]


def mean(numbers: Iterable[float]) -> float:
    return statistics.geometric_mean(numbers)


Verdict = tuple[bool, str]
"""Whether a statement holds, and the figures that say so."""


class Statement(NamedTuple):
    """What the thesis says, and what decides it; kernels that it names count, whatever those of the view."""

    text: str
    decide: Callable[[View], Verdict]
    key: str = ""  # of its sensitivity study


READINGS: Mapping[str, Settings] = {f"{USUAL[MSHRS] * SLICES} in all": {}, f"{ENOUGH[MSHRS]} in each slice": ENOUGH}
"""What the MSHRs of the L2 in table 4-2 may mean."""


def statements_table(runs: Runs) -> Table:
    rows = []
    for statement in STATEMENTS:
        verdicts = [statement.decide(view) for view in _views(runs).values()]
        cause = "" if any(holds for holds, _ in verdicts) else _cause(runs, statement)
        rows.append((statement.text, *itertools.chain(*verdicts), cause))
    columns = ("Chen", *itertools.chain(*((reading, "figures") for reading in READINGS)), "else it holds")
    return Table("statements", "What the thesis says, and what is so here, by the L2's MSHRs", columns, rows)


def _views(runs: Runs) -> dict[str, View]:
    return {reading: View(runs, changes=changes) for reading, changes in READINGS.items()}


L1S_OFF = "with L1s off"

TAKEN: Mapping[str, Callable[[View], View]] = {
    L1S_OFF: lambda view: replace(view, changes={**view.changes, **NO_L1}),
    "for kernels whose L2 waits for less than half of the time": lambda view: replace(view, names=view.unhindered()),
    "for the cycles in which SMs have CTAs": lambda view: replace(view, busy=True),
}
"""What is taken away from the runs that a statement does not hold on."""


def _cause(runs: Runs, statement: Statement) -> str:
    """What makes a statement hold that does not, and the figures that say so."""
    for label, view in _changed_views(runs, statement.key):
        holds, figures = statement.decide(view)
        if holds:
            return f"{label}: {figures}"
    return OPEN


def _changed_views(runs: Runs, key: str) -> Iterator[tuple[str, View]]:
    """Those on which a statement is decided again, by what is changed."""
    for labels, (reading, view) in itertools.product(_retries(key), _views(runs).items()):
        for label in labels:
            view = TAKEN[label](view)
        if view.names:
            yield ", ".join((reading, *labels)), view
    for name, (reading, view) in itertools.product(FUNCTIONS, _views(runs).items()):
        yield f"{reading}, without {name}", replace(view, names=[each for each in view.names if each != name])


def _retries(key: str) -> Iterator[tuple[str, ...]]:
    """What can be taken away at a time: the studies were not run with L1s off."""
    found = [label for label in TAKEN if label != L1S_OFF or not key]
    for count in range(1, len(found) + 1):
        yield from itertools.combinations(found, count)


def falling(numbers: Sequence[float]) -> bool:
    return all(after < before for before, after in itertools.pairwise(numbers))


def listed(numbers: Mapping[str, float]) -> str:
    """By policies or kernels, those with the thesis's names."""
    return ", ".join(f"{POLICIES.get(name, name)} {value:.3f}" for name, value in numbers.items())


def _but(against: Sequence[str]) -> str:
    """What a statement does not hold for."""
    return f"; not in {', '.join(against)}" if against else ""


def _like(ours: Iterable[float], published: Iterable[float]) -> bool:
    """Whether effects on 1 have the published ones' signs, and their sizes within a quarter."""
    pairs = zip(ours, published, strict=True)
    return all(abs(one - other) <= LIKE * abs(other - 1) for one, other in pairs)


def _time_means(view: View) -> dict[str, float]:
    return {policy: mean(view.time(name, policy) for name in view.names) for policy in PEERS}


def _stall_means(view: View) -> dict[str, float]:
    return {policy: mean(view.stalls(name, policy) for name in view.names) for policy in PEERS}


def _in_order(means: Mapping[str, float]) -> Verdict:
    """Fine round robin's is 1, and each policy's is less than the one before."""
    return falling([1.0, *means.values()]), listed(means)


def _in_size(means: Mapping[str, float], published: Mapping[str, float]) -> Verdict:
    return _like(means.values(), published.values()), listed(means)


def _shares(view: View) -> Verdict:
    shares = [view.share(name, FINE) for name in view.names]
    many = sum(share >= 0.2 for share in shares)
    holds = 0.05 <= min(shares) and max(shares) <= 0.8 and many == 9
    return holds, f"{min(shares):.0%} to {max(shares):.0%}; in {many} of {len(shares)}"


def _share_means(view: View) -> Verdict:
    fine, greedy = (statistics.mean(view.share(name, policy) for name in view.names) for policy in (FINE, GREEDY))
    return abs(fine - 0.33) < NEAR and abs(greedy - 0.31) < NEAR, f"{fine:.0%} and {greedy:.0%}"


FASTEST = ("BlackScholes", "convolutionSep", "matrixMul")


def _fastest(view: View) -> Verdict:
    others = (FINE, GREEDY, OLDEST, SIMPLE)
    best = {name: view.time(name, REGION) / min(view.time(name, other) for other in others) for name in FASTEST}
    return all(value < 1 for value in best.values()), f"time to the fastest other: {listed(best)}"


def _region_to_simple(view: View, names: Iterable[str]) -> dict[str, float]:
    return {name: view.time(name, REGION) / view.time(name, SIMPLE) for name in names}


def _alone(view: View) -> Verdict:
    """Each load is a region."""
    names = [name for name in view.names if compiled(name).global_loads == len(compiled(name).memory_regions)]
    ratios = _region_to_simple(view, names)
    return all(abs(each - 1) < ALIKE for each in ratios.values()), f"region-p's time to simple-p's: {listed(ratios)}"


def _no_benefit(view: View) -> Verdict:
    (ratio,) = _region_to_simple(view, ["cfd"]).values()
    return abs(ratio - 1) < ALIKE, f"region-p's time to simple-p's: {ratio:.3f}"


def _stream(view: View) -> Verdict:
    times = {policy: view.time("stream", policy) for policy in PEERS}
    return all(abs(value - 1) < NEAR for value in times.values()), listed(times)


STARVED = ("histogram", "scalarProd")


def _starved(view: View) -> Verdict:
    stalls = {name: view.stalls(name, OLDEST) for name in STARVED}
    return _like(stalls.values(), (1.58, 1.17)), listed(stalls)


def _fair(view: View) -> Verdict:
    stalls = {policy: {name: view.stalls(name, policy) for name in STARVED} for policy in (SIMPLE, REGION)}
    holds = all(_like(each.values(), (0.12, 0.85)) for each in stalls.values())
    return holds, "; ".join(f"{policy}: {listed(each)}" for policy, each in stalls.items())


def _more_ctas(view: View) -> Verdict:
    curves = view.curves(CTAS)
    ratios = {policy: mean(curve[-1] / curve[0] for curve in each.values()) for policy, each in curves.items()}
    against = [
        f"{name} with {POLICIES[policy]}"
        for policy, each in curves.items()
        for name, curve in each.items()
        if curve[-1] >= curve[0]
    ]
    return not against, f"with the most CTAs to those with c{MORE[0]:+}: {listed(ratios)}{_but(against)}"


def _any_ctas(view: View) -> Verdict:
    means = {
        policy: mean(value for curve in each.values() for value in curve) for policy, each in view.curves(CTAS).items()
    }
    return falling(list(means.values())), listed(means)


ENOUGH_CTAS = ("BlackScholes", "convolutionSep", "lud")
MORE_CTAS = ("cfd", "dxtc", "matrixMul")


def _saved(view: View, names: Iterable[str]) -> dict[str, float]:
    """What region-p saves at most, of fine RR's stalls, with more CTAs than an SM has by its limits."""
    curves = {name: view.curve(name, REGION, CTAS) for name in names}
    usual = MORE.index(0)
    return {name: curve[usual] - min(curve[usual:]) for name, curve in curves.items()}


def _enough_ctas(view: View) -> Verdict:
    saved = _saved(view, ENOUGH_CTAS)
    return all(value < NEAR for value in saved.values()), f"saved, of fine RR's with c: {listed(saved)}"


def _need_ctas(view: View) -> Verdict:
    saved = _saved(view, MORE_CTAS)
    return all(value >= NEAR for value in saved.values()), f"saved, of fine RR's with c: {listed(saved)}"


def _but_dxtc(view: View) -> list[str]:
    return [name for name in view.studied(LATENCY) if name != "dxtc"]


def _longer(view: View) -> Verdict:
    names = _but_dxtc(view)
    curves = view.curves(LATENCY)
    most = {policy: mean(curves[policy][name][-1] / curves[policy][name][0] for name in names) for policy in COMPARED}
    against = [
        f"{name} with {POLICIES[policy]} from {before} to {after} cycles"
        for policy in COMPARED
        for name in names
        for (before, after), (fewer, more) in zip(
            itertools.pairwise(LATENCIES), itertools.pairwise(curves[policy][name]), strict=True
        )
        if more <= fewer
    ]
    return not against, f"with {LATENCIES[-1]} cycles, to those with {LATENCIES[0]}: {listed(most)}{_but(against)}"


def _slower_growth(view: View) -> Verdict:
    names = _but_dxtc(view)
    curves = view.curves(LATENCY)
    grown = {
        policy: statistics.mean(curves[policy][name][-1] - curves[policy][name][0] for name in names)
        for policy in COMPARED
    }
    holds = all(grown[policy] < grown[FINE] for policy in COMPARED if policy != FINE)
    return holds, f"by, of fine RR's with 600 cycles: {listed(grown)}"


def _dxtc(view: View) -> Verdict:
    curves = {policy: view.curve("dxtc", policy, LATENCY) for policy in COMPARED}
    ratios = {policy: curve[-1] / curve[0] for policy, curve in curves.items()}
    holds = all(abs(value - 1) < NEAR for value in ratios.values())
    return holds, f"with {LATENCIES[-1]} cycles, to those with {LATENCIES[0]}: {listed(ratios)}"


def _slowdowns(view: View, overhead: int) -> dict[str, float]:
    names = view.studied(OVERHEAD)
    return {policy: mean(view.slowdown(name, policy, overhead) for name in names) for policy in COMPARED}


def _two_cycles(view: View) -> Verdict:
    slow = _slowdowns(view, OVERHEADS[1])
    return all(abs(value - 1) < NEAR for value in slow.values()), listed(slow)


def _three_cycles(view: View) -> Verdict:
    slow = _slowdowns(view, OVERHEADS[2])
    return all(1.25 - NEAR < value < 1.3 + NEAR for value in slow.values()), listed(slow)


def _sensitive(view: View) -> Verdict:
    two, three = (_slowdowns(view, overhead) for overhead in OVERHEADS[1:])
    holds = two[REGION] < min(two[FINE], two[OLDEST]) and three[REGION] > max(three[FINE], three[OLDEST])
    return holds, f"2: {listed(two)}; 3: {listed(three)}"


STATEMENTS = (
    Statement(
        "on average, every policy is faster than fine RR: region-p most, then simple-p, oldest first, greedy RR",
        lambda view: _in_order(_time_means(view)),
    ),
    Statement("by 11.6, 9.9, 7.8 and 2.0 %", lambda view: _in_size(_time_means(view), TIMES)),
    Statement("on average, each has fewer stalls, in the same order", lambda view: _in_order(_stall_means(view))),
    Statement("by 56.1, 46.0, 34.5 and 13.3 %", lambda view: _in_size(_stall_means(view), STALLS)),
    Statement("fine RR stalls for 5 to 80 % of the cycles, and for 20 % or more in nine kernels", _shares),
    Statement("on average, fine RR stalls for 33 % of the cycles, greedy RR for 31 %", _share_means),
    Statement("region-p is the fastest in BlackScholes, convolutionSep and matrixMul", _fastest),
    Statement("where every load is a region, simple-p and region-p are alike", _alone),
    Statement("so they are in cfd, for want of warps", _no_benefit),
    Statement("in stream, all five take about the same time", _stream),
    Statement("oldest first stalls by 58 % more than fine RR in histogram, 17 % in scalarProd", _starved),
    Statement("simple-p and region-p stall by 88 and 15 % less there", _fair),
    Statement("more CTAs on an SM mean fewer stalls, with each policy in each kernel", _more_ctas, CTAS),
    Statement("whatever the CTAs, region-p stalls least on average, fine RR most", _any_ctas, CTAS),
    Statement(
        "with region-p, no more CTAs than c are needed in BlackScholes, convolutionSep and lud",
        _enough_ctas,
        CTAS,
    ),
    Statement("but in cfd, dxtc and matrixMul", _need_ctas, CTAS),
    Statement("a longer latency means more stalls, with each policy in each kernel but dxtc", _longer, LATENCY),
    Statement("with oldest first and region-p, they rise less than with fine RR", _slower_growth, LATENCY),
    Statement("in dxtc, they hardly change", _dxtc, LATENCY),
    Statement("an overhead of 2 cycles has little effect on time", _two_cycles, OVERHEAD),
    Statement("one of 3 cycles makes it about 25 to 30 % longer", _three_cycles, OVERHEAD),
    Statement("2 cycles cost region-p less than the others, 3 cycles more", _sensitive, OVERHEAD),
)
