"""The plan of CTAs with a renamed register file: that of the whole file, if one CTA has room in the smaller one."""

from __future__ import annotations

from dataclasses import replace

from lockstep.models import occupancy as default
from lockstep.models.occupancy import Occupancy
from lockstep.spec.parameters import LANES, Gpu
from lockstep.spec.rfv import places


def occupancy(gpu: Gpu, threads: int, registers: int, scratchpad_bytes: int) -> Occupancy:
    """As :func:`lockstep.models.occupancy.occupancy`."""
    fit = default.occupancy(gpu, threads, registers, scratchpad_bytes)
    needed, there = registers * fit.warps_per_cta, places(gpu)
    if needed <= there or fit.ctas == 0:
        return fit
    enough = -(-100 * LANES * needed // gpu.core.registers)
    helps = f"rfv.percent={enough} or a smaller block helps"
    why = f"it needs {needed} warp registers, and the renamed file has {there}; {helps}"
    return replace(fit, ctas=0, limits=fit.limits | {"rfv.percent": 0}, limited_by=("rfv.percent",), why_none=why)
