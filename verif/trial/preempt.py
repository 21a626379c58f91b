"""Trial tenant of *limits* that preempts: every 400 cycles the next of an SM's CTAs is to leave, and resumes later.

Where contexts take time, every 4000 cycles.
"""

from __future__ import annotations

from lockstep.models.core.frame import CTA_RESUMED, CTA_SAVED
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_CTAS

PERIOD = 400

STATE = record(
    [
        ("limit", "i8"),
        ("begin", "i8"),  # cycle in which the SM's first CTA was seen
        ("due", "i8"),  # cycle of the next preemption
        ("last", "i8"),  # place of the CTA that was told last
        ("left", "i8"),
        ("resumed", "i8"),
    ]
)


@jit
def update(state, sm):
    limit = sm.frame.limit[state.limit]
    now = i64(sm.frame.now)
    limit.ctas = NEVER
    if sm.ctas_resident == 0 or limit.leave != 0:
        return NEVER
    period = PERIOD if sm.frame.context.step == 0 else 10 * PERIOD
    if state.due == 0:
        state.begin = now
        state.due = now + period
    if now >= state.due:
        state.due = now + period
        place = (i64(state.last) + 1) % MAX_CTAS
        while sm.ctas[place].live == 0:
            place = (place + 1) % MAX_CTAS
        state.last = place
        limit.leave = i64(1) << place
    return i64(state.due)


@jit
def hear(state, sm):
    events = sm.frame.events
    if events.kind == CTA_SAVED:
        state.left += 1
        limit = sm.frame.limit[state.limit]
        limit.leave = 0
        limit.wake = min(i64(limit.wake), i64(events.now) + 1)
    elif events.kind == CTA_RESUMED:
        state.resumed += 1
    return i64(0)


TENANTS = {"limits": slots(STATE, SM, update=update), "events": slots(STATE, SM, hear=hear)}
