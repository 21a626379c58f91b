"""Pairs of CTAs that share registers and scratchpad: what fills the SM's frame slots, around the four blocks.

A grid's CTAs have places in the SM. The first of them share nothing. Of the others, the two of pair p are as many
places apart as there are pairs, so that an SM which is not full has as few pairs with both CTAs as possible. Warp i of
one CTA has its register lock, number ``p * warps + i``, in common with warp i of the other.

In a cycle, what the schedulers have granted is described to ``share_access``, whose answers go to ``share_locks``,
which refuses. Whoever takes a lock finds poison behind it. ``share_owner`` sees the CTAs come and go, and who holds
locks. The clock edge of a cycle is made when the SM is next asked: in the cycle after, if there is anything to clock.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from lockstep.models.blocks import instance
from lockstep.models.core.frame import (
    ATOMIC,
    CTA_END,
    CTA_START,
    LOAD,
    STORE,
    WARP_END,
    WARP_START,
)
from lockstep.models.core.state import LAUNCH, SM, STALLED, at_instruction, may_touch_scratchpad
from lockstep.models.dispatching import RUN
from lockstep.models.execution.isa import LANES, MAX_REGISTERS, Fault
from lockstep.models.execution.written import poison
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
    view,
    without_lowest,
)
from lockstep.models.sharing import dynamic_warp_execution, share_access, share_locks, share_owner
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, MAX_SCHEDULERS, MAX_WARPS, layout
from lockstep.spec.sharing.parameters import ACCESS, DYNAMIC, LOCKS, OWNER, Sharing

SIDES = 2  # of a pair
REGISTER_BYTES = 4 * LANES

COUNTS = record(
    [
        ("register_locks", "i8"),  # taken
        ("scratchpad_locks", "i8"),
        ("released", "i8"),
        ("register_refusals", "i8"),
        ("scratchpad_refusals", "i8"),
        ("waiting_cycles", "i8"),
        ("waiters", "i8"),  # warps x cycles
        ("both_wait", "i8"),  # pairs x cycles
        ("handovers", "i8"),
        ("throttled_cycles", "i8"),
    ]
)
STATE = record(
    [
        ("sharing", layout(Sharing)),
        ("counts", COUNTS),
        ("gate", "i8"),
        ("claim", "i8"),
        ("order", "i8"),
        ("began", "i8"),  # 1: the clock edge of a cycle is still to come
        ("starts", "i8", (SIDES,)),  # pairs of which a CTA has started before its SM's step, ...
        ("seated", "i8"),  # ... and warp slots
        ("owners", "i8"),  # pairs with both CTAs, and their owners, ...
        ("both", "i8"),
        ("reserved", "i8", (SIDES,)),  # pairs whose scratchpad is one CTA's before it has the lock
        ("stale", "i8"),  # 1: ... are not what the masks of warps below say
        ("owner", "i8"),  # warp slots
        ("non_owner", "i8"),
        ("waiting", "i8"),
        ("watched", "i8"),  # 1: the windows of dynamic warp execution have begun
        ("share_access", instance(ACCESS, share_access.STATE), (MAX_SCHEDULERS,)),
        ("share_locks", instance(LOCKS, share_locks.STATE)),
        ("share_owner", instance(OWNER, share_owner.STATE)),
        ("dynamic_warp_execution", instance(DYNAMIC, dynamic_warp_execution.STATE)),
    ]
)

at_launch, at_config = pointer_to(LAUNCH), pointer_to(CONFIG)


# ------------------------------------------------------------------------------------------------------ who is whose


@inline
def _grid(sm):
    return at_launch(i64(sm.launch)).grids[0]


@inline
def _seat(grid, place):
    """The pair and the side of a place for CTAs, as 2 * pair + side; below 0 if it is in no pair."""
    pairs = i64(grid.pairs)
    beyond = place - (i64(grid.per_sm) - 2 * pairs)
    if beyond < 0:
        return i64(-1)
    return 2 * (beyond - pairs) + 1 if beyond >= pairs else 2 * beyond


@inline
def _place(grid, pair, side):
    """The inverse of :func:`_seat`."""
    return i64(grid.per_sm) - (2 - side) * i64(grid.pairs) + pair


@inline
def _lock(grid, pair, warp):
    """The number of a warp's register lock."""
    return pair * i64(grid.warps) + i64(warp.index)


@jit
def _sit(state, sm, grid):
    """Tell ``share_locks`` the places of the warps that have started."""
    seated = i64(state.seated)
    while seated != 0:
        slot = ctz(seated)
        seated = without_lowest(seated)
        warp, place = sm.warps[slot], state.share_locks.io.i.seat[slot]
        seat = i64(_seat(grid, i64(warp.cta)))
        place.pair = seat >> 1
        place.side = seat & 1
        place.lock = _lock(grid, seat >> 1, warp)
    state.seated = 0


# ------------------------------------------------------------------------------------------------- CTAs come and go


@jit
def hear(state, sm):
    """A CTA or a warp starts or ends. What starts does so before the SM's step, and is clocked with it."""
    events = sm.frame.events
    kind = i64(events.kind)
    if kind < CTA_START:
        return i64(0)
    grid = _grid(sm)
    seat = i64(_seat(grid, i64(events.cta)))
    if seat < 0:
        return i64(0)
    pair, side = seat >> 1, seat & 1
    cta, locks = sm.ctas[events.cta], state.share_locks.io
    if kind == CTA_START:
        state.starts[side] |= i64(1) << pair
        cta.own_shared = grid.own_shared
        number = i64(sm.index) * i64(grid.pairs) + pair
        cta.pair_shared = i64(grid.pair_scratchpad) + number * i64(grid.shared_stride)
        cta.pair_marks = grid.pair_marks
    elif kind == WARP_START:
        state.seated |= i64(1) << i64(events.slot)
        warp = sm.warps[events.slot]
        if grid.own_registers < grid.registers:
            warp.own_registers = grid.own_registers
            place = (i64(sm.index) * (MAX_WARPS // 2) + _lock(grid, pair, warp)) * i64(grid.registers)
            warp.pair_regs = i64(grid.pair_registers) + place * REGISTER_BYTES
    elif kind == WARP_END:
        bit = i64(1) << i64(events.slot)
        locks.i.finish |= bit
        state.counts.released += i64(i64(locks.o.held) & bit != 0)
    elif kind == CTA_END:
        bit = i64(1) << pair
        locks.i.leave[side] |= bit
        state.reserved[side] &= ~bit
        state.share_owner.io.i.finish[side] |= bit
        state.counts.released += i64(i64(locks.o.scratchpads[side]) & bit != 0)
    return i64(0)


# ------------------------------------------------------------------------------------------------------ access to locks


@inline
def _highest(instruction):
    """The highest register that an instruction names, source or destination; -1: none."""
    highest = i64(-1)
    for k in range(4):
        word = i64(instruction.need[k])
        if word != 0:
            highest = 64 * k + (i64(63) if word < 0 else _top(word))
    return highest


@inline
def _top(word):
    """The number of the highest bit of a positive word."""
    bit = i64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if word >> step != 0:
            word >>= step
            bit += step
    return bit


@jit
def ask(state, sm):
    """Describe the granted instructions, and refuse those whose locks are not to be had."""
    frame, grid = sm.frame, _grid(sm)
    locks = state.share_locks
    different = i64(0)
    for k in range(MAX_SCHEDULERS):
        grant = frame.grants[k]
        if grant.valid == 0:
            continue
        warp = sm.warps[grant.slot]
        seat = i64(_seat(grid, i64(warp.cta)))
        access = state.share_access[k]
        _describe(access.io.i, grant, grid, seat)
        different |= call(access.binding.comb, access.binding.handle, addressof(access.io))
        slot = i64(grant.slot)
        scratchpad = i64(access.io.c.scratchpad_lock) | _is_reserved(state, grant, seat)
        locks.io.i.granted |= i64(1) << slot
        locks.io.i.registers |= i64(access.io.c.register_lock) << slot
        locks.io.i.scratchpad |= scratchpad << slot
    different |= call(locks.binding.comb, locks.binding.handle, addressof(locks.io))
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    return i64(locks.io.c.refuse)


@jit
def _describe(inputs, grant, grid, seat):
    """What ``share_access`` sees of a granted instruction."""
    instruction = at_instruction(i64(grant.instruction))
    highest = _highest(instruction)
    inputs.shared = i64(seat >= 0)
    inputs.own_registers = min(i64(grid.own_registers), i64(MAX_REGISTERS))
    inputs.own_bytes = grid.own_shared
    inputs.names = i64(highest >= 0)
    inputs.highest = max(highest, i64(0))
    touched = i64(grant.touched_shared)
    inputs.touched = touched
    if touched != 0:
        inputs.size = i64(instruction.bytes) * i64(instruction.vec)
        for lane in range(LANES):
            inputs.address[lane] = grant.address[lane] if (touched >> lane) & 1 != 0 else 0


@inline
def _is_reserved(state, grant, seat):
    """Whether an instruction accesses a scratchpad that its CTA has reserved: where it does may not be known yet."""
    access = may_touch_scratchpad(at_instruction(i64(grant.instruction)))
    return (i64(state.reserved[seat & 1]) >> (seat >> 1)) & 1 if seat >= 0 and access else i64(0)


@jit
def commit(state, sm):
    """Take the locks of what issues: what lies behind them is poison. They are taken at the clock edge."""
    frame, grid, locks, counts = sm.frame, _grid(sm), state.share_locks.io, state.counts
    refused = i64(0)
    for k in range(MAX_SCHEDULERS):
        grant = frame.grants[k]
        if grant.valid == 0:
            continue
        bit = i64(1) << i64(grant.slot)
        registers = i64(locks.i.registers) & bit != 0
        if grant.refused != 0:
            refused |= i64(1) << k
            if (i64(locks.c.refuse) >> k) & 1 != 0:
                counts.register_refusals += i64(registers)
                counts.scratchpad_refusals += i64(not registers)
            continue
        if registers and i64(locks.o.held) & bit == 0:
            counts.register_locks += 1
            own = i64(grid.own_registers) * REGISTER_BYTES
            poison(i64(sm.warps[grant.slot].pair_regs) + own, i64(grid.registers) * REGISTER_BYTES - own, i64(0))
        if i64(locks.i.scratchpad) & bit != 0 and not _has_scratchpad(frame, locks, k):
            counts.scratchpad_locks += 1
            cta, own = sm.ctas[sm.warps[grant.slot].cta], i64(grid.own_shared)
            poison(i64(cta.pair_shared) + own, i64(grid.shared_stride) - own, i64(cta.pair_marks))
    locks.i.refused = refused
    return i64(0)


@inline
def _has_scratchpad(frame, locks, k):
    """Whether the CTA of a grant has the lock of scratchpad, or takes it in this cycle with a scheduler before."""
    mine = locks.i.seat[frame.grants[k].slot]
    if (i64(locks.o.scratchpads[mine.side]) >> i64(mine.pair)) & 1 != 0:
        return True
    for before in range(k):
        slot = i64(frame.grants[before].slot)
        other = locks.i.seat[slot]
        takes = frame.grants[before].valid != 0 and (i64(locks.i.scratchpad) >> slot) & 1 != 0
        if takes and other.pair == mine.pair and other.side == mine.side:
            return True
    return False


@jit
def reserve(state, sm):
    """Keep a pair's scratchpad for the CTA of a warp, which takes the lock later; whether the other one lets it."""
    seat = i64(_seat(_grid(sm), i64(sm.warps[sm.frame.asked].cta)))
    if seat < 0:
        return i64(1)
    bit, side = i64(1) << (seat >> 1), seat & 1
    if (i64(state.reserved[1 - side]) | i64(state.share_locks.io.o.scratchpads[1 - side])) & bit != 0:
        return i64(0)
    state.reserved[side] |= bit
    return i64(1)


# --------------------------------------------------------------------------------------------------------- clock edges


@jit
def update(state, sm):
    """The clock edge of the last cycle in which we were asked; nothing changes in those since. Then this cycle."""
    now = i64(sm.frame.now)
    locks, owner = state.share_locks, state.share_owner
    different = i64(0)
    if state.began != 0:
        different |= _edge(state, sm)
    state.began = 1
    for side in range(SIDES):
        owner.io.i.start[side] = state.starts[side]
        owner.io.i.holds[side] = locks.io.o.holds[side]
        if state.starts[side] != 0:
            state.stale = 1
        state.starts[side] = 0
    grid = _grid(sm)
    _sit(state, sm, grid)
    locks.io.i.older = owner.io.o.older
    different |= call(locks.binding.comb, locks.binding.handle, addressof(locks.io))
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    _classes(state, sm, grid)
    _close(state, sm)
    idle = call(owner.binding.idle, owner.binding.handle, addressof(owner.io))
    idle = min(idle, call(locks.binding.idle, locks.binding.handle, addressof(locks.io)))
    return now + max(idle, 1)


@inline
def _edge(state, sm):
    """One clock edge of the blocks in the issue path; then nothing is asked, and nobody ends."""
    different = i64(0)
    locks, owner = state.share_locks, state.share_owner
    for k in range(i64(at_config(i64(sm.config)).core.schedulers)):
        access = state.share_access[k]
        different |= call(access.binding.step, access.binding.handle, addressof(access.io))
    before = i64(owner.io.o.owner)
    stays_0 = i64(owner.io.o.present[0]) & ~i64(owner.io.i.finish[0])
    stays_1 = i64(owner.io.o.present[1]) & ~i64(owner.io.i.finish[1])
    pairs = i64(owner.io.o.present[0]) & i64(owner.io.o.present[1])
    different |= call(locks.binding.step, locks.binding.handle, addressof(locks.io))
    different |= call(owner.binding.step, owner.binding.handle, addressof(owner.io))
    after = i64(owner.io.o.owner)
    state.counts.handovers += popcount(pairs & (before & ~after & stays_0 | ~before & after & stays_1))
    inputs = locks.io.i
    inputs.granted = inputs.registers = inputs.scratchpad = 0
    inputs.refused = inputs.finish = 0
    for side in range(SIDES):
        inputs.leave[side] = 0
        owner.io.i.finish[side] = 0
    return different


@jit
def _classes(state, sm, grid):
    """The warps of owners and non-owners, of pairs with both CTAs, and those that wait for locks."""
    io, locks = state.share_owner.io.o, state.share_locks.io.o
    both, owners = i64(io.present[0]) & i64(io.present[1]), i64(io.owner)
    if both != state.both or owners != state.owners or state.stale != 0:
        state.both, state.owners, state.stale = both, owners, 0
        state.owner = state.non_owner = 0
        while both != 0:
            pair = ctz(both)
            both = without_lowest(both)
            side = (owners >> pair) & 1
            state.owner |= i64(sm.ctas[_place(grid, pair, side)].slots)
            state.non_owner |= i64(sm.ctas[_place(grid, pair, 1 - side)].slots)
    state.waiting = locks.waiting
    sm.frame.claim[state.claim].waiting = state.waiting


@inline
def _close(state, sm):
    """Keep non-owners from accessing memory, if dynamic warp execution says so."""
    closed = i64(0) if state.dynamic_warp_execution.io.o.allow != 0 else i64(state.non_owner)
    gate = sm.frame.gate[state.gate].closed
    gate[LOAD] = closed
    gate[STORE] = closed
    gate[ATOMIC] = closed


@jit
def order(state, sm):
    """Owner warp first."""
    if state.sharing.owf != 0:
        classes = sm.frame.order[state.order].classes
        classes.owner = state.owner
        classes.non_owner = state.non_owner
    return NEVER


# ----------------------------------------------------------------------------------------------- dynamic warp execution


@jit
def see(state, sm):
    """Cycles of dynamic warp execution, all with the same outcome; and what they mean for the statistics."""
    seen, counts = sm.frame.seen, state.counts
    cycles = i64(seen.cycles)
    if state.waiting != 0:
        counts.waiting_cycles += cycles
        counts.waiters += popcount(i64(state.waiting)) * cycles
        counts.both_wait += _pairs_that_wait(state) * cycles
    block = state.dynamic_warp_execution
    io, binding = block.io, block.binding
    io.i.first = i64(sm.index == 0)
    io.i.stall = i64(seen.outcome == STALLED)
    different, left = i64(0), cycles
    while left > 0:
        counts.throttled_cycles += i64(io.o.allow == 0 and state.non_owner != 0)
        different |= call(binding.step, binding.handle, addressof(io))
        left -= 1
        idle = min(call(binding.idle, binding.handle, addressof(io)), left)
        if idle > 0:
            call(binding.skip, binding.handle, idle)
            counts.throttled_cycles += idle if io.o.allow == 0 and state.non_owner != 0 else 0
            left -= idle
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    if state.non_owner == 0:
        return NEVER
    io.i.stall = 0  # does not change a port before the window's end
    return i64(seen.first) + cycles + max(call(binding.idle, binding.handle, addressof(io)), 1)


@jit
def _pairs_that_wait(state):
    """How many pairs have warps of both CTAs that wait for locks."""
    first = second = i64(0)
    waiting = i64(state.waiting)
    while waiting != 0:
        seat = state.share_locks.io.i.seat[ctz(waiting)]
        waiting = without_lowest(waiting)
        if seat.side == 0:
            first |= i64(1) << i64(seat.pair)
        else:
            second |= i64(1) << i64(seat.pair)
    return popcount(first & second)


@jit
def watch(state, run):
    """At the end of every window, all SMs learn what SM 0 is like."""
    now, window = i64(run.now), i64(state.sharing.window)
    active = i64(state.share_owner.io.o.sharing & state.sharing.dynamic)
    if state.watched == 0:
        state.watched, active = 1, 0
    for k in range(run.sms):
        io = at_state(addressof(state) + k * STATE_BYTES).dynamic_warp_execution.io.i
        io.active = active
        io.baseline = state.dynamic_warp_execution.io.o.stalls
    return now + window


# ----------------------------------------------------------------------------------------------------------- diagnosis


def waits(state: Any, sm: Any, slot: int) -> str:
    """Which lock a warp waits for, who has it, and whether that CTA waits for locks, too."""
    if not int(state["waiting"]) >> slot & 1:
        return ""
    launch = np.frombuffer(memoryview((ctypes.c_char * LAUNCH.itemsize).from_address(int(sm["launch"]))), LAUNCH)
    grid = view(launch["grids"][0, 0:1].reshape(()))
    pair, side = divmod(int(_seat(grid, int(sm["warps"][slot]["cta"]))), 2)
    partner = sm["ctas"][int(_place(grid, pair, 1 - side))]
    locks, slots = state["share_locks"]["io"]["o"], int(partner["slots"])
    registers = bool(int(locks["held"]) & slots)
    kind = " and ".join(["registers"] * registers + ["scratchpad"] * (int(locks["scratchpads"][1 - side]) >> pair & 1))
    text = f"a lock: its partner, CTA {tuple(int(v) for v in partner['ctaid'])}, holds those of {kind}"
    if int(locks["waiting"]) & slots:
        text += ", and waits for locks as well: a deadlock"
    return text


STATE_BYTES = STATE.itemsize
at_state = pointer_to(STATE)

TENANTS = {
    "gates": slots(STATE, SM, update=update),
    "order": slots(STATE, SM, update=order),
    "claims": slots(STATE, SM, ask=ask, commit=commit, reserve=reserve),
    "events": slots(STATE, SM, hear=hear),
    "monitors": slots(STATE, SM, see=see) | slots(STATE, RUN, watch=watch),
}
