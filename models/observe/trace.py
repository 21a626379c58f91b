"""What happens on one SM, event by event, in a window of core cycles: for pipeline viewers (``sim/device/trace``).

Beside the frame's events, changes are recorded: of what each warp waits for (``causes``), of fetched instructions, of
the load/store unit, of MSHRs. The buffer is bounded: what does not fit is left out, and the first event that did not is
known by its cycle.

What led to a stop is recorded on all SMs, since nobody knows where it will be: in two halves by turns, each of which
begins with what is there. The older one is written over when the newer one has ``span`` cycles, or is full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lockstep.models.core.frame import CTA_RESUMED, CTA_START, ISSUE, WARP_START
from lockstep.models.core.operands import collectors
from lockstep.models.core.state import PIPE_KINDS, PIPE_LSU, SM, instruction_of
from lockstep.models.jit import ctz, i64, inline, jit, pointer_to, popcount, record, slots, without_lowest
from lockstep.models.lsu.queue import ENTRIES
from lockstep.models.observe import declaration
from lockstep.models.observe.causes import at_config, cause
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_CTAS, MAX_SCHEDULERS, MAX_WARPS

FETCHED, STARTED, LSU_STARTED, WAITS, LEVEL = range(32, 37)
"""Kinds of what is recorded beside the frame's events (``core.frame``): instructions arrive in a warp's buffer (``pc``
is the first, ``value`` their number); an instruction that has issued starts in cycle ``value`` (NEVER: its operands
come later, so that is not known); the next instruction in the load/store unit's queue starts; what a warp waits for
changes (``value``: an index of a cause, ISSUES or ABSENT); a level changes (``slot``: which)."""

ISSUES, ABSENT, UNKNOWN = -1, -2, -3
"""Instead of a cause: the warp has issued, there is no warp, the window has not begun."""

MSHRS, IN_FLIGHT, QUEUED, WARPS, REFUSED = range(5)
"""Levels: MSHRs of the L1 in use, memory instructions between issue and their last answer, those that have not started
in the load/store unit, resident warps, and why the L1 refuses a line (``memory.l1``, less than 0)."""
LEVELS = 5

IN_A_CYCLE = 16 * MAX_WARPS
"""So many events of one cycle, or fewer, find room in a half."""

EVENT = record(
    [("cycle", "i8"), ("value", "i8"), ("kind", "i2"), ("cta", "i2"), ("slot", "i4"), ("pc", "i4"), ("unused", "i4")]
)
"""``value`` are the lanes of an event of the frame; of a CTA that starts its number, of a warp its place in the CTA.
``pc`` of a CTA that starts is its grid."""

STATE = record(
    [
        ("events", "i8"),  # address of the first; 0: this SM is not traced
        ("room", "i8"),
        ("count", "i8"),
        ("first", "i8"),  # core cycles: the window begins ...
        ("until", "i8"),  # ... and is over; it ends early when there is no room left
        ("open", "i8"),
        ("span", "i8"),  # core cycles of a half; 0: there are no halves
        ("since", "i8"),  # when the half began that is written ...
        ("known", "i8"),  # ... and how many of its events say what was there then
        ("older", "i8"),  # the same of the other half: address, ...
        ("older_count", "i8"),
        ("older_since", "i8"),
        ("why", "i4", (MAX_WARPS,)),  # as it was recorded last
        ("buffered", "i4", (MAX_WARPS,)),
        ("issued_pc", "i4", (MAX_WARPS,)),
        ("level", "i8", (LEVELS,)),
        ("collector_at", "i8", (PIPE_KINDS,)),
        ("head", "i8"),
        ("issued", "i8"),  # instructions in this step that take a collector ...
        ("issue_slot", "i4", (MAX_SCHEDULERS,)),
        ("issue_pc", "i4", (MAX_SCHEDULERS,)),
        ("issue_pipe", "i4", (MAX_SCHEDULERS,)),
    ]
)

at_event = pointer_to(EVENT)
EVENT_BYTES = EVENT.itemsize


@jit
def _put(state, cycle, kind, slot, cta, pc, value):
    if cycle < state.first or cycle >= state.until:
        return
    if state.count == state.room:
        state.until = cycle
        return
    event = at_event(i64(state.events) + i64(state.count) * EVENT_BYTES)
    state.count += 1
    event.cycle = cycle
    event.kind = kind
    event.slot = slot
    event.cta = cta
    event.pc = pc
    event.value = value
    event.unused = 0


@jit
def _follow(state, sm, cycle):
    """Record what the step of a cycle has changed."""
    config = at_config(i64(sm.config))
    for k in range(state.issued):
        pipe = i64(state.issue_pipe[k])
        at = i64(state.collector_at[pipe])
        state.collector_at[pipe] = (at + 1) % collectors(config, pipe)
        start = i64(sm.collector[pipe, at])
        _put(state, cycle, STARTED, i64(state.issue_slot[k]), -1, i64(state.issue_pc[k]), start)
    state.issued = 0
    while state.head != sm.lsu.queue.head:
        state.head = (state.head + 1) % ENTRIES
        _put(state, cycle, LSU_STARTED, -1, -1, -1, 0)
    issued = i64(sm.frame.seen.issued)
    for slot in range(config.core.warps):
        warp = sm.warps[slot]
        resident = (i64(sm.resident) >> slot) & 1
        buffered = i64(warp.buffered) if resident != 0 else i64(0)
        arrived = buffered - i64(state.buffered[slot]) + ((issued >> slot) & 1)
        state.buffered[slot] = buffered
        if arrived > 0 and resident != 0:
            pc = i64(warp.pc) + buffered - arrived if buffered != 0 else i64(state.issued_pc[slot])
            _put(state, cycle, FETCHED, slot, -1, pc, arrived)
    _level(state, cycle, MSHRS, i64(sm.lsu.l1.in_flight.count))
    _level(state, cycle, IN_FLIGHT, i64(sm.lsu.tickets.in_flight))
    _level(state, cycle, QUEUED, i64(sm.lsu.queue.count + sm.lsu.queue.collecting))
    _level(state, cycle, WARPS, popcount(i64(sm.resident)))
    _level(state, cycle, REFUSED, i64(sm.lsu.refused))


@inline
def _level(state, cycle, which, value):
    if state.level[which] != value:
        state.level[which] = value
        _put(state, cycle, LEVEL, which, -1, -1, value)


@jit
def _warps(state, sm, cycle, place):
    """Say which CTA is in a place of the SM, and which warps it has."""
    cta = sm.ctas[place]
    _put(state, cycle, CTA_START, -1, place, i64(cta.grid), i64(cta.index))
    warps = i64(cta.warps)
    while warps != 0:
        slot = ctz(warps)
        warps = without_lowest(warps)
        _put(state, cycle, WARP_START, slot, place, -1, i64(sm.warps[slot].index))


@jit
def _open(state, sm):
    """If the window begins: say what is there, and let everything be recorded anew."""
    if state.open != 0:
        return
    state.open = 1
    first = i64(state.first)
    _there(state, sm, first)
    for slot in range(MAX_WARPS):
        state.why[slot] = UNKNOWN


@jit
def _there(state, sm, cycle):
    """Say which CTAs and warps there are, and how high levels are."""
    for place in range(MAX_CTAS):
        if sm.ctas[place].live != 0:
            _warps(state, sm, cycle, place)
    for which in range(LEVELS):
        _put(state, cycle, LEVEL, which, -1, -1, i64(state.level[which]))


@jit
def _turn(state, sm, cycle):
    """Go on in the other half."""
    older = i64(state.older)
    state.older, state.older_count, state.older_since = state.events, state.count, state.since
    state.events, state.count, state.since = older, 0, cycle
    _there(state, sm, cycle)
    for slot in range(MAX_WARPS):
        if state.why[slot] >= 0:
            _put(state, cycle, WAITS, slot, -1, i64(sm.warps[slot].pc), i64(state.why[slot]))
    state.known = state.count


@jit
def see(state, sm):
    """Record what warps wait for in equal cycles, where that differs from the cycles before."""
    if state.events == 0:
        return NEVER
    seen = sm.frame.seen
    first = i64(seen.first)
    _follow(state, sm, first)
    if first + seen.cycles <= state.first or first >= state.until:
        return NEVER
    _open(state, sm)
    cycle = max(first, i64(state.first))
    for slot in range(at_config(i64(sm.config)).core.warps):
        why = i64(ABSENT)
        if (i64(seen.issued) >> slot) & 1 != 0:
            why = i64(ISSUES)
        elif (i64(sm.resident) >> slot) & 1 != 0:
            why = cause(sm, slot, first)
        if why != state.why[slot]:
            state.why[slot] = why
            _put(state, cycle, WAITS, slot, -1, i64(sm.warps[slot].pc), why)
    end = first + i64(seen.cycles)
    if state.span != 0 and (end - state.since >= state.span or state.room - state.count < IN_A_CYCLE):
        _turn(state, sm, end)
    return NEVER


@jit
def hear(state, sm):
    """Record an event of the frame."""
    if state.events == 0:
        return i64(0)
    events = sm.frame.events
    kind, slot, place, pc = i64(events.kind), i64(events.slot), i64(events.cta), i64(events.pc)
    now, value = i64(events.now), i64(events.lanes)
    if now >= state.first and now < state.until:
        _open(state, sm)
    if kind == CTA_START:
        pc, value = i64(sm.ctas[place].grid), i64(sm.ctas[place].index)
    elif kind == CTA_RESUMED:
        _warps(state, sm, now, place)
        return i64(0)
    elif kind == WARP_START:
        value = i64(sm.warps[slot].index)
    elif kind == ISSUE:
        state.issued_pc[slot] = pc
        pipe = i64(at_config(i64(sm.config)).pipelines[instruction_of(sm.warps[slot], pc).category].pipe)
        if pipe != PIPE_LSU:
            state.issue_slot[state.issued] = slot
            state.issue_pc[state.issued] = pc
            state.issue_pipe[state.issued] = pipe
            state.issued += 1
    _put(state, now, kind, slot, place, pc, value)
    return i64(0)


TENANTS = {
    "monitors": slots(STATE, SM, see=see),
    "events": slots(STATE, SM, hear=hear),
}


class Tracer:
    """The observer of one launch. The window is ``first`` to ``until`` - 1, as core cycles of the launch.

    With ``span``, at least that many cycles at the window's end are kept, if ``room`` (events of an SM) allows.
    """

    declaration = declaration("trace", "what happens on one SM, event by event", "monitors", "events")

    def __init__(self, sms: range, first: int, until: int, room: int, span: int = 0) -> None:
        self._sms, self._window, self._span = sms, (first, until), span
        self._events = np.zeros((len(sms), room), EVENT)

    def enter(self, grid: int, kernel: Any) -> None:
        """Events say which grid's CTAs there are."""

    def begin(self, states: np.ndarray) -> None:
        self._states = states[self._sms.start : self._sms.stop]
        places = self._events.ctypes.data + self._events.strides[0] * np.arange(len(self._sms))
        room = self._events.shape[1]
        if self._span:
            room //= 2
            self._states["older"] = places + room * EVENT_BYTES
        self._states["events"], self._states["room"], self._states["span"] = places, room, self._span
        self._states["first"], self._states["until"] = self._window
        self._states["since"] = self._window[0]

    def is_full(self, sm: int) -> bool:
        """Whether something did not fit."""
        return bool(self._states["until"][sm - self._sms.start] < self._window[1])

    def taken(self, sm: int) -> tuple[np.ndarray, int, int]:
        """What was recorded on an SM, from which cycle on, and before which: all of it, in between."""
        state = self._states[sm - self._sms.start]
        until, since = int(state["until"]), int(state["since"])
        parts = [self._part(sm, int(state["events"]), int(state["count"]))]
        if state["older_count"]:
            since = int(state["older_since"])
            parts = [self._part(sm, int(state["older"]), int(state["older_count"])), parts[0][int(state["known"]) :]]
        events = np.concatenate(parts)
        return events[events["cycle"] < until], since, until

    def _part(self, sm: int, address: int, count: int) -> np.ndarray:
        own = self._events[sm - self._sms.start]
        first = (address - own.ctypes.data) // EVENT_BYTES
        return own[first : first + count]
