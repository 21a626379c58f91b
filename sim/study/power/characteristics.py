"""The characteristics of saved runs, with watts that were recorded on a real GPU, or those of the event model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.sim.study.energy import Process, account
from lockstep.sim.study.power.sample import (
    CHARACTERISTICS,
    KERNEL,
    MODELLED,
    OCCUPANCY,
    ORIGIN,
    WATTS,
    Sample,
    number,
    one_origin,
    per_second,
    rows,
)
from lockstep.sim.study.saved import Saved

__all__ = ["RECORDED", "Recorded", "read_recorded", "sample"]

SIZE, SECONDS = "size", "seconds"
RECORDED = (KERNEL, SIZE, WATTS, ORIGIN, SECONDS)
"""The columns that a recording must have; it may have more."""


@dataclass(frozen=True)
class Recorded:
    """What `python -m lockstep.verif.silicon power` recorded: watts and seconds of a run, by kernel and size."""

    file: str
    origin: str
    runs: dict[tuple[str, str], tuple[float, float]]


def read_recorded(file: str) -> Recorded:
    """Read recorded watts. Raises :class:`UsageError`."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    lines = rows(file, RECORDED)
    for line, row in lines:
        place, key = f"{file}: line {line}", (row[KERNEL], row[SIZE])
        if key in found:
            raise UsageError(f"{place}: {' '.join(key)}: is there twice")
        watts, seconds = number(place, WATTS, row[WATTS], above=True), number(place, SECONDS, row[SECONDS], above=True)
        found[key] = watts, seconds
    return Recorded(file, one_origin(file, {row[ORIGIN] for _, row in lines}), found)


def sample(runs: Sequence[Saved], process: Process, recorded: Recorded | None, rates: bool) -> Sample:
    """The sample of some runs, one for each kernel and size."""
    kernels: list[str] = []
    watts, values = [], []
    for run in runs:
        kernel, size = run["kernel"], run["size"]
        name = f"{kernel} {size}"
        if name in kernels:
            raise UsageError(f"{name}: there are two runs: give one for each kernel and size")
        kernels.append(name)
        seconds = run["cycles"] / (run["configuration"]["clocks.core"] * 1e6)
        if not seconds:
            raise UsageError(f"{name}: the run has no cycles")
        if recorded is None:
            watts.append(account(run, process).total * 1e-15 / seconds)
        elif (kernel, size) in recorded.runs:
            each, seconds = recorded.runs[kernel, size]
            watts.append(each)
        else:
            raise UsageError(f"{recorded.file}: has no watts of {name}")
        counts = [float(run["stats"][f"chen.{each}"]) for each in CHARACTERISTICS]
        if rates:
            counts = [n if each == OCCUPANCY else n / seconds for n, each in zip(counts, CHARACTERISTICS, strict=True)]
        values.append(counts)
    origin = recorded.origin if recorded else f"{MODELLED} from events at {process.node_nm:g} nm"
    names = per_second(CHARACTERISTICS) if rates else CHARACTERISTICS
    return Sample(tuple(kernels), np.array(watts), origin, names, np.array(values))
