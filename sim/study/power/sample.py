"""A sample: the watts and the characteristics of some kernels, as a CSV file of a row for each.

Columns are ``kernel``, ``watts``, ``origin`` (of the watts: a text that begins with one of :data:`ORIGINS`; may be left
out), and characteristics. These are the 22 of Chen's table 3-1, as totals of a run, or per second of it with ``/s``
behind their names; or any others.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lockstep.sim.columns import csv_text
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.errors import UsageError
from lockstep.spec.words import closest

__all__ = [
    "CHARACTERISTICS", "KERNEL", "MEASURED", "MODELLED", "OCCUPANCY", "ORIGIN", "ORIGINS", "WATTS", "Sample",
    "large_enough", "note", "number", "one_origin", "per_second", "read", "rows", "text",
]  # fmt: skip

KERNEL, WATTS, ORIGIN = "kernel", "watts", "origin"
MEASURED, MODELLED = ORIGINS = ("measured", "modelled")
PER_SECOND = "/s"
OCCUPANCY = "Occupancy"
CHARACTERISTICS = tuple(name.removeprefix("chen.") for name in STATISTICS if name.startswith("chen."))
LEAST = 3  # kernels: with fewer, there is nothing to learn from where one is left out
MOST = 1e30  # of a value: trees compare numbers of 32 bits
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Sample:
    """``values`` has a row for each kernel and a column for each characteristic; ``watts`` are None if not known."""

    kernels: tuple[str, ...]
    watts: np.ndarray | None
    origin: str
    characteristics: tuple[str, ...]
    values: np.ndarray

    @property
    def note(self) -> str:
        return note(self.origin)


def note(origin: str) -> str:
    """What a reader must know about watts of this origin."""
    if not origin:
        return "The sample doesn't say where its watts come from."
    if origin.startswith(MODELLED):
        return f"Watts are {origin}: errors say nothing about a real GPU."
    return f"Watts are {origin}."


def read(file: str, watts: bool = True) -> Sample:
    """Read a sample, which must have ``watts`` unless that is false. Raises :class:`UsageError`."""
    lines = rows(file, [KERNEL, WATTS] if watts else [KERNEL])
    names = tuple(name for name in lines[0][1] if name not in (KERNEL, WATTS, ORIGIN))
    _check_characteristics(file, names)
    kernels: dict[str, int] = {}
    origins: set[str] = set()
    values, power = [], []
    for line, row in lines:
        place, kernel = f"{file}: line {line}", row[KERNEL]
        if not kernel or not kernel.isprintable():
            raise UsageError(f"{place}: kernel {kernel!r}: must be a name")
        if kernel in kernels:
            raise UsageError(f"{place}: kernel {kernel!r}: is on line {kernels[kernel]}, too")
        kernels[kernel] = line
        origins.add(row.get(ORIGIN, ""))
        values.append([number(place, name, row[name]) for name in names])
        if WATTS in row:
            power.append(number(place, WATTS, row[WATTS], above=True))
    watts_of_all = np.array(power) if power else None
    return Sample(tuple(kernels), watts_of_all, one_origin(file, origins), names, np.array(values))


def large_enough(file: str, sample: Sample) -> Sample:
    """The sample, if it has enough kernels to fit a model to. Raises :class:`UsageError`."""
    if len(sample.kernels) < LEAST:
        raise UsageError(f"{file}: has {len(sample.kernels)} kernels: needs at least {LEAST}")
    return sample


def rows(file: str, needed: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file, at least one, by the names of its columns, each with the number of its line."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            lines = list(_lines(file, csv.reader(stream, strict=True), needed))
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, csv.Error):
        raise UsageError(f"{file}: not a CSV file") from None
    if not lines:
        raise UsageError(f"{file}: has no rows")
    return lines


def _lines(file: str, reader: Iterator[list[str]], needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    names: list[str] = []
    for number, cells in enumerate(reader, 1):
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            continue
        if not names:
            names = cells
            for k, name in enumerate(names):
                if not name or not name.isprintable():
                    raise UsageError(f"{file}: column {k + 1} has no name")
                if name in names[:k]:
                    raise UsageError(f"{file}: column {name!r} is there twice")
            if missing := [name for name in needed if name not in names]:
                raise UsageError(f"{file}: has no column {missing[0]!r}{closest(missing[0], names)}")
            continue
        if len(cells) != len(names):
            raise UsageError(f"{file}: line {number}: has {len(cells)} cells: must have {len(names)}, as the first")
        yield number, dict(zip(names, cells, strict=True))


def _check_characteristics(file: str, names: Sequence[str]) -> None:
    """Those of the table are complete, and either totals or rates."""
    if not names:
        raise UsageError(f"{file}: has no characteristics, only {KERNEL}, {WATTS} and {ORIGIN}")
    rates = {name for name in names if name.endswith(PER_SECOND)}
    for wanted in (CHARACTERISTICS, per_second(CHARACTERISTICS)):
        if set(names) & (set(wanted) - {OCCUPANCY}) and (missing := [name for name in wanted if name not in names]):
            raise UsageError(f"{file}: has no column {missing[0]!r}; a sample has all of table 3-1, or none")
    if rates and (totals := set(names) - rates - {OCCUPANCY}):
        raise UsageError(f"{file}: has {min(rates)!r} and {min(totals)!r}: must have rates or totals, not both")


def per_second(names: Sequence[str]) -> tuple[str, ...]:
    """The names of rates; occupancy is none."""
    return tuple(name if name == OCCUPANCY else f"{name}{PER_SECOND}" for name in names)


def number(place: str, name: str, cell: str, above: bool = False) -> float:
    """The number in a cell, at least 0, or ``above`` it. Raises :class:`UsageError`."""
    value = float(cell) if NUMBER.fullmatch(cell) else -1.0
    if not 0 <= value <= MOST or (above and not value):
        raise UsageError(f"{place}: {name} = {cell!r}: must be a number, {'above' if above else 'from'} 0 to {MOST:g}")
    return value


def one_origin(file: str, origins: set[str]) -> str:
    """The origin of all watts of a file. Raises :class:`UsageError`."""
    if len(origins) > 1:
        two = sorted(origins)[:2]
        raise UsageError(f"{file}: {ORIGIN}: is {two[0]!r} and {two[1]!r}: must be the same for all kernels")
    (origin,) = origins
    if origin and not (origin.startswith(ORIGINS) and origin.isprintable()):
        raise UsageError(f"{file}: {ORIGIN} = {origin!r}: must begin with {' or '.join(ORIGINS)}")
    return origin


def text(sample: Sample) -> str:
    """The CSV of a sample."""
    columns: dict[str, Sequence[object]] = {KERNEL: sample.kernels}
    if sample.watts is not None:
        columns |= {WATTS: sample.watts.tolist(), ORIGIN: [sample.origin] * len(sample.kernels)}
    columns |= {name: sample.values[:, k].tolist() for k, name in enumerate(sample.characteristics)}
    return csv_text(columns)
