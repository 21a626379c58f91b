"""The results of a launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lockstep.sim.compile.ptx.names import readable
from lockstep.sim.device import statistics
from lockstep.sim.device.description import values
from lockstep.sim.device.profile import Profile
from lockstep.sim.device.timeline import columns, columns_of
from lockstep.spec.parameters import MAX_GRIDS
from lockstep.spec.parameters import Gpu as Description

if TYPE_CHECKING:
    from lockstep.models.observe.intervals import Intervals

__all__ = ["Run", "Share", "summary"]


class Counted:
    """What a finished launch tells of itself by its raw counts."""

    raw: dict[str, np.ndarray]

    @property
    def cycles(self) -> int:
        """Core cycles from its begin to its end."""
        return int(self.raw["gpu.cycles"].sum())

    @property
    def warp_instructions(self) -> int:
        return int(self.raw["sm.warp_instructions"].sum())

    @property
    def thread_instructions(self) -> int:
        return int(self.raw["sm.lanes"].sum())

    @property
    def ipc(self) -> float:
        """Warp instructions per core cycle."""
        return self.warp_instructions / self.cycles


@dataclass(frozen=True, repr=False)
class Run(Counted):
    """One finished launch; or what two streams have run at once, ``launches``, whose grid and block are zero."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    gpu: Description
    raw: dict[str, np.ndarray]
    intervals: Intervals
    wall_seconds: float
    printed: str  # by the device's ``printf``, in the order of CTAs and warps
    profile: Profile | None = None  # if the launch was to have one
    launches: list[Share] = field(default_factory=list)
    one_thread: str = ""
    """Why it could not have had several threads of the host (``docs/parallel.md``); empty: it could."""
    report: ClassVar[Callable[[Mapping[str, Any]], str] | None] = None
    """Makes a page of a saved run; :mod:`lockstep.sim.gpu` sets it, since reports stand above launches."""

    def __repr__(self) -> str:
        where = f"{readable(self.kernel)} on {self.gpu.name}"
        if self.launches:
            number = f"{len(self.launches)} launches"
            return f"<Run of {where}, {number}: {self.cycles} core cycles, IPC {self.ipc:.3f}>"
        return f"<Run of {where}, grid {self.grid}, block {self.block}: {self.cycles} core cycles, IPC {self.ipc:.3f}>"

    def _repr_html_(self) -> str | None:
        """The report of `lockstep report`, for notebooks."""
        report = type(self).report
        return report(self._saved()) if report else None

    def _saved(self) -> dict[str, Any]:
        """The launch as ``sim.study.saved`` has the runs of commands; nobody knows its size, command or result."""
        gpu = self.gpu
        timeline = {name: column.tolist() for name, column in self.timeline.items()}
        kernels = [self._kernel(stream) for stream in range(len(self.timelines))]
        return {
            "kernel": readable(self.kernel), "gpu": gpu.name, "mechanisms": sorted(gpu.mechanisms), "settings": {},
            "size": "", "cycles": self.cycles, "warp_instructions": self.warp_instructions, "ipc": self.ipc,
            "checked": None, "stats": self.stats, "timeline": [timeline], "configuration": values(gpu), "command": "",
            "code_version": "", **({"profile": {"functions": [self.profile.as_json()]}} if self.profile else {}),
            **({"kernels": kernels} if kernels else {}),
        }  # fmt: skip

    def _kernel(self, stream: int) -> dict[str, Any]:
        """What ran in one of two streams, likewise."""
        own = [launch for launch in self.launches if launch.stream == stream]
        timeline = {name: column.tolist() for name, column in self.timelines[stream].items()}
        names = dict.fromkeys(readable(launch.kernel) for launch in own)
        found = summary(own, {id(self): 0})
        return {"kernel": ", ".join(names) or "nothing", "size": "", "checked": None, **found, "timeline": [timeline]}

    @cached_property
    def timeline(self) -> dict[str, np.ndarray]:
        """The launch over time: ``timeline.columns``."""
        return columns(self.intervals, self.gpu)

    @cached_property
    def timelines(self) -> list[dict[str, np.ndarray]]:
        """The same of each of two streams, as far as it can be told of one; none if there was one launch alone."""
        return [columns_of(self.intervals, self.gpu, stream) for stream in range(MAX_GRIDS)] if self.launches else []

    @cached_property
    def stats(self) -> dict[str, float]:
        """All statistics of ``docs/statistics.md``."""
        return statistics.compute(self.raw, self.gpu)

    @cached_property
    def per_sm(self) -> list[dict[str, float]]:
        """Those that an SM has, for every SM."""
        return [statistics.compute(self.raw, self.gpu, sm) for sm in range(self.gpu.core.sms)]


@dataclass(frozen=True, repr=False)
class Share(Counted):
    """A launch that ran in a stream. ``began`` and ``ended`` are core cycles of the run ``together``.

    ``stream`` is 0 or 1: which of the two that ran; ``beside`` are the warp instructions of the other one by the end,
    since the run began. Statistics are those that can be told of one grid: of instructions, CTAs and warps, and of the
    requests that they make, from the L1 to DRAM. All others are those of the run.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    gpu: Description
    raw: dict[str, np.ndarray]
    began: int
    ended: int
    printed: str
    stream: int
    beside: int
    profile: Profile | None
    together: Run

    def __repr__(self) -> str:
        where = f"{readable(self.kernel)} on {self.gpu.name}"
        return f"<Launch of {where}: core cycles {self.began} to {self.ended}, IPC {self.ipc:.3f}>"

    @cached_property
    def stats(self) -> dict[str, float]:
        """Those of ``docs/statistics.md`` that can be told of one grid."""
        return statistics.compute(self.raw, self.gpu, some=True)

    @cached_property
    def per_sm(self) -> list[dict[str, float]]:
        """The same for every SM."""
        return [statistics.compute(self.raw, self.gpu, sm, some=True) for sm in range(self.gpu.core.sms)]


def summary(launches: Sequence[Share], before: Mapping[int, int]) -> dict[str, Any]:
    """What there is to say of launches of one stream; ``before``: the core cycles before each run, by its ``id``."""
    raw: dict[str, Any] = {}
    for launch in launches:
        raw = statistics.accumulate(raw, launch.raw)
    cycles, instructions = sum(each.cycles for each in launches), sum(each.warp_instructions for each in launches)
    return {
        "launches": len(launches),
        "cycles": cycles,
        "warp_instructions": instructions,
        "thread_instructions": sum(each.thread_instructions for each in launches),
        "ipc": instructions / cycles if cycles else 0.0,
        "spans": [[before[id(each.together)] + cycle for cycle in (each.began, each.ended)] for each in launches],
        "issued": [each.warp_instructions for each in launches],
        "stats": statistics.compute(raw, launches[0].gpu, some=True) if launches else {},
    }
