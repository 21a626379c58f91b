"""Trial tenant of the frame slot *order*: warps in even slots are secondary."""

from __future__ import annotations

from lockstep.models.core.state import SM
from lockstep.models.jit import jit, record, slots
from lockstep.models.time import NEVER

STATE = record([("order", "i8")])
EVEN = 0x5555_5555_5555_5555


@jit
def update(state, sm):
    sm.frame.order[state.order].classes.secondary = EVEN
    return NEVER


TENANTS = {"order": slots(STATE, SM, update=update)}
