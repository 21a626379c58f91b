"""Raw counts over time: at the end of each interval, summed over SMs, slices and channels.

Where two grids run, the shares that grid 1 has of them stand beside.

When a row is taken, SMs that sleep are first counted up to the end of the interval, so it does not depend on whether
cycles are skipped. What is counted only when it ends (the waiting of a line that the L1 refuses, and the like) belongs
to the interval in which it does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lockstep.models import laws
from lockstep.models.core.counters import count_cycles
from lockstep.models.jit import i64, jit, pointer_to, record, words_i64

INTERVAL, ROWS = 1000, 200
"""Core cycles of an interval, unless told otherwise, and the most rows that a launch keeps then ..."""
MOST_ROWS = 50_000
"""... and when it is told. Beyond it, pairs of intervals become one, and so do all that follow."""

ROOM = 64  # rows that the run loop takes before they are fetched

SUM = record([("address", "i8"), ("stride", "i8"), ("count", "i8")])
"""Instances of a raw count, or of an element of one. Their sum goes into a row."""

ROWS_TAKEN = record(
    [
        ("due", "i8"),  # core cycle in which the interval ends
        ("interval", "i8"),
        ("taken", "i8"),  # rows since they were fetched
        ("sums", "i8"),  # address of them
        ("length", "i8"),  # how many there are
        ("rows", "i8"),  # address of the first row: the core cycle, and the sums
    ]
)

at_sum = pointer_to(SUM)
SUM_BYTES = SUM.itemsize


@jit
def take(sms, number, rows, now):
    """Count the SMs up to cycle ``now``, then add the instances of all counts up into a row."""
    for s in range(number):
        if sms[s].last < now:
            count_cycles(sms[s], now)
    length = i64(rows.length)
    row = words_i64(i64(rows.rows) + 8 * (1 + length) * i64(rows.taken), 1 + length)
    row[0] = now
    for k in range(length):
        row[1 + k] = _sum(at_sum(i64(rows.sums) + k * SUM_BYTES))
    rows.taken += 1


@jit
def _sum(place):
    step = i64(place.stride) >> 3
    instances = words_i64(i64(place.address), i64(place.count) * step)
    total = i64(0)
    for k in range(place.count):
        total += i64(instances[k * step])
    return total


@dataclass(frozen=True)
class Intervals:
    """A launch over time.

    ``rows`` are those that were taken, behind one of zeros. ``shapes`` are those of raw counts, by name, without their
    instances; ``shown`` are the names of gauges; ``shares`` are as ``shapes``, and empty where one grid runs.
    """

    rows: np.ndarray
    shapes: Mapping[str, tuple[int, ...]]
    shown: Sequence[str]
    shares: Mapping[str, tuple[int, ...]]

    @property
    def ends(self) -> np.ndarray:
        """The core cycles in which intervals end; the first begins at 0."""
        return self.rows[1:, 0]

    @cached_property
    def counts(self) -> dict[str, np.ndarray]:
        """How much raw counts grew in each interval (the first axis), summed over their instances."""
        cycles = np.diff(self.rows[:, 0])  # which records have at the end alone
        return {**self._grown(1, self.shapes), "gpu.cycles": cycles}

    def counts_of(self, grid: int) -> dict[str, np.ndarray]:
        """The same of one of two grids, as far as counts belong to one."""
        shares = self._grown(self.rows.shape[1] - _columns_of(self.shares), self.shares)
        return {**laws.part(grid, self.counts, shares), "gpu.cycles": self.counts["gpu.cycles"]}

    def _grown(self, first: int, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
        """How much the counts grew that stand in the columns from ``first`` on."""
        increases, counts = np.diff(self.rows, axis=0), {}
        for name, shape in shapes.items():
            counts[name] = increases[:, first : first + math.prod(shape)].reshape(-1, *shape)
            first += math.prod(shape)
        return counts

    @property
    def gauges(self) -> dict[str, np.ndarray]:
        """Sums over SMs, at the end of each interval."""
        first = 1 + _columns_of(self.shapes)
        return dict(zip(self.shown, self.rows[1:, first : first + len(self.shown)].T, strict=True))


def _columns_of(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(map(math.prod, shapes.values()))


class Recorder:
    """Keeps the rows of one launch after the other. ``record`` says to the run loop where they go."""

    def __init__(
        self, raw: Mapping[str, np.ndarray], gauges: Mapping[str, np.ndarray], shares: Mapping[str, np.ndarray]
    ) -> None:
        """``raw`` are the raw counts in the records, their instances along the first axis; the others are alike."""
        self._shown = tuple(gauges)
        self._shapes, self._shares = (_shapes(arrays) for arrays in (raw, shares))
        arrays = *raw.values(), *gauges.values(), *shares.values()
        columns = [column for array in arrays for column in _columns(array)]
        assert all(column.dtype == np.int64 for column in columns)
        self._sums = np.array([(column.ctypes.data, column.strides[0], len(column)) for column in columns], SUM)
        self.record = np.zeros((), ROWS_TAKEN)
        self.record["sums"] = self._sums.ctypes.data
        self.begin(None, shares=False)

    def begin(self, interval: int | None, shares: bool) -> None:
        """A launch begins, or a run of two grids, which needs the ``shares``; all counts are zero."""
        self._with_shares = shares
        length = len(self._sums) - (0 if shares else _columns_of(self._shares))
        self._room = np.zeros((ROOM, 1 + length), np.int64)
        self.record["rows"], self.record["length"] = self._room.ctypes.data, length
        self._most = ROWS if interval is None else MOST_ROWS
        self.record["taken"] = 0
        self.record["interval"] = self.record["due"] = interval or INTERVAL
        self._rows = np.zeros((1, self._room.shape[1]), np.int64)

    def fetch(self, ended: bool) -> None:
        """Make room for further rows, or, when the launch has ended, keep its last one."""
        self._rows = np.concatenate([self._rows, self._room[: self.record["taken"]]])
        self.record["taken"] = 0
        last = self._rows[-1:]
        while len(self._rows) > self._most:
            self._rows = self._rows[::2]
            self.record["interval"] *= 2
            self.record["due"] = self._rows[-1, 0] + self.record["interval"]
        if ended and self._rows[-1, 0] < last[0, 0]:
            self._rows = np.concatenate([self._rows, last])

    def intervals(self) -> Intervals:
        """Those of the launch."""
        return Intervals(self._rows, self._shapes, self._shown, self._shares if self._with_shares else {})


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape[1:] for name, array in arrays.items()}


def _columns(array: np.ndarray) -> list[np.ndarray]:
    """Its elements, each over all instances."""
    return [array[(slice(None), *index)] for index in np.ndindex(array.shape[1:])]
