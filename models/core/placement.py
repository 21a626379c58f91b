"""CTAs come to an SM, and leave it before they have ended: preempted ones are saved, and resumed later.

CTAs of two grids may be in one SM, each with the warp slots, registers and scratchpad of its own grid; what counts is
that their sums fit.

A tenant of the frame slot *limits* says which CTAs are to leave. Their warps issue nothing more. When nothing of a CTA
is on its way (results, memory instructions, a barrier that has opened), all that it has is moved to its grid's store:
its record, its live warps, their registers, predicates and local memory, its scratchpad. Resuming moves it back, to any
SM with room, into other slots in general. Both take no time by themselves: what they cost is the tenant's business. A
CTA with a segment that lies in its pair's must not be told to leave. Where the frame slot *context* has a tenant, that
one moves the CTAs instead (``context``).
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.counters import count_cycles
from lockstep.models.core.fetch import forget_fetches, want_fetch
from lockstep.models.core.frame import (
    CTA_RESUMED,
    CTA_SAVED,
    CTA_START,
    HAS_CONTEXT,
    HAS_LISTENERS,
    WARP_START,
    emit,
    emit_of_warp,
)
from lockstep.models.core.state import stop
from lockstep.models.execution.isa import LANES, MAX_PREDICATES, MAX_REGISTERS, PT, Fault
from lockstep.models.execution.written import poison
from lockstep.models.jit import assign, ctz, i64, inline, jit, pointer_to, popcount, without_lowest, words_u32
from lockstep.models.lsu.performed import leave_fence, nothing_left
from lockstep.models.memory.l1 import l1_invalidate
from lockstep.spec.parameters import MAX_GRIDS, MAX_WARPS

DISPATCHING = 3  # cycles after which a CTA has been placed for which the dispatcher saw room
PREDICATE_BYTES = 4 * (MAX_PREDICATES + 1)
CTA_BYTES = W.CTA.itemsize
WARP_BYTES = W.WARP.itemsize
at_cta, at_warp = pointer_to(W.CTA), pointer_to(W.WARP)


@jit
def start_cta(sm, launch, config, index, number, now):
    """Place a CTA of the grid ``index`` into this SM, before the SM's step of the same cycle."""
    grid = launch.grids[index]
    slot = free_place(sm)
    cta = sm.ctas[slot]
    cta.grid = index
    cta.index = number
    cta.ctaid[0] = number % i64(grid.size[0])
    cta.ctaid[1] = number // i64(grid.size[0]) % i64(grid.size[1])
    cta.ctaid[2] = number // (i64(grid.size[0]) * i64(grid.size[1]))
    cta.live = grid.warps
    cta.waiting = 0
    for b in range(W.BARRIERS):
        cta.arrived[b] = 0
        cta.at[b] = 0
        cta.votes[b] = 0
        cta.voters[b] = 0
    cta.own_shared = grid.shared_bytes
    enter(sm, config, grid, slot, now)
    poison(i64(cta.shared), i64(grid.shared_stride), i64(grid.shared_marks))
    cta.warps = cta.slots
    grid.left -= 1
    sm.counters.ctas += 1
    sm.counters.warps += i64(grid.warps)
    if index != 0:
        sm.share.ctas += 1
        sm.share.warps += i64(grid.warps)
    cta.home = 0
    cta.row = ctz(cta.slots)
    if sm.tenants & HAS_CONTEXT != 0:
        cta.home = ctz(~i64(sm.homes[index]))
        sm.homes[index] |= i64(1) << i64(cta.home)
        cta.row = cta.home * i64(grid.warps)
    sm.progress = now
    events = sm.frame.events
    if sm.tenants & HAS_LISTENERS != 0:
        emit(events, CTA_START, now, i64(-1), slot, i64(-1), i64(0), i64(0))
    first = ctz(cta.slots)
    for k in range(grid.warps):
        warp = sm.warps[first + k]
        warp.index = k
        lanes = min(i64(grid.threads) - k * LANES, i64(LANES))
        W.start(warp, (i64(1) << lanes) - 1, i64(grid.length), now)
        enter_warp(sm, launch, config, grid, slot, first + k)
        words_u32(i64(warp.preds), MAX_PREDICATES + 1)[PT] = 0xFFFF_FFFF
        poison(i64(warp.local), i64(grid.local_bytes) * LANES, i64(grid.local_marks))
        if sm.tenants & HAS_LISTENERS != 0:
            emit_of_warp(events, WARP_START, now, first + k, i64(0), i64(warp.present), i64(0))


@jit
def free_place(sm):
    """A place where no CTA is."""
    slot = i64(0)
    while sm.ctas[slot].live != 0:
        slot += 1
    return slot


@jit
def enter(sm, config, grid, slot, now):
    """Give the CTA in a place what it uses of the SM: warp slots, registers, scratchpad."""
    count_cycles(sm, now)
    sm.wake = now
    sm.select_wake = 0
    cta = sm.ctas[slot]
    cta.slots = free_slots(sm, config, i64(grid.warps))
    if cta.slots == 0:
        stop(sm, Fault.NO_ROOM, i64(-1), i64(-1))
        cta.slots = in_a_row(i64(grid.warps))
    first = i64(sm.index) * MAX_WARPS + ctz(cta.slots)
    cta.registers = i64(grid.register_file) + first * i64(grid.registers) * (4 * LANES)
    cta.shared = i64(grid.scratchpad) + (i64(sm.index) * i64(grid.scratchpads) + slot) * i64(grid.shared_stride)
    sm.taken = i64(sm.taken) | i64(cta.slots)
    if cta.grid != 0:
        _of_second(sm, i64(sm.second) | i64(cta.slots))
    sm.assigned += 1
    cta.assigned = sm.assigned
    sm.ctas_resident += 1
    sm.ctas_of[cta.grid] += 1
    sm.frame.events.grid_of[slot] = cta.grid


@inline
def _of_second(sm, slots):
    """These warp slots are grid 1's."""
    sm.second = slots
    sm.lsu.second = slots


@jit
def give_back(sm, cta):
    """Take back what a CTA that ends or leaves has of the SM."""
    sm.taken = i64(sm.taken) & ~i64(cta.slots)
    _of_second(sm, i64(sm.second) & ~i64(cta.slots))
    sm.ctas_resident -= 1
    sm.ctas_of[cta.grid] -= 1


@inline
def in_a_row(warps):
    """The lowest warp slots."""
    return (i64(1) << warps) - 1 if warps < MAX_WARPS else i64(-1)


@jit
def free_slots(sm, config, warps):
    """The lowest warp slots in a row that no CTA has; 0 if there are not so many."""
    room = i64(in_a_row(warps))
    for first in range(i64(config.core.warps) - warps + 1):
        if i64(sm.taken) & (room << first) == 0:
            return i64(room << first)
    return i64(0)


@jit
def fits_beside(sm, launch, config, index, most):
    """Whether another CTA of a grid fits into this SM, beside those of both grids: what they need is added up.

    ``most`` CTAs may be there.
    """
    ctas, warps, registers, scratchpad = i64(1), i64(0), i64(0), i64(0)
    for g in range(MAX_GRIDS):
        other = launch.grids[g]
        number = i64(sm.ctas_of[g]) + (1 if g == index else 0)
        warps += number * i64(other.warps)
        registers += number * i64(other.allocated_registers)
        scratchpad += number * i64(other.allocated_shared)
        ctas += i64(sm.ctas_of[g])
    if ctas > config.core.ctas or warps * LANES > config.core.threads or registers > config.core.registers:
        return False
    if scratchpad > config.scratchpad.bytes or ctas > most:
        return False
    return free_slots(sm, config, i64(launch.grids[index].warps)) != 0


@jit
def enter_warp(sm, launch, config, grid, cta_slot, slot):
    """Give a warp of a CTA that enters its place: addresses, and its part in fetching and issue."""
    bit = i64(1) << slot
    warp = sm.warps[slot]
    cta = sm.ctas[cta_slot]
    position = i64(sm.index) * MAX_WARPS + slot
    warp.cta = cta_slot
    warp.code = grid.code
    warp.code_address = grid.code_address
    warp.length = grid.length
    warp.words_to = grid.words_to
    warp.words = 0
    warp.fetched_words = 0
    warp.regs = i64(cta.registers) + i64(warp.index) * i64(grid.registers) * (4 * LANES)
    warp.own_registers = MAX_REGISTERS
    warp.preds = i64(launch.predicate_file) + position * PREDICATE_BYTES
    row = i64(sm.index) * i64(grid.local_rows) + i64(cta.row) + i64(warp.index)
    local = row * i64(grid.local_bytes) * LANES
    warp.local = i64(grid.local) + local
    warp.local_physical = i64(grid.local_physical) + local
    warp.epoch += 1
    forget_fetches(sm, bit)
    sm.resident = i64(sm.resident) | bit
    sm.blocked = i64(sm.blocked) & ~bit
    sm.warp_scheduler[slot % i64(config.core.schedulers)].io.i.start |= bit
    sm.frame.events.cta_of[slot] = cta_slot
    leave_fence(sm.lsu.performed, slot)
    want_fetch(sm, config, slot)


# ----------------------------------------------------------------------------------------------------------- preemption


@jit
def leave(sm, launch, config, leaving, now):
    """Hold back the warps of the CTAs in ``leaving``, and save those of which nothing is on its way.

    Where contexts are moved, these are only noted.
    """
    before = i64(sm.leaving)
    drained = i64(0)
    sm.leaving = 0
    sm.saved = 0
    while leaving != 0:
        slot = ctz(leaving)
        leaving = without_lowest(leaving)
        cta = sm.ctas[slot]
        if cta.live != 0:
            done = _drained(sm, cta)
            if sm.tenants & HAS_CONTEXT == 0 and sm.lsu.carried != 0:  # it may come back to another SM
                done = done and nothing_left(sm.lsu.performed)
            if done and sm.tenants & HAS_CONTEXT == 0:
                _save(sm, launch, config, slot, now)
            else:
                sm.leaving = i64(sm.leaving) | i64(cta.warps)
                drained |= i64(done and cta.warps != 0) << slot  # it has warps unless it is just coming back
    sm.frame.context.drained = drained
    if sm.leaving != before or sm.saved != 0:
        sm.select_wake = 0


@jit
def _drained(sm, cta):
    """Whether nothing of a CTA is on its way. A warp that waits at a barrier may go on waiting elsewhere."""
    live = i64(cta.warps)
    if i64(sm.blocked) & live != i64(cta.waiting) & live:
        return False
    while live != 0:
        warp = sm.warps[ctz(live)]
        live = without_lowest(live)
        pending = i64(warp.pending_predicates) | i64(warp.outstanding) | i64(warp.put_off_count)
        for k in range(4):
            pending |= i64(warp.pending[k])
        if pending != 0:
            return False
    return True


def store_bytes(warps, registers, local_bytes, shared_stride, strict):
    """Bytes that a grid's store needs for a CTA."""
    copies = 2 if strict else 1
    return CTA_BYTES + copies * shared_stride + warps * _warp_bytes(registers, copies * local_bytes)


@inline
def _warp_bytes(registers, local_bytes):
    """``local_bytes``: with those for the marks."""
    return WARP_BYTES + registers * 4 * LANES + local_bytes * LANES + (PREDICATE_BYTES + 7) // 8 * 8


@jit
def _place(grid, number):
    """Where a grid's store keeps a CTA: its record, its scratchpad, its warps."""
    return i64(grid.store) + number % i64(grid.store_entries) * i64(grid.store_bytes)


@jit
def copy_words(stored, here, nbytes, away):
    """Copy bytes, a multiple of four, to the store, or back; returns where the store goes on."""
    there, words = words_u32(stored, nbytes >> 2), words_u32(here, nbytes >> 2)
    for k in range(nbytes >> 2):
        if away:
            there[k] = words[k]
        else:
            words[k] = there[k]
    return i64(stored + nbytes)


@jit
def _copy_memory(stored, here, nbytes, marks, away):
    """As :func:`copy_words`, with the marks of the bytes, if there are any (``execution.written``)."""
    stored = copy_words(stored, here, nbytes, away)
    return copy_words(stored, here + marks, nbytes, away) if marks != 0 else stored


@jit
def _copy_warp(warp, grid, stored, away):
    """Copy what a warp has beside its record."""
    stored = copy_words(stored, i64(warp.regs), i64(grid.registers) * (4 * LANES), away)
    stored = _copy_memory(stored, i64(warp.local), i64(grid.local_bytes) * LANES, i64(grid.local_marks), away)
    copy_words(stored, i64(warp.preds), PREDICATE_BYTES, away)


@jit
def _copy_shared(place, cta, grid, away):
    """Copy a CTA's scratchpad; returns where its warps are stored."""
    return _copy_memory(place + CTA_BYTES, i64(cta.shared), i64(grid.shared_stride), i64(grid.shared_marks), away)


@jit
def _stored_warp(place, warp, grid):
    """Where a warp is stored, of those that begin at ``place``."""
    local_bytes = i64(grid.local_bytes) * (2 if grid.local_marks != 0 else 1)
    return place + i64(warp) * _warp_bytes(i64(grid.registers), local_bytes)


@jit
def _save(sm, launch, config, slot, now):
    """Move a CTA from the SM to its grid's store."""
    cta = sm.ctas[slot]
    grid = launch.grids[cta.grid]
    live = i64(cta.warps)
    place = _place(grid, i64(grid.store_first) + i64(grid.stored))
    grid.stored += 1
    assign(at_cta(place), cta)
    place = _copy_shared(place, cta, grid, True)
    left = live
    while left != 0:
        k = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[k]
        stored = _stored_warp(place, i64(warp.index), grid)
        assign(at_warp(stored), warp)
        _copy_warp(warp, grid, stored + WARP_BYTES, True)
    depart(sm, config, slot, now)


@jit
def depart(sm, config, slot, now):
    """Let a CTA of which nothing is on its way be no more in the SM."""
    cta = sm.ctas[slot]
    live = i64(cta.warps)
    left = live
    while left != 0:
        k = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[k]
        sm.by_pipe[warp.pipe] &= ~(i64(1) << k)
        sm.by_kind[warp.kind] &= ~(i64(1) << k)
        sm.warp_scheduler[k % i64(config.core.schedulers)].io.i.finish |= i64(1) << k
    sm.resident = i64(sm.resident) & ~live
    sm.ready = i64(sm.ready) & ~live
    sm.memory_wait = i64(sm.memory_wait) & ~live
    sm.at_barrier = i64(sm.at_barrier) & ~live
    forget_fetches(sm, live)
    sm.blocked = i64(sm.blocked) | live
    give_back(sm, cta)
    sm.saved += 1
    sm.counters.preempted += 1
    sm.share.preempted += i64(cta.grid != 0)
    cta.live = 0
    if sm.tenants & HAS_LISTENERS != 0:
        emit(sm.frame.events, CTA_SAVED, now, i64(-1), slot, i64(-1), i64(0), i64(0))


@jit
def resume_cta(sm, launch, config, index, now):
    """Place the CTA of a grid that was saved first into this SM, before the SM's step of the same cycle."""
    grid = launch.grids[index]
    place = _place(grid, i64(grid.store_first))
    grid.store_first += 1
    grid.stored -= 1
    slot = free_place(sm)
    cta = sm.ctas[slot]
    assign(cta, at_cta(place))
    before = i64(cta.slots)
    if sm.lsu.carried != 0:
        l1_invalidate(sm.lsu.l1)
    enter(sm, config, grid, slot, now)
    first = ctz(cta.slots)
    cta.row = first
    cta.warps = first_slots(i64(cta.warps), before) << first
    cta.waiting = first_slots(i64(cta.waiting), before) << first
    for b in range(W.BARRIERS):
        cta.at[b] = i64(first_slots(i64(cta.at[b]), before) << first)
    place = _copy_shared(place, cta, grid, False)
    left = i64(cta.warps)
    while left != 0:
        k = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[k]
        stored = _stored_warp(place, k - first, grid)
        epoch = i64(warp.epoch)
        assign(warp, at_warp(stored))
        warp.epoch = epoch
        warp.buffered = 0
        enter_warp(sm, launch, config, grid, slot, k)
        _copy_warp(warp, grid, stored + WARP_BYTES, False)
    return_to_barriers(sm, cta)
    if sm.tenants & HAS_LISTENERS != 0:
        emit(sm.frame.events, CTA_RESUMED, now, i64(-1), slot, i64(-1), i64(0), i64(0))


@jit
def return_to_barriers(sm, cta):
    """The warps of a CTA that has come back wait where they have waited."""
    sm.blocked = i64(sm.blocked) | i64(cta.waiting)
    sm.at_barrier = i64(sm.at_barrier) | i64(cta.waiting)


@inline
def first_slots(slots, of):
    """The warps in these slots, of those of a CTA, as if its slots ``of`` were the lowest."""
    return i64(slots >> ctz(of)) & i64(in_a_row(popcount(of)))
