"""Trial of a kernel's tables: counts the register regions that warps start, as ``regions.first`` says."""

from __future__ import annotations

from lockstep.models.core.frame import ISSUE
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots, words_i32

STATE = record([("started", "i8"), ("tables", record([("regions_first", "i8")]))])


@jit
def hear(state, sm):
    events = sm.frame.events
    if events.kind == ISSUE:
        state.started += i64(words_i32(i64(state.tables.regions_first) + 4 * i64(events.pc), 1)[0] >= 0)
    return i64(0)


TENANTS = {"events": slots(STATE, SM, hear=hear)}
