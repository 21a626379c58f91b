"""Trial tenant of the frame slot *gates*: holds back the warps in odd slots in odd cycles."""

from __future__ import annotations

from lockstep.models.core.frame import KINDS
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots

STATE = record([("gate", "i8")])
ODD = -0x5555_5555_5555_5556  # the odd ones of 64 bits


@jit
def update(state, sm):
    gate = sm.frame.gate[state.gate]
    now = i64(sm.frame.now)
    for kind in range(KINDS):
        gate.closed[kind] = ODD if now & 1 else 0
    return now + 1


TENANTS = {"gates": slots(STATE, SM, update=update)}
