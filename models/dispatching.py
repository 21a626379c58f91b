"""The CTA dispatchers of a run, one for each grid, and its record.

While there are two, one of them at a time sees which SMs have room, so that they never both take the same: they take
turns CTA by CTA, and also when the one whose turn it is finds no room. A turn begins :data:`DISPATCHING` cycles after
the one before, when what that one had on its way has arrived.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.frame import HAS_LIMITS, MAX_TENANTS, MONITOR, closed_grids, most_ctas
from lockstep.models.core.placement import DISPATCHING, fits_beside, resume_cta, start_cta
from lockstep.models.cta import cta_dispatcher
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, ctz, i64, inline, jit, record, u64, without_lowest
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_GRIDS, MAX_SMS, PLACEMENTS

BOTH = (1 << MAX_GRIDS) - 1
LOOKING = 100  # cycles between two looks at whether CTAs still move
SPATIAL, TEMPORAL = PLACEMENTS.index("spatial"), PLACEMENTS.index("temporal")

PROGRESS = record(
    [
        ("ctas", "i8"),  # of the grid ...
        ("ended", "i8"),  # ... that have ended
        ("next", "i8"),  # next cycle that its dispatcher has not seen
        ("stored_since", "i8"),  # cycle since which preempted CTAs are to be resumed; 0: there are none
    ]
)

RUN = record(
    [
        ("now", "i8"),  # core cycle
        ("mixed", "i8"),  # 1: two grids have run at once; what one has left free of an SM may lie in pieces
        ("running", "i8"),  # grids that run, as a mask ...
        ("over", "i8"),  # ... and those of them that have ended while the other one goes on
        ("turn", "i8"),  # the grid whose dispatcher sees room, if both run, ...
        ("turn_from", "i8"),  # ... from this cycle on ...
        ("turn_over", "i8"),  # ... until it has placed a CTA: then this is 1
        ("owner", "i8"),  # temporal placement: the grid that all SMs belong to, if both run, ...
        ("moves", "i8"),  # 1: not before its slice begins, when all CTAs have moved, ...
        ("owner_until", "i8"),  # ... until this cycle
        ("grids", PROGRESS, (MAX_GRIDS,)),
        ("dispatcher_wake", "i8"),  # next cycle in which a dispatcher does more than wait
        ("dispatcher_next", "i8"),  # cycle after the last one in which they were looked at
        ("cycles", "i8"),  # cycles of the run, set when all grids have ended
        ("sms", "i8"),
        ("skip", "i8"),  # 0: step every SM in every cycle
        ("fault", "i8"),
        ("fault_sm", "i8"),
        ("steps", "i8"),  # SM steps done, for the benchmark of the model itself
        ("hidden", "i8", (MAX_SMS,)),  # CTAs of an SM that have ended in cycles that have not come yet (``windows``)
        ("sm", "i8"),  # address of the SMs' records
        ("monitors", "i8"),  # of the whole GPU
        ("monitor", MONITOR, (MAX_TENANTS,)),
        ("placement", record([("number", "i8"), ("handle", "i8")])),
        ("cta_dispatcher", instance("cta.cta_dispatcher", cta_dispatcher.STATE), (MAX_GRIDS,)),
    ]
)


@jit
def dispatch(state, sms, launch, settings, wakes, now):
    """One cycle of the CTA dispatchers; an SM in which a CTA was placed wakes."""
    wake = i64(NEVER)
    if settings.launch.placement == TEMPORAL:
        wake = _take_slices(state, sms, launch, settings, wakes, now)
    if state.running == BOTH:
        wake = min(wake, _take_turns(state, sms, launch, settings, now))
    running = i64(state.running)
    while running != 0:
        wake = min(wake, _serve(state, sms, launch, settings, wakes, ctz(running), now))
        running = without_lowest(running)
    state.dispatcher_next = now + 1
    state.dispatcher_wake = wake


@jit
def _serve(state, sms, launch, settings, wakes, g, now):
    """One cycle of a grid's dispatcher. Those since its last one are passed over: nothing changed in them.

    Preempted CTAs are resumed before others of their grid start, but for those that the dispatcher has already found
    room for. Returns the next cycle in which it must be looked at.
    """
    grid, progress = launch.grids[g], state.grids[g]
    placed = i64(-1)
    shown = state.running != BOTH or (state.turn == g and now >= state.turn_from)
    waiting = grid.stored != 0
    if waiting and progress.stored_since == 0:
        progress.stored_since = now
    binding, io = state.cta_dispatcher[g].binding, state.cta_dispatcher[g].io
    if now > progress.next:
        call(binding.skip, binding.handle, now - i64(progress.next))
    io.i.room[0] = 0
    io.i.room[1] = 0
    for s in range(state.sms):
        io.i.load[s] = sms[s].ctas_resident + state.hidden[s]
        if shown and not waiting and has_room(state, sms[s], launch, settings, g):
            io.i.room[s >> 6] |= u64(i64(1) << (s & 63))
    if io.o.dispatch.valid != 0:
        placed = i64(io.o.dispatch.sm)
        number = i64(io.o.dispatch.cta)
        if state.placement.number != 0:
            number = call(state.placement.number, state.placement.handle, addressof(state))
        start_cta(sms[placed], launch, settings, g, number, now)
        if grid.left == 0:
            _tell(state, sms, wakes, now)
    elif waiting and shown and now >= progress.stored_since + DISPATCHING:
        placed = _emptiest(state, sms, launch, settings, g)
        if placed >= 0:
            resume_cta(sms[placed], launch, settings, g, now)
    if grid.stored == 0:
        progress.stored_since = 0
    if call(binding.step, binding.handle, addressof(io)) != 0:
        state.fault = Fault.DIFFERENCE
    if io.i.launch != 0:
        _tell(state, sms, wakes, now)
    io.i.launch = 0
    progress.next = now + 1
    if placed >= 0:
        wakes[placed] = now
        state.turn_over |= i64(state.turn == g)
    # SMs may have room that was not shown to the dispatcher while CTAs waited; or they wait for it to place others.
    if waiting and (placed >= 0 or now < progress.stored_since + DISPATCHING):
        return now + 1
    if placed >= 0 and state.running == BOTH:
        return now + 1  # it may be the other's turn
    return min(now + 1 + call(binding.idle, binding.handle, addressof(io)), i64(NEVER))


@jit
def _tell(state, sms, wakes, now):
    """Let SMs to which it may matter see in this cycle that a grid has come, or that all its CTAs have started."""
    for s in range(state.sms):
        if sms[s].tenants & HAS_LIMITS != 0:
            wakes[s] = now


@jit
def _take_turns(state, sms, launch, settings, now):
    """Let the other of two dispatchers see room, if it can use it; returns the cycle in which that begins, or NEVER."""
    if now >= state.turn_from:
        other = 1 - i64(state.turn)
        stays = state.turn_over == 0 and _could_place(state, sms, launch, settings, 1 - other)
        if not stays and _could_place(state, sms, launch, settings, other):
            state.turn = other
            state.turn_from = now + DISPATCHING
            state.turn_over = 0
    return i64(state.turn_from) if now < state.turn_from else i64(NEVER)


@jit
def _take_slices(state, sms, launch, settings, wakes, now):
    """Let the SMs be the other grid's when a slice is over; returns the cycle in which to look again, or NEVER.

    A slice begins when its grid has the SMs: the other's CTAs are out, and its own have come back. Otherwise, where
    that takes longer than a slice, grids would do nothing else.
    """
    away, wake = i64(0), i64(NEVER)
    if state.running == BOTH:
        if now >= state.owner_until:
            if state.moves != 0:
                state.moves = i64(_moves(state, sms, launch, settings))
                state.owner_until = now + (LOOKING if state.moves != 0 else i64(settings.launch.slice))
            else:
                state.owner = 1 - i64(state.owner)
                state.moves = 1
                state.owner_until = now + LOOKING
        away = i64(1) << (1 - i64(state.owner))
        wake = i64(state.owner_until)
    for s in range(state.sms):
        if sms[s].frame.context.away != away:
            sms[s].frame.context.away = away
            wakes[s] = now
    return wake


@jit
def _moves(state, sms, launch, settings):
    """Whether CTAs of the grid whose turn it is not are in an SM, or of the other are on their way or could be."""
    other = 1 - i64(state.owner)
    for s in range(state.sms):
        if sms[s].ctas_of[other] != 0 or sms[s].frame.context.busy != 0:
            return True
    return _could_place(state, sms, launch, settings, i64(state.owner))


@jit
def _could_place(state, sms, launch, settings, g):
    """Whether a grid has CTAs left, and an SM has room for one."""
    io = state.cta_dispatcher[g].io
    if io.o.remaining == 0 and launch.grids[g].stored == 0 and io.i.launch == 0:
        return False
    for s in range(state.sms):
        if has_room(state, sms[s], launch, settings, g):
            return True
    return False


@jit
def has_room(state, sm, launch, settings, g):
    """Whether an SM may hold another CTA of a grid."""
    if (i64(sm.closed | sm.frame.context.closed | sm.frame.context.away) >> g) & 1 != 0:
        return False
    if state.mixed != 0:
        divided = state.running == BOTH and settings.launch.placement == SPATIAL
        if divided and g != i64(sm.index >= _first_sms(state, settings)):
            return False
        return sm.ctas_of[g] < launch.grids[g].per_sm and fits_beside(sm, launch, settings, g, i64(sm.limit))
    return sm.ctas_resident + state.hidden[sm.index] < min(i64(launch.grids[g].per_sm), i64(sm.limit))


@inline
def _first_sms(state, settings):
    """The SMs of grid 0, the first ones, where both have their own."""
    first = i64(settings.launch.first_sms)
    return first if first != 0 else (i64(state.sms) + 1) >> 1


@jit
def _emptiest(state, sms, launch, settings, g):
    """Of the SMs with room the first with the fewest CTAs, or -1."""
    found = i64(-1)
    for s in range(state.sms):
        if has_room(state, sms[s], launch, settings, g) and (
            found < 0 or sms[s].ctas_resident < sms[found].ctas_resident
        ):
            found = i64(s)
    return found


@inline
def none_left(state):
    """Whether all CTAs of the grids that run have ended."""
    left = i64(0)
    for g in range(MAX_GRIDS):
        if (i64(state.running) >> g) & 1 != 0:
            left |= i64(state.grids[g].ctas) ^ i64(state.grids[g].ended)
    return left == 0


@jit
def count_ended(state, sm):
    """Count CTAs that have ended in an SM; a grid whose last one that was is over, if the other one goes on."""
    for g in range(MAX_GRIDS):
        state.grids[g].ended += i64(sm.ended[g])
    if state.running == BOTH and not none_left(state):
        for g in range(MAX_GRIDS):
            if state.grids[g].ended == state.grids[g].ctas:
                state.over |= i64(1) << g


@jit
def limited(sm):
    """Take over what the limits of an SM say now; returns whether that has changed."""
    limit, closed = i64(most_ctas(sm.frame)), i64(closed_grids(sm.frame))
    if limit == sm.limit and closed == sm.closed:
        return False
    sm.limit = limit
    sm.closed = closed
    return True
