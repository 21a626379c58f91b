"""Register sharing beside section 7 of Jatala et al., *The More We Share, The More We Have*."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

from lockstep.models.occupancy import Occupancy, plan
from lockstep.sim import kernels
from lockstep.sim.compile.listing import Registers, listing
from lockstep.sim.device import description
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.study.job import Job
from lockstep.sim.study.page import Page, Plot, Table, Text, svg
from lockstep.sim.study.reproduce import Chapter, Result
from lockstep.spec.parameters import Compiler

GPU = "tesla-c2050"


class Application(NamedTuple):
    """A kernel function of the paper's tables 2 and 3, in our kernel's folder; threads of a CTA, registers of each."""

    kernel: str
    function: str
    threads: int
    registers: int
    size: str = "small"


LIMITED = {
    "backprop": Application("backprop-adjust-weights", "adjust_weights", 256, 24, "full"),
    "b+tree": Application("b+tree", "findRangeK", 508, 24),
    "hotspot": Application("hotspot", "calculate_temp", 256, 36),
    "LIB": Application("LIB", "Pathcalc_Portfolio_KernelGPU", 192, 36, "steady"),
    "MUM": Application("MUM", "mummergpuKernel", 256, 28, "full"),
    "mri-q": Application("mri-q", "compute_q", 256, 24, "steady"),
    "sgemm": Application("sgemm", "sgemm_nt", 128, 48, "steady"),
    "stencil": Application("stencil", "block2D_hybrid_coarsen_x", 512, 28, "steady"),
}
"""Set 1 (table 2), limited by registers."""

OTHERS = {
    "backprop, layerforward": Application("backprop-layerforward", "layerforward", 256, 12),
    "BFS": Application("bfs", "expand", 256, 20),
    "gaussian, Fan1": Application("gaussian", "Fan1", 512, 12),
    "lavaMD": Application("lavaMD", "kernel_gpu_cuda", 128, 40),
    "lud, perimeter": Application("lud", "lud_perimeter", 32, 36),
    "mri-q, PhiMag": Application("mri-q", "compute_phi_mag", 512, 12),
    "NN, second layer": Application("NN", "executeSecondLayer", 25, 24),
    "STO": Application("STO", "sha1_overlap", 128, 48),
}
"""Set 2 (table 3), limited by something else."""

PUBLISHED_LIMITS = {
    "backprop, layerforward": "Threads",
    "BFS": "Threads",
    "gaussian, Fan1": "Threads",
    "lavaMD": "Shared Memory",
    "lud, perimeter": "Blocks",
    "mri-q, PhiMag": "Threads",
    "NN, second layer": "Blocks",
    "STO": "Shared Memory",
}

QUICK = ("hotspot", "sgemm")


class Scheme(NamedTuple):
    """A configuration: mechanisms and settings."""

    mechanisms: tuple[str, ...]
    settings: Mapping[str, Any]


PERCENTS = (0, 10, 30, 50, 70, 90)
SHARED, OF_SCRATCHPAD = ("register-sharing",), ("scratchpad-sharing",)
LRR, GTO, TWO_LEVEL, TWICE = "LRR", "GTO", "two-level", "LRR, 65,536 registers"
NO_OPTIONS, UNROLL, DYNAMIC, OWF = "no options", "unroll", "dynamic", "OWF"
ALONE = {
    LRR: Scheme((), {}),
    GTO: Scheme((), {"core.scheduler": "gto"}),
    TWO_LEVEL: Scheme((), {"core.scheduler": "two-level"}),
    TWICE: Scheme((), {"core.registers": 65536}),
}
_PLAIN = {"core.scheduler": "lrr", "sharing.owf": 0}
STEPS = {
    NO_OPTIONS: Scheme(SHARED, {**_PLAIN, "sharing.numbering": "declaration", "sharing.dynamic": 0}),
    UNROLL: Scheme(SHARED, {**_PLAIN, "sharing.dynamic": 0}),
    DYNAMIC: Scheme(SHARED, _PLAIN),
    OWF: Scheme(SHARED, {}),
}
"""The options of figure 10, each with those before it; the last has all, at 90 %."""
WITHOUT = {
    "without unroll": Scheme(SHARED, {"sharing.numbering": "declaration"}),
    "without dynamic": Scheme(SHARED, {"sharing.dynamic": 0}),
}
"""All options but one; without owner warp first, it is *dynamic*."""
PARTS = {percent: f"{percent} %" for percent in PERCENTS[:-1]} | {90: OWF}
SCHEMES = ALONE | STEPS | WITHOUT | {PARTS[part]: Scheme(SHARED, {"sharing.percent": part}) for part in PERCENTS[:-1]}

SAME_LRR, SAME_GTO = "shared LRR", "shared GTO"
SECOND = {
    LRR: ALONE[LRR],
    SAME_LRR: Scheme(SHARED, {"core.scheduler": "lrr", "sharing.owf": 0, "sharing.numbering": "allocated"}),
    GTO: ALONE[GTO],
    SAME_GTO: Scheme(SHARED, {"core.scheduler": "gto", "sharing.owf": 0, "sharing.numbering": "allocated"}),
    OWF: STEPS[OWF],
}
"""Figure 15."""

PUBLISHED_SPEEDUPS: dict[str, dict[str, float]] = {
    NO_OPTIONS: {"hotspot": 1.1365, "MUM": 0.9985, "LIB": 1.02},
    UNROLL: {"hotspot": 1.1518, "MUM": 1.0008, "LIB": 1.02},
    DYNAMIC: {"hotspot": 1.1458, "MUM": 1.0645, "LIB": 1.02},
    OWF: {
        "backprop": 1.0582,
        "b+tree": 1.1198,
        "hotspot": 1.2176,
        "LIB": 1.0084,
        "MUM": 1.2414,
        "mri-q": 0.9928,
        "sgemm": 1.0406,
        "stencil": 1.2345,
    },
}
"""The numbers that the text gives of figures 9 and 10: their bars have none."""

PUBLISHED_IPC: dict[str, tuple[float, ...]] = {
    "backprop": (389.9, 389.9, 389.9, 389.9, 394.1, 392.8),
    "b+tree": (318.5, 318.5, 318.5, 323.3, 326.1, 326.1),
    "hotspot": (489.5, 489.5, 489.5, 475.2, 476.9, 503.59),
    "LIB": (218.0, 218.0, 203.0, 203.0, 216.3, 223.3),
    "MUM": (190.5, 190.5, 190.5, 192.1, 192.4, 194.9),
    "mri-q": (303.7, 303.7, 303.7, 303.7, 305.3, 305.0),
    "sgemm": (490.6, 490.6, 490.6, 490.6, 446.3, 496.7),
    "stencil": (448.2, 448.2, 448.2, 448.2, 448.2, 440.8),
}
"""Table 4, at each of :data:`PERCENTS`."""

PUBLISHED_CTAS: dict[str, tuple[int, ...]] = {
    "backprop": (5, 5, 5, 5, 6, 6),
    "b+tree": (2, 2, 2, 3, 3, 3),
    "hotspot": (3, 3, 3, 4, 4, 6),
    "LIB": (4, 4, 5, 5, 6, 8),
    "MUM": (4, 4, 4, 5, 5, 6),
    "mri-q": (5, 5, 5, 5, 6, 6),
    "sgemm": (5, 5, 5, 5, 6, 8),
    "stencil": (2, 2, 2, 2, 2, 3),
}
"""Table 5, likewise; its ends are figure 8."""

FEWER_STALLS, MORE_STALLS = ("MUM", "LIB", "backprop", "hotspot"), ("b+tree", "mri-q")
ONLY_OWF = ("sgemm", "backprop", "stencil")
BETTER_TWICE = ("sgemm", "b+tree", "LIB")  # with twice the registers than with sharing
CLOSE = 0.05  # comparable
FULL = 0.9  # of the cycles, a line waits for the L1

INTRODUCTION = (
    "Section 7 of Jatala, Anantpur and Karkare compares register sharing with a Tesla C2050. Here is the same, on the "
    "functions of its tables 2 and 3. Generated by `lockstep reproduce sharing`; nothing was tuned to it. The paper's "
    "figures are those that its text and tables state; none was read off its bar charts.",
    "The paper has the suites' own inputs. *full* and *steady* have their dimensions and pitches; in *steady*, inner "
    "loops or launches are cut (`sim/kernels/KERNEL/kernel.py` says how). b+tree and hotspot have size *small*. "
    "*Times filled* compares the CTAs of a launch with those that all SMs hold with sharing at 90 %.",
)

NEEDED = (
    "Jatala ran PTXPlus, machine code for compute capability 1.x. *Machine code* is what we make of the PTX to be like "
    "it (section `compiler` of `tesla-c2050`). A thread is *given* as many registers as the paper lists (`REGISTERS` "
    "in `kernel.py`), also where its code needs fewer, so that SMs hold the paper's CTAs. The paper's counts are all "
    "multiples of four."
)

SPEEDUPS = (
    "*No options* is sharing under LRR, with registers numbered as the PTX declares them, and each of the next three "
    "adds an option: OWF has all of them, as in figure 9. *OWF, 0 %* is owner warp first without any pair, which is "
    "the order of the oldest warp; *gain of pairs* is OWF over that, so it is what sharing adds to the order. The "
    "paper's, in these two, follow from its table 4 and figure 9."
)

LOCKS = (
    "At 90 %, few registers need no lock, so that one of the first {first} micro-operations needs one even with "
    "*unroll* (`lockstep ptx KERNEL --gpu tesla-c2050 --show registers`). Non-owners wait before they access memory, "
    "and *dynamic* has nothing to do under LRR: {same}."
)

WARPS = (
    "Resident warps of an SM with work, on average, and those among them that do not wait for a lock. Of the warps "
    "that sharing adds over *OWF, 0 %*, in all kernels together, {share} wait."
)

PARTS_OF_TIME = (
    "Every cycle of every SM is one in which it issues, stalls, is idle, or has no CTA, so these add up to the time. "
    "*Order* is OWF at 0 % less LRR, *pairs* is OWF less that, both in percent of LRR's cycles: what is below 0 is "
    "gained. `lockstep compare KERNEL --gpu tesla-c2050 --size SIZE --with baseline --with register-sharing --json -` "
    "has the counts (`issue.issued_core_cycles`, `issue.stall_core_cycles`, `issue.idle_core_cycles`, "
    "`sm.active_core_cycles`)."
)


def jobs(quick: bool) -> dict[str, Job]:
    """Set 1 in every configuration; unless quick, set 2."""
    found = {
        _run(name, scheme): _job(LIMITED[name], SCHEMES[scheme])
        for name in (QUICK if quick else LIMITED)
        for scheme in SCHEMES
    }
    if not quick:
        found |= {_run(name, scheme): _job(OTHERS[name], SECOND[scheme]) for name in OTHERS for scheme in SECOND}
    return found


def _job(application: Application, scheme: Scheme) -> Job:
    return Job(application.kernel, GPU, application.size, mechanisms=scheme.mechanisms, settings=scheme.settings)


def _run(name: str, scheme: str) -> str:
    """The name of the run that figures are in."""
    return f"{name}, {scheme}"


Figures = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Statistics, ``cycles`` and ``launches`` of the function by the application's name and the scheme."""


def figures_of(
    results: Mapping[str, Result], functions: Mapping[str, str], schemes: Iterable[str], run: Callable[[str, str], str]
) -> dict[str, dict[str, dict[str, float]]]:
    """The figures of ``functions``, by application, in those runs that there are; ``run`` names them."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name, scheme in itertools.product(functions, schemes):
        if (result := results.get(run(name, scheme))) is not None:
            (each,) = (each for each in result["functions"] if each["name"] == functions[name])
            own = {"cycles": each["cycles"], "launches": each["launches"]}
            found.setdefault(name, {})[scheme] = {**each["stats"], **own}
    return found


def _figures(
    results: Mapping[str, Result], applications: Mapping[str, Application]
) -> dict[str, dict[str, dict[str, float]]]:
    functions = {name: application.function for name, application in applications.items()}
    return figures_of(results, functions, SCHEMES | SECOND, _run)


def speedup(schemes: Mapping[str, Mapping[str, float]], scheme: str, before: str = LRR) -> float:
    return schemes[before]["cycles"] / schemes[scheme]["cycles"]


@functools.cache
def _sms() -> int:
    return description.load(GPU).core.sms


def ipc(figures: Mapping[str, float]) -> float:
    """Thread instructions per core cycle, as Jatala's."""
    return figures["issue.thread_instructions"] / figures["cycles"]


@functools.cache
def needs_of(kernel: str, function: str) -> tuple[int, int]:
    """Registers of a thread and bytes of scratchpad of a CTA."""
    chosen = kernels.find(kernel)
    found = Gpu(GPU).load(chosen.ptx, chosen.registers).kernel(function)
    return found.registers, found.shared_bytes


def _needs(application: str) -> tuple[int, int]:
    chosen = (LIMITED | OTHERS)[application]
    return needs_of(chosen.kernel, chosen.function)


PTX = {f"compiler.{each.name}": each.default for each in fields(Compiler)}
"""Settings: nothing is done to PTX as an assembler does."""


def _live(application: str, settings: Mapping[str, Any]) -> int:
    """Registers that a thread needs, whatever it is given."""
    chosen = (LIMITED | OTHERS)[application]
    return Gpu(GPU, settings=settings).load(kernels.find(chosen.kernel).ptx).kernel(chosen.function).registers


@functools.cache
def _plan(name: str, scheme: str) -> Occupancy:
    """The CTAs that an SM holds."""
    chosen = (SCHEMES | SECOND)[scheme]
    gpu = description.load(GPU, chosen.settings, chosen.mechanisms)
    return plan(gpu, (LIMITED | OTHERS)[name].threads, *_needs(name))


@functools.cache
def _resident(name: str) -> tuple[int, ...]:
    """CTAs on an SM at each of :data:`PERCENTS`."""
    return tuple(_plan(name, part).ctas for part in PARTS.values())


def page(results: Mapping[str, Result]) -> Page:
    figures, others = _figures(results, LIMITED), _figures(results, OTHERS)
    series = [(scheme, [speedup(schemes, scheme) for schemes in figures.values()]) for scheme in STEPS]
    blocks: list[Text | Table | Plot] = [
        *map(Text, INTRODUCTION),
        _runs(figures),
        _needed([*figures, *others]),
        Text(NEEDED),
        _ctas(figures),
        _speedups(figures),
        Text(SPEEDUPS),
        Plot("speedups", "Speed-up over LRR (Jatala figures 9 and 10)", partial(bars, list(figures), series)),
        _apart(figures),
        _locks(figures),
        Text(_locks_text(figures)),
        _warps(figures),
        Text(_warps_text(figures)),
        _time(figures),
        Text(PARTS_OF_TIME),
        _limits(figures),
        Text(_causes(figures)),
        _cycles(figures),
        Plot("cycles", "Decrease of idle and stall cycles (Jatala figure 11)", partial(_decreases, figures)),
        _schedulers(figures),
        _parts(figures),
    ]
    if others:
        blocks.append(_second(others))
    if set(LIMITED) == set(figures):
        blocks += [Text("So here: yes or no", 2), _statements(figures, others)]
    return Page("Register sharing beside its paper", blocks)


def _runs(figures: Figures) -> Table:
    rows = []
    for name, schemes in figures.items():
        application, (registers, _) = LIMITED[name], _needs(name)
        ctas = schemes[LRR]["sm.ctas"] / schemes[LRR]["launches"]
        here = f"{application.kernel}: `{application.function}`"
        needs = registers, application.registers
        rows.append((name, here, application.size, *needs, int(ctas), ctas / (_sms() * _resident(name)[-1])))
    columns = ("Jatala", "here", "size", "registers", "Jatala", "CTAs of a launch", "times filled")
    return Table("runs", "What runs (Jatala table 2)", columns, rows, marked=True)


def _needed(names: Sequence[str]) -> Table:
    rows = [(name, _live(name, PTX), _live(name, {}), _needs(name)[0], (LIMITED | OTHERS)[name].registers)
            for name in names]  # fmt: skip
    columns = ("", "needed by PTX as it is", "needed by machine code", "given", "Jatala")
    return Table("registers", "Registers of a thread (Jatala tables 2 and 3)", columns, rows)


def _ctas(figures: Figures) -> Table:
    rows = []
    for name in figures:
        ours, theirs = _resident(name), PUBLISHED_CTAS[name]
        rows.append((name, *ours, ours == theirs or ", ".join(map(str, theirs)), _plan(name, TWICE).ctas))
    columns = ("", *(f"{percent} %" for percent in PERCENTS), "as Jatala's", TWICE)
    return Table("ctas", "Resident CTAs of an SM, by what a pair shares (Jatala figure 8 and table 5)", columns, rows)


def _speedups(figures: Figures) -> Table:
    rows: list[list[Any]] = []
    for name, schemes in figures.items():
        row: list[Any] = [name, int(schemes[LRR]["cycles"])]
        for scheme in STEPS:
            row += [speedup(schemes, scheme), PUBLISHED_SPEEDUPS[scheme].get(name)]
        order, theirs = speedup(schemes, PARTS[0]), PUBLISHED_IPC[name][-1] / PUBLISHED_IPC[name][0]
        row += [order, PUBLISHED_SPEEDUPS[OWF][name] / theirs, speedup(schemes, OWF, PARTS[0]), theirs]
        rows.append(row)
    average = [mean(speedup(schemes, scheme) for schemes in figures.values()) for scheme in (*STEPS, PARTS[0])]
    gain = mean(speedup(schemes, OWF, PARTS[0]) for schemes in figures.values())
    last: list[Any] = ["mean", None]
    for value in (*average, gain):
        last += [value, None]
    theirs = mean(PUBLISHED_SPEEDUPS[OWF][name] for name in figures)
    last[2 * len(STEPS) + 1] = theirs
    columns = ["", "LRR: cycles"]
    for scheme in (*STEPS, "OWF, 0 %", "gain of pairs"):
        columns += [scheme, "Jatala"]
    title = "Speed-up over LRR (Jatala figures 9 and 10); means are geometric"
    return Table("speedups", title, columns, [*rows, last])


def _apart(figures: Figures) -> Table:
    """The last column is *dynamic* of figure 10."""
    ways = (OWF, *WITHOUT, DYNAMIC)
    rows: list[tuple[Any, ...]] = [(name, *(speedup(each, way) for way in ways)) for name, each in figures.items()]
    means = [mean(speedup(each, way) for each in figures.values()) for way in ways]
    columns = ("", OWF, *WITHOUT, "without OWF")
    return Table("apart", "Speed-up over LRR with all options but one, at 90 %", columns, [*rows, ("mean", *means)])


def mean(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


@functools.cache
def _registers(name: str) -> Registers:
    """Where registers are first used."""
    kernel = kernels.find(LIMITED[name].kernel)
    listed = listing(kernel.ptx, description.load(GPU), kernel.registers).kernels
    (found,) = (each.registers for each in listed if each.name == LIMITED[name].function)
    return found


def _locks(figures: Figures) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, schemes in figures.items():
        found = _registers(name)
        (part,) = (part for part in found.parts if part.percent == PERCENTS[-1])
        stats = schemes[OWF]
        waiting = stats["sharing.waiting_core_cycles"] / stats["sm.active_core_cycles"]
        counts = (part.unshared, found.micro_operations, part.declared, part.renumbered)
        rows.append((name, *counts, waiting, stats["sharing.lock_waiters"]))
    columns = (
        "",
        "registers without lock",
        "micro-operations",
        "before a lock",
        "with unroll",
        "share of cycles with waiters",
        "warps that wait then",
    )
    title = "Micro-operations before one that needs a lock, and waiting for locks, at 90 %"
    return Table("locks", title, columns, rows)


def _locks_text(figures: Figures) -> str:
    unrolled = [part.renumbered for name in figures for part in _registers(name).parts if part.percent == PERCENTS[-1]]
    apart = [name for name, each in figures.items() if each[UNROLL]["cycles"] != each[DYNAMIC]["cycles"]]
    same = f"it changes {', '.join(apart)}" if apart else "not a cycle changes"
    return LOCKS.format(first=max(unrolled) + 1, same=same)


def _able(stats: Mapping[str, float]) -> float:
    """Warps of an SM with work that do not wait for a lock, on average."""
    waiting = stats["sharing.waiting_core_cycles"] * stats["sharing.lock_waiters"] / stats["sm.active_core_cycles"]
    return stats["occupancy.warps"] - waiting


def _warps(figures: Figures) -> Table:
    rows = [
        (name, each[LRR]["occupancy.warps"], each[PARTS[0]]["occupancy.warps"], each[OWF]["occupancy.warps"],
         _able(each[OWF]), each[OWF]["sharing.throttled_core_cycles"] / each[OWF]["sm.active_core_cycles"])
        for name, each in figures.items()
    ]  # fmt: skip
    columns = (
        "",
        LRR,
        "OWF, 0 %",
        OWF,
        "OWF: those that do not wait",
        "share of cycles in which non-owners are throttled",
    )
    return Table("warps", "Resident warps of an SM", columns, rows)


def _warps_text(figures: Figures) -> str:
    added = [each[OWF]["occupancy.warps"] - each[PARTS[0]]["occupancy.warps"] for each in figures.values()]
    able = [_able(each[OWF]) - each[PARTS[0]]["occupancy.warps"] for each in figures.values()]
    return WARPS.format(share=f"{1 - sum(able) / sum(added):.0%}" if sum(added) else "none")


KINDS = ("issuing", "stall", "idle", "without a CTA")


def _shares(schemes: Mapping[str, Mapping[str, float]], scheme: str) -> list[float]:
    """The parts of the cycles of all SMs, as in :data:`KINDS`, in percent of those under LRR."""
    stats = schemes[scheme]
    parts = [stats[f"issue.{kind}_core_cycles"] for kind in ("issued", "stall", "idle")]
    whole = stats["cycles"] * _sms()
    return [100 * part / (schemes[LRR]["cycles"] * _sms()) for part in (*parts, whole - stats["sm.active_core_cycles"])]


def _time(figures: Figures) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, schemes in figures.items():
        lrr, order, owf = (_shares(schemes, scheme) for scheme in (LRR, PARTS[0], OWF))
        moves = [[after - before for before, after in zip(*pair, strict=True)] for pair in ((lrr, order), (order, owf))]
        rows.append((name, *lrr, *(value for move in moves for value in (*move, sum(move)))))
    changes = (*KINDS, "all")
    columns = (
        "",
        *(f"{LRR}: {kind}" for kind in KINDS),
        *(f"{by}: {kind}" for by in ("order", "pairs") for kind in changes),
    )
    return Table("time", "Where the cycles of all SMs go, in percent of LRR's", columns, rows)


LIMITS = {
    "a line waits for the L1": "lsu.waiting",
    "L1 miss rate": "l1.miss_rate",
    "L2 miss rate": "l2.miss_rate",
    "cycles to the L2 and back": "l1.lat_rt_core_cycles",
    "DRAM row hits": "dram.row_hit_rate",
}


def _limits(figures: Figures) -> Table:
    schemes = {LRR: LRR, "OWF, 0 %": PARTS[0], OWF: OWF}
    rows = [
        (name, *(each[scheme][key] for key in LIMITS.values() for scheme in schemes.values()))
        for name, each in figures.items()
    ]
    columns = ("", *(f"{label}: {scheme}" for label in LIMITS for scheme in schemes))
    return Table("limits", "What holds the SMs up", columns, rows)


def _causes(figures: Figures) -> str:
    """Why kernels are slower with OWF than under LRR, by the table of times; and where warps cannot help."""
    slower, changes = [], {row[0]: row[1 + len(KINDS) :] for row in _time(figures).rows}
    labels = [f"{kind} by the {by}" for by in ("order", "pairs") for kind in (*KINDS, "")]
    for name, schemes in figures.items():
        if speedup(schemes, OWF) < 1:
            parts = {label: value for label, value in zip(labels, changes[name], strict=True) if label[0] != " "}
            most = sorted(parts, key=parts.__getitem__, reverse=True)[:2]
            slower.append(f"{name} ({', '.join(f'{label} {parts[label]:+.1f}' for label in most)})")
    full = [name for name, schemes in figures.items() if schemes[LRR]["lsu.waiting"] > FULL]
    lost = f"slower with OWF than under LRR, and what adds most to their time: {', '.join(slower)}" if slower else ""
    held = f"where a line waits for the L1 in more than {FULL:.0%} of the cycles, warps cannot help: {', '.join(full)}"
    empty = {name: [_shares(each, way)[-1] for way in (UNROLL, NO_OPTIONS)] for name, each in figures.items()}
    late = ", ".join(
        "in {}, SMs have no CTA in {:.1f} % of LRR's cycles, without it in {:.1f}".format(name, *empty[name])
        for name, each in figures.items()
        if speedup(each, UNROLL, NO_OPTIONS) < 1 - CLOSE
    )
    ended = f"slower with *unroll* than without any option, since warps end later on some SMs: {late}" if late else ""
    found = (lost, held if full else "", ended)
    return ". ".join(sentence[0].upper() + sentence[1:] for sentence in found if sentence) + "."


def _cycles(figures: Figures) -> Table:
    rows = []
    for name, schemes in figures.items():
        row: list[Any] = [name]
        for kind in ("idle", "stall"):
            statistic = f"issue.{kind}_core_cycles"
            row += [int(schemes[LRR][statistic]), int(schemes[OWF][statistic]), _decrease(schemes, kind)]
        rows.append(row)
    columns = ("", "idle: LRR", OWF, "decrease", "stall: LRR", OWF, "decrease")
    return Table("cycles", "Idle and stall cycles of all SMs (Jatala figure 11)", columns, rows)


def _decrease(schemes: Mapping[str, Mapping[str, float]], kind: str) -> float:
    before, after = (schemes[scheme][f"issue.{kind}_core_cycles"] for scheme in (LRR, OWF))
    return 1 - after / before if before else 0.0


def _decreases(figures: Figures) -> str:
    kinds = ("idle", "stall")
    series = [(kind, [100 * _decrease(each, kind) for each in figures.values()]) for kind in kinds]
    return bars(list(figures), series, 0)


def _schedulers(figures: Figures) -> Table:
    against = (GTO, TWO_LEVEL, TWICE)
    rows: list[tuple[Any, ...]] = [
        (name, *(speedup(schemes, OWF, before) for before in against)) for name, schemes in figures.items()
    ]
    means = [mean(speedup(schemes, OWF, before) for schemes in figures.values()) for before in against]
    title = "Speed-up of OWF over other baselines (Jatala figures 12, 14 and 13)"
    return Table("schedulers", title, ("", *against), [*rows, ("mean", *means)])


def _parts(figures: Figures) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, schemes in figures.items():
        rows.append((name, ipc(schemes[LRR]), *(ipc(schemes[part]) for part in PARTS.values())))
        rows.append((f"Jatala: {name}", None, *PUBLISHED_IPC[name]))
    columns = ("", LRR, *(f"{percent} %" for percent in PERCENTS))
    title = "Thread instructions per cycle, by what a pair shares (Jatala table 4)"
    return Table("parts", title, columns, rows)


def _second(figures: Figures) -> Table:
    rows = []
    for name, schemes in figures.items():
        fit = _plan(name, SAME_LRR)
        row: list[Any] = [
            name,
            _needs(name)[0],
            OTHERS[name].registers,
            fit.ctas,
            fit.pairs,
            ", ".join(fit.limited_by),
            PUBLISHED_LIMITS[name],
        ]
        for before, shared in ((LRR, SAME_LRR), (GTO, SAME_GTO)):
            row += [int(schemes[before]["cycles"]), int(schemes[shared]["cycles"])]
        rows.append((*row, speedup(schemes, OWF, GTO), speedup(schemes, OWF)))
    ways = (LRR, SAME_LRR, GTO, SAME_GTO)
    gains = ("OWF over GTO", "OWF over LRR")
    columns = ("", "registers", "Jatala", "CTAs", "pairs", "limited by", "Jatala", *ways, *gains)
    title = "Set 2: cycles, with sharing but without unroll, and speed-up of OWF (Jatala table 3, figure 15)"
    return Table("second", title, columns, rows)


def _statements(figures: Figures, others: Figures) -> Table:
    """The statements of the paper's text, and whether they hold here."""
    gains = {scheme: {name: speedup(schemes, scheme) for name, schemes in figures.items()} for scheme in SCHEMES}
    over = {
        before: {name: speedup(schemes, OWF, before) for name, schemes in figures.items()}
        for before in (GTO, TWO_LEVEL, TWICE)
    }
    idle, stall = ({name: _decrease(each, kind) for name, each in figures.items()} for kind in ("idle", "stall"))
    all_cells = len(figures) * len(PERCENTS)
    cells = sum(sum(map(int.__eq__, _resident(name), PUBLISHED_CTAS[name])) for name in figures)
    rates = {name: [ipc(schemes[part]) for part in PARTS.values()] for name, schemes in figures.items()}
    most = [name for name, each in rates.items() if each[-1] == max(each)]
    apart = [name for name, each in figures.items() if each[PARTS[0]]["cycles"] != each[PARTS[10]]["cycles"]]
    lib = {scheme: gains[scheme]["LIB"] for scheme in (NO_OPTIONS, UNROLL, DYNAMIC)}
    mum = {scheme: gains[scheme]["MUM"] for scheme in STEPS}
    only = {name: max(gains[scheme][name] for scheme in (NO_OPTIONS, UNROLL, DYNAMIC)) for name in ONLY_OWF}
    better = [name for name, value in over[TWICE].items() if value > 1]
    differ = [
        name
        for name, each in others.items()
        if any(each[before]["cycles"] != each[same]["cycles"] for before, same in ((LRR, SAME_LRR), (GTO, SAME_GTO)))
    ]
    owf = {name: speedup(each, OWF, GTO) for name, each in others.items()}
    high = {name: gains[OWF][name] for name in ("b+tree", "hotspot", "MUM", "stencil")}
    low = {name: gains[OWF][name] for name in ("LIB", "mri-q")}
    rows = [
        (
            "Resident CTAs are those of table 5",
            cells == all_cells,
            f"{cells} of {all_cells}",
        ),
        ("b+tree, hotspot, MUM and stencil gain 11.98 % or more", min(high.values()) >= 1.1198, listed(high)),
        ("LIB gains less than 1 %, mri-q loses less", all(abs(x - 1) < 0.01 for x in low.values()), listed(low)),
        ("11 % on average", abs(mean(gains[OWF].values()) - 1.11) < 0.02, f"{mean(gains[OWF].values()):.3f}"),
        (
            "hotspot gains without any option, and most with OWF",
            1 < gains[NO_OPTIONS]["hotspot"] and _last_is_best(gains, "hotspot"),
            listed({scheme: gains[scheme]["hotspot"] for scheme in STEPS}),
        ),
        (
            "MUM loses without options, gains with *dynamic*, and most with OWF",
            mum[NO_OPTIONS] < 1 < mum[DYNAMIC] and _last_is_best(gains, "MUM"),
            listed(mum),
        ),
        ("*unroll* and *dynamic* change nothing in LIB", len(set(lib.values())) == 1, listed(lib)),
        (
            "sgemm, backprop and stencil gain only with OWF",
            all(gains[OWF][name] > 1 and value < 1.01 for name, value in only.items()),
            f"best without it: {listed(only)}",
        ),
        ("Idle cycles decrease everywhere", min(idle.values()) > 0, listed(idle)),
        (
            f"Stall cycles decrease in {', '.join(FEWER_STALLS)}",
            all(stall[name] > 0 for name in FEWER_STALLS),
            listed({name: stall[name] for name in FEWER_STALLS}),
        ),
        (
            f"Stall cycles increase in {' and '.join(MORE_STALLS)}",
            all(stall[name] < 0 for name in MORE_STALLS),
            listed({name: stall[name] for name in MORE_STALLS}),
        ),
        ("0 and 10 % are the same", not apart, f"differ: {', '.join(apart)}" if apart else "cycle for cycle"),
        ("90 % is best for most", len(most) > len(figures) / 2, ", ".join(most) or "for none"),
        ("Up to 3.9 % over GTO", 1.01 < max(over[GTO].values()) < 1.05, best(over[GTO])),
        ("Up to 27.22 % over two-level", 1.2 < max(over[TWO_LEVEL].values()) < 1.35, best(over[TWO_LEVEL])),
        (
            "All but sgemm, b+tree and LIB are faster than LRR with 65,536 registers",
            set(better) == set(figures) - set(BETTER_TWICE),
            listed(over[TWICE]),
        ),
        (
            "Set 2 is the same with and without sharing, under LRR and under GTO",
            not differ,
            f"differ: {', '.join(differ)}" if differ else "cycle for cycle",
        ),
        (
            "In set 2, OWF is comparable to GTO",
            all(abs(value - 1) < CLOSE for value in owf.values()),
            listed(owf),
        ),
    ]
    return Table("statements", "What Jatala's text says", ("Jatala", "so here", "figures"), rows)


def _last_is_best(gains: Mapping[str, Mapping[str, float]], name: str) -> bool:
    """Whether a kernel is fastest with all options."""
    return gains[OWF][name] > max(gains[scheme][name] for scheme in STEPS if scheme != OWF)


def best(values: Mapping[str, float]) -> str:
    best = max(values, key=lambda name: values[name])
    return f"{best} {values[best]:.3f}"


def listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())


def bars(names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], line: float = 1) -> str:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4))
    axes = figure.subplots()
    width = 0.8 / len(series)
    for k, ((label, values), grey) in enumerate(zip(series, ("0.85", "0.65", "0.4", "0.1"), strict=False)):
        places = [place + width * (k - (len(series) - 1) / 2) for place in range(len(names))]
        axes.bar(places, values, width, label=label, color=grey)
    axes.axhline(line, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.legend(frameon=False, ncols=len(series))
    return svg(figure)


CHAPTER = Chapter("Register sharing beside its paper", jobs, page)
