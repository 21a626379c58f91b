"""Results side by side: a table that fits a terminal, and everything that was measured as CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.errors import UsageError
from lockstep.sim.output import fits, say, table
from lockstep.sim.study.comparison import BASELINE
from lockstep.sim.study.job import Job, Result
from lockstep.spec.words import closest

__all__ = ["check_statistics", "flat", "show", "state"]

Measure = Callable[[Result], Any]

MEASURES: dict[str, Measure] = {
    "cycles": lambda r: r["cycles"],
    "speed-up": lambda r: None,  # beside another run: see `_speed_ups`
    "IPC": lambda r: r["ipc"],
    "occupancy": lambda r: r["stats"]["occupancy.ratio"],
    "L1 miss": lambda r: r["stats"]["l1.miss_rate"],
    "L2 miss": lambda r: r["stats"]["l2.miss_rate"],
    "DRAM used": lambda r: r["stats"]["dram.bandwidth_used"],
    "microseconds": lambda r: microseconds(r),
}
"""The columns that a table has beside the axes, as far as there is room; the last go first."""

SPEED_UP = "Speed-up: in time, beside the first row with the same kernel, size and seed."
MEASURED = ("cycles", "microseconds", "warp_instructions", "thread_instructions", "ipc")


def microseconds(result: Result) -> float:
    """Simulated time: GPUs with other clocks have other cycles."""
    return result["cycles"] / result["configuration"]["clocks.core"]


def state(result: Result) -> str:
    """Whether the run gave the right result, a wrong one, or failed."""
    return "right" if result["checked"] else "wrong" if "cycles" in result else "failed"


def check_statistics(names: Sequence[str]) -> None:
    """Raise :class:`UsageError` for one that there is not."""
    for name in names:
        if name not in STATISTICS:
            raise UsageError(f"--show {name}: no such statistic{closest(name, STATISTICS)}; see docs/statistics.md")


# --------------------------------------------------------------------------------------------------------------- axes


def _axes(jobs: Sequence[Job], prefix: str = "") -> dict[str, list[Any]]:
    """The value of each job along each axis, as the user named it; parameters have a prefix."""
    axes: dict[str, list[Any]] = {
        "kernel": _short([job.kernel for job in jobs]),
        "gpu": _short([job.gpu for job in jobs]),
        "with": [",".join(job.mechanisms) or BASELINE for job in jobs],
        "size": [job.size for job in jobs],
        "seed": [job.seed for job in jobs],
    }
    for key in jobs[0].settings:
        axes[f"{prefix}{key}"] = [job.settings[key] for job in jobs]
    return axes


def _short(names: Sequence[str]) -> list[str]:
    """Files without their folders, unless that would mix them up."""
    short = {name: Path(name).name if name.endswith((".py", ".toml")) else name for name in names}
    return [short[name] for name in names] if len(set(short.values())) == len(short) else list(names)


# ---------------------------------------------------------------------------------------------------- the table itself


@dataclass(frozen=True)
class _Column:
    name: str
    cells: Sequence[Any]


def show(jobs: Sequence[Job], results: Sequence[Result], statistics: Sequence[str] = ()) -> None:
    """Print the table, with ``statistics`` beside the usual measures, and say what was left out."""
    axes = _axes(jobs)
    differ = {name for name, values in axes.items() if len(set(values)) > 1}
    fixed = [f"{name} {values[0]}" for name, values in axes.items() if name not in differ and name != "kernel"]
    columns = [_Column(name, values) for name, values in axes.items() if name in differ or name == "kernel"]
    states = [state(result) for result in results]
    if set(states) != {"right"}:
        columns.append(_Column("result", states))
    measures = {**MEASURES, **{name: _statistic(name) for name in statistics}}
    speed_ups = _speed_ups(jobs, results)
    usual = [
        _Column(name, speed_ups if name == "speed-up" else [_measured(result, measure) for result in results])
        for name, measure in measures.items()
    ]
    asked = usual[len(MEASURES) :]
    left_out: list[str] = []
    usual = usual[: len(MEASURES)]
    while len(usual) > 1 and not fits(*_shown([*columns, *usual, *asked])):
        left_out.insert(0, usual.pop().name)
    title = f"{len(jobs)} {'run' if len(jobs) == 1 else 'runs'}, {', '.join(fixed)}."
    if "speed-up" not in left_out:
        title += f" {SPEED_UP}"
    table(title, *_shown([*columns, *usual, *asked]), keys=len(columns))
    more = f"{len(STATISTICS)} statistics (--show NAME adds one; --csv, --json and --parquet have all)"
    say(f"Not shown: {', '.join([*left_out, more])}.")
    if set(states) == {"right"}:
        print("All results are right.")


def _shown(columns: Sequence[_Column]) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Headings and rows."""
    return [column.name for column in columns], list(zip(*(column.cells for column in columns), strict=True))


def _statistic(name: str) -> Measure:
    return lambda result: result["stats"][name]


def _measured(result: Result, measure: Measure) -> Any:
    return measure(result) if "cycles" in result else None


def _speed_ups(jobs: Sequence[Job], results: Sequence[Result]) -> list[float | None]:
    """In time, beside the first run of the same kernel, size and seed that did not fail."""
    first: dict[tuple[str, str, int], Result] = {}
    found: list[float | None] = []
    for job, result in zip(jobs, results, strict=True):
        if "cycles" not in result:
            found.append(None)
            continue
        base = first.setdefault((job.kernel, job.size, job.seed), result)
        found.append(microseconds(base) / microseconds(result))
    return found


def flat(jobs: Sequence[Job], results: Sequence[Result]) -> dict[str, list[Any]]:
    """Columns with everything that has one number for a run, and none of the time that it took."""
    measured: Mapping[str, Measure] = {
        **{name: _statistic_or(name) for name in MEASURED},
        **{name: _statistic(name) for name in STATISTICS},
    }
    return {
        **_axes(jobs, "set."),  # some statistics have the name of a parameter
        "result": [state(result) for result in results],
        "message": [result["message"] for result in results],
        **{name: [_measured(result, measure) for result in results] for name, measure in measured.items()},
    }


def _statistic_or(name: str) -> Measure:
    return microseconds if name == "microseconds" else lambda result: result[name]
