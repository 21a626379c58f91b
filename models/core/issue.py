"""Issue: choose a warp for each scheduler, ask the claims about all of them together, and execute what remains.

A cycle of issue is three passes over the schedulers. First each grants one of its requests; what a grant will take of
collectors and of the LSU's room is counted for the schedulers after it. Then the claims are asked. Then the granted
instructions that nobody refuses issue in the order of the schedulers, and the schedulers see what became of theirs.
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.control import control
from lockstep.models.core.events import EVENTS, RESERVE
from lockstep.models.core.fetch import flush, want_fetch
from lockstep.models.core.frame import (
    ATOMIC,
    HAS_CLAIMS,
    HAS_GATES,
    HAS_LISTENERS,
    HAS_ORDER,
    ISSUE,
    KINDS,
    LATER,
    LOAD,
    STORE,
    emit_of_warp,
)
from lockstep.models.core.lsu import issue_memory, keep_room, return_room
from lockstep.models.core.operands import blocked_until, collect, executed, read, reserve, write_back
from lockstep.models.core.scoreboard import held_by_lsu, hold, hold_sources, refresh, release_sources
from lockstep.models.core.state import (
    EMPTY,
    IDLE,
    ISSUED,
    PIPE_KINDS,
    PIPE_LSU,
    STALLED,
    address_of,
    at_instruction,
    grid_of,
)
from lockstep.models.execution.isa import PT, Category, Fault, Flag, Group, Memory, Space
from lockstep.models.execution.operands import read_predicate
from lockstep.models.jit import addressof, call, ctz, i64, jit, popcount
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_SCHEDULERS

# ------------------------------------------------------------------------------------------------------------- choosing


@jit
def _held_by_tenants(sm):
    """Ready slots that a gate or a claim does not let issue."""
    frame = sm.frame
    held = i64(frame.waiting)
    for kind in range(KINDS):
        held |= i64(sm.by_kind[kind] & frame.closed[kind])
    return held & i64(sm.ready)


@jit
def _requests(sm, config, k, tenants, now):
    """The slots whose next instruction scheduler ``k`` may grant, and the cycle to look again if there is none.

    ``tenants``: the slots that mechanisms hold back.
    """
    wake = i64(NEVER)
    mine = i64(sm.partition[k])
    if sm.next_issue[k] > now:
        if i64(sm.resident) & mine != 0:
            wake = i64(sm.next_issue[k])
        return i64(0), wake
    requests = i64(0)
    if i64(sm.ready) & mine != 0 and sm.wheel.count < EVENTS - RESERVE:
        held = held_by_lsu(sm)
        if held & mine & i64(sm.ready) != 0:
            sm.stalled_pipes |= i64(1) << PIPE_LSU
        mine &= ~(held | tenants)
        for pipe in range(PIPE_KINDS):
            waiting = i64(sm.by_pipe[pipe]) & mine
            if waiting != 0:
                until = blocked_until(sm, config, pipe, now)
                if until <= now:
                    requests |= waiting
                else:
                    sm.stalled_pipes = i64(sm.stalled_pipes) | (i64(1) << pipe)
                    wake = min(wake, until)
    return requests, wake


@jit
def _note(sm, launch, config, context, k, slot, now):
    """Count what a grant takes of what the schedulers share, and describe it for the claims.

    Returns whether an entry of the LSU is kept for it, while the other schedulers choose.
    """
    pc = i64(sm.warps[slot].pc)
    where = address_of(grid_of(sm, launch, slot), pc)
    instruction = at_instruction(where)
    sm.granted[config.pipelines[instruction.category].pipe] += 1
    sm.warp_scheduler[k].io.i.hint = 1 if i64(instruction.flags) & Flag.HINT != 0 else 0
    claims = sm.tenants & HAS_CLAIMS
    kinds = sm.by_kind
    last = k + 1 == config.core.schedulers
    beyond = not last and (i64(kinds[LOAD] | kinds[STORE] | kinds[ATOMIC]) >> slot) & 1 != 0
    if claims == 0 and not beyond:
        return False
    show(sm, context, instruction, slot, now)
    grant = sm.frame.grants[k]
    grant.slot = slot
    grant.pc = pc
    grant.instruction = where
    grant.lanes = context.mask
    _locate(launch, context, grant, instruction, claims != 0)
    if beyond and grant.touched & ~grant.touched_shared != 0:
        keep_room(sm.lsu, slot)
        return True
    return False


@jit
def _locate(launch, context, grant, instruction, addresses):
    """Find out where a granted instruction would access memory: whether at all, or at which ``addresses``."""
    grant.touched = 0
    grant.touched_shared = 0
    group = i64(instruction.group)
    if grant.lanes == 0 or not _is_access(instruction):
        return
    if not addresses and group != Group.TEXTURE and instruction.space != Space.GENERIC:
        grant.touched = grant.lanes
        if group == Group.ATOMIC or instruction.op != Memory.PREFETCH:
            return
    context.probe = 1
    call(i64(launch.execute[group]), addressof(context), i64(grant.instruction))
    context.probe = 0
    grant.touched = context.touched
    grant.touched_shared = context.touched_shared
    for lane in range(context.lanes):
        grant.address[lane] = context.address[lane]


@jit
def _ask(sm, granted):
    """Ask the claims about the granted instructions of this cycle, all together; returns the refused schedulers."""
    frame = sm.frame
    for k in range(MAX_SCHEDULERS):
        frame.grants[k].valid = (granted >> k) & 1
        frame.grants[k].refused = 0
    refused = i64(0)
    for k in range(frame.claims):
        claim = frame.claim[k]
        refused |= call(claim.ask, claim.handle, addressof(sm))
    refused &= granted
    for k in range(MAX_SCHEDULERS):
        frame.grants[k].refused = (refused >> k) & 1
    for k in range(frame.claims):
        claim = frame.claim[k]
        call(claim.commit, claim.handle, addressof(sm))
        frame.waiting |= claim.waiting
    sm.counters.refused_grants += popcount(refused)
    return refused


@jit
def select(sm, launch, config, context, now):
    """Issue at most one instruction per scheduler; leaves the outcome in the SM, and returns the cycle to look next."""
    wake = i64(NEVER)
    schedulers = i64(config.core.schedulers)
    sm.stalled_pipes = 0
    sm.idle_schedulers = 0
    held = _held_by_tenants(sm) if sm.tenants & (HAS_GATES | HAS_CLAIMS) != 0 else i64(0)
    if sm.tenants != 0:
        _see(sm, held)
    for pipe in range(PIPE_KINDS):
        sm.granted[pipe] = 0
    granted = kept = refused = different = i64(0)
    for k in range(schedulers):
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        requests, until = _requests(sm, config, k, held, now)
        wake = min(wake, until)
        io.i.request = requests
        mine = i64(sm.partition[k])
        io.i.long_latency = (i64(sm.memory_wait | sm.at_barrier) | held) & mine
        io.i.global_wait = (i64(sm.memory_wait) | held) & mine
        if sm.tenants & HAS_ORDER != 0:
            _rank(sm.frame.classes, io.i, mine)
        different |= call(binding.comb, binding.handle, addressof(io))
        if io.c.grant.valid != 0:
            granted |= i64(1) << k
            if _note(sm, launch, config, context, k, i64(io.c.grant.warp), now):
                kept |= i64(1) << k
    while kept != 0:
        return_room(sm.lsu, i64(sm.warp_scheduler[ctz(kept)].io.c.grant.warp))
        kept &= kept - 1
    if granted != 0 and sm.tenants & HAS_CLAIMS != 0:
        refused = _ask(sm, granted)
    issued = i64(0)
    could = i64(sm.ready) & ~held
    for k in range(schedulers):
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        if (granted >> k) & 1 != 0:
            until = now + i64(config.core.issue_interval)
            sm.next_issue[k] = until
            slot = i64(io.c.grant.warp)
            io.i.refused = (refused >> k) & 1
            if io.i.refused != 0:
                could &= ~(i64(1) << slot)
            else:
                issued |= i64(1) << slot
                sm.counters.active_cycles += until - max(now, i64(sm.active_until))
                sm.active_until = until
                _issue(sm, launch, config, context, slot, now)
        elif sm.next_issue[k] <= now and i64(sm.resident) & i64(sm.partition[k]) != 0:
            sm.idle_schedulers += 1
        different |= call(binding.step, binding.handle, addressof(io))
        io.i.start = 0
        io.i.finish = 0
        # A request that was not granted waits for its warp to become active (two-level), which the step may have done.
        if issued == 0 and (io.i.request != 0 or call(binding.idle, binding.handle, addressof(io)) == 0):
            wake = now + 1
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    if sm.tenants != 0:
        sm.frame.seen.issued = issued
    if issued != 0:
        sm.outcome = ISSUED
        return now + 1
    if i64(sm.resident) == 0:
        sm.outcome = EMPTY
    else:
        sm.outcome = STALLED if could != 0 else IDLE
    return wake


@jit
def _rank(classes, inputs, mine):
    """Show a scheduler the classes of its warps."""
    inputs.paused = i64(classes.paused) & mine
    inputs.secondary = i64(classes.secondary) & mine
    inputs.owner = i64(classes.owner) & mine
    inputs.non_owner = i64(classes.non_owner) & mine


@jit
def _see(sm, held):
    """Note in what state the warps are when they are chosen from."""
    seen = sm.frame.seen
    seen.resident = sm.resident
    seen.ready = sm.ready
    seen.waiting = sm.memory_wait
    seen.at_barrier = sm.at_barrier
    seen.held = held


# ------------------------------------------------------------------------------------------------------------ executing


@jit
def show(sm, context, instruction, slot, now):
    """Show the executing functions a warp, and the lanes in which it executes an instruction."""
    warp = sm.warps[slot]
    cta = sm.ctas[warp.cta]
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
    context.local = warp.local
    context.local_physical = warp.local_physical
    for k in range(3):
        context.ctaid[k] = cta.ctaid[k]
    mask = i64(warp.mask)
    if instruction.guard != PT:
        mask &= i64(read_predicate(context, i64(instruction.guard), i64(instruction.guard_not)))
    context.mask = mask


@jit
def _issue(sm, launch, config, context, slot, now):
    """Issue the next instruction of a warp, and execute it if its sources are there."""
    warp = sm.warps[slot]
    pc = i64(warp.pc)
    where = address_of(grid_of(sm, launch, slot), pc)
    instruction = at_instruction(where)
    show(sm, context, instruction, slot, now)
    mask = i64(context.mask)
    counters = sm.counters
    if i64(instruction.flags) & Flag.ADDED != 0:
        counters.added_instructions += 1
    else:
        counters.warp_instructions += 1
        counters.thread_instructions += popcount(mask)
        counters.categories[instruction.category] += 1
    if sm.tenants & HAS_LISTENERS != 0:
        emit_of_warp(sm.frame.events, ISSUE, now, slot, pc, mask, i64(instruction.flags))
    warp.buffered -= 1
    ready = read(sm, config, instruction, slot, pc, mask, now)
    if ready == LATER:
        _put_off(sm, config, context, instruction, slot, pc)
        if instruction.group == Group.CONTROL:
            refresh(sm, launch, config, slot)
            return
        _go_on(sm, launch, config, slot, pc)
        return
    if instruction.group == Group.CONTROL:
        fault, start = control(sm, launch, config, context, instruction, slot, ready, now)
    else:
        warp.pc += 1
        W.pop_reconverged(warp)
        fault, start = _execute(sm, launch, config, context, where, slot, pc, ready, now)
    collect(sm, config, instruction, start)
    if fault != Fault.NONE:
        stop(sm, fault, slot, pc)
    else:
        _go_on(sm, launch, config, slot, pc)


@jit
def stop(sm, fault, slot, pc):
    """End the launch at an instruction."""
    sm.fault = fault
    sm.fault_pc = pc
    sm.fault_warp = slot


@jit
def _go_on(sm, launch, config, slot, pc):
    """Fetch for a warp that has issued, and find out what its next instruction waits for."""
    if (i64(sm.resident) >> slot) & 1 != 0:
        if sm.warps[slot].pc != pc + 1:
            flush(sm, launch, config, slot)
        else:
            want_fetch(sm, launch, config, slot)
    refresh(sm, launch, config, slot)


@jit
def _execute(sm, launch, config, context, where, slot, pc, ready, now):
    """Execute an instruction of the warp that the context shows; its sources are there at ``ready``.

    Returns the fault and the start cycle.
    """
    instruction = at_instruction(where)
    mask = i64(context.mask)
    warp = sm.warps[slot]
    context.touched = 0
    context.touched_shared = 0
    fault = i64(Fault.NONE)
    if mask != 0:
        fault = call(i64(launch.execute[instruction.group]), addressof(context), where)
    if _is_access(instruction):
        start = _access(sm, launch, config, context, instruction, slot, pc, ready, now)
    else:
        start = reserve(sm, config, instruction, ready, i64(1))
        written = hold(warp, instruction, False)
        sm.counters.register_writes += written
        executed(sm, instruction, slot, pc, mask, now)
        if written != 0 or i64(instruction.pwrites) != 0:
            latency = i64(config.pipelines[instruction.category].latency)
            write_back(sm, launch, start - 1 + latency, slot, pc, now)
    return fault, start


@jit
def _is_access(instruction):
    """Whether an instruction may touch memory."""
    group = instruction.group
    return group == Group.MEMORY or group == Group.ATOMIC or group == Group.TEXTURE


@jit
def _distinct(context):
    """How many different addresses the lanes touch: constant accesses take a cycle for each."""
    touched = i64(context.touched)
    leader = i64(context.address[ctz(touched)]) if touched != 0 else i64(0)
    others = i64(0)
    for lane in range(context.lanes):
        others |= (i64(context.address[lane]) ^ leader) & -((touched >> lane) & 1)
    if others == 0:
        return i64(1)
    count = i64(0)
    while touched != 0:
        first = i64(context.address[ctz(touched)])
        count += 1
        rest = touched & (touched - 1)
        while rest != 0:
            lane = ctz(rest)
            rest &= rest - 1
            if i64(context.address[lane]) == first:
                touched &= ~(i64(1) << lane)
        touched &= touched - 1
    return count


@jit
def _access(sm, launch, config, context, instruction, slot, pc, ready, now):
    """Time a load, a store, an atomic or a texture fetch that has been executed; returns the start cycle."""
    warp = sm.warps[slot]
    counters = sm.counters
    touched = i64(context.touched)
    in_scratchpad = i64(context.touched_shared)
    cached = touched & ~in_scratchpad
    cycles = i64(1)
    latency = i64(config.pipelines[instruction.category].latency)
    if in_scratchpad != 0:
        counters.scratchpad_accesses += 1
        banks, bank_bytes = i64(config.scratchpad.banks), i64(config.scratchpad.bank_bytes)
        if instruction.group == Group.ATOMIC:
            cycles = atomic_degree(context, banks, bank_bytes, i64(instruction.bytes))
        else:
            cycles = conflict_degree(context, banks, bank_bytes, i64(instruction.bytes), i64(instruction.vec))
        counters.scratchpad_conflict_cycles += cycles - 1
        latency = i64(config.pipelines[Category.SHARED].latency)
    elif instruction.space == Space.CONST or instruction.space == Space.PARAM:
        cycles = _distinct(context)
        cached = i64(0)
    start = reserve(sm, config, instruction, ready, cycles)
    warp.outstanding += 1
    counters.register_writes += hold(warp, instruction, cached != 0)
    executed(sm, instruction, slot, pc, i64(context.mask), now)
    done = start - 1 + latency + cycles - 1
    if cached == 0:
        write_back(sm, launch, done, slot, pc, now)
    else:
        shared_done = done if in_scratchpad != 0 else i64(0)
        issue_memory(sm.lsu, config, context, instruction, cached, start, shared_done, slot, pc)
    return start


# ----------------------------------------------------------------------------------------- sources that come afterwards


@jit
def _put_off(sm, config, context, instruction, slot, pc):
    """Keep an instruction until its sources are delivered. Its warp waits if it decides where the warp goes on."""
    warp = sm.warps[slot]
    bit = i64(1) << slot
    kept = warp.put_off[(i64(warp.put_off_first) + i64(warp.put_off_count)) % W.PUT_OFF]
    warp.put_off_count += 1
    kept.pc = pc
    kept.mask = context.mask
    kept.active = context.active
    kept.collector = collect(sm, config, instruction, i64(NEVER))
    if instruction.group == Group.CONTROL:
        warp.buffered += 1
        sm.blocked = i64(sm.blocked) | bit
        return
    hold_sources(warp, instruction)
    warp.pc += 1
    W.pop_reconverged(warp)
    if _is_access(instruction):
        sm.ordered = i64(sm.ordered) | bit
        warp.outstanding += 1


@jit
def deliver(sm, launch, config, context, slot, now):
    """Execute the oldest instruction of a warp that waits for its sources: they are there now."""
    warp = sm.warps[slot]
    bit = i64(1) << slot
    kept = warp.put_off[warp.put_off_first]
    pc = i64(kept.pc)
    where = address_of(grid_of(sm, launch, slot), pc)
    instruction = at_instruction(where)
    warp.put_off_first = (warp.put_off_first + 1) % W.PUT_OFF
    warp.put_off_count -= 1
    show(sm, context, instruction, slot, now)
    context.mask = kept.mask
    context.active = kept.active
    if instruction.group == Group.CONTROL:
        warp.buffered -= 1
        sm.blocked = i64(sm.blocked) & ~bit
        fault, start = control(sm, launch, config, context, instruction, slot, now, now)
    else:
        release_sources(warp, instruction)
        if _is_access(instruction):
            sm.ordered = i64(sm.ordered) & ~bit
            warp.outstanding -= 1
        fault, start = _execute(sm, launch, config, context, where, slot, pc, now, now)
    sm.collector[config.pipelines[instruction.category].pipe, kept.collector] = start
    if fault != Fault.NONE:
        stop(sm, fault, slot, pc)
    elif instruction.group == Group.CONTROL:
        _go_on(sm, launch, config, slot, pc)
    else:
        refresh(sm, launch, config, slot)
