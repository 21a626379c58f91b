"""A statistic: a name, a unit, a meaning, and a formula over raw counts.

A launch returns raw counts: arrays by name, ``<owner>.<count>``, with an element or row per SM, L2 slice or DRAM
channel. The owner is a part of the frame, or a mechanism (``Mechanism.area``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lockstep.spec.parameters import CATEGORIES, Gpu

CYCLES, RATIO = "core cycles", "ratio"

Raw = Mapping[str, np.ndarray]
"""Raw counts by name. The first axis is the instance: the slice for ``l2.``, the channel for ``dram.``; ``requests.``
and ``replies.`` (the crossbar's directions) and ``gpu.`` have one; it is the SM for all others."""

L1_ACCESSES = (
    "l1.loads", "l1.stores", "l1.atomics", "l1.bypass_loads", "l1.local_loads", "l1.local_stores", "l1.local_drops",
)  # fmt: skip

WHOLE = ("gpu", "l2", "dram", "requests", "replies")
"""Owners of counts that no SM has a part of."""


def has_sms(name: str) -> bool:
    """Whether the instances of a raw count are SMs."""
    return name.split(".")[0] not in WHOLE


class Counts:
    """Raw counts summed over their instances, or those of one SM; with the description, for capacities.

    What the owners in ``absent``, mechanisms that are not selected, would have counted is 0.
    """

    def __init__(self, raw: Raw, gpu: Gpu, sm: int | None = None, absent: Collection[str] = ()) -> None:
        self.gpu = gpu
        self.sms = gpu.core.sms if sm is None else 1
        self._raw, self._sm, self._absent = raw, sm, absent

    def __call__(self, name: str, index: int | None = None) -> int:
        if name.split(".")[0] in self._absent:
            return 0
        array = self._raw[name]
        if index is not None:
            array = array[:, index]
        one = self._sm is not None and has_sms(name)
        return int((array[self._sm] if one else array).sum())

    def sum(self, *names: str) -> int:
        return sum(self(name) for name in names)

    def lanes(self, *categories: str) -> int:
        """Lanes that execute instructions of some categories."""
        return sum(self("sm.lanes", CATEGORIES.index(category)) for category in categories)


def ratio(part: Any, whole: Any) -> Any:
    """0 when there is nothing to divide by: an SM without work has no instructions per cycle. Also of arrays."""
    if isinstance(whole, np.ndarray):
        return np.divide(part, whole, out=np.zeros(whole.shape), where=whole != 0)
    return part / whole if whole else 0.0


@dataclass(frozen=True)
class Statistic:
    """``formula`` gives the value from counts. ``per_sm``: it is given for every SM too."""

    name: str
    unit: str
    doc: str
    formula: Callable[[Counts], float]
    per_sm: bool


def counted(name: str, unit: str, source: str, doc: str, index: int | None = None) -> Statistic:
    """The raw count ``source``, or an element of it."""
    return Statistic(name, unit, doc, lambda c: c(source, index), has_sms(source))


def of_sm(name: str, unit: str, doc: str, formula: Callable[[Counts], float]) -> Statistic:
    return Statistic(name, unit, doc, formula, True)


def of_gpu(name: str, unit: str, doc: str, formula: Callable[[Counts], float]) -> Statistic:
    return Statistic(name, unit, doc, formula, False)
