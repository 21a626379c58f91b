"""The axes along which runs differ, and their product."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep.sim import kernels
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study.comparison import BASELINE
from lockstep.sim.study.job import Job
from lockstep.spec import registry

__all__ = ["Axes", "setting_axes"]

MOST = 1_000_000  # runs


@dataclass(frozen=True)
class Axes:
    """The values along each axis; ``settings`` is an axis for each parameter. The first axis changes slowest."""

    kernels: Sequence[str]
    gpus: Sequence[str] = ("gtx480",)
    mechanisms: Sequence[tuple[str, ...]] = ((),)
    settings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sizes: Sequence[str] = ("small",)
    seeds: Sequence[int] = (1,)
    strict: bool = False

    def check(self, place: str) -> None:
        """Raise :class:`UsageError` for values that there are not, or that are there twice; no kernel is loaded."""
        named = {"kernel": self.kernels, "gpu": self.gpus, "with": [",".join(each) for each in self.mechanisms]}
        for axis, values in {**named, "size": self.sizes, "seed": self.seeds, **self.settings}.items():
            if twice := [value for index, value in enumerate(values) if value in values[:index]]:
                raise UsageError(f"{place}: {axis}: {twice[0] or BASELINE} is given twice")
            if not values:
                raise UsageError(f"{place}: {axis}: needs at least one value")
        for kernel in self.kernels:
            kernels.file_of(kernel)
        for gpu in self.gpus:
            description.load(gpu)
        for names in self.mechanisms:
            try:
                registry.resolve(names)
            except ValueError as error:
                raise UsageError(f"{place}: {error}") from None
        for key, values in self.settings.items():
            for value in values:
                description.setting(place, key, value)
        count = math.prod(len(values) for values in self._values())
        if count > MOST:
            raise UsageError(f"{place}: {count:,} runs: at most {MOST:,}")

    def check_kernels(self) -> None:
        """Load the kernels. Raises :class:`UsageError` for one that lacks a definition, or a size."""
        for each in self.kernels:
            kernels.find(each, *self.sizes)

    def jobs(self) -> list[Job]:
        """The product of the axes."""
        return [
            Job(kernel, gpu, size, seed, names, dict(zip(self.settings, settings, strict=True)), self.strict)
            for kernel, gpu, size, seed, names, *settings in itertools.product(*self._values())
        ]

    def _values(self) -> list[Sequence[Any]]:
        return [self.kernels, self.gpus, self.sizes, self.seeds, self.mechanisms, *self.settings.values()]


def setting_axes(texts: Iterable[str]) -> dict[str, list[Any]]:
    """The axes of ``--set KEY=VALUE[,VALUE]``. A comma is never part of a value, which is a number or a word."""
    axes: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        found = [description.parse_setting(f"{name}{equals}{value}") for value in values.split(",")]
        key = found[0][0]
        if key in axes:
            raise UsageError(f"--set {key}: given twice; put commas between the values: {key}=16,32")
        axes[key] = [value for _, value in found]
    return axes
