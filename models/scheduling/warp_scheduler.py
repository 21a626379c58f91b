"""Golden model of ``rtl/scheduling/warp_scheduler.py``, which documents the policies."""

from __future__ import annotations

from lockstep.models.blocks import FOREVER, ports
from lockstep.models.jit import ctz, i64, inline, jit, pointer_to, popcount, record, slot
from lockstep.spec.parameters import MAX_WARPS, SCHEDULERS

LRR, GTO, OLDEST, TWO_LEVEL = (SCHEDULERS.index(name) for name in ("lrr", "gto", "oldest", "two-level"))

PORTS = ports("scheduling.warp_scheduler")
STATE = record(
    [
        ("live", "i8"),  # slots between start and finish
        ("active", "i8"),  # two-level: the active set, kept while another policy is chosen
        ("last", "i8"),  # slot granted last
        ("greedy", "i8"),  # ``last`` still holds the warp that was granted
        ("promoted", "i8"),  # two-level: slot that became active last
        ("warps", "i8"),  # live warps, and their slots from the oldest to the youngest
        ("order", "u1", (MAX_WARPS,)),
    ]
)


@jit
def reset(state, io):
    """The state after reset. There are no registered outputs."""
    state.live = 0
    state.active = 0
    state.last = MAX_WARPS - 1
    state.greedy = 0
    state.promoted = MAX_WARPS - 1
    state.warps = 0
    for k in range(MAX_WARPS):
        state.order[k] = 0


@inline
def _next(mask, last):
    """The first slot of a mask, not empty, after ``last``, circularly."""
    later = mask & i64(i64(-2) << last)
    return ctz(later if later != 0 else mask)


@inline
def _oldest(state, mask):
    """The oldest slot of a mask of live slots, not empty."""
    k = 0
    while (mask >> i64(state.order[k])) & 1 == 0:
        k += 1
    return i64(state.order[k])


@jit
def comb(state, io):
    """The grant, from this cycle's requests."""
    policy = io.i.policy
    candidates = i64(io.i.request) & state.live
    if policy == TWO_LEVEL:
        candidates &= state.active
    if candidates == 0:
        io.c.grant.valid = 0
        io.c.grant.warp = 0
        return
    if policy == LRR or policy == TWO_LEVEL:
        warp = _next(candidates, state.last)
    elif policy == GTO and state.greedy != 0 and (candidates >> state.last) & 1 != 0:
        warp = state.last
    else:
        warp = _oldest(state, candidates)
    io.c.grant.valid = 1
    io.c.grant.warp = warp


@inline
def _activated(state, io):
    """Two-level: the pending warp that becomes active at the end of this cycle, and -1 for none."""
    staying = state.live & ~i64(io.i.start) & ~i64(io.i.finish) & ~i64(io.i.long_latency)
    pending = staying & ~state.active
    if pending == 0 or popcount(staying & state.active) >= i64(io.i.active_warps):
        return i64(-1)
    return _next(pending, state.promoted)


@jit
def _age(state, start, gone):
    """Take slots out of the order of age and append those that start."""
    count = 0
    for k in range(state.warps):
        slot = i64(state.order[k])
        if (gone >> slot) & 1 == 0:
            state.order[count] = slot
            count += 1
    while start != 0:
        state.order[count] = ctz(start)
        start = i64(start & start - 1)
        count += 1
    state.warps = count


@jit
def step(state, io):
    """One clock edge, after :func:`comb`."""
    if io.c.grant.valid != 0:
        state.last = i64(io.c.grant.warp)
        state.greedy = 1
    start, finish = i64(io.i.start), i64(io.i.finish)
    if io.i.policy == TWO_LEVEL:
        warp = _activated(state, io)
        state.active &= state.live & ~start & ~finish & ~i64(io.i.long_latency)
        if warp >= 0:
            state.active = i64(state.active | i64(1) << warp)
            state.promoted = warp
    if start | finish != 0:
        if (start >> state.last) & 1 != 0:
            state.greedy = 0
        _age(state, start, start | finish)
        state.live = state.live & ~finish | start


@jit
def idle(state, io):
    """Steps, after :func:`comb` and with these inputs held, that change nothing."""
    if io.c.grant.valid != 0 or io.i.start | io.i.finish != 0:
        return i64(0)
    if io.i.policy == TWO_LEVEL and (state.active & i64(io.i.long_latency) != 0 or _activated(state, io) >= 0):
        return i64(0)
    return i64(FOREVER)


at_state, at_ports = pointer_to(STATE), pointer_to(PORTS)


@slot
def comb_slot(state, io):
    comb(at_state(state), at_ports(io))
    return i64(0)


@slot
def step_slot(state, io):
    step(at_state(state), at_ports(io))
    return i64(0)


@slot
def idle_slot(state, io):
    return idle(at_state(state), at_ports(io))


@slot
def skip_slot(state, steps):
    return i64(0)


SLOTS = {"comb": comb_slot, "step": step_slot, "idle": idle_slot, "skip": skip_slot}
