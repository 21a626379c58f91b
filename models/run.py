"""The compiled run of a GPU: SMs, CTA dispatch and the memory system, cycle by cycle.

The host resets what a run begins with (``models/session.py``), calls :func:`begin`, then :func:`enter` for a grid, or
for two that run at once, and :func:`run` until one has ended or stopped. Between those calls it may look at every
record, and let another grid enter in the place of one that has ended.

A run has one thread, or several that step SMs through windows of cycles (``models/windows.py``): its bits are the same.
"""

from __future__ import annotations

from lockstep.models.core.counters import count_cycles
from lockstep.models.core.frame import HAS_CONTEXT, HAS_LIMITS
from lockstep.models.core.placement import DISPATCHING
from lockstep.models.core.sm import sm_quiet, sm_reset, sm_step
from lockstep.models.cta import cta_dispatcher
from lockstep.models.dispatching import BOTH, count_ended, dispatch, limited, none_left
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, ctz, entry, i64, inline, inline_once, jit, without_lowest
from lockstep.models.lsu.unit import lsu_end
from lockstep.models.marks import Part, mark
from lockstep.models.memory.l1 import l1_invalidate
from lockstep.models.memory.system import memory_step, memory_wake
from lockstep.models.observe.intervals import ROOM, take
from lockstep.models.time import NEVER
from lockstep.models.windows import (
    begin_together,
    close_window,
    come_to,
    is_through,
    last_cycle,
    may_begin,
    may_go_on,
    next_window,
    open_window,
    stops,
    take_sm,
    wait_for_all,
    wake_senders,
)
from lockstep.spec.parameters import MAX_GRIDS


@entry
def begin(state, sms, launch, settings):
    """Reset the SMs and the dispatchers."""
    for s in range(state.sms):
        sm_reset(sms[s], s, launch, settings)
        sms[s].last = state.now
    for g in range(MAX_GRIDS):
        io = state.cta_dispatcher[g].io
        cta_dispatcher.reset(state.cta_dispatcher[g].state, io)
        io.i.policy = settings.launch.dispatcher
        io.i.interval = settings.launch.dispatch_interval
        io.i.launch = 0
        launch.grids[g].left = 0


@entry
def enter(state, launch, settings, g):
    """Show a grid, which begins in this cycle, to its dispatcher."""
    io, progress = state.cta_dispatcher[g].io, state.grids[g]
    io.i.launch = 1
    io.i.ctas = launch.grids[g].total
    launch.grids[g].left = launch.grids[g].total
    progress.ctas = launch.grids[g].total
    progress.ended = 0
    progress.next = state.now
    progress.stored_since = 0
    state.running |= i64(1) << g
    if state.running == BOTH:
        state.mixed = 1
        state.turn_from = i64(state.now) + DISPATCHING
        state.owner = 1 - g
        state.moves = 0
        state.owner_until = i64(state.now) + i64(settings.launch.slice)
    state.dispatcher_wake = state.now


@entry
def invalidate(state, sms):
    """Invalidate the L1s: a grid begins while another one runs, and must not find what was there before it."""
    for s in range(state.sms):
        l1_invalidate(sms[s].lsu.l1)


@entry
def settle(state, sms, to):
    """Count the cycles before ``to`` that are not counted yet, so that counters have them and monitors see them."""
    for s in range(state.sms):
        if sms[s].last < to:
            count_cycles(sms[s], to)


@entry
def run(team, member, state, sms, memory, launch, settings, context, rows, until):
    """The part that one thread of a team has in a run. The first one, 0, does all of it, but for SMs in windows.

    Advance to core cycle ``until`` at most, and take a row at the end of each interval (``observe.intervals``).

    Stops early when all grids have ended (``cycles`` set) or one of two (``over``), at a fault, or when there is no
    room for another row.
    """
    number = i64(0)
    while member != 0:
        number = next_window(team, number)
        if team.quit != 0:
            return
        _share_window(team, member, number, state, sms, memory, launch, settings, context)
    mark(Part.LOOP)
    _run(team, state, sms, memory, launch, settings, context, rows, until)
    mark(Part.HOST)


@inline_once
def _run(team, state, sms, memory, launch, settings, context, rows, until):
    """The same, but for marks."""
    while state.now < until and rows.taken < ROOM:
        _advance(team, state, sms, memory, launch, settings, context, min(until, i64(rows.due)))
        if state.cycles != 0:
            take(sms, state.sms, rows, i64(state.cycles))
        if state.cycles | state.fault | state.over != 0:
            return
        while state.now >= rows.due and rows.taken < ROOM:
            take(sms, state.sms, rows, i64(rows.due))
            rows.due += rows.interval


@inline_once
def _advance(team, state, sms, memory, launch, settings, context, until):
    """Advance to core cycle ``until`` at most.

    A cycle is: CTA dispatch, every SM that has something to do, the memory system. With ``skip`` the next cycle is the
    earliest in which any of them has something to do; without it every SM is stepped in every cycle. Results are equal.
    """
    count = i64(state.sms)
    wakes = memory.sm_wake
    while state.now < until:
        if team.length != 0 and state.now >= team.lockstep_until:
            _window(team, state, sms, memory, launch, settings, context, until)
            if state.cycles | state.fault != 0:
                return
            continue
        now = i64(state.now)
        following = _watch(state, sms, count, now) if state.monitors != 0 else i64(NEVER)
        if state.dispatcher_wake <= now or (state.skip == 0 and now >= state.dispatcher_next):
            mark(Part.DISPATCH)
            dispatch(state, sms, launch, settings, wakes, now)
            mark(Part.LOOP)
        following = min(following, i64(state.dispatcher_wake))
        for first in range(0, count, 64):
            due = _due(wakes, first, min(first + 64, count), now if state.skip != 0 else i64(NEVER))
            while due != 0:
                s = first + ctz(due)
                due = without_lowest(due)
                following = min(following, _step(state, sms[s], memory, s, launch, settings, context, now))
                if state.fault != 0:
                    return
        memory_step(memory, settings, now)
        following = min(following, i64(memory_wake(memory, now)))
        for s in range(count):
            following = min(following, i64(wakes[s]))
        if none_left(state) and _quiet(sms, memory, count, now):
            _ends(state, sms, count, now)
            return
        if following >= NEVER:
            state.fault = Fault.NO_PROGRESS
            return
        state.now = min(max(following, now + 1), until) if state.skip != 0 else now + 1
        if state.over != 0:
            return


@inline
def _due(wakes, first, end, until):
    """Of up to 64 SMs, those that have something to do by cycle ``until``: a mask whose lowest bit is SM ``first``."""
    due = i64(0)
    for s in range(first, end):
        due |= i64(wakes[s] <= until) << s - first
    return due


@jit
def _ends(state, sms, count, now):
    """The run ends with this cycle."""
    for s in range(count):
        count_cycles(sms[s], now + 1)
    state.cycles = now + 1
    for s in range(count):
        lsu_end(sms[s].lsu, now + 1)


@jit
def _window(team, state, sms, memory, launch, settings, context, until):
    """Advance through a window of cycles, up to ``until`` at most (``models/windows.py``)."""
    count, begin = i64(state.sms), i64(state.now)
    watched = _watch(state, sms, count, begin) if state.monitors != 0 else i64(NEVER)
    end = min(begin + i64(team.length), until, watched)
    open_window(team, state, sms, memory, begin, end)
    number = begin_together(team, count)
    _share_window(team, i64(0), number, state, sms, memory, launch, settings, context)
    wait_for_all(team, count, number)
    wake_senders(state, memory, begin)
    for now in range(begin, end):
        _cycle_behind(team, state, sms, memory, launch, settings, context, now)
        if state.fault != 0:
            state.now = now
            return
        if none_left(state) and _quiet(sms, memory, count, now):
            close_window(team, state, memory, end)
            _ends(state, sms, count, now)
            state.now = now
            return
    close_window(team, state, memory, end)
    following = min(watched, i64(state.dispatcher_wake), i64(memory_wake(memory, end - 1)))
    for s in range(count):
        following = min(following, i64(memory.sm_wake[s]))
    if following >= NEVER:
        state.fault = Fault.NO_PROGRESS
        state.now = last_cycle(state, sms, memory)
        return
    state.now = max(min(following, until), end) if state.skip != 0 else end


@jit
def _share_window(team, member, number, state, sms, memory, launch, settings, context):
    """Step SMs ahead that no other thread has taken, beginning with those that this one usually has."""
    count = i64(state.sms)
    s = member * count // i64(team.threads)
    for _ in range(count):
        if take_sm(team, s, number):
            if team.look != 0:
                call(team.look, s, i64(0))
            _go_ahead(team, state, sms[s], memory, s, launch, settings, context)
            if team.look != 0:
                call(team.look, s, i64(1))
            is_through(team, s, number)
        s = s + 1 if s + 1 < count else i64(0)


@jit
def _go_ahead(team, state, sm, memory, s, launch, settings, context):
    """Step an SM through a window, as far as it may. What SMs of other threads lie beside is written once."""
    port, now, end = memory.ports[s], i64(team.begin), i64(team.end)
    if not may_begin(team, state, sm, launch, settings):
        return
    wake, steps = i64(memory.sm_wake[s]), i64(0)
    while may_go_on(sm, port):
        if state.skip != 0:
            now = max(now, wake)
        if now >= end:
            break
        sm_step(sm, port, launch, settings, context, now)
        wake = i64(sm.wake)
        steps += 1
        now += 1
        if stops(team, state, sm, port, s, context, now - 1):
            break
    memory.sm_wake[s] = wake
    team.sm[s].steps = steps
    team.sm[s].through = min(now, end)


@inline
def _cycle_behind(team, state, sms, memory, launch, settings, context, now):
    """A cycle in the second half of a window: of dispatchers, SMs that are behind, and the memory system."""
    wakes = memory.sm_wake
    if state.dispatcher_wake <= now or (state.skip == 0 and now >= state.dispatcher_next):
        dispatch(state, sms, launch, settings, wakes, now)
    for s in range(state.sms):
        if now < team.sm[s].through:
            come_to(team, state, sms[s], memory, s, context, now)
        elif wakes[s] <= now or state.skip == 0:
            memory.ports[s].ahead = 0
            _step(state, sms[s], memory, s, launch, settings, context, now)
        if state.fault != 0:
            return
    memory_step(memory, settings, now)


@inline
def _step(state, sm, memory, index, launch, settings, context, now):
    """A cycle of one SM. Returns the cycle for which it wants the CTA dispatcher, or NEVER."""
    wakes = memory.sm_wake
    wakes[index] = NEVER
    sm_step(sm, memory.ports[index], launch, settings, context, now)
    state.steps += 1
    wakes[index] = min(i64(wakes[index]), i64(sm.wake))
    if sm.fault != Fault.NONE:
        state.fault = sm.fault
        state.fault_sm = index
    asks = sm.ended[0] | sm.ended[1] != 0
    if asks:
        count_ended(state, sm)
    if sm.tenants & (HAS_LIMITS | HAS_CONTEXT) != 0:
        asks |= limited(sm) | (sm.saved != 0)
    if not asks:
        return i64(NEVER)
    state.dispatcher_wake = now + 1
    return now + 1


@jit
def _watch(state, sms, count, now):
    """Show the whole GPU's monitors the cycles before this one, if they are due; returns when they are due next."""
    wake = i64(NEVER)
    for k in range(state.monitors):
        wake = min(wake, i64(state.monitor[k].wake))
    if wake > now:
        return wake
    for s in range(count):
        count_cycles(sms[s], now)
    wake = i64(NEVER)
    for k in range(state.monitors):
        monitor = state.monitor[k]
        monitor.wake = call(monitor.see, monitor.handle, addressof(state))
        wake = min(wake, i64(monitor.wake))
    for s in range(count):
        if limited(sms[s]):
            state.dispatcher_wake = now
    return wake


@jit
def _quiet(sms, memory, count, now):
    """Whether nothing is left to do, in the SMs, in the memory system, or between them."""
    if memory_wake(memory, now) < NEVER:
        return False
    for s in range(count):
        if memory.ports[s].reply_ready < NEVER or not sm_quiet(sms[s]):
            return False
    return True
