"""Preemption in the SM's frame: which CTAs are to leave and when they come back, and the way of their contexts.

One CTA at a time is under way in an SM (``phase``). Of those that are to leave and have drained, the one assigned last
goes first. Its context is packed, and its lines are stored one after the other as the L1 takes them, past the L1's
lines; when it has accepted the last, the CTA is off. It then waits in the SM's queue. One that comes back claims room
first, and loads its lines as they were stored; when the last has come, its warps go on. To leave goes before to return.

Of its own accord, an SM gives up CTAs when for long enough none has been out. While CTAs of a grid wait, no new one
of it starts in this SM. When the oldest of a grid may come back, none of any grid does until it has its room: first
those are awaited for which a dispatcher has found room already.
"""

from __future__ import annotations

from typing import Any

from lockstep.models.core.context import (
    claim,
    context_address,
    context_of,
    pack,
    put_on,
    staging_of,
    take_off,
)
from lockstep.models.core.frame import closed_grids
from lockstep.models.core.placement import DISPATCHING, copy_words, fits_beside
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.execution.written import poison
from lockstep.models.jit import assign, ctz, i64, inline, jit, pointer_to, record, slots, without_lowest
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory.l1 import LOAD_BYPASS, STORE
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, MAX_CTAS, MAX_GRIDS, layout
from lockstep.spec.preemption import CONTEXTS, Preemption

IDLE, OUT, IN = range(3)
ALL_GRIDS = (1 << MAX_GRIDS) - 1
CACHED = CONTEXTS.index("l2")

ROW = record([("cycle", "i8"), ("sm", "i8"), ("ctas", "i8"), ("back", "i8")])
"""What a user asks for: from a cycle on an SM gives up its last CTAs, until another cycle. The last row's is NEVER."""

WAITING = record(
    [
        ("grid", "i8"),
        ("home", "i8"),
        ("bytes", "i8"),  # of the context
        ("due", "i8"),  # cycle from which it may come back
    ]
)

STATE = record(
    [
        ("preemption", layout(Preemption)),
        (
            "counts",
            record(
                [
                    ("resumed", "i8"),
                    ("lines_written", "i8"),
                    ("lines_read", "i8"),
                    ("out_cycles", "i8"),
                    ("in_cycles", "i8"),
                ]
            ),
        ),
        ("given", record([("context_schedule", "i8")])),  # host address of ROW
        ("limit", "i8"),
        ("client", "i8"),
        ("row", "i8"),  # the next one
        ("rested", "i8"),  # the last cycle in which a CTA came back, or none was there that could leave
        ("leaver", "i8", (MAX_CTAS,)),  # by place: who it is that is to leave (``assigned``) ...
        ("due", "i8", (MAX_CTAS,)),  # ... and when it may come back
        ("phase", "i8"),
        ("since", "i8"),  # cycle
        ("place", "i8"),  # of the CTA under way
        ("moved", WAITING),  # it
        ("staging", "i8"),  # host address: what leaves the SM, or has come back
        ("context", "i8"),  # host address: what is in memory ...
        ("address", "i8"),  # ... and its device address
        ("sent", "i8"),  # bytes that the L1 has accepted, ...
        ("come", "i8"),  # ... and answered
        ("claims", "i8"),  # cycle from which one that returns may claim its room; 0: none does
        ("waiting", "i8"),  # CTAs in the queue, the oldest first
        ("queue", WAITING, (MAX_GRIDS * MAX_CTAS,)),
    ]
)

at_launch, at_config, _row_at = pointer_to(LAUNCH), pointer_to(CONFIG), pointer_to(ROW)
ROW_BYTES = ROW.itemsize


# ------------------------------------------------------------------------------------------------------ who is to leave


@jit
def update(state, sm):
    """Choose those who are to leave from this cycle on."""
    limit = sm.frame.limit[state.limit]
    now, before = i64(sm.frame.now), i64(limit.leave)
    limit.ctas = NEVER
    _forget_ended(state, sm, limit)
    wake = i64(NEVER)
    if state.given.context_schedule != 0:
        wake = _follow(state, sm, limit, now)
    if sm.frame.context.away != 0:
        _leave_to_others(state, sm, limit, i64(sm.frame.context.away), now)
    if state.preemption.every != 0 and state.phase == IDLE and limit.leave | state.waiting == 0:
        if now >= state.rested + state.preemption.every:
            state.rested = now
            _choose(state, sm, limit, i64(state.preemption.ctas), now + i64(state.preemption.away))
        wake = min(wake, i64(state.rested + state.preemption.every))
    return wake if limit.leave == before else now + 1


@jit
def _follow(state, sm, limit, now):
    """Do what the user wants by this cycle; returns when that is to be done next."""
    row = _row_at(i64(state.given.context_schedule) + i64(state.row) * ROW_BYTES)
    while row.cycle <= now:
        if row.sm == sm.index:
            _choose(state, sm, limit, i64(row.ctas), i64(row.back))
        state.row += 1
        row = _row_at(i64(state.given.context_schedule) + i64(state.row) * ROW_BYTES)
    return i64(row.cycle)


@jit
def _leave_to_others(state, sm, limit, away, now):
    """Tell all CTAs of some grids to leave; they may come back when it is their grids' turn."""
    for place in range(MAX_CTAS):
        cta = sm.ctas[place]
        if cta.live != 0 and (away >> i64(cta.grid)) & 1 != 0 and (limit.leave >> place) & 1 == 0:
            _tell(state, sm, limit, place, now)


@jit
def _forget_ended(state, sm, limit):
    """A CTA that has ended before it could leave is over."""
    leaving = i64(limit.leave)
    while leaving != 0:
        place = ctz(leaving)
        leaving = without_lowest(leaving)
        if sm.ctas[place].live == 0 or sm.ctas[place].assigned != state.leaver[place]:
            limit.leave &= ~(i64(1) << place)


@jit
def _choose(state, sm, limit, count, due):
    """Tell the CTAs that were assigned last to leave, of those that were not told yet."""
    for _ in range(count):
        place = _last(sm, ~i64(limit.leave))
        if place < 0:
            return
        _tell(state, sm, limit, place, due)


@inline
def _tell(state, sm, limit, place, due):
    """Tell a CTA to leave."""
    limit.leave |= i64(1) << place
    state.leaver[place] = sm.ctas[place].assigned
    state.due[place] = due


@jit
def _last(sm, places):
    """Of the CTAs in some places, where the one is that was assigned last; -1: there is none."""
    last = i64(-1)
    for place in range(MAX_CTAS):
        cta = sm.ctas[place]
        if cta.live != 0 and (places >> place) & 1 != 0:
            if last < 0 or cta.assigned > sm.ctas[last].assigned:
                last = i64(place)
    return last


# ------------------------------------------------------------------------------------------------- contexts, as a whole


@jit
def step(state, sm):
    """End what the L1 has done by now, and begin with the next CTA."""
    now, came, here = i64(sm.frame.now), i64(sm.assigned), i64(sm.ctas_resident)
    launch, config = at_launch(i64(sm.launch)), at_config(i64(sm.config))
    if state.phase == OUT and state.sent == state.moved.bytes:
        _is_off(state, sm, launch, config, now)
    elif state.phase == IN and state.come == state.moved.bytes:
        state.phase = IDLE
        state.counts.in_cycles += now - state.since
        state.counts.resumed += 1
        state.rested = now
        put_on(sm, launch, config, i64(state.place), i64(state.staging), now)
    wake = i64(NEVER) if state.rested != now else now + 1
    if state.phase == IDLE:
        place = _last(sm, i64(sm.frame.context.drained))
        if place >= 0:
            _begin_out(state, sm, launch, place, now)
        else:
            wake = min(wake, _return(state, sm, launch, config, now))
    _close(state, sm)
    sm.frame.context.busy = i64(state.phase != IDLE or (state.claims != 0 and now <= state.claims))
    return wake if sm.assigned == came and sm.ctas_resident == here else now + 1  # others see it then


@jit
def _begin_out(state, sm, launch, place, now):
    cta = sm.ctas[place]
    told = (i64(sm.frame.limit[state.limit].leave) >> place) & 1 != 0
    moved = state.moved
    moved.grid = cta.grid
    moved.home = cta.home
    moved.due = state.due[place] if told else now
    _begin(state, sm, launch.grids[moved.grid], OUT, place, now)
    moved.bytes = pack(sm, launch, place, i64(state.staging))
    sm.frame.context.moving = i64(1) << place


@jit
def _is_off(state, sm, launch, config, now):
    """The L1 has accepted the last line of a context."""
    place, limit = i64(state.place), sm.frame.limit[state.limit]
    state.phase = IDLE
    state.counts.out_cycles += now - state.since
    limit.leave &= ~(i64(1) << place)
    sm.frame.context.moving = 0
    sm.frame.context.drained &= ~(i64(1) << place)
    assign(state.queue[state.waiting], state.moved)
    state.waiting += 1
    take_off(sm, launch, config, place, now)


@jit
def _return(state, sm, launch, config, now):
    """Let the next CTA come back if it may and has room; returns when to look again."""
    wake, which = i64(NEVER), i64(-1)
    seen = i64(sm.frame.context.away | closed_grids(sm.frame))
    for k in range(state.waiting):
        waiting = state.queue[k]
        if (seen >> i64(waiting.grid)) & 1 == 0:
            seen |= i64(1) << i64(waiting.grid)
            if waiting.due > now:
                wake = min(wake, i64(waiting.due))
            elif which < 0:
                which = i64(k)
    if which < 0:
        state.claims = 0
        return wake
    if state.claims == 0:
        state.claims = now + DISPATCHING
    if now < state.claims or not _has_room(sm, launch, config, i64(state.queue[which].grid)):
        return max(now + 1, i64(state.claims))
    state.claims = 0
    moved = state.moved
    assign(moved, state.queue[which])
    state.waiting -= 1
    for k in range(which, state.waiting):
        assign(state.queue[k], state.queue[k + 1])
    place = claim(sm, launch, config, i64(moved.grid), i64(moved.home), now)
    _begin(state, sm, launch.grids[moved.grid], IN, place, now)
    poison(i64(state.staging), i64(moved.bytes), i64(0))
    return i64(NEVER)


@jit
def _has_room(sm, launch, config, grid):
    """Limits do not keep the only CTA of an SM away."""
    most = max(i64(sm.limit), 1)
    return sm.ctas_of[grid] < launch.grids[grid].per_sm and fits_beside(sm, launch, config, grid, most)


@jit
def _begin(state, sm, grid, phase, place, now):
    """A context begins to move: the L1 sees its first line in the next cycle."""
    home = i64(state.moved.home)
    state.phase = phase
    state.since = now
    state.place = place
    state.staging = staging_of(sm, grid)
    state.context = context_of(sm, grid, home)
    state.address = context_address(sm, grid, home, state.preemption.context == CACHED)
    state.sent = 0
    state.come = 0
    sm.lsu.clients.client[state.client].wake = now + 1


@jit
def _close(state, sm):
    """Say of which grids no new CTA may start here; the dispatchers see it in the next cycle."""
    out = i64(0)
    for k in range(state.waiting):
        out |= i64(1) << i64(state.queue[k].grid)
    sm.frame.context.out = out
    closed = i64(ALL_GRIDS) if state.claims != 0 else out
    if closed != sm.frame.context.closed:
        sm.frame.context.closed = closed
        sm.saved = max(i64(sm.saved), 1)


# ------------------------------------------------------------------------------------------------------------ its lines


@jit
def ask(state, lsu):
    """Show the L1 the next line of the context under way."""
    entry = lsu.clients.client[state.client]
    if entry.valid != 0:
        return i64(lsu.now) + 1
    if state.phase == IDLE or state.sent == state.moved.bytes:
        return i64(NEVER)
    size = i64(at_config(i64(lsu.config)).l1.line_bytes)
    entry.valid = 1
    entry.kind = STORE if state.phase == OUT else LOAD_BYPASS
    entry.address = state.address + state.sent
    entry.size = size
    entry.token = state.sent // size
    entry.grid = state.moved.grid
    return i64(lsu.now) + 1


@jit
def accepted(state, lsu):
    """What is stored is in memory from now on."""
    entry = lsu.clients.client[state.client]
    size = i64(entry.size)
    if state.phase == OUT:
        copy_words(i64(state.context + state.sent), i64(state.staging + state.sent), size, True)
        state.counts.lines_written += 1
    state.sent += size
    return i64(0)


@jit
def answered(state, lsu):
    """What is loaded has come."""
    entry = lsu.clients.client[state.client]
    size = i64(entry.size)
    at = i64(entry.answer) * size
    copy_words(i64(state.context) + at, i64(state.staging) + at, size, False)
    state.come += size
    state.counts.lines_read += 1
    return i64(0)


TENANTS: dict[str, dict[str, Any]] = {
    "limits": slots(STATE, SM, update=update),
    "context": slots(STATE, SM, step=step),
    "l1_clients": slots(STATE, LSU, ask=ask, accepted=accepted, answered=answered),
}
