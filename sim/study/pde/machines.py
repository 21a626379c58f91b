"""The two GPUs of the thesis's chapter 2, and how its kernels fill them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    hertz: float
    plain: bool = False


GTX580 = Machine("gtx580", "gtx580", {"l1.data": 0}, Blocks(32, 60, 16), 64, 40, 1544e6)

GTX580_L1 = replace(GTX580, name="gtx580, L1s on", settings={"l1.values": "lines"}, plain=True)
"""Lines carry values, so that a copy can be stale."""

C1060 = Machine(
    "C1060",
    "gtx580",
    {
        "core.sms": 30,  # Chen section 2.3.2
        "core.warps": 32,  # Chen table 1-1, GTX 280: the same chip
        "core.threads": 1024,
        "core.threads_per_cta": 512,
        "core.registers": 16384,
        "scratchpad.bytes": 16384,
        "scratchpad.bytes_per_cta": 16384,
        "scratchpad.banks": 16,  # public GT200
        "core.schedulers": 1,  # public GT200
        "core.issue_interval": 4,  # public GT200: a warp on eight lanes
        "pipes.alu": 1,
        "l1.data": 0,  # public GT200: global memory has no cache
        "l2.sets": 4,  # the least that does not keep requests from each other: 16 KB
        "l2.ways": 4,
        "clocks.core": 1296,  # public C1060
        "clocks.interconnect": 1296,
        "clocks.l2": 1296,
        "clocks.dram": 1296,
    },
    Blocks(32, 20, 30),
    32,
    60,
    1296e6,
)
"""Settings of ``gtx580``, not a description: requests are those of whole warps, not of half-warps, and latencies are
Fermi's."""

FEW = 4
SMALL = replace(
    GTX580, name=f"gtx580, {FEW} SMs", settings={**GTX580.settings, "core.sms": FEW}, blocks=Blocks(32, 60, FEW)
)
"""As many CTAs for each SM of a smaller grid."""

MACHINES = {machine.name: machine for machine in (GTX580, GTX580_L1, C1060, SMALL)}
