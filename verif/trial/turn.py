"""Trial tenant of *claims* and *events*: of each CTA, a warp issues only when all with a lower number have ended.

Who is refused waits until the warp before it has ended.
"""

from __future__ import annotations

from lockstep.models.core.frame import CTA_START, WARP_END
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots
from lockstep.spec.parameters import MAX_CTAS, MAX_SCHEDULERS

STATE = record([("claim", "i8"), ("turn", "i8", (MAX_CTAS,))])


@jit
def ask(state, sm):
    refused = i64(0)
    for k in range(MAX_SCHEDULERS):
        grant = sm.frame.grants[k]
        if grant.valid != 0:
            warp = sm.warps[grant.slot]
            if warp.index != state.turn[warp.cta]:
                refused |= i64(1) << k
    return refused


@jit
def commit(state, sm):
    claim = sm.frame.claim[state.claim]
    for k in range(MAX_SCHEDULERS):
        grant = sm.frame.grants[k]
        if grant.valid != 0:
            warp = sm.warps[grant.slot]
            if warp.index != state.turn[warp.cta]:
                claim.waiting |= i64(1) << i64(grant.slot)
    return i64(0)


@jit
def hear(state, sm):
    events = sm.frame.events
    cta = i64(events.cta)
    if events.kind == CTA_START:
        state.turn[cta] = 0
    elif events.kind == WARP_END:
        state.turn[cta] += 1
        waiting = i64(sm.frame.claim[state.claim].waiting)
        slot = i64(events.slot) + 1
        if slot < 64 and (waiting >> slot) & 1 != 0 and sm.warps[slot].cta == cta:
            sm.frame.claim[state.claim].waiting = waiting & ~(i64(1) << slot)
    return i64(0)


TENANTS = {
    "claims": slots(STATE, SM, ask=ask, commit=commit),
    "events": slots(STATE, SM, hear=hear),
}
