"""Measures of a run, and what follows from several: speed-ups, the best limit, classes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lockstep.sim.study.job import Result
from lockstep.sim.study.reproduce.chapters.dyncta.runs import (
    APPLICATIONS,
    BASE,
    COMPUTE,
    EMPTY,
    SIZE,
    SWEPT,
    C,
    M,
    X,
    limits_of,
)

PIPELINES = {"alu": "ALUs", "sfu": "special functions", "dp": "double precision", "lsu": "load/store unit"}


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


def run_of(result: Result, most: int) -> Run:
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


def geometric(values: Iterable[float]) -> float:
    return statistics.geometric_mean(values)


def speed_up(runs: Runs, name: str, what: str, more: str = "", base: str | None = None) -> float:
    """The baseline's cycles to those of a run; ``more`` ends the names of both, unless there is a ``base``."""
    return runs[f"{name}, {BASE}{more if base is None else base}"].cycles / runs[f"{name}, {what}{more}"].cycles


def best_limit(runs: Runs, name: str) -> tuple[float, int]:
    """The best speed-up of a static limit, and the limit; the most is one of them."""
    speeds = [(speed_up(runs, name, f"{n}"), n) for n in limits_of(name)]
    return max([*speeds, (1.0, APPLICATIONS[name].most)])


def best_run(runs: Runs, name: str) -> Run:
    _, at = best_limit(runs, name)
    return runs[f"{name}, {BASE if at == APPLICATIONS[name].most else at}"]


def one_cta(runs: Runs, name: str) -> float:
    """The speed-up of one CTA on each core; 1, where no launch brings more."""
    return speed_up(runs, name, "1") if limits_of(name) else 1.0


def swept_runs(runs: Runs, name: str) -> list[Run]:
    """The runs of figure 4, from a limit of one CTA to none."""
    size = "" if SWEPT[name] == SIZE else f", {SWEPT[name]}"
    return [runs[f"{name}, {n}{size}"] for n in (*range(1, APPLICATIONS[name].most), BASE)]


def sweep_speeds(each: Sequence[Run]) -> list[float]:
    """Speed-ups of limits over none, which is the last."""
    return [each[-1].cycles / run.cycles for run in each]


def kind_of(run: Run) -> str:
    return C if run.act > COMPUTE else X if 1 - run.occupied > EMPTY else M


def busy_kind(run: Run) -> str:
    """The class by the cycles of cores with CTAs alone."""
    return C if run.act / run.occupied > COMPUTE else M


def why_different(run: Run, kind: str) -> str:
    """The reasons why a class is not the paper's, by what was measured."""
    if run.act > COMPUTE:
        return f"busy: DRAM is used for {run.bandwidth:.0%}, with {run.intensity:,.0f} warp instructions per KiB"
    parts = run.parts
    if kind == X:
        return f"cores are empty for {parts['empty']:.0%} only: a launch has {run.waves:.1f} waves"
    if kind_of(run) == M:
        return _most(run)
    waves = f"{run.waves:.1f} waves, which end unevenly" if run.waves > 1 else f"{run.waves:.2f} of a wave"
    others = "" if busy_kind(run) == kind else ", since they are busy" if busy_kind(run) == C else f": {_most(run)}"
    return f"empty: a launch has {waves}; without empty cores {busy_kind(run)}{others}"


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


def in_turn(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "none"


def with_values(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())
