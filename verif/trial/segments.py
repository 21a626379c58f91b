"""Trial of the two segments of a warp's registers and of a CTA's scratchpad: what is not their own lies elsewhere.

It fills the frame slot *events* and changes the records of warps and CTAs when they start, as a tenant that shares
registers or scratchpad does. Nothing is shared: each has a place of its own, so results and cycles stay.
"""

from __future__ import annotations

from lockstep.models.core.frame import CTA_START, WARP_START
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.execution.isa import LANES
from lockstep.models.execution.written import poison
from lockstep.models.jit import addressof, i64, jit, pointer_to, record, slots
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS

OWN_REGISTERS = 3  # so the halves of a register pair of 64 bits lie apart
OWN_BYTES = 64
REGISTERS = 64  # a warp with more keeps them all
BYTES = 1 << 15  # likewise a CTA

WARP = record([("words", "u4", (REGISTERS * LANES,))])
CTA = record([("words", "u4", (BYTES // 4,)), ("marks", "u4", (BYTES // 4,))])
STATE = record([("warps", WARP, (MAX_WARPS,)), ("ctas", CTA, (MAX_CTAS,))])

at_launch = pointer_to(LAUNCH)


@jit
def hear(state, sm):
    events = sm.frame.events
    cta = sm.ctas[events.cta]
    grid = at_launch(i64(sm.launch)).grids[cta.grid]
    if events.kind == CTA_START and grid.shared_bytes <= BYTES:
        cta.own_shared = OWN_BYTES
        cta.pair_shared = addressof(state.ctas[events.cta])
        cta.pair_marks = BYTES
        poison(i64(cta.pair_shared), BYTES, BYTES)
    if events.kind == WARP_START and grid.registers <= REGISTERS:
        warp = sm.warps[events.slot]
        warp.own_registers = OWN_REGISTERS
        warp.pair_regs = addressof(state.warps[events.slot])
    return i64(0)


TENANTS = {"events": slots(STATE, SM, hear=hear)}
