"""A register file hierarchy in the SM's frame: it counts where the registers of each instruction that issues are."""

from __future__ import annotations

from lockstep.models.core.frame import ISSUE
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots, words_i16
from lockstep.spec.rfh import ACCESSES, LEVELS

COUNTS = [f"{level}_{access}" for access in ACCESSES for level in LEVELS]
STATE = record(
    [("counts", record([(name, "i8") for name in COUNTS])), ("tables", record([("hierarchy_accesses", "i8")]))]
)
ACCESSES_OF_ONE = len(COUNTS)


@jit
def hear(state, sm):
    """An instruction issues."""
    events = sm.frame.events
    if events.kind == ISSUE:
        of = words_i16(i64(state.tables.hierarchy_accesses) + 2 * ACCESSES_OF_ONE * i64(events.pc), ACCESSES_OF_ONE)
        counts = state.counts
        counts.last_reads += of[0]
        counts.small_reads += of[1]
        counts.main_reads += of[2]
        counts.last_writes += of[3]
        counts.small_writes += of[4]
        counts.main_writes += of[5]
    return i64(0)


TENANTS = {"events": slots(STATE, SM, hear=hear)}
