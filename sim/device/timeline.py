"""Statistics over time: a launch's intervals as columns (``run.timeline``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.device.statistics import STATISTICS, is_there
from lockstep.spec.parameters import Gpu
from lockstep.spec.statistics import Counts

if TYPE_CHECKING:
    from lockstep.models.observe.intervals import Intervals

__all__ = ["COLUMNS", "columns", "columns_of", "increases"]

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
    gauges = {name: shown / gpu.core.sms for name, shown in intervals.gauges.items()}
    return {**_columns(intervals, counts, COLUMNS), **gauges}


def columns_of(intervals: Intervals, gpu: Gpu, grid: int) -> dict[str, np.ndarray]:
    """The same of one of two grids that run at once, as far as it can be told of one. Cycles are the GPU's."""
    counts = _Increases(intervals.counts_of(grid), gpu)
    return _columns(intervals, counts, [name for name in COLUMNS if is_there(STATISTICS[name], counts)])


def _columns(intervals: Intervals, counts: Counts, names: Iterable[str]) -> dict[str, np.ndarray]:
    cycles = np.maximum(counts("gpu.cycles"), 1)
    slots = counts.gpu.core.sms * counts.gpu.core.warps
    return {
        "core_cycle": intervals.ends,
        "occupancy": counts("sm.resident_warp_cycles") / (cycles * slots),
        "ipc": counts("sm.warp_instructions") / cycles,
        **{name: np.asarray(STATISTICS[name].formula(counts)) for name in names},
    }


def increases(intervals: Intervals, gpu: Gpu, names: Iterable[str]) -> dict[str, np.ndarray]:
    """How much statistics that are counts grew in each interval; those that did in one."""
    counts = _Increases(intervals.counts, gpu)
    found = {name: np.asarray(STATISTICS[name].formula(counts)) for name in names}
    return {name: grown for name, grown in found.items() if grown.any()}
