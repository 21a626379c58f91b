"""Issue: execute a warp's next instruction, now if its sources are there, and later if they are not (``put_off``)."""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.control import control
from lockstep.models.core.delivery import defer, take_values
from lockstep.models.core.fetch import flush, want_fetch
from lockstep.models.core.frame import CONFLICT, HAS_LISTENERS, HAS_OPERANDS, ISSUE, LATER, emit_of_warp
from lockstep.models.core.operands import collect, executed, read, reserve_pipeline, write_back
from lockstep.models.core.put_off import put_off, take_back
from lockstep.models.core.scoreboard import hold, refresh
from lockstep.models.core.state import BY_INSTRUCTION, address_of, at_instruction, is_access, stop
from lockstep.models.execution.isa import (
    GLOBAL_BASE,
    LANES,
    LOCAL_PHYSICAL,
    PT,
    Category,
    Fault,
    Flag,
    Group,
    Space,
)
from lockstep.models.execution.operands import read_predicate
from lockstep.models.jit import addressof, call, ctz, i64, inline, inline_once, jit, popcount, without_lowest
from lockstep.models.lsu.queue import NEAR, queue_constants, queue_memory
from lockstep.models.lsu.unit import issue_memory
from lockstep.models.marks import Part, mark
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree, least_degree
from lockstep.models.share import exclude, include
from lockstep.models.time import NEVER


@inline
def show(sm, launch, context, instruction, slot, now):
    """Show the executing functions a warp, and the lanes in which it executes an instruction."""
    warp = sm.warps[slot]
    cta = sm.ctas[warp.cta]
    grid = launch.grids[cta.grid]
    context.grid = addressof(grid)
    context.shared_marks = grid.shared_marks
    context.local_marks = grid.local_marks
    context.active = warp.mask
    context.regs = warp.regs
    context.own_registers = warp.own_registers
    context.pair_regs = warp.pair_regs
    context.preds = warp.preds
    context.present = warp.present
    context.warp = warp.index
    context.sm = sm.index
    context.slot = slot
    context.now = now
    context.shared = cta.shared
    context.own_shared = cta.own_shared
    context.pair_shared = cta.pair_shared
    context.pair_marks = cta.pair_marks
    context.local = warp.local
    context.local_physical = warp.local_physical
    for k in range(3):
        context.ctaid[k] = cta.ctaid[k]
    mask = i64(warp.mask)
    if instruction.guard != PT:
        mask &= i64(read_predicate(context, i64(instruction.guard), i64(instruction.guard_not)))
    context.mask = mask


@inline
def _exclude(sm):
    exclude(addressof(sm.share), addressof(sm.counters), BY_INSTRUCTION)


@inline
def _include(sm):
    include(addressof(sm.share), addressof(sm.counters), BY_INSTRUCTION)


@jit
def issue(sm, launch, config, context, k, now):
    """Issue the instruction that scheduler ``k`` has granted, and execute it if its sources are there."""
    mark(Part.ISSUE)
    slot = i64(sm.warp_scheduler[k].io.c.grant.warp)
    grid = (i64(sm.second) >> slot) & 1
    sm.issued_of |= 1 << grid
    if grid != 0:
        _exclude(sm)
    _issue(sm, launch, config, context, k, slot, now)
    if grid != 0:
        _include(sm)


@inline_once
def _issue(sm, launch, config, context, k, slot, now):
    """The same, of whichever grid."""
    io = sm.warp_scheduler[k].io
    warp = sm.warps[slot]
    pc = i64(warp.pc)
    where = address_of(warp, pc)
    instruction = at_instruction(where)
    show(sm, launch, context, instruction, slot, now)
    if launch.guide != 0:
        mark(Part.TRACE)
        fault = call(i64(launch.guide), addressof(context), addressof(warp))
        mark(Part.ISSUE)
        if fault != Fault.NONE:
            stop(sm, fault, slot, pc)
    mask = i64(context.mask)
    flags = i64(instruction.flags)
    io.i.hint = 1 if flags & Flag.HINT != 0 else 0
    counters = sm.counters
    if flags & Flag.ADDED != 0:
        counters.added_instructions += 1
    else:
        counters.warp_instructions += 1
        counters.categories[instruction.category] += 1
        lanes = popcount(mask)
        counters.lanes[instruction.category] += lanes
        counters.register_lanes += lanes * i64(instruction.registers)
        if instruction.group == Group.CONTROL and flags & Flag.CALL == 0:
            counters.control_lanes[instruction.op] += lanes
    if sm.tenants != 0:
        sm.frame.seen.issued |= i64(1) << slot
        if sm.tenants & HAS_LISTENERS != 0:
            emit_of_warp(sm.frame.events, ISSUE, now, slot, pc, mask, flags)
    warp.issued = now
    warp.issued_pc = pc
    warp.buffered -= 1
    ready = read(sm, config, instruction, slot, pc, mask, now)
    if ready == LATER:
        put_off(sm, config, context, instruction, slot, pc)
        if instruction.group != Group.CONTROL:
            warp.pc += 1
            W.pop_reconverged(warp)
            _go_on(sm, config, slot, pc)
        refresh(sm, config, slot)
        return
    if instruction.group == Group.CONTROL:
        start = control(sm, config, context, instruction, slot, ready, now)
    else:
        warp.pc += 1
        W.pop_reconverged(warp)
        start = _execute(sm, launch, config, context, where, slot, pc, ready, now)
    collect(sm, config, instruction, start)
    if sm.fault == Fault.NONE:
        _go_on(sm, config, slot, pc)
        refresh(sm, config, slot)


@inline
def _go_on(sm, config, slot, pc):
    """Fetch for a warp that has issued, unless that was its last instruction."""
    if (i64(sm.resident) >> slot) & 1 != 0:
        if sm.warps[slot].pc != pc + 1:
            flush(sm, config, slot)
        else:
            want_fetch(sm, config, slot)


@jit
def _execute(sm, launch, config, context, where, slot, pc, ready, now):
    """Execute an instruction of the warp in the context, whose sources are there at ``ready``.

    Returns its start, which of an access is not known.
    """
    instruction = at_instruction(where)
    context.touched = 0
    context.touched_shared = 0
    if context.mask != 0:
        mark(Part.EXECUTION)
        fault = call(i64(launch.execute[instruction.group]), addressof(context), where)
        mark(Part.ISSUE)
        if fault != Fault.NONE:
            stop(sm, fault, slot, pc)
    if is_access(instruction):
        mark(Part.LSU)
        _access(sm, config, context, instruction, slot, pc, ready, now)
        mark(Part.ISSUE)
        return i64(NEVER)
    start = reserve_pipeline(sm, config, instruction, ready)
    written = hold(sm.warps[slot], instruction, False)
    sm.counters.register_writes += written
    executed(sm, instruction, slot, pc, i64(context.mask), now)
    if written != 0 or i64(instruction.pwrites) != 0:
        write_back(sm, start - 1 + i64(config.pipelines[instruction.category].latency), slot, pc, now)
    return start


@jit
def _distinct(context, width):
    """How many different blocks of some bytes the lanes touch: constant accesses take a cycle for each."""
    block = -width
    touched = i64(context.touched)
    leader = i64(context.address[ctz(touched)]) if touched != 0 else i64(0)
    others = i64(0)
    for lane in range(context.lanes):
        others |= (i64(context.address[lane]) ^ leader) & block & -((touched >> lane) & 1)
    if others == 0:
        return i64(1)
    count = i64(0)
    while touched != 0:
        first = i64(context.address[ctz(touched)]) & block
        count += 1
        rest = without_lowest(touched)
        while rest != 0:
            lane = ctz(rest)
            rest = without_lowest(rest)
            if i64(context.address[lane]) & block == first:
                touched &= ~(i64(1) << lane)
        touched = without_lowest(touched)
    return count


@jit
def _count_generic(counters, context, touched, in_scratchpad):
    """Count the lanes of a generic load or store that reach other spaces than the global one."""
    counters.generic_lanes[Space.SHARED] += popcount(in_scratchpad)
    rest = touched & ~in_scratchpad
    while rest != 0:
        address = i64(context.address[ctz(rest)])
        rest = without_lowest(rest)
        if address >= LOCAL_PHYSICAL:
            counters.generic_lanes[Space.LOCAL] += 1
        elif address < GLOBAL_BASE:
            counters.generic_lanes[Space.PARAM] += 1


@inline
def _access(sm, config, context, instruction, slot, pc, ready, now):
    """Queue a load, a store, an atomic or a texture fetch that has been executed."""
    warp = sm.warps[slot]
    counters = sm.counters
    touched = i64(context.touched)
    in_scratchpad = i64(context.touched_shared)
    cached = touched & ~in_scratchpad
    cycles = i64(1)
    latency = i64(config.pipelines[instruction.category].latency)
    generic = instruction.space == Space.GENERIC and instruction.group == Group.MEMORY
    if generic and i64(instruction.flags) & Flag.ADDED == 0:
        _count_generic(counters, context, touched, in_scratchpad)
    if in_scratchpad != 0:
        counters.scratchpad_accesses += 1
        banks, bank_bytes = i64(config.scratchpad.banks), i64(config.scratchpad.bank_bytes)
        if instruction.group == Group.ATOMIC:
            cycles = atomic_degree(context, banks, bank_bytes, i64(instruction.bytes))
        else:
            broadcasts, vec = i64(config.scratchpad.broadcasts), i64(instruction.vec)
            cycles = conflict_degree(context, banks, bank_bytes, broadcasts, i64(instruction.bytes), vec)
        beyond = cycles - (least_degree(context, banks) if banks < LANES else i64(1))
        counters.scratchpad_conflict_cycles += beyond
        if sm.tenants & HAS_LISTENERS != 0:
            emit_of_warp(sm.frame.events, CONFLICT, i64(context.now), slot, pc, in_scratchpad, beyond)
        latency = i64(config.pipelines[Category.SHARED].latency)
    constants = instruction.space == Space.CONST or instruction.space == Space.PARAM
    if constants:
        cycles = _distinct(context, i64(config.constant_cache.width))
        cached = i64(0)
    warp.outstanding += 1
    counters.register_writes += hold(warp, instruction, cached != 0)
    number = i64(NEAR)
    near = latency + cycles - 1 if cached == 0 or in_scratchpad != 0 else i64(0)
    if cached != 0:
        number = issue_memory(sm.lsu, config, context, instruction, cached, slot, pc)
        if sm.lsu.path.delivers != 0 and sm.tenants & HAS_OPERANDS == 0:
            take_values(sm.lsu, warp, instruction, number)
        if sm.lsu.carried != 0:
            defer(sm.lsu, warp, instruction, number)
    executed(sm, instruction, slot, pc, i64(context.mask), now)
    cycles = max(cycles, i64(config.pipelines[instruction.category].interval))
    queue_memory(sm.lsu, number, ready, cycles, near, slot, pc)
    if constants and touched != 0:
        queue_constants(sm.lsu, context, sm.constants.line_shift)


@jit
def deliver(sm, launch, config, context, slot, now):
    """Execute the oldest instruction of a warp that waits for its sources: they are there now."""
    mark(Part.ISSUE)
    grid = (i64(sm.second) >> slot) & 1
    if grid != 0:
        _exclude(sm)
    _deliver(sm, launch, config, context, slot, now)
    if grid != 0:
        _include(sm)


@inline_once
def _deliver(sm, launch, config, context, slot, now):
    """The same, of whichever grid."""
    warp = sm.warps[slot]
    kept = warp.put_off[warp.put_off_first]
    pc = i64(kept.pc)
    where = address_of(warp, pc)
    instruction = at_instruction(where)
    show(sm, launch, context, instruction, slot, now)
    take_back(sm, config, instruction, slot)
    context.mask = kept.mask
    context.active = kept.active
    if instruction.group == Group.CONTROL:
        start = control(sm, config, context, instruction, slot, now, now)
    else:
        start = _execute(sm, launch, config, context, where, slot, pc, now, now)
    if not is_access(instruction):
        sm.collector[config.pipelines[instruction.category].pipe, kept.collector] = start
    if instruction.group == Group.CONTROL:
        _go_on(sm, config, slot, pc)
    refresh(sm, config, slot)
