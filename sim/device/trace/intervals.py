"""Statistics over time: a launch's intervals as columns (``run.timeline``), and a run's in a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.columns import check_parquet, csv_text, parquet
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.device.trace.target import LAST
from lockstep.sim.errors import UsageError
from lockstep.spec import files
from lockstep.spec.parameters import Gpu
from lockstep.spec.statistics import Counts

if TYPE_CHECKING:
    from lockstep.models.observe.intervals import Intervals
    from lockstep.sim.device.run import Run

__all__ = ["COLUMNS", "check", "columns", "write"]

COLUMNS = (
    "gpu.core_cycles", "sm.active_core_cycles", "occupancy.warps", "occupancy.ctas",
    "issue.warp_instructions", "issue.thread_instructions", "issue.issued_core_cycles", "issue.stall_core_cycles",
    "issue.idle_core_cycles", "issue.c_mem_core_cycles", "issue.c_mem_blocked_core_cycles", "issue.c_idle_core_cycles",
    "issue.gated_core_cycles", "issue.scheduler_stall_core_cycles",
    "scratchpad.accesses", "scratchpad.conflict_core_cycles",
    "lsu.requests", "lsu.busy_core_cycles", "lsu.stalled_core_cycles",
    "l1.accesses", "l1.hits", "l1.misses", "l1.merges", "l2.accesses", "l2.hits", "l2.misses", "l2.merges",
    "dram.read_bytes", "dram.written_bytes", "dram.bandwidth_used",
)  # fmt: skip
"""The statistics that intervals have, beside what gauges of mechanisms show."""


class _Increases(Counts):
    """Raw counts of intervals: arrays, with an element for each interval."""

    def __call__(self, name: str, index: int | None = None) -> Any:
        rows = self._raw[name]
        if index is not None:
            return rows[:, index]
        return rows.sum(axis=tuple(range(1, rows.ndim)))


def columns(intervals: Intervals, gpu: Gpu) -> dict[str, np.ndarray]:
    """A launch over time, by name: ``core_cycle`` is where an interval ends; the first begins at 0.

    ``occupancy`` is the share of all the GPU's warp slots that have a warp, ``ipc`` is of the whole GPU; behind them
    come the statistics of :data:`COLUMNS`, and what gauges of mechanisms show at the end of an interval, as means over
    SMs.
    """
    counts = _Increases(intervals.counts, gpu)
    cycles = np.maximum(counts("gpu.cycles"), 1)
    slots = gpu.core.sms * gpu.core.warps
    return {
        "core_cycle": intervals.ends,
        "occupancy": counts("sm.resident_warp_cycles") / (cycles * slots),
        "ipc": counts("sm.warp_instructions") / cycles,
        **{name: STATISTICS[name].formula(counts) for name in COLUMNS},
        **{name: shown / gpu.core.sms for name, shown in intervals.gauges.items()},
    }


def check(target: str | None, every: int | None) -> None:
    """Refuse a file of intervals, or a length of theirs, that cannot be."""
    if every is not None and not 1 <= every <= LAST:
        raise UsageError(f"--every {every}: must be 1 core cycle or more, up to 2^62")
    if target is None:
        return
    ending = Path(target).suffix
    if ending not in (".csv", ".parquet") and not files.is_stream(Path(target)):
        raise UsageError(f"{target}: the name of an interval file must end in .csv or .parquet")
    if not files.writable(Path(target)):
        raise UsageError(f"{target}: cannot be written there")
    if ending == ".parquet":
        check_parquet()


def write(target: str, runs: Sequence[Run]) -> None:
    """Write the intervals of launches, one after the other: CSV or Parquet, by the file's ending; CSV into a pipe.

    ``launch`` counts them from 0, and ``core_cycle`` begins anew in each.
    """
    names = list(runs[0].timeline) if runs else ["core_cycle", "occupancy", "ipc", *COLUMNS]
    table: dict[str, Any] = {"launch": [], "kernel": []}
    for number, run in enumerate(runs):
        rows = len(run.timeline["core_cycle"])
        table["launch"] += [number] * rows
        table["kernel"] += [run.kernel] * rows
    for name in names:
        parts = [run.timeline[name] for run in runs]
        table[name] = np.concatenate(parts) if parts else np.zeros(0)
    content = parquet(table) if Path(target).suffix == ".parquet" else csv_text(table)
    files.write(Path(target), content)
