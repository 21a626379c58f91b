"""Trial tenant of *monitors* for the whole GPU: every thousand cycles, all SMs must have counted up to the same one."""

from __future__ import annotations

from lockstep.models.core.state import SM
from lockstep.models.dispatching import RUN
from lockstep.models.jit import i64, jit, pointer_to, record, slots

BEAT = 1000  # cycles

STATE = record([("beats", "i8"), ("late", "i8"), ("uneven", "i8"), ("busy", "i8")])

at_sm = pointer_to(SM)


@jit
def watch(state, run):
    now = i64(run.now)
    if now % BEAT != 0:
        return now + BEAT - now % BEAT
    state.beats += 1
    for k in range(run.sms):
        sm = at_sm(i64(run.sm) + k * SM_BYTES)
        state.uneven += sm.last != now
        state.busy += sm.counters.cycles
    return now + BEAT


SM_BYTES = SM.itemsize
TENANTS = {"monitors": slots(STATE, RUN, watch=watch)}
