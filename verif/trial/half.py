"""Trial tenant of the frame slot *capacity*: half as many CTAs as fit."""

from __future__ import annotations

from dataclasses import replace

from lockstep.models import occupancy as default
from lockstep.spec.parameters import Gpu


def occupancy(gpu: Gpu, threads: int, registers: int, scratchpad_bytes: int) -> default.Occupancy:
    fit = default.occupancy(gpu, threads, registers, scratchpad_bytes)
    return replace(fit, ctas=-(-fit.ctas // 2))
