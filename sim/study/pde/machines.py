"""The two GPUs of the thesis's chapter 2, and how its kernels fill them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lockstep.sim.device import description
from lockstep.sim.kernels.solvers import Blocks

__all__ = ["C1060", "GTX580", "GTX580_L1", "MACHINES", "SMALL", "Machine"]


@dataclass(frozen=True)
class Machine:
    """A description, what is set in it, and the thesis's blocks, communicating threads and best number of steps.

    ``plain``: what is exchanged is loaded as everything else, so that an L1 may serve it.
    """

    name: str
    gpu: str
    settings: Mapping[str, Any]
    blocks: Blocks
    communicating: int
    best_steps: int
    plain: bool = False

    @cached_property
    def hertz(self) -> float:
        """Core cycles of a second."""
        return 1e6 * description.load(self.gpu, self.settings).clocks.core


GTX580 = Machine("gtx580", "gtx580", {"l1.data": 0}, Blocks(32, 60, 16), 64, 40)

GTX580_L1 = replace(GTX580, name="gtx580, L1s on", settings={"l1.values": "lines"}, plain=True)
"""Lines carry values, so that a copy can be stale."""

C1060 = Machine("C1060", "gtx280", {"clocks.dram": 800}, Blocks(32, 20, 30), 32, 60)

FEW = 4
SMALL = replace(
    GTX580, name=f"gtx580, {FEW} SMs", settings={**GTX580.settings, "core.sms": FEW}, blocks=Blocks(32, 60, FEW)
)
"""As many CTAs for each SM of a smaller grid."""

MACHINES = {machine.name: machine for machine in (GTX580, GTX580_L1, C1060, SMALL)}
