"""Counts the registers that the instructions of an SM name in a window of time."""

from __future__ import annotations

from lockstep.models.core.frame import ISSUE
from lockstep.models.core.state import SM, instruction_of
from lockstep.models.jit import i64, jit, popcount, record, slots
from lockstep.spec.parameters import MAX_WARPS, layout
from lockstep.spec.passes import MASK_WORDS
from lockstep.spec.working_set import WorkingSet

STATE = record(
    [
        ("working_set", layout(WorkingSet)),
        ("counts", record([("registers", "i8")])),
        ("window", "i8"),  # the number of the one that ``used`` is about
        ("used", "u8", (MAX_WARPS, MASK_WORDS)),
    ]
)


@jit
def hear(state, sm):
    """An instruction issues."""
    events = sm.frame.events
    if events.kind != ISSUE:
        return i64(0)
    window = i64(events.now) // i64(state.working_set.window)
    if window != state.window:
        state.window = window
        for slot in range(MAX_WARPS):
            for k in range(MASK_WORDS):
                state.used[slot, k] = 0
    instruction = instruction_of(sm.warps[events.slot], i64(events.pc))
    for k in range(MASK_WORDS):
        named = i64(instruction.need[k])
        state.counts.registers += popcount(named & ~i64(state.used[events.slot, k]))
        state.used[events.slot, k] |= named
    return i64(0)


TENANTS = {"events": slots(STATE, SM, hear=hear)}
