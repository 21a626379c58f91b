"""What `lockstep occupancy` shows: how many CTAs of a kernel an SM holds, what limits them, what they leave unused."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lockstep.models.occupancy import Occupancy
from lockstep.sim.module import Module

BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # threads, where none are asked for


@dataclass(frozen=True)
class Residency:
    """The CTAs of one kernel on one SM, with blocks of so many threads. Fields are those of the JSON."""

    kernel: str
    threads: int
    registers: int  # per thread
    scratchpad_bytes: int  # per CTA, as asked for
    ctas: int
    warps: int
    occupancy: float  # warps to those that the SM can hold
    limited_by: tuple[str, ...]
    limits: dict[str, int]  # CTAs, if there were no other limit
    unused_registers: int
    unused_scratchpad_bytes: int


def residencies(module: Module, block: int | None, dynamic_bytes: int) -> list[Residency]:
    """All kernels of a module, with this block or with the usual ones that each allows. Raises :class:`UsageError`."""
    return [
        _residency(module, name, math.prod(extent), module.occupancy(name, extent, dynamic_bytes), dynamic_bytes)
        for name in module.program.kernels
        for extent in ([(block,)] if block else _blocks(module, name))
    ]


def _blocks(module: Module, name: str) -> list[tuple[int, ...]]:
    kernel, most = module.kernel(name), module.gpu.description.core.threads_per_cta
    if kernel.required_block:
        return [kernel.required_block]
    most = min(most, math.prod(kernel.max_block)) if kernel.max_block else most
    return [(threads,) for threads in BLOCKS if threads <= most]


def _residency(module: Module, name: str, threads: int, fit: Occupancy, dynamic_bytes: int) -> Residency:
    gpu, kernel = module.gpu.description, module.kernel(name)
    warps = fit.ctas * fit.warps_per_cta
    return Residency(
        kernel=name,
        threads=threads,
        registers=kernel.registers,
        scratchpad_bytes=kernel.shared_bytes + dynamic_bytes,
        ctas=fit.ctas,
        warps=warps,
        occupancy=warps / gpu.core.warps,
        limited_by=fit.limited_by,
        limits=fit.limits,
        unused_registers=gpu.core.registers - warps * fit.registers_per_warp,
        unused_scratchpad_bytes=gpu.scratchpad.bytes - fit.ctas * fit.scratchpad_bytes,
    )
