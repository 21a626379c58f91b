"""Ways to step the SMs of a run: in lockstep with the memory system, or through windows, with one thread or several."""

from __future__ import annotations

from typing import NamedTuple

from lockstep.models.team import LONGEST, window
from lockstep.sim import Gpu

__all__ = ["LINES", "LOCKSTEP", "WAYS", "Way", "set_way"]

LINES = {"l1.values": "lines"}
"""What windows ask of a GPU."""


class Way(NamedTuple):
    """``window``: core cycles; 0: the run is in lockstep."""

    threads: int
    window: int


LOCKSTEP = Way(1, 0)
WAYS = (Way(1, LONGEST), Way(2, LONGEST), Way(3, 3))
"""Windows that are as long as may be, and some that end elsewhere; with more threads than cores, too."""


def set_way(gpu: Gpu, way: Way) -> None:
    """Let a GPU run so, in windows throughout if it can have any."""
    team = gpu.machine.team
    team.threads, team.length, team.forced = way.threads, min(way.window, window(gpu.description)), True
