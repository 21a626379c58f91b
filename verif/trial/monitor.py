"""Trial tenant of *monitors* and *events*: counts what it sees in windows of seven cycles, and all events by kind."""

from __future__ import annotations

from lockstep.models.core.frame import ISSUE
from lockstep.models.core.state import EMPTY, ISSUED, SM
from lockstep.models.jit import i64, jit, popcount, record, slots

ODD = -0x5555_5555_5555_5556  # the odd ones of 64 slots
WINDOW = 7
WINDOWS = 4096  # kept, in a ring
KINDS_OF_EVENTS = 13

STATE = record(
    [
        ("cycles", "i8"),
        ("busy", "i8"),  # cycles with a CTA
        ("issued", "i8"),
        ("ready", "i8"),  # warps, summed over the cycles
        ("waiting", "i8"),
        ("windows", "i8"),  # that have ended
        ("late", "i8"),  # cycles of a window that were told after its end
        ("busy_of", "i2", (WINDOWS,)),
        ("ready_of", "i2", (WINDOWS,)),
        ("passed_over", "i8"),  # cycles in which a warp in an even slot issued while one in an odd slot could have
        ("events", "i8", (KINDS_OF_EVENTS,)),
        ("lanes", "i8"),  # that issued
        ("odd_in_odd", "i8"),  # issues of warps in odd slots in odd cycles
        ("last", "i8"),  # slot that issued last
        ("turns", "i8"),  # how often another one did
    ]
)


@jit
def see(state, sm):
    seen = sm.frame.seen
    cycles = i64(seen.cycles)
    first = i64(seen.first)
    window = first // WINDOW
    if (first + cycles - 1) // WINDOW != window:
        state.late += 1
    state.cycles += cycles
    state.ready += popcount(i64(seen.ready)) * cycles
    state.waiting += popcount(i64(seen.waiting)) * cycles
    if seen.outcome != EMPTY:
        state.busy += cycles
        state.busy_of[window % WINDOWS] += cycles
    state.ready_of[window % WINDOWS] += popcount(i64(seen.ready)) * cycles
    if seen.outcome == ISSUED:
        state.issued += cycles
    others = i64(seen.ready) & ~i64(seen.issued) & ~i64(seen.held) & ODD
    if i64(seen.issued) & ~i64(ODD) != 0 and others != 0:
        state.passed_over += cycles
    following = first + cycles
    if following % WINDOW == 0:
        state.windows += 1
    return following + WINDOW - following % WINDOW


@jit
def hear(state, sm):
    events = sm.frame.events
    state.events[events.kind] += 1
    if events.kind == ISSUE:
        slot = i64(events.slot)
        state.lanes += popcount(i64(events.lanes))
        state.odd_in_odd += slot & i64(events.now) & 1
        state.turns += slot != state.last
        state.last = slot
    return i64(0)


TENANTS = {
    "monitors": slots(STATE, SM, see=see),
    "events": slots(STATE, SM, hear=hear),
}
