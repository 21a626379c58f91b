"""The plan of pairs of CTAs that share: equations 1 to 4 of Jatala et al., section 4.1, in integers."""

from __future__ import annotations

from dataclasses import replace

from lockstep.models import occupancy as default
from lockstep.models.occupancy import Occupancy
from lockstep.spec.parameters import Gpu
from lockstep.spec.sharing.parameters import SHARED

SEGMENT = 32  # bytes; a CTA's own scratchpad is a multiple of them


def occupancy(gpu: Gpu, threads: int, registers: int, scratchpad_bytes: int) -> Occupancy:
    """As :func:`lockstep.models.occupancy.occupancy`, with ``pairs`` of CTAs that share.

    Of R registers, of which a CTA needs Rtb, an SM holds g = R // Rtb CTAs that share nothing. A pair takes Rtb more
    than one of them, less the part that it shares: so S = 100 (R - g Rtb) // ((100 - percent) Rtb) of them can be
    pairs, and g make progress as before. What is not shared limits all CTAs together. With two shared resources, g and
    S are the smaller ones.
    """
    fit = default.occupancy(gpu, threads, registers, scratchpad_bytes)
    needs = {
        "registers": (gpu.core.registers, fit.registers_per_warp * fit.warps_per_cta),
        "scratchpad": (gpu.scratchpad.bytes, fit.scratchpad_bytes),
    }
    named = [resource for mechanism, resource in SHARED.items() if mechanism in gpu.mechanisms]
    shared = {name: needs[name] for name in named if name in fit.limits}
    if not shared or fit.ctas == 0:
        return fit
    own = 100 - gpu.sections["sharing"].percent
    alone = min(fit.limits[name] for name in shared)
    most = {name: min(100 * (have - alone * need) // (own * need), alone) for name, (have, need) in shared.items()}
    others = min(limit for name, limit in fit.limits.items() if name not in shared)
    pairs = max(min(*most.values(), others - alone), 0)
    limits = fit.limits | {name: alone + pairs_of for name, pairs_of in most.items()}
    ctas = min(alone, others) + pairs
    return replace(
        fit,
        ctas=ctas,
        limits=limits,
        limited_by=tuple(name for name, limit in limits.items() if limit == min(limits.values())),
        pairs=pairs,
        own_registers=registers * own // 100 if "registers" in shared else registers,
        own_scratchpad_bytes=_own_bytes(fit, own) if "scratchpad" in shared else fit.scratchpad_bytes,
    )


def _own_bytes(fit: Occupancy, own: int) -> int:
    return fit.scratchpad_bytes * own // 100 // SEGMENT * SEGMENT
