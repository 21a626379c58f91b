"""What a launch leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lockstep.sim import statistics
from lockstep.sim.profile import Profile
from lockstep.spec.parameters import Gpu as Description

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """One finished launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    gpu: Description
    raw: dict[str, np.ndarray] = field(repr=False)
    timeline: dict[str, np.ndarray] = field(repr=False)  # the launch over time: ``trace.intervals.columns``
    wall_seconds: float
    printed: str  # by the device's ``printf``, in the order of CTAs and warps
    profile: Profile | None = field(default=None, repr=False)  # if the launch was to have one

    @property
    def cycles(self) -> int:
        """Core cycles."""
        return int(self.raw["gpu.cycles"].sum())

    @property
    def warp_instructions(self) -> int:
        return int(self.raw["sm.warp_instructions"].sum())

    @property
    def thread_instructions(self) -> int:
        return int(self.raw["sm.thread_instructions"].sum())

    @property
    def ipc(self) -> float:
        """Warp instructions per core cycle."""
        return self.warp_instructions / self.cycles

    @cached_property
    def stats(self) -> dict[str, float]:
        """All statistics of ``docs/statistics.md``."""
        return statistics.compute(self.raw, self.gpu)

    @cached_property
    def per_sm(self) -> list[dict[str, float]]:
        """Those that an SM has, for every SM."""
        return [statistics.compute(self.raw, self.gpu, sm) for sm in range(self.gpu.core.sms)]
