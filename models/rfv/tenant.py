"""A renamed register file in the SM's frame: an instruction issues if what it writes has places, or gets them.

A place is taken when the instruction that writes the register issues, and free from the issue of the last one that
needs it. The SM's oldest CTA takes any place that is free; the others leave, of the places that are free or its own, as
many as a whole CTA may need at most. So it never waits for another CTA, and when it has ended, as many are there for
the next one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lockstep.models.core.frame import CTA_END, CTA_START, WARP_END
from lockstep.models.core.state import SM
from lockstep.models.jit import (
    ctz,
    i64,
    inline,
    jit,
    pointer_to,
    popcount,
    record,
    slots,
    without_lowest,
    words_i32,
    words_u64,
)
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, LANES, MAX_CTAS, MAX_SCHEDULERS, MAX_WARPS, layout
from lockstep.spec.passes import MASK_WORDS
from lockstep.spec.rfv import Rfv

STATE = record(
    [
        ("rfv", layout(Rfv)),
        ("counts", record([("refusals", "i8"), ("taken", "i8"), ("freed", "i8"), ("held", "i8"), ("beyond", "i8")])),
        ("gauges", record([("held", "i8")])),
        ("tables", record([(f"renaming_{name}", "i8") for name in ("before", "after", "writes", "most")])),
        ("claim", "i8"),
        ("monitor", "i8"),
        ("refused", "i8"),  # schedulers, by us, in this cycle
        ("taken", "i8"),  # places
        ("ctas", "i8"),  # that have started
        ("number", "i8", (MAX_CTAS,)),  # of each, in the order in which they came
        ("held", "i8", (MAX_WARPS,)),  # places of each warp ...
        ("has", "u8", (MAX_WARPS, MASK_WORDS)),  # ... and of which registers
    ]
)

at_config = pointer_to(CONFIG)


@inline
def _mask(table, pc):
    return words_u64(table + 8 * MASK_WORDS * pc, MASK_WORDS)


@inline
def _places(state, sm):
    return i64(at_config(i64(sm.config)).core.registers) * i64(state.rfv.percent) // (100 * LANES)


@inline
def _oldest(state, sm):
    """The CTA slot of the oldest CTA."""
    oldest = i64(-1)
    slots = i64(sm.taken)
    while slots != 0:
        cta = i64(sm.warps[ctz(slots)].cta)
        slots &= ~i64(sm.ctas[cta].slots)
        if oldest < 0 or state.number[cta] < state.number[oldest]:
            oldest = cta
    return oldest


@inline
def _owed(state, sm, oldest):
    """Places that the oldest CTA may still need, as if all of its warps were there: so the next one has them, too."""
    most, owed = i64(words_i32(i64(state.tables.renaming_most), 1)[0]), i64(0)
    slots = i64(sm.ctas[oldest].slots)
    while slots != 0:
        owed += most - state.held[ctz(slots)]
        slots = without_lowest(slots)
    return owed


@inline
def _needs(state, slot, pc):
    """Places that an instruction takes."""
    writes, before = _mask(i64(state.tables.renaming_writes), pc), _mask(i64(state.tables.renaming_before), pc)
    needs = i64(0)
    for k in range(MASK_WORDS):
        needs += popcount(i64(writes[k] & ~(state.has[slot, k] & before[k])))
    return needs


@jit
def ask(state, sm):
    """Refuse what gets no place, beside all that is granted before it in this cycle."""
    free = _places(state, sm) - i64(state.taken)
    oldest, owed, refused = i64(-1), i64(-1), i64(0)
    for k in range(MAX_SCHEDULERS):
        grant = sm.frame.grants[k]
        if grant.valid == 0:
            continue
        needs = i64(_needs(state, i64(grant.slot), i64(grant.pc)))
        if needs == 0:
            continue
        if owed < 0:
            oldest = i64(_oldest(state, sm))
            owed = i64(_owed(state, sm, oldest))
        own = sm.warps[grant.slot].cta == oldest
        if not own and free - needs < owed:
            refused |= i64(1) << k
            continue
        free -= needs
        owed -= needs if own else 0
    state.refused = refused
    return refused


@jit
def commit(state, sm):
    """Take places for what issues, and free those that nobody needs any more."""
    claim, before = sm.frame.claim[state.claim], i64(state.taken)
    for k in range(MAX_SCHEDULERS):
        grant = sm.frame.grants[k]
        if grant.valid == 0:
            continue
        slot = i64(grant.slot)
        if grant.refused == 0:
            _rename(state, slot, i64(grant.pc))
        elif (i64(state.refused) >> k) & 1 != 0:
            state.counts.refusals += 1
            claim.waiting |= i64(1) << slot
    state.gauges.held = state.taken
    if state.taken < before:
        claim.waiting = 0
    return i64(0)


@inline
def _rename(state, slot, pc):
    writes, before = _mask(i64(state.tables.renaming_writes), pc), _mask(i64(state.tables.renaming_before), pc)
    after = _mask(i64(state.tables.renaming_after), pc)
    for k in range(MASK_WORDS):
        had = state.has[slot, k]
        taken = (had & before[k]) | writes[k]
        kept = taken & after[k]
        state.counts.taken += popcount(i64(taken & ~had))
        state.counts.freed += popcount(i64((had | taken) & ~kept))
        more = popcount(i64(kept)) - popcount(i64(had))
        state.taken += more
        state.held[slot] += more
        state.has[slot, k] = kept


@jit
def hear(state, sm):
    """CTAs and warps come and go."""
    events = sm.frame.events
    kind, slot = i64(events.kind), i64(events.slot)
    if kind == CTA_START:
        state.number[events.cta] = state.ctas
        state.ctas += 1
    elif kind == CTA_END:
        sm.frame.claim[state.claim].waiting = 0
    elif kind == WARP_END:
        state.counts.freed += state.held[slot]
        state.taken -= state.held[slot]
        state.held[slot] = 0
        for k in range(MASK_WORDS):
            state.has[slot, k] = 0
        state.gauges.held = state.taken
        sm.frame.claim[state.claim].waiting = 0
    return i64(0)


@jit
def see(state, sm):
    """Count the places, for the mean, and those that are not there."""
    cycles = i64(sm.frame.seen.cycles)
    state.counts.held += i64(state.taken) * cycles
    state.counts.beyond += max(i64(state.taken) - _places(state, sm), 0) * cycles
    return i64(NEVER)


def waits(state: np.void, sm: np.void, slot: int) -> str:
    """See :data:`lockstep.models.tenants.WAITS`."""
    waiting = int(sm["frame"]["claim"][int(state["claim"])]["waiting"])
    return "a place in the register file" if waiting >> slot & 1 else ""


TENANTS: dict[str, dict[str, Any]] = {
    "claims": slots(STATE, SM, ask=ask, commit=commit),
    "events": slots(STATE, SM, hear=hear),
    "monitors": slots(STATE, SM, see=see),
}
