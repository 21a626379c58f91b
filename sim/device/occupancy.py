"""The result of `lockstep occupancy`: how many CTAs an SM holds, what limits them, what they leave unused."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lockstep.models.occupancy import Occupancy
from lockstep.sim.device.module import Module
from lockstep.spec.parameters import LANES, Gpu

BLOCKS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # threads, where none are asked for


@dataclass(frozen=True)
class Residency:
    """The CTAs on one SM, all alike. Fields are those of the JSON."""

    kernel: str  # empty: of none
    threads: int
    registers: int  # per thread
    scratchpad_bytes: int  # per CTA, as asked for
    ctas: int
    unshared: int  # of them, those that share nothing; the others are ...
    shared_pairs: int
    warps: int
    occupancy: float  # warps to those that the SM can hold
    limited_by: tuple[str, ...]
    limits: dict[str, int]  # CTAs, if there were no other limit
    unused_registers: int
    unused_scratchpad_bytes: int


def residencies(module: Module, block: int | None, dynamic_bytes: int) -> list[Residency]:
    """All kernels of a module, with this block or with the usual ones that each allows. Raises :class:`UsageError`."""
    found = []
    for name, kernel in module.program.kernels.items():
        for extent in [(block,)] if block else _blocks(module, name):
            fit = module.occupancy(name, extent, dynamic_bytes)
            needs = math.prod(extent), kernel.registers, kernel.shared_bytes + dynamic_bytes
            found.append(residency(module.gpu.description, fit, *needs, kernel.shown))
    return found


def _blocks(module: Module, name: str) -> list[tuple[int, ...]]:
    kernel, most = module.kernel(name), module.gpu.description.core.threads_per_cta
    if kernel.required_block:
        return [kernel.required_block]
    most = min(most, math.prod(kernel.max_block)) if kernel.max_block else most
    return [(threads,) for threads in BLOCKS if threads <= most]


def residency(
    gpu: Gpu, fit: Occupancy, threads: int, registers: int, scratchpad_bytes: int, kernel: str = ""
) -> Residency:
    """The residency on an SM that a plan for CTAs with these needs gives."""
    warps = fit.ctas * fit.warps_per_cta
    whole = fit.ctas - fit.pairs  # CTAs; the others add what is their own
    used = fit.warps_per_cta * (whole * fit.registers_per_warp + fit.pairs * fit.own_registers * LANES)
    used_scratchpad = whole * fit.scratchpad_bytes + fit.pairs * fit.own_scratchpad_bytes
    return Residency(
        kernel=kernel,
        threads=threads,
        registers=registers,
        scratchpad_bytes=scratchpad_bytes,
        ctas=fit.ctas,
        unshared=fit.ctas - 2 * fit.pairs,
        shared_pairs=fit.pairs,
        warps=warps,
        occupancy=warps / gpu.core.warps,
        limited_by=fit.limited_by,
        limits=fit.limits,
        unused_registers=gpu.core.registers - used,
        unused_scratchpad_bytes=gpu.scratchpad.bytes - used_scratchpad,
    )
