"""DYNCTA and DYNCORE beside their paper (Kayiran et al.), on the 30-core GPU of its table 1 and on its meshes."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lockstep.sim.study.job import Job
from lockstep.sim.study.page import Page, Plot, Table, Text, svg
from lockstep.sim.study.reproduce import Chapter, Result
from lockstep.sim.study.reproduce.plots import GREYS, axes_side_by_side, bars

GPU, MESHES = "dyncta30", ("dyncta56", "dyncta110")
SIZE = "small"

LIMIT, GATE = ("dyncta",), ("dyncore",)
BOTH = (*LIMIT, *GATE)

C, M, X = "Type-C", "Type-M", "Type-X"
COMPUTE, EMPTY = 0.66, 0.2  # RACT above which an application is of Type-C, and idle time above which of Type-X


class Application(NamedTuple):
    """A kernel that stands for an application of table 2; ``most`` CTAs of its functions fit an SM.

    Where the largest launch brings fewer than that to a core, ``brought`` says how many.
    """

    kernel: str
    most: int
    kind: str
    dynamic: float | None = None  # the paper's speed-ups, where its text has them
    static: float | None = None
    brought: int | None = None


APPLICATIONS = {
    "PVC": Application("pvc", 8, M, 3.6, 3.5),
    "SSC": Application("ssc", 8, M),
    "IIX": Application("iix", 8, M, 2.9, 4.9),
    "BFS": Application("bfs", 4, M),
    "SAD": Application("sad", 8, M, 2.9),
    "PFF": Application("particlefilter", 8, M, 0.975, brought=1),
    "LUD": Application("lud", 8, X),
    "SPMV": Application("spmv", 5, M),
    "NW": Application("nw", 8, X, 0.98, brought=2),
    "MUM": Application("MUM", 4, M, brought=1),
    "KM": Application("kmeans", 4, M, 1.9),
    "WP": Application("WP", 8, M, brought=3),
    "SCP": Application("scalarProd", 4, M, 0.97),
    "PVR": Application("pvr", 8, M),
    "AES": Application("AES", 4, M),
    "LIB": Application("LIB", 4, M, brought=1),
    "NQU": Application("NQU", 2, X),
    "FFT": Application("fft", 8, M),
    "SD2": Application("srad_v2", 4, M),
    "BP": Application("backprop-layerforward", 4, M),
    "JPEG": Application("JPEG", 8, M),
    "BLK": Application("BlackScholes", 8, C, 0.98),
    "RAY": Application("RAY", 6, C),
    "SD1": Application("srad_v1", 2, C),
    "LKC": Application("leukocyte", 8, C),
    "PFN": Application("particlefilter-naive", 8, C, brought=2),
    "HOT": Application("hotspot", 3, C),
    "NN": Application("NN", 8, C, brought=7),
    "MM": Application("sgemm", 5, C, brought=2),
    "STO": Application("STO", 2, C),
    "CP": Application("CP", 8, C),
}
"""By the paper's abbreviations, in its order."""

QUICK = ("BFS", "SCP", "HOT")

COUNTS = (1, 2, 3, 4, 6)  # static limits that are run, beside the most
SWEPT = {"AES": SIZE, "MM": "steady", "JPEG": SIZE, "CP": "full"}  # figure 4, with every limit, by size
SHOWN = ("SAD", "JPEG", "RAY", "FFT")  # figure 8
STUDIED = ("BFS", "SCP", "AES", "BLK", "HOT", "CP")  # kernels whose runs are short
MESHED = (*STUDIED, "PVC")  # and the one that gains most
CORES_OFF = (4, 8, 12, 16)
OFF = 8 / 30  # share of cores that DYNCORE turns off
START = "from the most"
VARIED: dict[str, dict[str, Any]] = {
    "thresholds halved": {"dyncta.idle_high": 8, "dyncta.memory_low": 64, "dyncta.memory_high": 192},
    "thresholds by half more": {"dyncta.idle_high": 24, "dyncta.memory_low": 192, "dyncta.memory_high": 576},
    "windows of 4096 cycles": {"dyncta.window": 4096},
    "from a limit of 1": {"dyncta.first": "one"},
    START: {"dyncta.first": "most"},
    "32 MSHRs": {"l1.mshrs": 32},
    "16 MSHRs": {"l1.mshrs": 16},
    "DRAM at 1107 MHz": {"clocks.dram": 1107},
    "DRAM at 1333 MHz": {"clocks.dram": 1333},
}
"""Section 5.3, and the start of section 4.1. What is not DYNCTA's own changes the baseline, too."""

EASED: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "L1 of 128 KB": (("PVC", "IIX", "KM"), {"l1.sets": 256}),
    "16 banks of DRAM": (("FFT", "BLK"), {"dram.banks": 16}),
}
"""Where the best limit pays most: applications, and what takes the gain away."""

FEW = (1, 2)  # limits that are the best of these
SLOW, SLOWER = {"clocks.dram": 266}, "DRAM at 266 MHz"  # a third of its speed
STARTS = ("SPMV", "AES", "FFT", "RAY", "SD1")  # where DYNCTA loses

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

BASE, DYNCTA, DYNCORE, TWO_LEVEL, NARROW = "baseline", "DYNCTA", "DYNCORE", "two-level", "C_mem without blocked warps"

MARKS = (("o", "0.0"), ("s", "0.5"), ("^", "0.7"), ("v", "0.3"))  # of plots: shapes and greys
NEAR = 0.02
PIPELINES = {"alu": "ALUs", "sfu": "special functions", "dp": "double precision", "lsu": "load/store unit"}

INTRODUCTION = (
    "Kayiran et al. limit the CTAs of each core to as many as its memory can feed (DYNCTA), and turn off cores while "
    "all of them issue little (DYNCORE). Here are both on `dyncta30`, which follows the paper's table 1, with kernels "
    "of our own that stand for its {all} applications, at size `small`. Generated by `lockstep reproduce dyncta`; "
    "nothing was tuned to it.",
    "A speed-up is the cycles of the baseline, which places as many CTAs as fit, to the cycles of the run; an "
    "application is all of its launches. The paper's text has speed-ups of few applications, and means over all of "
    "them; its inputs are other ones.",
)
MOTIVATION = (
    "A static limit is `core.ctas`. N is how many CTAs fit: the most of the application's kernel functions. Where a "
    "column *brought* has a number, no launch brings more CTAs to a core. Of limits below both, {counts} are run. "
    "*Best* is the best of them and of none."
)
EASE = (
    "Where the best limits pay most, it is for two reasons. Fewer CTAs keep the lines that they read again in an L1 "
    "of 32 KB (PVC, IIX, KM: L1 misses), or they hit open rows of DRAM more often (FFT, BLK: rows hit). Of two "
    "columns, the first has the run without a limit, the second that with the best one. The last columns have a run "
    "without a limit *with* what takes the gain away, an L1 of 128 KB or 16 banks of DRAM in place of 4, and how much "
    "the best limit, of none, 1 and 2, still pays then. How much of its lines an application reads again, and how far "
    "apart, are properties of its input, and ours differs from the paper's."
)
SWEEPS = (
    "The paper's figure 4 sweeps four applications. CP has 256 CTAs at size `full`, which are GPGPU-Sim's, and 512 at "
    "`small`; MM brings no more than {brought} CTAs to a core at `small`, and its own matrices at `steady`. JPEG is at "
    "`small`, and once more with DRAM at a third of its speed."
)
CLASSES = (
    "RACT is the share of cycles in which cores issue (an issue takes four cycles), *empty* that in which cores have "
    "no CTA. Kayiran et al. call an application Type-C if RACT is above 66 %, else Type-X if the empty share is above "
    "20 %, else Type-M. C_mem and C_idle are shares of the cycles of cores with CTAs; *blocked* is the part of C_mem "
    "in which some warps wait for memory, others do not, and the L1 refuses a request."
)
DIFFERENT = (
    "Where our class is another, here is where the cycles of all cores go: RACT and what follows it add up to one. "
    "*Memory* is C_mem, *latency* C_idle: warps wait for results or at barriers; *pipelines* are the cycles in which "
    "some warp could issue, but the pipelines take nothing from it, or in which an instruction is not there yet. A "
    "*wave* is as many CTAs as all cores hold at a time, by N; *DRAM* is the use of its buses, and *intensity* the "
    "warp instructions per KiB that comes from there or goes there."
)
READING = (
    'The paper counts in C_mem the cycles in which "all the warps are waiting for their data to come back, regardless '
    "of the pipeline state being stalled or not\". In this model, as in later versions of the paper's simulator, a "
    "memory instruction that the load/store unit does not take stays in its warp's buffer. Where the MSHRs are taken, "
    "nearly all warps stand behind a request that the L1 refuses. So the cycles in which it refuses one, and nothing "
    "issues, are in C_mem. With `dyncta.blocked=0` they are not; then C_mem is lowest where the memory is busiest, so "
    "the limit rises there. Both readings stand in the table of speed-ups; the wider one was chosen with both in view."
)
APART = (
    "Where the best limit is more than 5 % faster than DYNCTA. *Windows* are those of a core in a launch; *rose* and "
    "*fell* are the shares of them after which the limit did, which it can't beyond N. A limit of DYNCTA starts at N/2 "
    "in every launch, and rises in every window with 16 cycles of C_idle or fewer than 128 of C_mem. And a paused CTA "
    "is not one that is not there: its warps issue while all others wait, so that more requests are on their way than "
    "with a static limit. The last columns have the round trip with the static limit and with DYNCTA."
)
REASONS = (
    "Where it is not so: of SAD's loads {sad:.1%} miss the L1 of 32 KB, which holds its search window, so fewer CTAs "
    "have little to gain: the best limit brings {sad_best:.1%}. AES reads its tables through the constant cache, and "
    "issues in {aes:.0%} of the cycles. JPEG waits for memory in {jpeg:.1%} of the cycles of its cores, and uses DRAM "
    "for {jpeg_dram:.0%}: round trips that take {jpeg_trip:.1f} times as long without a limit as with one CTA cost it "
    "nothing. With {slower} it is the fastest with {jpeg_slow}, by {jpeg_gain:.0%}. MM at `steady` is the fastest "
    "with {mm} CTAs; with more, C_mem rises from {mm_low:.3f} to {mm_high:.3f}. CP at `full` has the paper's grid, "
    "and is the fastest with {cp}; with twice the CTAs, at `small`, with {cp_small}: IPC follows the utilisation. In "
    "KM, some CTA is paused in {km:.0%} of the cycles, and its warps issue while the others wait: the round trip is "
    "{km_own:,.0f} cycles, and {km_static:,.0f} with one CTA. Of {different} applications that are Type-X here alone, "
    "{empty} have the paper's class once the cycles of cores without CTAs are left out."
)
STARTING = (
    "Where DYNCTA loses more than 2 %: from the most, without the start at N/2, {start} lose less than half of that. "
    "*Tail* is the share of cycles of cores without CTAs. {others} lose otherwise. In FFT, some CTA is paused in "
    "{paused:.0%} of the cycles, and lat_rt hardly falls, since paused warps send requests whenever the others wait."
)
POWER = (
    "Power is that of the cores, after section 5.2 of the paper: a core that is on draws half of what it draws when "
    "it issues in every cycle, one that is turned off draws nothing (*gated*), or that half (*not gated*). Efficiency "
    "is instructions per watt. All are relative to the baseline. *Told* is the share of cycles, times cores, in which "
    "cores are to take no more CTAs, at most 8 of 30, 0.267; they are *asleep* once their last CTA has ended."
)
ASLEEP = (
    "The power falls less than the paper's 17 %: cores are told to take no CTAs in {told:.1%} of the cycles, but "
    "asleep in {asleep:.1%}. Meanwhile they finish their CTAs, which takes most of a launch of few waves (*waves*, at "
    "N). Were they asleep as soon as they are told, power would be {could:.3f}. {busy} applications issue in more "
    "than two thirds of most windows, so that no core is told for half of the time."
)
VARIATION = (
    "Section 5.3 of the paper varies DYNCTA's parameters and the memory. Geometric means of {kernels}, whose runs are "
    "short: speed-up over the baseline with the same memory, the change of it, the application whose speed-up changes "
    "most, and the change of the mean of the others. The paper's means are over 31 applications: where one is most of "
    "a change here, this is not a property of the mechanism."
)
LARGER = (
    "56 and 110 cores stand on meshes of 8 by 8 and 11 by 11 nodes, with as many memory controllers as the mesh has "
    "rows (see [Timing](../timing.md)). Speed-ups of DYNCORE, which has DYNCTA in it, over the baseline of the same "
    "mesh, for the applications above and the one that gains most. *Waves* are those of a launch, by N."
)
LARGER_WHY = (
    "The paper's 1.09 and 1.27 are means over 31 applications with the paper's inputs, and depend on which are in "
    "them: without {most}, ours are {thirty:.3f} on 30 cores, and {others} on the meshes. Our grids are the same on "
    "all three GPUs: {few} of {count} bring fewer CTAs to a core of 110 than half of N. There DYNCTA, which starts at "
    "N/2, limits nothing at first."
)


def _limits(name: str) -> list[int]:
    """The static limits that are run: those below what a core gets without a limit."""
    application = APPLICATIONS[name]
    most = application.brought or application.most
    return [n for n in (range(1, most) if SWEPT.get(name) == SIZE else COUNTS) if n < most]


def _job(name: str, mechanisms: Sequence[str] = (), gpu: str = GPU, size: str = SIZE, **settings: Any) -> Job:
    changed = {key.replace("__", "."): value for key, value in settings.items()}
    return Job(APPLICATIONS[name].kernel, gpu, size, mechanisms=mechanisms, settings=changed)


def jobs(quick: bool) -> dict[str, Job]:
    """Every application as it is, with each limit, with the mechanisms; and the studies."""
    found: dict[str, Job] = {}
    for name in QUICK if quick else APPLICATIONS:
        found |= {
            f"{name}, {BASE}": _job(name),
            **{f"{name}, {n}": _job(name, core__ctas=n) for n in _limits(name)},
            f"{name}, {DYNCTA}": _job(name, LIMIT),
            f"{name}, {DYNCORE}": _job(name, BOTH),
        }
        if not quick:
            found |= {
                f"{name}, {TWO_LEVEL}": _job(name, core__scheduler="two-level"),
                f"{name}, {NARROW}": _job(name, LIMIT, dyncta__blocked=0),
            }
    return found if quick else found | _studies() | _causes()


def _studies() -> dict[str, Job]:
    found: dict[str, Job] = {}
    for name in STUDIED:
        for off in CORES_OFF:
            for what, mechanisms in ((BASE, ()), (DYNCTA, LIMIT)):
                found[f"{name}, {what}, {off} cores off"] = _job(name, mechanisms, core__sms=30 - off)
        for variation, settings in VARIED.items():
            changed = {key.replace(".", "__"): value for key, value in settings.items()}
            found[f"{name}, {DYNCTA}, {variation}"] = _job(name, LIMIT, **changed)
            if not _own(settings):
                found[f"{name}, {BASE}, {variation}"] = _job(name, **changed)
    for name in MESHED:
        for mesh in MESHES:
            found[f"{name}, {BASE}, {mesh}"] = _job(name, gpu=mesh)
            found[f"{name}, {DYNCORE}, {mesh}"] = _job(name, BOTH, mesh)
    return found


def _causes() -> dict[str, Job]:
    """Runs that tell why figures part from the paper's."""
    found: dict[str, Job] = {}
    for what, (names, settings) in {**EASED, SLOWER: (("JPEG",), SLOW)}.items():
        changed = {key.replace(".", "__"): value for key, value in settings.items()}
        for name in names:
            found[f"{name}, {BASE}, {what}"] = _job(name, **changed)
            for n in FEW if what in EASED else COUNTS:
                found[f"{name}, {n}, {what}"] = _job(name, core__ctas=n, **changed)
    for name, size in SWEPT.items():
        if size != SIZE:
            found[f"{name}, {BASE}, {size}"] = _job(name, size=size)
            for n in range(1, APPLICATIONS[name].most):
                found[f"{name}, {n}, {size}"] = _job(name, size=size, core__ctas=n)
    for name in STARTS:
        found[f"{name}, {DYNCTA}, {START}"] = _job(name, LIMIT, dyncta__first="most")
    return found


def _own(settings: Mapping[str, Any]) -> bool:
    """Whether a variation changes the mechanism alone."""
    return all(key.startswith(LIMIT[0]) for key in settings)


class Run(NamedTuple):
    """One run of an application."""

    cycles: float
    act: float  # RACT
    occupied: float  # share of cycles in which cores have CTAs: the paper's util
    latency: float  # the paper's lat_rt
    misses: float  # rate, of the L1
    memory: float  # C_mem, of the cycles with CTAs ...
    blocked: float  # ... and its part with warps that the load/store unit blocks
    idle: float  # C_idle
    asleep: float  # share of cycles in which cores are off
    limit: float  # mean limit
    waves: float  # CTAs of a launch, to those that the cores hold at a time
    blocking: str  # the pipelines that hold back most instructions
    bandwidth: float  # used, of DRAM
    rows: float  # share of DRAM's accesses whose row is open
    intensity: float  # warp instructions per KiB from and to DRAM
    windows: float  # of a core in a launch, with DYNCTA
    rose: float  # share of windows after which the limit rose ...
    fell: float  # ... or fell
    paused: float  # share of the cycles with CTAs in which some are paused
    told: float  # share of cycles in which cores are to take no CTA
    over_time: list[dict[str, list[float]]]  # of each launch

    @property
    def parts(self) -> dict[str, float]:
        """Where the cycles go in which a core does not issue, as shares of all."""
        memory, idle = self.memory * self.occupied, self.idle * self.occupied
        return {
            "empty": 1 - self.occupied,
            "memory": memory,
            "latency": idle,
            "pipelines": max(0.0, self.occupied - self.act - memory - idle),
        }

    @property
    def ungated(self) -> float:
        """Power, to that of cores that issue in every cycle."""
        return (1 + self.act) / 2

    @property
    def power(self) -> float:
        return (1 - self.asleep + self.act) / 2


Runs = Mapping[str, Run]
"""By the names of the jobs."""


def _run(result: Result, most: int) -> Run:
    stats, cores = result["stats"], result["configuration"]["core.sms"]
    occupied, cycles = stats["sm.active_core_cycles"], result["cycles"]
    blocked = stats["issue.c_mem_blocked_core_cycles"]
    windows = cycles * cores / result["configuration"]["dyncta.window"]
    transferred = stats["dram.read_bytes"] + stats["dram.written_bytes"]
    return Run(
        cycles=cycles,
        act=stats["issue.ract"],
        occupied=occupied / (cycles * cores),
        latency=stats["l1.lat_rt_core_cycles"],
        misses=stats["l1.miss_rate"],
        memory=(stats["issue.c_mem_core_cycles"] + blocked) / occupied,
        blocked=blocked / occupied,
        idle=stats["issue.c_idle_core_cycles"] / occupied,
        asleep=stats["sm.asleep_core_cycles"] / (cycles * cores),
        limit=stats.get("dyncta.mean_limit", 0.0),
        waves=stats["sm.ctas"] / result["launches"] / (cores * most),
        blocking=max(PIPELINES, key=lambda pipeline: stats[f"issue.stall_{pipeline}_core_cycles"]),
        bandwidth=stats["dram.bandwidth_used"],
        rows=stats["dram.row_hit_rate"],
        intensity=1024 * result["warp_instructions"] / max(transferred, 1),
        windows=windows / cores / result["launches"],
        rose=stats.get("dyncta.raised", 0.0) / windows,
        fell=stats.get("dyncta.lowered", 0.0) / windows,
        paused=stats.get("dyncta.paused_core_cycles", 0.0) / occupied,
        told=sum(map(_told, result["timeline"])) / cycles,
        over_time=result["timeline"],
    )


def _told(launch: Mapping[str, Sequence[float]]) -> float:
    """The cycles of a launch, by the share of cores that are to take no CTA."""
    ends = launch["core_cycle"]
    told = launch.get("dyncore.drained", [0.0] * len(ends))
    return sum((end - begin) * share for begin, end, share in zip([0, *ends], ends, told, strict=False))


def _speed(runs: Runs, name: str, what: str, more: str = "", base: str | None = None) -> float:
    """The baseline's cycles to those of a run; ``more`` ends the names of both, unless there is a ``base``."""
    return runs[f"{name}, {BASE}{more if base is None else base}"].cycles / runs[f"{name}, {what}{more}"].cycles


def _best(runs: Runs, name: str) -> tuple[float, int]:
    """The best speed-up of a static limit, and the limit; the most is one of them."""
    speeds = [(_speed(runs, name, f"{n}"), n) for n in _limits(name)]
    return max([*speeds, (1.0, APPLICATIONS[name].most)])


def _best_run(runs: Runs, name: str) -> Run:
    _, at = _best(runs, name)
    return runs[f"{name}, {BASE if at == APPLICATIONS[name].most else at}"]


def _kind(run: Run) -> str:
    return C if run.act > COMPUTE else X if 1 - run.occupied > EMPTY else M


def _filled(run: Run) -> str:
    """The class by the cycles of cores with CTAs alone."""
    return C if run.act / run.occupied > COMPUTE else M


def _why(run: Run, kind: str) -> str:
    """The reasons why a class is not the paper's, by what was measured."""
    if run.act > COMPUTE:
        return f"busy: DRAM is used for {run.bandwidth:.0%}, with {run.intensity:,.0f} warp instructions per KiB"
    parts = run.parts
    if kind == X:
        return f"cores are empty for {parts['empty']:.0%} only: a launch has {run.waves:.1f} waves"
    if _kind(run) == M:
        return _most(run)
    waves = f"{run.waves:.1f} waves, which end unevenly" if run.waves > 1 else f"{run.waves:.2f} of a wave"
    others = "" if _filled(run) == kind else ", since they are busy" if _filled(run) == C else f": {_most(run)}"
    return f"empty: a launch has {waves}; without empty cores {_filled(run)}{others}"


def _most(run: Run) -> str:
    """The largest part of the cycles without an issue, but for empty cores."""
    shares = {part: share for part, share in run.parts.items() if part != "empty"}
    largest = max(shares, key=lambda part: shares[part])
    details = {
        "memory": f", {run.blocked / max(run.memory, 1e-9):.0%} of it with the load/store unit blocked",
        "pipelines": f", most of it the {PIPELINES[run.blocking]}",
        "latency": "",
    }
    return f"{largest}, {shares[largest]:.0%}{details[largest]}"


def _geometric(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


def page(results: Mapping[str, Result]) -> Page:
    runs = {name: _run(result, APPLICATIONS[name.split(",")[0]].most) for name, result in results.items()}
    names = [name for name in APPLICATIONS if f"{name}, {BASE}" in runs]
    whole = len(names) == len(APPLICATIONS)
    counts = ", ".join(map(str, COUNTS[:-1])) + f" and {COUNTS[-1]}"
    speeds = {"one CTA": [_one(runs, name) for name in names], "best": [_best(runs, name)[0] for name in names]}
    blocks: list[Text | Table | Plot] = [
        *(Text(text.format(all=len(APPLICATIONS))) for text in INTRODUCTION),
        Text("More CTAs are not always better", 2),
        Text(MOTIVATION.format(counts=counts)),
        _statics(runs, names),
        *((Text(EASE.format(names=_and(_eased_names()))), _eased(runs)) if whole else ()),
        Plot("static", "Speed-up of one CTA on each core, and of the best (Kayiran figure 1)", bars(names, speeds)),
        Text(CLASSES),
        _classes(runs, names),
        Text(DIFFERENT),
        _different(runs, names),
        Plot("ract", "RACT (Kayiran figure 3)", _sorted_bars({name: runs[f"{name}, {BASE}"].act for name in names})),
    ]
    if whole:
        title = "IPC, latency and utilisation by the limit, to those of N (Kayiran figure 4)"
        text = SWEEPS.format(brought=APPLICATIONS["MM"].brought)
        blocks += [Text(text), _sweeps(runs), Plot("sweep", title, _sweep(runs))]
    blocks += [
        Text("DYNCTA", 2),
        *([Text(READING)] if whole else []),
        _speeds(runs, names, whole),
        Plot("dyncta", "Speed-up (Kayiran figure 10)", bars(names, _compared(runs, names, whole))),
        Plot("limits", "CTAs of a core: N, DYNCTA's mean limit, the best static (Kayiran figure 9)", bars(names, {
            "N": [APPLICATIONS[name].most for name in names],
            "DYNCTA": [runs[f"{name}, {DYNCTA}"].limit for name in names],
            "best": [_best(runs, name)[1] for name in names],
        })),
        _latencies(runs, names),
        Text(APART),
        _apart(runs, names),
    ]  # fmt: skip
    if whole:
        title = "Limit over time, a mean over the cores (Kayiran figure 8)"
        blocks += [Text(_starting(runs)), _starts(runs), Plot("time", title, _over_time(runs))]
    blocks += [
        Text("DYNCORE", 2),
        Text(POWER),
        _power(runs, names),
        Text(_asleep(runs, names)),
        Plot("efficiency", "Instructions per watt, to the baseline (Kayiran figure 13)", bars(names, {
            "DYNCTA": [_efficiency(runs, name, DYNCTA) for name in names],
            "DYNCORE": [_efficiency(runs, name, DYNCORE) for name in names],
        })),
    ]  # fmt: skip
    if whole:
        blocks += [
            Text("Sensitivity", 2),
            _off(runs),
            Text(VARIATION.format(kernels=", ".join(STUDIED))),
            _varied(runs),
            Text(LARGER),
            _meshes(runs),
            Text(_larger(runs)),
            Text("So here: yes or no", 2),
            _statements(runs),
            Text(_reasons(runs)),
        ]
    return Page("DYNCTA and DYNCORE beside their paper", blocks)


def _one(runs: Runs, name: str) -> float:
    """The speed-up of one CTA on each core; 1, where no launch brings more."""
    return _speed(runs, name, "1") if _limits(name) else 1.0


def _swept(runs: Runs, name: str) -> list[Run]:
    """The runs of figure 4, from a limit of one CTA to none."""
    size = "" if SWEPT[name] == SIZE else f", {SWEPT[name]}"
    return [runs[f"{name}, {n}{size}"] for n in (*range(1, APPLICATIONS[name].most), BASE)]


def _sweep_of(each: Sequence[Run]) -> list[float]:
    """Speed-ups of limits over none, which is the last."""
    return [each[-1].cycles / run.cycles for run in each]


def _in_turn(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def _statics(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        application, (best, at) = APPLICATIONS[name], _best(runs, name)
        each = [_speed(runs, name, f"{n}") if n in _limits(name) else None for n in COUNTS]
        rows.append((
            name, application.kernel, application.most, application.brought, *each, best, at, application.static,
        ))  # fmt: skip
    columns = ("Kayiran", "here", "N", "brought", *map(str, COUNTS), "best", "at", "Kayiran's best")
    return Table("static", "Speed-up of static limits of CTAs", columns, rows)


def _eased_names() -> list[str]:
    return [name for names, _ in EASED.values() for name in names]


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "none"


def _eased(runs: Runs) -> Table:
    """The gain of the best limits, and what takes it away."""
    rows: list[tuple[Any, ...]] = []
    for what, (names, _) in EASED.items():
        for name in names:
            best, at = _best(runs, name)
            base, static = runs[f"{name}, {BASE}"], _best_run(runs, name)
            pairs = [(run.latency, run.misses, run.rows, run.bandwidth) for run in (base, static)]
            eased = runs[f"{name}, {BASE}, {what}"]
            speeds = [_speed(runs, name, f"{n}", f", {what}") for n in FEW]
            gain = _speed(runs, name, BASE, f", {what}", "")
            before = itertools.chain(*zip(*pairs, strict=True))
            rows.append((name, best, at, *before, what, gain, eased.misses, eased.rows, max(1.0, *speeds)))
    columns = (
        "", "best", "at", "lat_rt", "at best", "L1 misses", "at best", "rows hit", "at best", "DRAM used", "at best",
        "with", "speed-up", "L1 misses", "rows hit", "best",
    )  # fmt: skip
    return Table("eased", "What the best limits gain, and what takes it away", columns, rows)


def _sweeps(runs: Runs) -> Table:
    """Figure 4 in figures, with a slower DRAM for JPEG."""
    most = max(APPLICATIONS[name].most for name in SWEPT)
    rows: list[tuple[Any, ...]] = []
    for name, size in SWEPT.items():
        each = _swept(runs, name)
        blank = [None] * (most - len(each))
        for what, values in {
            "IPC": _sweep_of(each),
            "util": [run.occupied / each[-1].occupied for run in each],
            "lat_rt": [run.latency / each[-1].latency for run in each],
            "C_mem": [run.memory for run in each],
        }.items():
            rows.append((f"{name}, {what}", size, each[-1].waves, *values, *blank))
    slow = {n: _speed(runs, "JPEG", f"{n}", f", {SLOWER}") for n in COUNTS}
    rows.append((f"JPEG, IPC, {SLOWER}", SIZE, None, *(slow.get(n) for n in range(1, most)), 1.0))
    columns = ("", "size", "waves", *map(str, range(1, most + 1)))
    title = "IPC, utilisation and latency by the limit, to those of N, and C_mem (Kayiran figure 4)"
    return Table("sweeps", title, columns, rows)


def _starting(runs: Runs) -> str:
    lost = {name: (1 - _speed(runs, name, DYNCTA), 1 - _speed(runs, name, DYNCTA, f", {START}", "")) for name in STARTS}
    start = [name for name, (own, most) in lost.items() if most < own / 2]
    others = [name for name in STARTS if name not in start]
    return STARTING.format(start=_and(start), others=_and(others), paused=runs[f"FFT, {DYNCTA}"].paused)


def _starts(runs: Runs) -> Table:
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


def _classes(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        run = runs[f"{name}, {BASE}"]
        shares = run.act, 1 - run.occupied, run.memory, run.blocked, run.idle, run.misses
        rows.append((name, *shares, _kind(run), APPLICATIONS[name].kind))
    columns = ("", "RACT", "empty", "C_mem", "blocked", "C_idle", "L1 misses", "here", "Kayiran")
    return Table("classes", "What the cores of the baseline do (Kayiran figure 3, table 2)", columns, rows)


def _different(runs: Runs, names: Sequence[str]) -> Table:
    """Where the class is not the paper's, and why."""
    rows = []
    for name in names:
        run, kind = runs[f"{name}, {BASE}"], APPLICATIONS[name].kind
        if _kind(run) != kind:
            measures = run.act, *run.parts.values(), run.waves, run.bandwidth, run.intensity
            rows.append((name, _kind(run), kind, *measures, _why(run, kind)))
    parts = "empty", "memory", "latency", "pipelines"
    columns = ("", "here", "Kayiran", "RACT", *parts, "waves", "DRAM", "intensity", "because")
    return Table("different", "Where our class is not the paper's", columns, rows)


def _compared(runs: Runs, names: Sequence[str], whole: bool) -> dict[str, list[float]]:
    compared = {"DYNCTA": [_speed(runs, name, DYNCTA) for name in names]}
    compared["best limit"] = [_best(runs, name)[0] for name in names]
    if whole:
        compared = {"two-level": [_speed(runs, name, TWO_LEVEL) for name in names], **compared}
    return compared


def _speeds(runs: Runs, names: Sequence[str], whole: bool) -> Table:
    """Figure 10."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        others = [_speed(runs, name, what) for what in (TWO_LEVEL, NARROW)] if whole else []
        application = APPLICATIONS[name]
        own = _speed(runs, name, DYNCTA), application.dynamic, _best(runs, name)[0], application.static
        rows.append((name, *others, *own))
    *compared, dynamic_speeds, _, best, _ = list(zip(*(row[1:] for row in rows), strict=True))
    for title, mean, published in (("mean", statistics.mean, MEANS), ("geometric mean", _geometric, GEOMETRIC)):
        dynamic, static = published if whole else (None, None)
        rows.append((title, *map(mean, compared), mean(dynamic_speeds), dynamic, mean(best), static))
    own_columns = ["DYNCTA", "Kayiran's DYNCTA", "best limit", "Kayiran's best"]
    columns = ["", *(["two-level", NARROW] if whole else []), *own_columns]
    return Table("dyncta", "Speed-up over the baseline (Kayiran figure 10)", columns, rows)


def _latencies(runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        base, own = runs[f"{name}, {BASE}"], runs[f"{name}, {DYNCTA}"]
        rows.append((name, base.latency, own.latency / base.latency, own.occupied / base.occupied, own.limit))
    columns = ("", "lat_rt, baseline", "lat_rt, to it", "util, to it", "mean limit")
    return Table("latency", "Round trip and utilisation with DYNCTA (Kayiran figure 11)", columns, rows)


def _apart(runs: Runs, names: Sequence[str]) -> Table:
    """Where the best static limit leaves DYNCTA behind, and why."""
    rows = []
    for name in names:
        (best, at), own = _best(runs, name), runs[f"{name}, {DYNCTA}"]
        if best > 1.05 * _speed(runs, name, DYNCTA):
            static = _best_run(runs, name)
            rows.append((
                name, best, at, _speed(runs, name, DYNCTA), own.limit, own.windows, own.rose, own.fell, own.paused,
                static.latency, own.latency,
            ))  # fmt: skip
    columns = (
        "", "best", "at", "DYNCTA", "mean limit", "windows", "rose", "fell", "some paused", "lat_rt, static", "DYNCTA",
    )  # fmt: skip
    return Table("apart", "What holds DYNCTA back", columns, rows)


def _efficiency(runs: Runs, name: str, what: str, gated: bool = True) -> float:
    """Instructions per watt, to the baseline's; every run has the same instructions."""
    base, own = runs[f"{name}, {BASE}"], runs[f"{name}, {what}"]
    return base.cycles / own.cycles * base.power / (own.power if gated else own.ungated)


def _power(runs: Runs, names: Sequence[str]) -> Table:
    """Figures 12 and 13."""
    rows: list[tuple[Any, ...]] = []
    for name in names:
        base, dyncta, dyncore = (runs[f"{name}, {what}"] for what in (BASE, DYNCTA, DYNCORE))
        rows.append((
            name, _speed(runs, name, DYNCORE), base.waves, dyncore.told, dyncore.asleep,
            dyncta.power / base.power, dyncore.power / base.power, dyncore.ungated / base.power,
            _efficiency(runs, name, DYNCTA), _efficiency(runs, name, DYNCORE),
            _efficiency(runs, name, DYNCORE, gated=False),
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


def _asleep(runs: Runs, names: Sequence[str]) -> str:
    """Why power falls less than the paper's."""
    base, own = ([runs[f"{name}, {what}"] for name in names] for what in (BASE, DYNCORE))
    could = statistics.mean((1 - o.told + o.act) / (1 + b.act) for b, o in zip(base, own, strict=True))
    return ASLEEP.format(
        told=statistics.mean(run.told for run in own), asleep=statistics.mean(run.asleep for run in own), could=could,
        busy=sum(run.told < OFF / 2 for run in own),
    )  # fmt: skip


def _off(runs: Runs) -> Table:
    """Figure 7: fewer cores, statically."""
    rows: list[tuple[Any, ...]] = []
    for name in STUDIED:
        each = [_speed(runs, name, what, f", {off} cores off", "") for what in (BASE, DYNCTA) for off in CORES_OFF]
        without = _speed(runs, name, DYNCTA)
        rows.append((name, *each[: len(CORES_OFF)], *(value / without for value in each[len(CORES_OFF) :])))
    columns = ("", *(f"{off} off" for off in CORES_OFF), *(f"{off} off, DYNCTA" for off in CORES_OFF))
    return Table("off", "Speed with cores off from the start, to that with all 30 (Kayiran figure 7)", columns, rows)


def _variation(runs: Runs, variation: str) -> dict[str, float]:
    """DYNCTA's speed-ups under a variation."""
    base = "" if _own(VARIED[variation]) else None
    return {name: _speed(runs, name, DYNCTA, f", {variation}", base) for name in STUDIED}


def _varied(runs: Runs) -> Table:
    usual = {name: _speed(runs, name, DYNCTA) for name in STUDIED}
    rows: list[tuple[Any, ...]] = [("as it is", _geometric(usual.values()), *[None] * 5)]
    for variation in VARIED:
        speeds = _variation(runs, variation)
        changes = {name: speeds[name] / usual[name] for name in STUDIED}
        largest = max(STUDIED, key=lambda name: abs(math.log(changes[name])))
        others = _geometric(change for name, change in changes.items() if name != largest)
        rows.append((
            variation, _geometric(speeds.values()), _percent(_geometric(changes.values())), PUBLISHED[variation],
            largest, _percent(changes[largest]), _percent(others),
        ))  # fmt: skip
    title = "DYNCTA's speed-up under variations (Kayiran sections 4.1, 5.3)"
    return Table("varied", title, ("", "speed-up", "change", "Kayiran", "most in", "by", "the others"), rows)


def _percent(change: float) -> str:
    return f"{100 * (change - 1):+.1f} %"


def _meshes(runs: Runs) -> Table:
    """Figure 14b, beside the same applications on 30 cores."""
    rows: list[tuple[Any, ...]] = []
    for name in MESHED:
        row: list[Any] = [name, _speed(runs, name, DYNCORE), runs[f"{name}, {BASE}"].waves]
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


def _larger(runs: Runs) -> str:
    """Why the larger GPUs gain less than the paper's."""
    few = [name for name in MESHED if runs[f"{name}, {BASE}, {MESHES[-1]}"].waves < 0.5]
    gpus = ["", *(f", {mesh}" for mesh in MESHES)]
    thirty, *others = (statistics.mean(_speed(runs, name, DYNCORE, gpu) for name in STUDIED) for gpu in gpus)
    return LARGER_WHY.format(
        most=_and([name for name in MESHED if name not in STUDIED]), thirty=thirty,
        others=_and([f"{mean:.3f}" for mean in others]), few=len(few), count=len(MESHED),
    )  # fmt: skip


def _statements(runs: Runs) -> Table:
    """The paper's statements, and whether they hold here."""
    names = list(APPLICATIONS)
    speeds = {name: _speed(runs, name, DYNCTA) for name in names}
    best = {name: _best(runs, name) for name in names}
    base = {name: runs[f"{name}, {BASE}"] for name in names}
    kinds = {kind: [name for name in names if APPLICATIONS[name].kind == kind] for kind in (C, M, X)}
    alike = [name for name in names if _kind(base[name]) == APPLICATIONS[name].kind]
    better = [name for name in names if best[name][0] > 1.05]
    at_best = [name for name in names if speeds[name] >= best[name][0] * (1 - NEAR / 2)]
    lower = [name for name in names if runs[f"{name}, {DYNCTA}"].latency < base[name].latency]
    latency = _geometric(runs[f"{name}, {DYNCTA}"].latency / base[name].latency for name in names)
    power = {what: statistics.mean(runs[f"{name}, {what}"].power / base[name].power for name in names)
             for what in (DYNCTA, DYNCORE)}  # fmt: skip
    two_level = _geometric(speeds[name] / _speed(runs, name, TWO_LEVEL) for name in names)
    dyncore = statistics.mean(_speed(runs, name, DYNCORE) for name in names)
    means = {kind: _geometric(speeds[name] for name in kinds[kind]) for kind in kinds}
    usual = _geometric(_speed(runs, name, DYNCTA) for name in STUDIED)
    thresholds = [_geometric(_variation(runs, variation).values()) / usual for variation in list(VARIED)[:2]]
    narrow = _geometric(_speed(runs, name, NARROW) for name in names)
    sweeps = {name: _sweep_of(_swept(runs, name)) for name in SWEPT}
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
            _listed({name: best[name][0] for name in sorted(names, key=lambda name: -best[name][0])[:4]}),
        ),
        (
            "DYNCTA pays most in PVC (3.6), IIX (2.9), SAD (2.9) and KM (1.9)",
            {*sorted(names, key=lambda name: -speeds[name])[:4]} == {"PVC", "IIX", "SAD", "KM"},
            _listed({name: speeds[name] for name in ("PVC", "IIX", "SAD", "KM")}),
        ),
        (
            "it pays on average, and most in Type-M applications",
            _geometric(speeds.values()) > 1 and means[M] > max(means[C], means[X]),
            f"geometric means: {_listed(means)}",
        ),
        (
            "it comes near the best static limit: 1.28 of 1.39 (geometric: 1.18 of 1.25)",
            _geometric(speeds.values()) > (1 + _geometric(value for value, _ in best.values())) / 2,
            f"{_geometric(speeds.values()):.3f} of {_geometric(value for value, _ in best.values()):.3f} (geometric)",
        ),
        (
            "in 10 of 31 it is at least as good as the best static limit",
            len(at_best) >= len(names) / 3,
            f"within 1 %, in {len(at_best)}: {', '.join(at_best)}",
        ),
        (
            "four applications lose more than 2 %: NW, BLK, PFF, SCP",
            {name for name in names if speeds[name] < 0.98} <= {"NW", "BLK", "PFF", "SCP"},
            _listed({name: speeds[name] for name in names if speeds[name] < 0.98}) or "none",
        ),
        (
            "Type-X applications gain nothing, and LIB has too few CTAs to gain",
            all(abs(speeds[name] - 1) < NEAR for name in (*kinds[X], "LIB")),
            _listed({name: speeds[name] for name in (*kinds[X], "LIB")}),
        ),
        (
            "the classes of table 2",
            alike == names,
            f"{len(alike)} of {len(names)} are alike; not: "
            + ", ".join(f"{name} ({_kind(base[name])[-1]})" for name in names if name not in alike),
        ),
        (
            "lat_rt falls in most applications, by 18 % on average",
            len(lower) > len(names) / 2,
            f"in {len(lower)} of {len(names)}; by {1 - latency:.1%} (geometric)",
        ),
        (
            "AES is the fastest with one CTA",
            max(sweeps["AES"]) == sweeps["AES"][0] > 1,
            _in_turn(sweeps["AES"]),
        ),
        (
            "JPEG gains from a few CTAs, and loses with more",
            max(sweeps["JPEG"]) > max(1, sweeps["JPEG"][0]) * 1.01,
            _in_turn(sweeps["JPEG"]),
        ),
        (
            "MM gains with every CTA, but little after the second",
            sorted(sweeps["MM"]) == sweeps["MM"] and sweeps["MM"][0] < sweeps["MM"][1],
            _in_turn(sweeps["MM"]),
        ),
        (
            "CP is the fastest with three",
            fastest == 3,
            f"with {fastest}: {_in_turn(sweeps['CP'])}",
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
            _listed(power),
        ),
        (
            "DYNCTA's speed-up hardly changes with its thresholds (0.7 to 1.6 %)",
            all(abs(value - 1) < NEAR for value in thresholds),
            ", ".join(f"{value - 1:+.1%}" for value in thresholds),
        ),
        (
            "C_mem counts cycles in which the L1 refuses requests: ours, else the limit rises where memory is busiest",
            narrow < _geometric(speeds.values()),
            f"without: {narrow:.3f}, with: {_geometric(speeds.values()):.3f} (geometric)",
        ),
    ]
    return Table("statements", "What the paper says, and what is so here", ("Kayiran", "so here", "figures"), rows)


def _reasons(runs: Runs) -> str:
    base = {name: runs[f"{name}, {BASE}"] for name in APPLICATIONS}
    different = [name for name, run in base.items() if X == _kind(run) != APPLICATIONS[name].kind]
    own, jpeg, mm, cp = runs[f"KM, {DYNCTA}"], *(_swept(runs, name) for name in ("JPEG", "MM", "CP"))
    fastest = min(mm, key=lambda run: run.cycles)
    slow = {n: _speed(runs, "JPEG", f"{n}", f", {SLOWER}") for n in COUNTS}
    jpeg_slow = max(slow, key=lambda n: slow[n])
    return REASONS.format(
        slower=SLOWER, jpeg_slow=jpeg_slow, jpeg_gain=slow[jpeg_slow] - 1, jpeg=jpeg[-1].memory,
        jpeg_dram=jpeg[-1].bandwidth, jpeg_trip=jpeg[-1].latency / jpeg[0].latency,
        mm=1 + mm.index(fastest), mm_low=fastest.memory, mm_high=mm[-1].memory,
        cp=1 + min(range(len(cp)), key=lambda n: cp[n].cycles), cp_small=_best(runs, "CP")[1],
        sad=base["SAD"].misses, sad_best=_best(runs, "SAD")[0] - 1, aes=base["AES"].act, km=own.paused,
        km_own=own.latency, km_static=runs["KM, 1"].latency,
        different=len(different), empty=sum(_filled(base[name]) == APPLICATIONS[name].kind for name in different),
    )  # fmt: skip


def _listed(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())


# ---------------------------------------------------------------------------------------------------------------- plots


def _sorted_bars(values: Mapping[str, float]) -> str:
    names = sorted(values, key=lambda name: values[name])
    figure, (axes,) = axes_side_by_side()
    axes.bar(range(len(names)), [values[name] for name in names], color=GREYS[1], edgecolor="black", linewidth=0.4)
    axes.axhline(COMPUTE, color="black", linewidth=0.6, linestyle="--")
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_ylim(0, 1)
    axes.set_xlim(-0.6, len(names) - 0.4)
    return svg(figure)


def _sweep(runs: Runs) -> str:
    figure, plots = axes_side_by_side(len(SWEPT))
    for axes, name in zip(plots, SWEPT, strict=True):
        each = _swept(runs, name)
        most = each[-1]
        measures = {
            "IPC": _sweep_of(each),
            "lat_rt": [run.latency / most.latency for run in each],
            "util": [run.occupied / most.occupied for run in each],
        }
        for (mark, grey), (label, values) in zip(MARKS, measures.items(), strict=False):
            axes.plot(range(1, len(each) + 1), values, marker=mark, color=grey, label=label)
        axes.set_title(name if SWEPT[name] == SIZE else f"{name}, {SWEPT[name]}")
        axes.set_xlabel("CTAs of a core, at most")
        axes.set_ylim(bottom=0)
    plots[0].legend(frameon=False)
    return svg(figure)


def _over_time(runs: Runs) -> str:
    figure, plots = axes_side_by_side(len(SHOWN))
    for axes, name in zip(plots, SHOWN, strict=True):
        times, limits, begin = [], [], 0.0
        for launch in runs[f"{name}, {DYNCTA}"].over_time:
            times += [(begin + cycle) / 1e6 for cycle in launch["core_cycle"]]
            limits += launch[f"{LIMIT[0]}.limit"]
            begin += launch["core_cycle"][-1]
        axes.step(times, limits, color="black", linewidth=0.9, where="pre")
        axes.set_title(name)
        axes.set_xlabel("million core cycles")
        axes.set_ylim(0, APPLICATIONS[name].most + 0.5)
        axes.set_xlim(0, math.ceil(times[-1] * 100) / 100)
    plots[0].set_ylabel("limit")
    return svg(figure)


CHAPTER = Chapter("DYNCTA and DYNCORE beside their paper", jobs, page)
