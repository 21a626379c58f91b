"""The plan of how many CTAs of a launch an SM can hold: the frame slot *capacity*, and what fills it by default."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from lockstep.models.execution.isa import LANES, LOCAL_BYTES
from lockstep.spec import registry
from lockstep.spec.parameters import MAX_WARPS, Gpu


@dataclass(frozen=True)
class Occupancy:
    """Resident CTAs per SM: the smallest of ``limits``, and the resources that give it.

    Twice ``pairs`` of them share with each other what is not a warp's or CTA's own.
    """

    ctas: int
    limits: dict[str, int]
    limited_by: tuple[str, ...]
    warps_per_cta: int
    registers_per_warp: int
    scratchpad_bytes: int  # per CTA, allocated
    pairs: int
    own_registers: int  # per thread, of a CTA in a pair ...
    own_scratchpad_bytes: int  # ... and of the CTA
    why_none: str = ""  # what there is too little of, and what helps, where a mechanism lets no CTA in


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(gpu: Gpu, threads: int, registers: int, scratchpad_bytes: int) -> Occupancy:
    """Occupancy of CTAs with ``threads`` threads, ``registers`` per thread and ``scratchpad_bytes`` each.

    Registers are allocated per warp in units of ``core.register_unit``, scratchpad per CTA in ``scratchpad.unit``.
    """
    core = gpu.core
    warps = round_up(threads, 32) // 32
    per_warp = round_up(max(registers, 1) * 32, core.register_unit)
    scratchpad = round_up(scratchpad_bytes, gpu.scratchpad.unit)
    limits = {
        "ctas": core.ctas,
        "threads": core.threads // (warps * 32),
        "warps": core.warps // warps,
        "registers": core.registers // (per_warp * warps),
    }
    if scratchpad:
        limits["scratchpad"] = gpu.scratchpad.bytes // scratchpad
    ctas = min(limits.values())
    limited_by = tuple(name for name, limit in limits.items() if limit == ctas)
    return Occupancy(ctas, limits, limited_by, warps, per_warp, scratchpad, 0, registers, scratchpad)


def plan(gpu: Gpu, threads: int, registers: int, scratchpad_bytes: int) -> Occupancy:
    """What the configuration's tenant of *capacity* says: its ``occupancy``, with the same arguments."""
    [module] = [m.tenants["capacity"] for m in registry.configuration(gpu) if "capacity" in m.tenants]
    return importlib.import_module(module).occupancy(gpu, threads, registers, scratchpad_bytes)


def local_rows(gpu: Gpu, fit: Occupancy, local_bytes: int, ctas: int, grids: int = 1) -> int:
    """How many warps of an SM get local memory, ``local_bytes`` per thread, in a launch of ``ctas`` CTAs.

    One per warp slot; where that is more than there are addresses for, only those that the launch can use, which works
    for one grid alone. Of ``grids`` that run at once, each has its part of the addresses.
    """
    if grids > 1 or gpu.core.sms * MAX_WARPS * LANES * local_bytes <= LOCAL_BYTES:
        return MAX_WARPS
    return min(fit.ctas, ctas) * fit.warps_per_cta
