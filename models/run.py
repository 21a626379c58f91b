"""The compiled run of a launch: SMs, CTA dispatch and the memory system, cycle by cycle.

The host resets what a launch begins with (``models/gpu.py``), calls :func:`begin`, then :func:`run` until the launch
has ended or stopped. Between those calls it may look at every record.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.counters import count_cycles
from lockstep.models.core.frame import HAS_LIMITS, MAX_TENANTS, MONITOR, most_ctas
from lockstep.models.core.placement import resume_cta, start_cta
from lockstep.models.core.sm import sm_quiet, sm_reset, sm_step
from lockstep.models.cta import cta_dispatcher
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, ctz, entry, i64, inline, jit, record, u64, without_lowest
from lockstep.models.lsu.unit import lsu_end
from lockstep.models.memory import system
from lockstep.models.observe.intervals import ROOM, take
from lockstep.models.time import NEVER

RUN = record(
    [
        ("now", "i8"),  # core cycle
        ("ctas", "i8"),  # of the grid ...
        ("ended", "i8"),  # ... that have ended
        ("dispatcher_wake", "i8"),  # next cycle in which the dispatcher does more than wait
        ("dispatcher_next", "i8"),  # next cycle that it has not seen
        ("stored_since", "i8"),  # cycle since which preempted CTAs are to be resumed; 0: there are none
        ("cycles", "i8"),  # cycles of the launch, set when it has ended
        ("sms", "i8"),
        ("skip", "i8"),  # 0: step every SM in every cycle
        ("fault", "i8"),
        ("fault_sm", "i8"),
        ("steps", "i8"),  # SM steps done, for the benchmark of the model itself
        ("sm", "i8"),  # address of the SMs' records
        ("monitors", "i8"),  # of the whole GPU
        ("monitor", MONITOR, (MAX_TENANTS,)),
        ("placement", record([("number", "i8"), ("handle", "i8")])),
        ("cta_dispatcher", instance("cta.cta_dispatcher", cta_dispatcher.STATE)),
    ]
)

DISPATCHING = 3  # cycles after which a CTA has been placed for which the dispatcher saw room


@jit
def _dispatch(state, sms, launch, settings, now):
    """One cycle of the CTA dispatcher. The cycles since its last one are passed over: nothing changed in them.

    Preempted CTAs are resumed before others start, but for those that the dispatcher has already found room for.
    Returns the SM in which a CTA was placed, or -1.
    """
    placed = i64(-1)
    waiting = launch.stored != 0
    if waiting and state.stored_since == 0:
        state.stored_since = now
    binding, io = state.cta_dispatcher.binding, state.cta_dispatcher.io
    if now > state.dispatcher_next:
        call(binding.skip, binding.handle, now - i64(state.dispatcher_next))
    io.i.room[0] = 0
    io.i.room[1] = 0
    for s in range(state.sms):
        load = i64(sms[s].ctas_resident)
        io.i.load[s] = load
        if not waiting and _has_room(sms[s], launch):
            io.i.room[s >> 6] |= u64(i64(1) << (s & 63))
    if io.o.dispatch.valid != 0:
        placed = i64(io.o.dispatch.sm)
        number = i64(io.o.dispatch.cta)
        if state.placement.number != 0:
            number = call(state.placement.number, state.placement.handle, addressof(state))
        start_cta(sms[placed], launch, settings, i64(0), number, now)
    elif waiting and now >= state.stored_since + DISPATCHING:
        placed = _emptiest(state, sms, launch)
        if placed >= 0:
            resume_cta(sms[placed], launch, settings, now)
    if launch.stored == 0:
        state.stored_since = 0
    if call(binding.step, binding.handle, addressof(io)) != 0:
        state.fault = Fault.DIFFERENCE
    io.i.launch = 0
    state.dispatcher_next = now + 1
    state.dispatcher_wake = min(now + 1 + call(binding.idle, binding.handle, addressof(io)), i64(NEVER))
    # SMs may have room that was not shown to the dispatcher while CTAs waited; or they wait for it to place others.
    if waiting and (placed >= 0 or now < state.stored_since + DISPATCHING):
        state.dispatcher_wake = now + 1
    return placed


@jit
def _has_room(sm, launch):
    """Whether an SM may hold another CTA."""
    return sm.ctas_resident < min(i64(launch.grids[0].per_sm), i64(sm.limit))


@jit
def _emptiest(state, sms, launch):
    """Of the SMs with room the first with the fewest CTAs, or -1."""
    found = i64(-1)
    for s in range(state.sms):
        if _has_room(sms[s], launch) and (found < 0 or sms[s].ctas_resident < sms[found].ctas_resident):
            found = i64(s)
    return found


@entry
def begin(state, sms, launch, settings):
    """Reset the SMs and show the grid to the dispatcher."""
    for s in range(state.sms):
        sm_reset(sms[s], s, launch, settings)
        sms[s].last = state.now
    io = state.cta_dispatcher.io
    cta_dispatcher.reset(state.cta_dispatcher.state, io)
    io.i.policy = settings.launch.dispatcher
    io.i.interval = settings.launch.dispatch_interval
    io.i.launch = 1
    io.i.ctas = launch.grids[0].total


@entry
def settle(state, sms):
    """A launch has stopped: count the cycles up to now that are not counted yet, so that monitors see them."""
    for s in range(state.sms):
        count_cycles(sms[s], state.now + 1)


@entry
def run(state, sms, memory, launch, settings, context, rows, until):
    """Advance to core cycle ``until`` at most, and take a row at the end of each interval (``observe.intervals``).

    Stops early when the launch has ended (``cycles`` set) or faulted, or when there is no room for another row.
    """
    while state.now < until and rows.taken < ROOM:
        _advance(state, sms, memory, launch, settings, context, min(until, i64(rows.due)))
        if state.cycles != 0:
            take(sms, state.sms, rows, i64(state.cycles))
        if state.cycles | state.fault != 0:
            return
        while state.now >= rows.due and rows.taken < ROOM:
            take(sms, state.sms, rows, i64(rows.due))
            rows.due += rows.interval


@inline
def _advance(state, sms, memory, launch, settings, context, until):
    """Advance to core cycle ``until`` at most.

    A cycle is: CTA dispatch, every SM that has something to do, the memory system. With ``skip`` the next cycle is the
    earliest in which any of them has something to do; without it every SM is stepped in every cycle. Results are equal.
    """
    count = i64(state.sms)
    wakes = memory.sm_wake
    while state.now < until:
        now = i64(state.now)
        following = _watch(state, sms, count, now) if state.monitors != 0 else i64(NEVER)
        if state.dispatcher_wake <= now or (state.skip == 0 and now >= state.dispatcher_next):
            placed = _dispatch(state, sms, launch, settings, now)
            if placed >= 0:
                wakes[placed] = now
        following = min(following, i64(state.dispatcher_wake))
        for first in range(0, count, 64):
            due = _due(wakes, first, min(first + 64, count), now if state.skip != 0 else i64(NEVER))
            while due != 0:
                s = first + ctz(due)
                due = without_lowest(due)
                following = min(following, _step(state, sms[s], memory, s, launch, settings, context, now))
                if state.fault != 0:
                    return
        system.memory_step(memory, settings, now)
        following = min(following, i64(system.memory_wake(memory, now)))
        for s in range(count):
            following = min(following, i64(wakes[s]))
        if state.ended == launch.grids[0].total and _quiet(sms, memory, count, now):
            for s in range(count):
                count_cycles(sms[s], now + 1)
            state.cycles = now + 1
            for s in range(count):
                lsu_end(sms[s].lsu, now + 1)
            return
        if following >= NEVER:
            state.fault = Fault.NO_PROGRESS
            return
        state.now = max(following, now + 1) if state.skip != 0 else now + 1


@inline
def _due(wakes, first, end, until):
    """Of up to 64 SMs, those that have something to do by cycle ``until``: a mask whose lowest bit is SM ``first``."""
    due = i64(0)
    for s in range(first, end):
        due |= i64(wakes[s] <= until) << s - first
    return due


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
    state.ended += i64(sm.ended)
    asks = sm.ended != 0
    if sm.tenants & HAS_LIMITS != 0:
        asks |= _limited(sm) | (sm.saved != 0)
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
        if _limited(sms[s]):
            state.dispatcher_wake = now
    return wake


@jit
def _limited(sm):
    """Take over what the limits of an SM say now; returns whether that has changed."""
    limit = i64(most_ctas(sm.frame))
    if limit == sm.limit:
        return False
    sm.limit = limit
    return True


@jit
def _quiet(sms, memory, count, now):
    """Whether nothing is left to do, in the SMs, in the memory system, or between them."""
    if system.memory_wake(memory, now) < NEVER:
        return False
    for s in range(count):
        if memory.ports[s].reply_ready < NEVER or not sm_quiet(sms[s]):
            return False
    return True
