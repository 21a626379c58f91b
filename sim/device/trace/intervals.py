"""Statistics over time, of all launches of a run, in a CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.columns import check_parquet, csv_text, parquet
from lockstep.sim.device.timeline import COLUMNS
from lockstep.sim.device.trace.target import LAST
from lockstep.sim.errors import UsageError
from lockstep.spec import files

if TYPE_CHECKING:
    from lockstep.sim.device.run import Run

__all__ = ["check", "write"]


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


def write(target: str, runs: Sequence[Run], kernels: Sequence[str] = ()) -> None:
    """Write the intervals of launches, one after the other: CSV or Parquet, by the file's ending; CSV into a pipe.

    ``launch`` counts them from 0, and ``core_cycle`` begins anew in each. Behind the intervals of a run of two streams,
    with the names of their ``kernels``, come those of each, without numbers where these cannot be told of one.
    """
    names = list(runs[0].timeline) if runs else ["core_cycle", "occupancy", "ipc", *COLUMNS]
    table: dict[str, Any] = {"launch": [], "kernel": []}
    shown = []
    for number, run in enumerate(runs):
        own = kernels or [f"stream {stream}" for stream in range(len(run.timelines))]
        for kernel, timeline in ((run.kernel, run.timeline), *zip(own, run.timelines, strict=False)):
            table["launch"] += [number] * len(timeline["core_cycle"])
            table["kernel"] += [kernel] * len(timeline["core_cycle"])
            shown.append(timeline)
    for name in names:
        found = [each.get(name, np.full(len(each["core_cycle"]), np.nan)) for each in shown]
        table[name] = np.concatenate(found) if found else np.zeros(0)
    content = parquet(table) if Path(target).suffix == ".parquet" else csv_text(table)
    files.write(Path(target), content)
