"""DYNCTA on an SM: what fills the frame slots around ``cta_limiter``.

The block sees every cycle: when CTAs come and go, and whether the cycle counts for C_idle or C_mem. Its clock edges are
made when the cycles are counted, so its outputs are those of the cycle that follows. Its limit is the SM's; the warps
of the CTAs that it pauses are the lowest class of the schedulers.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.counters import memory_blocked
from lockstep.models.core.frame import CTA_END, CTA_RESUMED, CTA_SAVED, CTA_START
from lockstep.models.core.state import ALL_WAIT, EMPTY, IDLE, ISSUED, LAUNCH, SM
from lockstep.models.dyncta import cta_limiter
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import (
    addressof,
    call,
    ctz,
    i64,
    inline,
    jit,
    pointer_to,
    popcount,
    record,
    slots,
    without_lowest,
)
from lockstep.models.time import NEVER
from lockstep.spec.dyncta.parameters import LIMITER, Dyncta
from lockstep.spec.parameters import layout

COUNTS = record(
    [
        ("raised", "i8"),
        ("lowered", "i8"),
        ("limits", "i8"),  # x cycles with CTAs
        ("paused", "i8"),  # x cycles
        ("paused_cycles", "i8"),
        ("idle_cycles", "i8"),
        ("memory_cycles", "i8"),
        ("out_of_range", "i8"),
        ("wrongly_paused", "i8"),
    ]
)
STATE = record(
    [
        ("dyncta", layout(Dyncta)),
        ("counts", COUNTS),
        ("gauges", record([("limit", "i8"), ("paused", "i8")])),
        ("limit", "i8"),
        ("order", "i8"),
        ("monitor", "i8"),
        ("began", "i8"),
        ("here", "i8"),  # CTAs, as the block knows by now
        ("cta_limiter", instance(LIMITER, cta_limiter.STATE)),
    ]
)

at_launch = pointer_to(LAUNCH)


@jit
def hear(state, sm):
    """A CTA comes or goes in this cycle."""
    events = sm.frame.events
    kind = i64(events.kind)
    inputs = state.cta_limiter.io.i
    if kind == CTA_START or kind == CTA_RESUMED:
        inputs.start |= i64(1) << events.cta
    elif kind == CTA_END or kind == CTA_SAVED:
        inputs.finish |= i64(1) << events.cta
    else:
        return i64(0)
    sm.frame.monitor[state.monitor].wake = i64(events.now) + 1
    return i64(0)


@jit
def see(state, sm):
    """Clock the block for equal cycles; those of an issue that is under way are in neither of the counters."""
    seen, counts = sm.frame.seen, state.counts
    cycles, issuing = i64(seen.cycles), i64(seen.issuing)
    _clock(state, sm, issuing, i64(0), i64(0))
    idle = memory = i64(0)
    if seen.outcome != ISSUED and seen.outcome != EMPTY:
        waits, blocked = sm.memory_bound == ALL_WAIT, memory_blocked(sm)
        memory = i64(waits or (blocked and state.dyncta.blocked != 0))
        idle = i64(seen.outcome == IDLE and not waits and not blocked)
    _clock(state, sm, cycles - issuing, idle, memory)
    counts.idle_cycles += idle * (cycles - issuing)
    counts.memory_cycles += memory * (cycles - issuing)
    io, binding = state.cta_limiter.io, state.cta_limiter.binding
    state.gauges.limit = io.o.limit
    state.gauges.paused = popcount(i64(io.o.paused))
    return i64(seen.first) + cycles + 1 + call(binding.idle, binding.handle, addressof(io))


@jit
def _clock(state, sm, cycles, idle, memory):
    """Some clock edges; CTAs have come and gone in the first of the cycles."""
    io, binding = state.cta_limiter.io, state.cta_limiter.binding
    io.i.idle = idle
    io.i.memory = memory
    different = i64(0)
    while cycles > 0:
        different |= _edge(state, sm)
        passed = min(call(binding.idle, binding.handle, addressof(io)), cycles - 1)
        if passed > 0:
            call(binding.skip, binding.handle, passed)
            _note(state, io, passed)
        cycles -= 1 + passed
    if different != 0:
        sm.fault = Fault.DIFFERENCE


@inline
def _edge(state, sm):
    """One clock edge, and what it must leave behind."""
    io, binding, counts = state.cta_limiter.io, state.cta_limiter.binding, state.counts
    _note(state, io, i64(1))
    before = i64(io.o.limit)
    state.here += popcount(i64(io.i.start)) - popcount(i64(io.i.finish))
    different = call(binding.step, binding.handle, addressof(io))
    io.i.start = 0
    io.i.finish = 0
    limit = i64(io.o.limit)
    counts.raised += i64(limit > before)
    counts.lowered += i64(limit < before)
    counts.out_of_range += i64(limit < 1 or limit > at_launch(i64(sm.launch)).grids[0].per_sm)
    counts.wrongly_paused += i64(popcount(i64(io.o.paused)) != max(i64(state.here) - limit, i64(0)))
    return different


@inline
def _note(state, io, cycles):
    """Count cycles for the statistics, by the outputs that they had."""
    counts, paused = state.counts, popcount(i64(io.o.paused))
    counts.paused += paused * cycles
    counts.paused_cycles += i64(paused != 0) * cycles
    counts.limits += i64(state.here != 0) * i64(io.o.limit) * cycles


@jit
def update(state, sm):
    """The limit of this cycle; in the first one of a launch, the block sees the launch too."""
    io, binding = state.cta_limiter.io, state.cta_limiter.binding
    if state.began == 0:
        state.began = 1
        io.i.most = at_launch(i64(sm.launch)).grids[0].per_sm
        io.i.launch = 1
        if call(binding.step, binding.handle, addressof(io)) != 0:
            sm.fault = Fault.DIFFERENCE
        io.i.launch = 0
        state.gauges.limit = io.o.limit
    sm.frame.limit[state.limit].ctas = io.o.limit
    return NEVER


@jit
def order(state, sm):
    """The warps of paused CTAs come last."""
    warps, places = i64(0), i64(state.cta_limiter.io.o.paused)
    while places != 0:
        warps |= i64(sm.ctas[ctz(places)].slots)
        places = without_lowest(places)
    sm.frame.order[state.order].classes.paused = warps
    return NEVER


TENANTS = {
    "limits": slots(STATE, SM, update=update),
    "order": slots(STATE, SM, update=order),
    "events": slots(STATE, SM, hear=hear),
    "monitors": slots(STATE, SM, see=see),
}
