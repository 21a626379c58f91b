"""RegLess and its peers beside Kloosterman's thesis (chapter 4), on its GTX 980."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from lockstep.rtl import registry
from lockstep.rtl.netlist import Netlist
from lockstep.sim import kernels
from lockstep.sim.compile.listing import listing
from lockstep.sim.device import description
from lockstep.sim.study import energy
from lockstep.sim.study.job import Job
from lockstep.sim.study.page import Page, Plot, Table, Text, svg
from lockstep.sim.study.reproduce import Chapter, Result
from lockstep.sim.study.reproduce.plots import GREYS, axes_side_by_side, bars
from lockstep.spec import regless
from lockstep.spec.energy import REGISTERS as REGISTER_FILE
from lockstep.spec.energy import WARP_REGISTER_BITS
from lockstep.spec.parameters import LANES
from lockstep.spec.register_regions import MAX_USAGE, REGION_REGISTERS

TITLE = "RegLess beside its thesis"
GPU, SIZE, PROCESS = "gtx980", "small", "45nm"


class Benchmark(NamedTuple):
    """A kernel that stands for a benchmark of table 4.2, which has instructions and cycles of a region."""

    kernel: str
    instructions: float
    cycles: int


BENCHMARKS = {
    "b+tree": Benchmark("b+tree", 3.7, 150),
    "backprop": Benchmark("backprop-layerforward", 6.7, 323),
    "bfs": Benchmark("bfs", 3.3, 60),
    "dwt2d": Benchmark("dwt2d", 9.5, 457),
    "gaussian": Benchmark("gaussian", 8.1, 1207),
    "heartwall": Benchmark("heartwall", 4.6, 32),
    "hotspot": Benchmark("hotspot", 6.4, 75),
    "hybridsort": Benchmark("hybridsort", 6.5, 379),
    "kmeans": Benchmark("kmeans", 3.9, 993),
    "lavaMD": Benchmark("lavaMD", 7.5, 1601),
    "leukocyte": Benchmark("leukocyte", 7.7, 297),
    "lud": Benchmark("lud", 16.0, 816),
    "mummergpu": Benchmark("MUM", 6.4, 240),
    "myocyte": Benchmark("myocyte", 9.3, 120),
    "nn": Benchmark("nearest-neighbour", 6.3, 940),
    "nw": Benchmark("nw", 10.8, 78),
    "particle_filter": Benchmark("particlefilter", 10.0, 20),
    "pathfinder": Benchmark("pathfinder", 4.9, 72),
    "srad_v1": Benchmark("srad_v1", 9.1, 350),
    "srad_v2": Benchmark("srad_v2", 6.9, 323),
    "streamcluster": Benchmark("streamcluster", 4.3, 16),
}
"""By the names of table 4.2."""

NEAR, SLOW = 0.02, 0.05  # of run times: alike, and slower

QUICK = ("backprop", "hotspot", "nn")
STUDIED = ("b+tree", "backprop", "bfs", "gaussian", "hotspot", "lud", "mummergpu", "nn", "nw")  # whose runs are short

REGISTERS = 512  # the thesis's choice
CAPACITIES = (128, 256, 384, 1024, 2048)
ALL_CAPACITIES = sorted((*CAPACITIES, REGISTERS))
WHOLE = str(CAPACITIES[-1])  # as many as the register file has

OBSERVED = "working-set"  # changes nothing
BASE, REGLESS, RFV, RFH = "baseline", "RegLess", "RFV", "RFH"
PLAIN, NEAR_L1 = "without compressor", "L1 hits after 8 cycles"

PEERS = REGLESS, RFV, RFH

KINDS: dict[str, tuple[Sequence[str], Mapping[str, Any]]] = {
    BASE: ((OBSERVED,), {}),
    REGLESS: (("regless",), {}),
    RFV: (("rfv",), {}),
    RFH: (("rfh", OBSERVED), {}),
}
VARIED: dict[str, dict[str, Any]] = {str(registers): {"regless.registers": registers} for registers in CAPACITIES} | {
    PLAIN: {"regless.compressor_lines": 0}, NEAR_L1: {"l1.latency": 8}
}  # fmt: skip
"""Settings by name. Those that are not RegLess's own change the baseline, too."""


class Choice(NamedTuple):
    """A choice of the hardware that is made otherwise: settings of RegLess's run, and of it and its baseline."""

    registers: int
    own: Mapping[str, Any]
    shared: Mapping[str, Any]
    says: str


TOP, RELEASED, BY_WARP = "the top of the stack starts", "the line released first leaves", "compressed lines by warp"
UNBOUND = "any number of a bank's registers"
CODE, SOONER, BOTH = "code is always there", "operands come sooner", "both"


@functools.cache
def choices() -> dict[str, Choice]:
    """By name, in the order of their table."""
    code, sooner, whole = {"instruction_cache.mode": "perfect"}, _sooner(), ALL_CAPACITIES[-1]
    return {
        TOP: Choice(
            REGISTERS, {"regless.patience": 0}, {},
            "as in the thesis; otherwise the bottom of the stack starts after `regless.patience` others",
        ),
        RELEASED: Choice(
            REGISTERS, {"regless.leaves": "first-released"}, {},
            "of a bank's clean lines, and of its dirty ones, the one that was given back first; otherwise, the next in "
            "turn. The thesis has lists, and does not say in which order (section 4.5.2)",
        ),
        BY_WARP: Choice(
            REGISTERS, {"regless.compressed_by": "warp"}, {},
            "registers of one warp with neighbouring numbers share a compressed line; otherwise, registers of "
            "neighbouring warps with the same number do, as they lie in memory (section 4.5.2.3). The thesis does not "
            "say which (section 4.5.3)",
        ),
        CODE: Choice(whole, {}, code, "the instruction cache always hits, so metadata words take no room in it"),
        SOONER: Choice(
            whole, sooner, {},
            f"after as many cycles as from a register file: in RegLess's run, latencies are {LATER} cycles shorter but "
            "for those of branches and barriers",
        ),
        BOTH: Choice(whole, sooner, code, "what is left is regions: how they start, and that warps drain before"),
    }  # fmt: skip


LATER = 2  # cycles that operands take longer than from a register file: docs/regless-hardware.md


def _sooner() -> dict[str, int]:
    """The latencies of what has operands, as if these came from a register file."""
    values = description.values(description.load(GPU))
    pipelines = {name for name in values if name.startswith("pipelines.") and name.endswith(".latency")}
    pipelines -= {"pipelines.control.latency", "pipelines.synchronization.latency"}
    return {name: values[name] - LATER for name in (*sorted(pipelines), "l1.latency", "l2.latency", "dram.latency")}


INTRODUCTION = (
    "RegLess has no register file: staging units hold the registers of the instructions that warps are about to "
    "execute, and the other registers are in the L1, some of them compressed. This page shows it on `gtx980`, with "
    "512 registers, beside the designs that Kloosterman compares it with: a renamed register file of half the size "
    "(RFV), and a hierarchy of register files (RFH, with two-level scheduling). Kernels of our own stand for the "
    "benchmarks of table 4.2, at size `small`. Generated by `lockstep reproduce regless`; nothing was tuned to it.",
    "The thesis's text gives means over all benchmarks, and table 4.2, with other inputs and another compiler than "
    "ours. *Kloosterman* marks its figures.",
)
NEEDS = (
    "The working set: registers (a warp wide) of an SM that instructions name in 100 cycles, as a share of the "
    "{file} of its register file, with greedy and with two-level scheduling. Accesses: in 100 cycles of an SM with "
    "work, to the register file, to the main file of RFH, and of RegLess to the L1; the share is the last of the "
    "first."
)
REGIONS = (
    "The first table has means over the regions of the functions that are launched, as the compiler makes them; live "
    "registers are the most at a time. The second has means over the regions that are executed, with the cycles from "
    "when a region may issue to its last issue."
)
TIMES = "Run time is that of all launches, as a ratio to the baseline's with its whole register file: lower is faster."
SLOWER = (
    "What RegLess does to a warp that is alone: an operand comes two cycles later than from a register file, and its "
    "next region starts only when the last one has all operands. The run time with {file} registers, as many as the "
    "register file has, shows what that costs. Resident warps are those of an SM with work; *active* are those in a "
    "region that may issue. *Wanted* is what all resident warps need from one region to the next or a later one: "
    "their number times the mean of live registers where regions start. Beyond {registers} registers, staging units "
    "cannot keep them."
)
PRELOADS = (
    "Where regions' preloads find their registers, as shares of all preloads; *none* are registers that have no "
    "value yet, of which the compressor knows, too. Requests of RegLess to the L1 of an SM, in a cycle in which it "
    "has work, and of these, lines loaded and stored (the others are dropped)."
)
ENERGY = (
    "Energies are those of `lockstep energy` at 45 nm: of accesses to what holds registers, and of all that it "
    "counts, to the baseline's. It counts what is accessed or executed; clocks and leakage have no source, so a "
    "structure that is smaller saves by its accesses alone. Not counted, for want of a source: {missing}. *No file* "
    "is the baseline without the energy of its register file, which is {file:.0%} of what is counted, and 16.7 % of "
    "the GPU's in the thesis: so the ratios of all energy say less than those of registers."
)
COMPRESSOR = (
    "What compressors take has no source, and is not in these figures. RegLess's compressors store or look up "
    "{events:,} registers in all runs of the table. If each took {picojoules:,.0f} pJ, they would use up what "
    "RegLess saves in register energy; the register file takes {access:,.0f} pJ for an access."
)
CAPACITY = (
    "RegLess with other capacities, without its compressor, and with an L1 that hits after 8 cycles, as its baseline "
    "then has: geometric means over {names}, whose runs are short. Time, energy of registers and of all that is "
    "counted are relative to the baseline; power is energy by time. *State* is the bits of all flip-flops and "
    "memories of RegLess's blocks in an SM, to those of its register file; the thesis has cells of a layout there."
)
CHOICES = (
    "Where this time goes: RegLess with {registers} registers and with {whole}, of which none is ever evicted, as it "
    "is and then with one choice made otherwise, in the same benchmarks. Where the choice is not RegLess's own, the "
    "baseline has it, too. *Effect* is the run time beside that with the same registers and no other choice."
)
BOUNDS = (
    "*{unbound}*: a region has at most {most} registers of a bank, because its first metadata word cannot tell more "
    "(section 4.5.4: 54 bits for the usage of eight banks and for three entries), and {registers} in all (a bound in "
    "algorithm 1, whose value the thesis does not say). Of the {count:,} regions of all benchmarks, {cut} would be "
    "longer without, so the row is that of RegLess as it is."
)
REASONS = (
    "Where it is not so: in {many} of the benchmarks, resident warps need more than {registers} registers from one "
    "region to the next. There, {missed:.0%} of the preloads miss in the staging units, and in the others {few:.1%}. "
    "Of the registers that instructions name, {halves:.0%} are halves of 64-bit values. With {whole} registers, "
    "the {studied} benchmarks of the table of capacities take {most:.3f} of the "
    "baseline's time: that is what regions and later operands cost by themselves. With {registers} it is {own:.3f}: "
    "a region starts when its last preload is there. The L1 of `{gpu}`, which takes {latency} cycles to hit, has a "
    "part in it: with 8 cycles it is {near:.3f}. More about where cycles go: "
    "[RegLess: the hardware](../regless-hardware.md)."
)


def _job(name: str, mechanisms: Sequence[str], settings: Mapping[str, Any]) -> Job:
    return Job(BENCHMARKS[name].kernel, GPU, SIZE, mechanisms=mechanisms, settings=settings)


def jobs(quick: bool) -> dict[str, Job]:
    """Every benchmark with each register file; those whose runs are short with each variation of RegLess."""
    names = QUICK if quick else BENCHMARKS
    found = {f"{name}, {what}": _job(name, *kind) for what, kind in KINDS.items() for name in names}
    if not quick:
        for what, settings in VARIED.items():
            found |= {f"{name}, {what}": _job(name, ("regless",), settings) for name in STUDIED}
        found |= {f"{name}, {BASE}, {NEAR_L1}": _job(name, (), VARIED[NEAR_L1]) for name in STUDIED}
        for what, choice in choices().items():
            settings = {"regless.registers": choice.registers, **choice.own, **choice.shared}
            found |= {f"{name}, {what}": _job(name, ("regless",), settings) for name in STUDIED}
            if choice.shared:
                found |= {f"{name}, {BASE}, {what}": _job(name, (), choice.shared) for name in STUDIED}
    return found


# ------------------------------------------------------------------------------------------------------- what was run


@dataclass(frozen=True)
class Run:
    """One run of a benchmark; energies in femtojoules."""

    cycles: int
    instructions: int
    stats: Mapping[str, float]
    registers: int  # energy of what holds registers ...
    energy: int  # ... and of all that is counted
    not_counted: frozenset[str]
    functions: frozenset[str]  # that were launched

    def __getitem__(self, statistic: str) -> float:
        return self.stats[statistic]

    def of_cycles(self, *counts: str) -> float:
        """Counts in a cycle of an SM with work."""
        return sum(self[count] for count in counts) / self["sm.active_core_cycles"]

    @property
    def active(self) -> float:
        """Warps of an SM whose regions are active."""
        return self["regless.region_core_cycles"] * self.of_cycles("regless.regions")

    @property
    def stores(self) -> float:
        """Lines that the L1 is asked to store."""
        return self["regless.evictions"] * self["regless.uncompressed"] + self["regless.line_stores"]

    @property
    def fetches(self) -> float:
        return self["regless.l1_requests"] - self.stores - self["regless.line_drops"]

    @property
    def sources(self) -> dict[str, float]:
        """Where preloads found their registers."""
        missed, l1, below = (self[f"regless.preloads_{where}"] for where in ("missed", "from_l1", "from_below"))
        return {"staging unit": 1 - missed, "compressor or none": missed - l1 - below, "L1": l1, "below": below}


Runs = Mapping[str, Run]
"""By the names of the jobs."""


def _run(result: Result) -> Run:
    found = energy.account(result, energy.load(PROCESS))
    missing = frozenset(statistic for events in found.not_counted.values() for statistic in events)
    names = frozenset(function["name"] for function in result["functions"])
    return Run(
        result["cycles"], result["warp_instructions"], result["stats"], found.energies[REGISTER_FILE], found.total,
        missing, names,
    )  # fmt: skip


class Regions(NamedTuple):
    """Of a kernel's code: means over its regions, the deviation of the live registers, and the most of a region.

    ``crossing`` are those that a warp needs where a region starts, in this region or in a later one; ``halves`` is the
    share of halves of 64-bit values in the registers that instructions name. There are ``total`` regions, ``cut`` of
    which would be longer if they could have more registers, in all or of a bank.
    """

    instructions: float
    preloads: float
    live: float
    deviation: float
    most: int
    crossing: float
    halves: float
    total: int
    cut: int


@functools.cache
def regions(kernel: str, functions: Collection[str]) -> Regions:
    """The regions of those functions of a kernel."""
    source = kernels.find(kernel)
    found = listing(source.ptx, description.load(GPU), source.registers)
    every = [region for one in found.kernels if one.name in functions for region in one.staging.regions]
    live = [region.registers for region in every]
    named = [operand for region in every for one in region.instructions for operand in one.operands]
    pairs = sum("+" in operand for operand in named)
    return Regions(
        statistics.fmean(len(region.instructions) for region in every),
        statistics.fmean(len(region.preloads) + len(region.last_preloads) for region in every),
        statistics.fmean(live), statistics.pstdev(live), max(live),
        statistics.fmean(region.instructions[0].live for region in every), 2 * pairs / (len(named) + pairs),
        len(every), sum(region.cut for region in every),
    )  # fmt: skip


@functools.cache
def state_bits(registers: int) -> int:
    """Bits of flip-flops and memories in all of an SM's blocks of RegLess."""
    gpu = description.load(GPU, {"regless.registers": registers}, ["regless"])
    bits = 0
    for block, arguments in regless.parameters.arguments(gpu).items():
        netlist = Netlist(registry.component(block)(**arguments))
        own = sum(one.bits for one in netlist.registers()) + sum(one.bits for one in netlist.memories())
        bits += own * regless.MECHANISM.instances(block, gpu)
    return bits


@functools.cache
def file_registers() -> int:
    """Of an SM's register file, a warp wide."""
    return description.load(GPU).core.registers // LANES


def _pair(runs: Runs, name: str, what: str) -> tuple[Run, Run]:
    """A run and its baseline, which may have a variation of its own."""
    return runs[f"{name}, {what}"], runs.get(f"{name}, {BASE}, {what}", runs[f"{name}, {BASE}"])


def _time(runs: Runs, name: str, what: str) -> float:
    """Run time, to the baseline's."""
    run, base = _pair(runs, name, what)
    return run.cycles / base.cycles


def _registers(runs: Runs, name: str, what: str) -> float:
    """Energy of what holds registers, to the register file's."""
    run, base = _pair(runs, name, what)
    return run.registers / base.registers


def _energy(runs: Runs, name: str, what: str) -> float:
    """Energy of all that is counted, to the baseline's."""
    run, base = _pair(runs, name, what)
    return run.energy / base.energy


def _no_file(runs: Runs, name: str) -> float:
    """The energy that is left, relative, if registers took none."""
    base = runs[f"{name}, {BASE}"]
    return 1 - base.registers / base.energy


Measure = Callable[[Runs, str, str], float]


def _geometric(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


# ------------------------------------------------------------------------------------------------------------- the page


def page(results: Mapping[str, Result]) -> Page:
    runs = {name: _run(result) for name, result in results.items()}
    names = [name for name in BENCHMARKS if f"{name}, {BASE}" in runs]
    missing = sorted(frozenset().union(*(run.not_counted for run in runs.values())))
    blocks: list[Text | Table | Plot] = [
        *(Text(text) for text in INTRODUCTION),
        Text("How many registers are needed", 2),
        Text(NEEDS.format(file=file_registers())),
        _needs(runs, names),
        Text("Regions", 2),
        Text(REGIONS),
        _regions(runs, names),
        _executed(runs, names),
        Text("Run time", 2),
        Text(TIMES),
        _times(runs, names),
        Plot(
            "time", "Run time, to the baseline's (Kloosterman figure 4.16)", partial(_bars, runs, names, PEERS, _time)
        ),
        Text(SLOWER.format(registers=REGISTERS, file=file_registers())),
        _pressure(runs, names),
        Text("Preloads", 2),
        Text(PRELOADS),
        _preloads(runs, names),
        Plot("preloads", "Where preloads are found (Kloosterman figure 4.17)", partial(_stacked, runs, names)),
        Text("Energy", 2),
        Text(ENERGY.format(missing=", ".join(f"`{one}`" for one in missing),
                           file=1 - statistics.fmean(_no_file(runs, name) for name in names))),
        _energies(runs, names),
        Plot("registers", "Energy of registers, to the baseline's (Kloosterman figure 4.14)",
             partial(_bars, runs, names, PEERS, _registers)),
        Plot("energy", "Energy of all that is counted, to the baseline's (Kloosterman figure 4.15)",
             partial(_bars, runs, names, PEERS, _energy)),
        Text(_compressor(runs, names)),
    ]  # fmt: skip
    if len(names) == len(BENCHMARKS):
        blocks += [
            Text("Capacities", 2),
            Text(CAPACITY.format(names=", ".join(STUDIED))),
            _capacities(runs),
            Plot("capacities", "Run time and energy by registers (Kloosterman figure 4.13)", partial(_frontier, runs)),
            Text(CHOICES.format(whole=WHOLE, registers=REGISTERS)),
            _choices(runs),
            *(Text(f"*{what}*: {choice.says}.") for what, choice in choices().items()),
            Text(_bounds(runs)),
            Text("So here: yes or no", 2),
            _statements(runs),
            Text(_reasons(runs)),
        ]
    return Page(TITLE, blocks)


def _row_of_means(
    title: str, rows: Sequence[Sequence[Any]], mean: Callable[[Iterable[float]], float] = statistics.fmean
) -> tuple[Any, ...]:
    """The mean of each column."""
    return (title, *(mean(values) for values in zip(*(row[1:] for row in rows), strict=True)))


def _working_set(run: Run) -> float:
    return run["working_set.registers"] / file_registers()


def _accesses(runs: Runs, name: str) -> tuple[float, float, float]:
    """To the register file, to the main file of RFH and, of RegLess, to the L1, in a cycle of an SM with work."""
    base, rfh, staged = (runs[f"{name}, {what}"] for what in (BASE, RFH, REGLESS))
    return (
        base.of_cycles("registers.reads", "registers.writes"),
        rfh.of_cycles("rfh.main_reads", "rfh.main_writes"),
        staged.of_cycles("regless.l1_requests"),
    )


def _needs(runs: Runs, names: Sequence[str]) -> Table:
    """Figures 4.2 and 4.3."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        accesses = _accesses(runs, name)
        sets = (_working_set(runs[f"{name}, {what}"]) for what in (BASE, RFH))
        rows.append((name, *sets, *(100 * each for each in accesses), accesses[2] / accesses[0]))
    rows.append(_row_of_means("mean", rows))
    columns = ("", "working set", "two-level", "accesses, file", "RFH, main file", "RegLess, L1", "share")
    title = "Registers in use, and accesses to what backs them (Kloosterman figures 4.2, 4.3)"
    return Table("needs", title, columns, rows)


def _regions(runs: Runs, names: Sequence[str]) -> Table:
    """Figure 4.19, and the instructions of table 4.2."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        benchmark = BENCHMARKS[name]
        found = regions(benchmark.kernel, runs[f"{name}, {REGLESS}"].functions)
        rows.append((
            name, found.instructions, benchmark.instructions, found.preloads, found.live, found.deviation, found.most
        ))  # fmt: skip
    rows.append(_row_of_means("mean", rows))
    columns = ("", "instructions", "Kloosterman", "preloads", "live", "deviation", "most live")
    return Table("regions", "Regions of the code (Kloosterman figure 4.19, table 4.2)", columns, rows)


def _executed(runs: Runs, names: Sequence[str]) -> Table:
    """The cycles of table 4.2."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        run, published = runs[f"{name}, {REGLESS}"], BENCHMARKS[name].cycles
        started = run["regless.regions"]
        each = run.instructions / started, run["regless.preloads"] / started
        rows.append((name, *each, run["regless.region_core_cycles"], published))
    rows.append(_row_of_means("mean", rows))
    columns = ("", "instructions", "preloads", "cycles", "Kloosterman")
    return Table("executed", "Regions as they are executed (Kloosterman table 4.2)", columns, rows)


def _times(runs: Runs, names: Sequence[str]) -> Table:
    """Figure 4.16."""
    rows: list[tuple[Any, ...]] = [(name, *(_time(runs, name, what) for what in PEERS)) for name in names]
    rows.append(_row_of_means("geometric mean", rows, _geometric))
    rows.append(("Kloosterman, geometric mean", 1.0, None, None))
    return Table("time", "Run time, to the baseline's (Kloosterman figure 4.16)", ("", *PEERS), rows)


def _wanted(runs: Runs, name: str) -> float:
    """Registers that all resident warps of an SM need from one region to the next, or a later one."""
    run = runs[f"{name}, {REGLESS}"]
    return run["occupancy.warps"] * regions(BENCHMARKS[name].kernel, run.functions).crossing


def _pressure(runs: Runs, names: Sequence[str]) -> Table:
    """The quantities that RegLess's run time goes with."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        run = runs[f"{name}, {REGLESS}"]
        rows.append((
            name, _time(runs, name, REGLESS), _time(runs, name, WHOLE) if f"{name}, {WHOLE}" in runs else None,
            run["occupancy.warps"], run.active, _wanted(runs, name),
            run["regless.preloads_missed"], run.of_cycles("regless.l1_requests"),
        ))  # fmt: skip
    columns = ("", "run time", f"with {WHOLE}", "resident warps", "active", "wanted", "preloads missed", "L1 requests")
    return Table("pressure", "What run time goes with", columns, rows)


def _preloads(runs: Runs, names: Sequence[str]) -> Table:
    """Figures 4.17 and 4.18."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        run = runs[f"{name}, {REGLESS}"]
        cycles = run["sm.active_core_cycles"]
        rows.append((name, *run.sources.values(), run.of_cycles("regless.l1_requests"), run.fetches / cycles,
                     run.stores / cycles))  # fmt: skip
    rows.append(_row_of_means("mean", rows))
    rows.append(("Kloosterman, mean", None, None, 0.009, 0.00013, 0.02, None, None))
    columns = ("", *runs[f"{names[0]}, {REGLESS}"].sources, "L1 requests", "loads", "stores")
    return Table("preloads", "Where preloads are found, and requests (Kloosterman figures 4.17, 4.18)", columns, rows)


def _energies(runs: Runs, names: Sequence[str]) -> Table:
    """Figures 4.14 and 4.15."""
    rows: list[tuple[Any, ...]] = [
        (
            name,
            *(_registers(runs, name, what) for what in PEERS),
            *(_energy(runs, name, what) for what in PEERS),
            _no_file(runs, name),
        )
        for name in names
    ]
    rows.append(_row_of_means("geometric mean", rows, _geometric))
    rows.append(("Kloosterman", 0.247, 0.548, 0.38, 0.89, 0.963, 0.971, 0.833))
    columns = ("", *(f"registers, {what}" for what in PEERS), *(f"all, {what}" for what in PEERS), "all, no file")
    return Table("energy", "Energy, to the baseline's (Kloosterman figures 4.14, 4.15)", columns, rows)


def _compressor(runs: Runs, names: Sequence[str]) -> str:
    base, staged = ([runs[f"{name}, {what}"] for name in names] for what in (BASE, REGLESS))
    saved = sum(run.registers for run in base) - sum(run.registers for run in staged)
    events = sum(run["regless.evictions"] + run["regless.preloads"] * run["regless.preloads_missed"] for run in staged)
    accesses = sum(run["registers.reads"] + run["registers.writes"] for run in base)
    each = sum(run.registers for run in base) / accesses
    return COMPRESSOR.format(events=round(events), picojoules=saved / max(events, 1) / 1000, access=each / 1000)


def _at(capacity: int) -> str:
    """The name of RegLess's run with a capacity."""
    return REGLESS if capacity == REGISTERS else str(capacity)


def _mean(runs: Runs, measure: Measure, what: str) -> float:
    return _geometric(measure(runs, name, what) for name in STUDIED)


def _capacities(runs: Runs) -> Table:
    """Figures 4.11 to 4.13."""
    rows = [_variation(runs, str(capacity), _at(capacity), capacity) for capacity in ALL_CAPACITIES]
    rows += [_variation(runs, f"{REGISTERS}, {what}", what) for what in (PLAIN, NEAR_L1)]
    columns = (
        "registers", "of the file", "state", "energy, registers", "power, registers", "run time", "energy, all",
        "slowest", "",
    )  # fmt: skip
    return Table("capacities", "Capacities (Kloosterman figures 4.11, 4.12, 4.13, 4.16)", columns, rows)


def _variation(runs: Runs, title: str, what: str, capacity: int | None = None) -> tuple[Any, ...]:
    """A variation of RegLess; the share of the file's registers and state are those of a ``capacity``."""
    time, registers, whole = (_mean(runs, measure, what) for measure in (_time, _registers, _energy))
    worst = max(STUDIED, key=lambda name: _time(runs, name, what))
    size, state = (
        (capacity / file_registers(), state_bits(capacity) / (file_registers() * WARP_REGISTER_BITS))
        if capacity
        else (None, None)
    )
    return title, size, state, registers, registers / time, time, whole, _time(runs, worst, what), worst


def _choices(runs: Runs) -> Table:
    rows: list[tuple[Any, ...]] = [
        _choice(runs, f"as it is, {capacity}", capacity, _at(capacity)) for capacity in (REGISTERS, ALL_CAPACITIES[-1])
    ]
    rows += [_choice(runs, what, choice.registers, what) for what, choice in choices().items()]
    if not sum(each.cut for each in _of_all(runs)):
        rows.append(_choice(runs, UNBOUND, REGISTERS, REGLESS))
    columns = "", "registers", "run time", "effect", "fastest", "", "slowest", ""
    return Table("choices", "Choices made otherwise, one at a time", columns, rows)


def _choice(runs: Runs, title: str, registers: int, what: str) -> tuple[Any, ...]:
    times = {name: _time(runs, name, what) for name in STUDIED}
    least, most = min(times, key=lambda name: times[name]), max(times, key=lambda name: times[name])
    time = _mean(runs, _time, what)
    effect = time / _mean(runs, _time, _at(registers))
    return title, registers, time, effect, times[least], least, times[most], most


def _of_all(runs: Runs) -> list[Regions]:
    """The regions of every benchmark."""
    return [regions(each.kernel, runs[f"{name}, {REGLESS}"].functions) for name, each in BENCHMARKS.items()]


def _bounds(runs: Runs) -> str:
    found = _of_all(runs)
    return BOUNDS.format(
        unbound=UNBOUND, most=MAX_USAGE, registers=REGION_REGISTERS, count=sum(each.total for each in found),
        cut=sum(each.cut for each in found) or "none",
    )  # fmt: skip


def _statements(runs: Runs) -> Table:
    """The thesis's statements, and whether they hold here."""
    names = list(BENCHMARKS)
    times = {what: {name: _time(runs, name, what) for name in names} for what in PEERS}
    mean = {what: _geometric(values.values()) for what, values in times.items()}
    registers = {what: _geometric(_registers(runs, name, what) for name in names) for what in PEERS}
    whole = {what: _geometric(_energy(runs, name, what) for name in names) for what in PEERS}
    staged = {name: runs[f"{name}, {REGLESS}"] for name in names}
    sources = {where: statistics.fmean(run.sources[where] for run in staged.values()) for where in ("L1", "below")}
    requests = statistics.fmean(run.of_cycles("regless.l1_requests") for run in staged.values())
    found = {name: regions(BENCHMARKS[name].kernel, staged[name].functions) for name in names}
    slower = [name for name in names if times[REGLESS][name] > 1 + SLOW]
    sets = {what: {name: _working_set(runs[f"{name}, {what}"]) for name in names} for what in (BASE, RFH)}
    small = [name for name in names if sets[BASE][name] <= 0.1]
    fewer = [name for name in names if sets[RFH][name] < sets[BASE][name]]
    largest = sorted(names, key=lambda name: -found[name].instructions)
    by_capacity = {str(each): _mean(runs, _time, _at(each)) for each in ALL_CAPACITIES}
    least = {str(each): _mean(runs, _energy, _at(each)) for each in ALL_CAPACITIES}
    plain = _mean(runs, _time, PLAIN) / _mean(runs, _time, REGLESS)
    rows: list[tuple[str, bool, str]] = [
        (
            "most benchmarks use 10 % of the register file or less in 100 cycles",
            len(small) > len(names) / 2,
            f"in {len(small)} of {len(names)}; mean {statistics.fmean(sets[BASE].values()):.1%}",
        ),
        (
            "a two-level scheduler uses less of it",
            statistics.fmean(sets[RFH].values()) < statistics.fmean(sets[BASE].values()),
            f"in {len(fewer)} of {len(names)}; mean {statistics.fmean(sets[RFH].values()):.1%}",
        ),
        (
            "in hotspot, RegLess accesses the L1 less often than RFH its main file, and both less than the file",
            _accesses(runs, "hotspot")[::-1] == tuple(sorted(_accesses(runs, "hotspot"))),
            "in 100 cycles: " + ", ".join(f"{100 * each:.1f}" for each in _accesses(runs, "hotspot")[::-1]),
        ),
        (
            "dwt2d, lud and nw have the largest regions, and bfs smaller ones",
            {*largest[:3]} == {"dwt2d", "lud", "nw"},
            f"largest: {_listed({name: found[name].instructions for name in largest[:4]})}; "
            f"{_listed({name: found[name].instructions for name in ('dwt2d', 'lud', 'nw', 'bfs')})}",
        ),
        (
            "some regions of dwt2d, hotspot and myocyte have 20 live registers or more",
            all(found[name].most >= 20 for name in ("dwt2d", "hotspot", "myocyte")),
            ", ".join(f"{name} {found[name].most}" for name in ("dwt2d", "hotspot", "myocyte")),
        ),
        (
            "in every benchmark, regions have more live registers than preloads",
            all(each.live > each.preloads for each in found.values()),
            f"means: {statistics.fmean(each.live for each in found.values()):.2f} and "
            f"{statistics.fmean(each.preloads for each in found.values()):.2f}",
        ),
        (
            "with 512 registers, RegLess is as fast as the baseline on average",
            mean[REGLESS] <= 1 + NEAR,
            f"{mean[REGLESS]:.3f} of the run time",
        ),
        (
            "more than 5 % slower are gaussian, heartwall and hybridsort alone",
            set(slower) == {"gaussian", "heartwall", "hybridsort"},
            f"{len(slower)} are: {_listed({name: times[REGLESS][name] for name in slower})}",
        ),
        (
            "kmeans, leukocyte and nn are faster",
            all(times[REGLESS][name] < 1 for name in ("kmeans", "leukocyte", "nn")),
            _listed({name: times[REGLESS][name] for name in ("kmeans", "leukocyte", "nn")}),
        ),
        (
            "nothing changes for b+tree, myocyte and streamcluster",
            all(abs(times[REGLESS][name] - 1) <= NEAR for name in ("b+tree", "myocyte", "streamcluster")),
            _listed({name: times[REGLESS][name] for name in ("b+tree", "myocyte", "streamcluster")}),
        ),
        (
            "without its compressor, RegLess is slower by 10.2 %",
            plain > 1 + NEAR,
            f"by {plain - 1:.1%} in the benchmarks of the table of capacities",
        ),
        (
            "RFV and RFH are slower than RegLess",
            min(mean[RFV], mean[RFH]) > mean[REGLESS],
            _listed({what: mean[what] for what in PEERS}),
        ),
        (
            "RFV slows dwt2d and hotspot down",
            all(times[RFV][name] > 1 + NEAR for name in ("dwt2d", "hotspot")),
            _listed({name: times[RFV][name] for name in ("dwt2d", "hotspot")}),
        ),
        (
            "no preload of bfs and nw misses in the staging units",
            all(staged[name].sources["staging unit"] == 1 for name in ("bfs", "nw")),
            ", ".join(f"{name} {staged[name]['regless.preloads_missed']:.2%}" for name in ("bfs", "nw")),
        ),
        ("0.9 % of preloads come from the L1", sources["L1"] < 0.02, f"{sources['L1']:.1%}"),
        ("0.013 % come from below", sources["below"] < 0.0003, f"{sources['below']:.3%}"),
        ("RegLess makes fewer than 0.02 requests to an L1 in a cycle", requests < 0.02, f"{requests:.3f}"),
        (
            "hybridsort and srad_v2 store more registers than they load",
            all(staged[name].stores > staged[name].fetches for name in ("hybridsort", "srad_v2")),
            _listed({name: staged[name].stores / max(staged[name].fetches, 1) for name in ("hybridsort", "srad_v2")}),
        ),
        (
            "RegLess saves three quarters of the register energy (75.3 %), RFH 62.0 %, RFV 45.2 %",
            0.65 < 1 - registers[REGLESS] < 0.85 and registers[REGLESS] < registers[RFH] < registers[RFV],
            ", ".join(f"{what} {1 - registers[what]:.1%}" for what in PEERS),
        ),
        (
            "RegLess saves more of all energy (11 %) than RFV (3.7 %) and RFH (2.9 %)",
            whole[REGLESS] < min(1, whole[RFV], whole[RFH]),
            ", ".join(f"{what} {1 - whole[what]:.1%}" for what in PEERS)
            + f"; without a register file {1 - _geometric(_no_file(runs, name) for name in names):.1%} (16.7 %)",
        ),
        (
            "the smallest staging units take the least energy, and more time",
            min(least, key=lambda each: least[each]) == "128" and by_capacity["128"] > by_capacity["512"] * (1 + NEAR),
            f"energy {_listed(least)}; run time {_listed(by_capacity)}",
        ),
        (
            "larger ones than 512 are a little faster",
            1 - 5 * NEAR < by_capacity[WHOLE] / by_capacity["512"] < 1,
            f"{WHOLE} registers: {by_capacity['2048'] / by_capacity['512']:.3f} of the run time with 512",
        ),
    ]
    return Table("statements", "What the thesis says, and what is so here", ("Kloosterman", "so here", "figures"), rows)


def _reasons(runs: Runs) -> str:
    names = list(BENCHMARKS)
    many = [name for name in names if _wanted(runs, name) > REGISTERS]
    few = [name for name in names if name not in many]

    def missed(those: Sequence[str]) -> float:
        return statistics.fmean(runs[f"{name}, {REGLESS}"]["regless.preloads_missed"] for name in those) if those else 0

    halves = [regions(BENCHMARKS[name].kernel, runs[f"{name}, {REGLESS}"].functions).halves for name in names]
    return REASONS.format(
        many=len(many), missed=missed(many), few=missed(few), registers=REGISTERS, whole=WHOLE, studied=len(STUDIED),
        halves=statistics.fmean(halves), most=_mean(runs, _time, WHOLE), own=_mean(runs, _time, REGLESS),
        near=_mean(runs, _time, NEAR_L1), gpu=GPU, latency=description.load(GPU).l1.latency,
    )  # fmt: skip


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())


# ---------------------------------------------------------------------------------------------------------------- plots


def _bars(runs: Runs, names: Sequence[str], kinds: Sequence[str], measure: Measure) -> str:
    return bars(names, {what: [measure(runs, name, what) for name in names] for what in kinds})


def _stacked(runs: Runs, names: Sequence[str]) -> str:
    figure, (axes,) = axes_side_by_side()
    sources = [runs[f"{name}, {REGLESS}"].sources for name in names]
    below = [0.0] * len(names)
    for where, grey in zip(sources[0], GREYS, strict=True):
        values = [each[where] for each in sources]
        axes.bar(range(len(names)), values, 0.8, below, color=grey, edgecolor="black", linewidth=0.4, label=where)
        below = [first + value for first, value in zip(below, values, strict=True)]
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, ncols=len(GREYS), loc="lower left", bbox_to_anchor=(0, 1.02))
    return svg(figure)


def _frontier(runs: Runs) -> str:
    figure, (axes,) = axes_side_by_side()
    points = [(_mean(runs, _energy, _at(each)), _mean(runs, _time, _at(each))) for each in ALL_CAPACITIES]
    axes.plot(*zip(*points, strict=True), marker="o", color="black", linewidth=0.8)
    axes.plot(1, 1, marker="s", color="black")
    for label, point in zip((*ALL_CAPACITIES, "baseline"), (*points, (1, 1)), strict=True):
        axes.annotate(f"{label}", point, (6, 4), textcoords="offset points")
    axes.margins(0.12)
    axes.set_xlabel("energy of all that is counted")
    axes.set_ylabel("run time")
    return svg(figure)


CHAPTER = Chapter(TITLE, jobs, page)
