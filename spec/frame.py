"""The frame of every configuration, declared as mechanisms are, and the tenants of slots that no mechanism fills."""

from __future__ import annotations

from lockstep.spec.mechanism import Mechanism, Parameters
from lockstep.spec.parameters import LANES, MAX_GRIDS, SCHEDULERS, TICKETS, Compiler, Core, Gpu
from lockstep.spec.passes import FENCES, HINTS, Pass, machine

COALESCER = "lsu.intra_warp_coalescer"
CROSSBAR = "lsu.line_crossbar"
STORE_CROSSBAR = "lsu.store_crossbar"
DISPATCHER = "cta.cta_dispatcher"
SCHEDULER = "scheduling.warp_scheduler"


def instructions(gpu: Gpu) -> dict[str, int]:
    """The arguments of a block that names memory instructions, and knows their lanes."""
    return dict(lanes=LANES, warps=gpu.core.warps, tickets=TICKETS)


def coalescer(gpu: Gpu) -> Parameters:
    """The arguments of an intra-warp coalescer, which paths share."""
    return {COALESCER: instructions(gpu)}


def whole_warps(gpu: Gpu, mechanism: str) -> list[str]:
    """The error of a mechanism that merges the lanes of whole warps, where a description has half-warps."""
    if gpu.core.coalescing == "warp":
        return []
    return [f'core.coalescing = "{gpu.core.coalescing}": {mechanism} merges the lanes of whole warps']


def hidden_by(gpu: Gpu) -> dict[str, int]:
    """The latency of a load in core cycles, and the warps that hide it: l and w of Chen section 4.4."""
    return dict(latency=gpu.dram.latency, warps=gpu.core.region_warps or gpu.core.warps)


def free_registers(core: Core) -> int:
    """The registers that each thread can have if an SM holds as many threads as it can."""
    warps = core.threads // LANES
    allocated = core.registers // warps // core.register_unit * core.register_unit
    return min(allocated // LANES, core.registers_per_thread)


def _passes(gpu: Gpu) -> tuple[Pass, ...]:
    found = []
    if gpu.compiler != Compiler():
        found.append(machine(gpu.compiler, free_registers(gpu.core)))
    if gpu.l1.values == "lines":
        found.append(FENCES)
    if gpu.core.scheduler == "region-p":
        hints = "lockstep.sim.compile.ptx.passes.memory_regions:hints"
        found.append(Pass(HINTS, hints, tuple(hidden_by(gpu).items())))
    return tuple(found)


FRAME = Mechanism(
    name="frame",
    doc="the SMs, and what surrounds them",
    blocks=(DISPATCHER, SCHEDULER),
    arguments=lambda gpu: {
        DISPATCHER: dict(sms=gpu.core.sms),
        SCHEDULER: dict(
            warps=gpu.core.warps,
            schedulers=gpu.core.schedulers,
            patience=gpu.core.patience,
            classes=int("order" in gpu.frame_slots),
            policies=1 << SCHEDULERS.index(gpu.core.scheduler),
        ),
    },
    whole=(DISPATCHER,),
    copies=lambda gpu: {SCHEDULER: gpu.core.schedulers, DISPATCHER: MAX_GRIDS},
    passes=_passes,
)

DEFAULTS = (
    Mechanism(
        name="baseline",
        doc="one intra-warp coalescer",
        tenants={"path": "lockstep.models.lsu.path"},
        blocks=(COALESCER,),
        arguments=coalescer,
    ),
    Mechanism(name="occupancy", doc="as many CTAs as fit", tenants={"capacity": "lockstep.models.occupancy"}),
)
"""Who fills the frame slots of one tenant that no selected mechanism takes."""
