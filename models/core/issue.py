"""Issue: choose a warp for each scheduler, ask the claims about all of them together, and execute what remains.

Each scheduler in turn grants one of its requests, which issues. The first of them is the one that found no collector
free the last time, so that they share those of a pipeline that both want. Where there are claims, a grant issues when
all schedulers have granted: what it will take of collectors and of the LSU's room is counted for the schedulers after
its own, the claims are asked about all grants together, and what none of them refuses issues. Then the schedulers'
clocks tick.
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.control import control
from lockstep.models.core.delivery import take_values
from lockstep.models.core.events import EVENTS, RESERVE
from lockstep.models.core.fetch import flush, want_fetch
from lockstep.models.core.frame import (
    ATOMIC,
    CONFLICT,
    HAS_CLAIMS,
    HAS_GATES,
    HAS_LIMITS,
    HAS_LISTENERS,
    HAS_OPERANDS,
    HAS_ORDER,
    ISSUE,
    KINDS,
    LATER,
    LOAD,
    STORE,
    emit_of_warp,
)
from lockstep.models.core.operands import blocked_until, collect, executed, read, reserve, write_back
from lockstep.models.core.scoreboard import held_by_lsu, hold, hold_sources, kind_of, refresh, release_sources
from lockstep.models.core.state import (
    EMPTY,
    IDLE,
    ISSUED,
    PIPE_KINDS,
    PIPE_LSU,
    STALLED,
    address_of,
    at_instruction,
    stop,
)
from lockstep.models.execution.isa import PT, Category, Fault, Flag, Group, Space
from lockstep.models.execution.operands import read_predicate
from lockstep.models.jit import addressof, call, ctz, i64, inline, jit, popcount, without_lowest
from lockstep.models.lsu.gates import return_room, take_room
from lockstep.models.lsu.queue import NEAR, queue_constants, queue_memory
from lockstep.models.lsu.unit import issue_memory
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_SCHEDULERS

# ------------------------------------------------------------------------------------------------------------- choosing


@jit
def _held_by_tenants(sm):
    """Ready slots that a gate or a claim does not let issue, and those of CTAs that are to leave."""
    frame = sm.frame
    held = i64(frame.waiting) | i64(sm.leaving)
    for kind in range(KINDS):
        held |= i64(sm.by_kind[kind] & frame.closed[kind])
    return held & i64(sm.ready)


@inline
def _request(sm, config, k, tenants, now):
    """Show a scheduler the slots whose next instruction it may grant; returns the cycle to look again if there is none.

    ``tenants``: the slots that mechanisms hold back.
    """
    wake = i64(NEVER)
    mine = i64(sm.partition[k])
    waits = (i64(sm.memory_wait) | tenants) & mine
    late = waits | i64(sm.at_barrier) & mine
    inputs = sm.warp_scheduler[k].io.i
    if i64(inputs.global_wait) ^ waits | i64(inputs.long_latency) ^ late | i64(inputs.start) | i64(inputs.finish) != 0:
        sm.settled &= ~(i64(1) << k)
    inputs.request = 0
    inputs.global_wait = waits
    inputs.long_latency = late
    if sm.next_issue[k] > now:
        return i64(sm.next_issue[k]) if i64(sm.resident) & mine != 0 else wake
    if i64(sm.ready) & mine == 0 or sm.wheel.count >= EVENTS - RESERVE:
        return wake
    held = held_by_lsu(sm)
    if held & mine & i64(sm.ready) != 0:
        sm.stalled_pipes |= i64(1) << PIPE_LSU
    mine &= ~(held | tenants)
    requests = i64(0)
    for pipe in range(PIPE_KINDS):
        waiting = i64(sm.by_pipe[pipe]) & mine
        if waiting != 0:
            until = blocked_until(sm, config, pipe, now)
            if until <= now:
                requests |= waiting
            else:
                sm.stalled_pipes = i64(sm.stalled_pipes) | (i64(1) << pipe)
                if sm.passed_over < 0:
                    sm.passed_over = k
                wake = min(wake, until)
    if requests != 0:
        searches = _next_search(sm, config, k, now)
        if searches > now:
            return min(wake, searches)
        inputs.request = requests
        sm.settled &= ~(i64(1) << k)
    return wake


@inline
def _next_search(sm, config, k, now):
    """The first cycle from this one on in which a scheduler looks for an instruction."""
    overhead = i64(config.core.scheduler_overhead)
    return now if overhead == 1 else now + (i64(sm.next_issue[k]) - now) % overhead


@jit
def _note(sm, launch, config, context, k, now):
    """Describe a grant for the claims, and count what it takes of what the schedulers share.

    Returns whether an entry of the LSU is kept for it, while the other schedulers choose.
    """
    slot = i64(sm.warp_scheduler[k].io.c.grant.warp)
    warp = sm.warps[slot]
    grant = sm.frame.grants[k]
    grant.slot = slot
    grant.pc = warp.pc
    grant.instruction = address_of(warp, warp.pc)
    instruction = at_instruction(i64(grant.instruction))
    show(sm, launch, context, instruction, slot, now)
    grant.lanes = context.mask
    _locate(launch, context, grant, instruction)
    sm.granted[config.pipelines[instruction.category].pipe] += 1
    kinds = sm.by_kind
    beyond = (i64(kinds[LOAD] | kinds[STORE] | kinds[ATOMIC]) >> slot) & 1 != 0
    if beyond and grant.touched & ~grant.touched_shared != 0:
        take_room(sm.lsu.gates, slot)
        return True
    return False


@jit
def _locate(launch, context, grant, instruction):
    """Find out where a granted instruction would access memory."""
    grant.touched = 0
    grant.touched_shared = 0
    group = i64(instruction.group)
    if grant.lanes == 0 or not _is_access(instruction):
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
    if sm.tenants & HAS_ORDER != 0:
        sm.settled = 0
    held = _held_by_tenants(sm) if sm.tenants & (HAS_GATES | HAS_CLAIMS | HAS_LIMITS) != 0 else i64(0)
    could = i64(sm.ready) & ~held
    claims = sm.tenants & HAS_CLAIMS != 0
    if sm.tenants != 0:
        _see(sm, held)
    granted = kept = refused = different = i64(0)
    sm.passed_over = -1
    for turn in range(schedulers):
        k = (i64(sm.first) + turn) % schedulers
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        wake = min(wake, _request(sm, config, k, held, now))
        if (sm.settled >> k) & 1 != 0:
            continue
        if sm.tenants & HAS_ORDER != 0:
            _rank(sm.frame.classes, io.i, i64(sm.partition[k]))
        different |= call(binding.comb, binding.handle, addressof(io))
        if io.c.grant.valid != 0:
            granted |= i64(1) << k
            if not claims:
                _issue(sm, launch, config, context, k, now)
            elif _note(sm, launch, config, context, k, now):
                kept |= i64(1) << k
    if claims and granted != 0:
        _return(sm, kept)
        refused = _ask(sm, granted)
        _issue_all(sm, launch, config, context, granted & ~refused, schedulers, now)
    if sm.passed_over >= 0:
        sm.first = sm.passed_over
    interval = i64(config.core.issue_interval)
    until = now + interval
    if granted != refused:
        sm.counters.active_cycles += until - max(now, i64(sm.active_until))
        sm.active_until = until
    for k in range(schedulers):
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        if (granted >> k) & 1 != 0:
            sm.next_issue[k] = now + max(interval, i64(config.core.scheduler_overhead))
        elif sm.next_issue[k] <= now and i64(sm.resident) & i64(sm.partition[k]) != 0:
            sm.idle_schedulers += 1
        io.i.refused = (refused >> k) & 1
        if io.i.refused != 0:
            could &= ~(i64(1) << i64(io.c.grant.warp))
        if (sm.settled >> k) & 1 != 0:
            continue
        different |= call(binding.step, binding.handle, addressof(io))
        io.i.start = 0
        io.i.finish = 0
        # A request that was not granted waits for its warp to become active (two-level), which the step may have done.
        if io.i.request != 0 or call(binding.idle, binding.handle, addressof(io)) < NEVER:
            wake = now + 1
        else:
            sm.settled |= i64(1) << k
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    if granted != refused:
        sm.outcome = ISSUED
        return now + 1
    if i64(sm.resident) == 0:
        sm.outcome = EMPTY
    else:
        sm.outcome = STALLED if could != 0 else IDLE
    return wake


@jit
def _return(sm, kept):
    """Give back the LSU's entries that were kept for the grants of some schedulers."""
    while kept != 0:
        return_room(sm.lsu.gates, i64(sm.warp_scheduler[ctz(kept)].io.c.grant.warp))
        kept = without_lowest(kept)
    for pipe in range(PIPE_KINDS):
        sm.granted[pipe] = 0


@jit
def _issue_all(sm, launch, config, context, granted, schedulers, now):
    """Issue the granted instructions of some schedulers, in the order in which these have chosen."""
    for turn in range(schedulers):
        k = (i64(sm.first) + turn) % schedulers
        if (granted >> k) & 1 != 0:
            _issue(sm, launch, config, context, k, now)


@jit
def _rank(classes, inputs, mine):
    """Show a scheduler the classes of its warps."""
    inputs.paused = i64(classes.paused) & mine
    inputs.secondary = i64(classes.secondary) & mine
    inputs.owner = i64(classes.owner) & mine
    inputs.non_owner = i64(classes.non_owner) & mine


@inline
def _see(sm, held):
    """Note in what state the warps are when they are chosen from."""
    seen = sm.frame.seen
    seen.resident = sm.resident
    seen.ready = sm.ready
    seen.waiting = sm.memory_wait
    seen.at_barrier = sm.at_barrier
    seen.held = held
    seen.issued = 0


# ------------------------------------------------------------------------------------------------------------ executing


@inline
def show(sm, launch, context, instruction, slot, now):
    """Show the executing functions a warp, and the lanes in which it executes an instruction."""
    warp = sm.warps[slot]
    cta = sm.ctas[warp.cta]
    context.grid = addressof(launch.grids[cta.grid])
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


@jit
def _issue(sm, launch, config, context, k, now):
    """Issue the instruction that scheduler ``k`` has granted, and execute it if its sources are there."""
    io = sm.warp_scheduler[k].io
    slot = i64(io.c.grant.warp)
    warp = sm.warps[slot]
    pc = i64(warp.pc)
    where = address_of(warp, pc)
    instruction = at_instruction(where)
    show(sm, launch, context, instruction, slot, now)
    mask = i64(context.mask)
    flags = i64(instruction.flags)
    io.i.hint = 1 if flags & Flag.HINT != 0 else 0
    counters = sm.counters
    if flags & Flag.ADDED != 0:
        counters.added_instructions += 1
    else:
        counters.warp_instructions += 1
        counters.thread_instructions += popcount(mask)
        counters.categories[instruction.category] += 1
    if sm.tenants != 0:
        sm.frame.seen.issued |= i64(1) << slot
        if sm.tenants & HAS_LISTENERS != 0:
            emit_of_warp(sm.frame.events, ISSUE, now, slot, pc, mask, flags)
    warp.issued = now
    warp.issued_pc = pc
    warp.buffered -= 1
    ready = read(sm, config, instruction, slot, pc, mask, now)
    if ready == LATER:
        if not _put_off(sm, config, context, instruction, slot, pc):
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
        fault = call(i64(launch.execute[instruction.group]), addressof(context), where)
        if fault != Fault.NONE:
            stop(sm, fault, slot, pc)
    if _is_access(instruction):
        _access(sm, config, context, instruction, slot, pc, ready, now)
        return i64(NEVER)
    start = reserve(sm, config, instruction, ready)
    written = hold(sm.warps[slot], instruction, False)
    sm.counters.register_writes += written
    executed(sm, instruction, slot, pc, i64(context.mask), now)
    if written != 0 or i64(instruction.pwrites) != 0:
        write_back(sm, start - 1 + i64(config.pipelines[instruction.category].latency), slot, pc, now)
    return start


@inline
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
        rest = without_lowest(touched)
        while rest != 0:
            lane = ctz(rest)
            rest = without_lowest(rest)
            if i64(context.address[lane]) == first:
                touched &= ~(i64(1) << lane)
        touched = without_lowest(touched)
    return count


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
    if in_scratchpad != 0:
        counters.scratchpad_accesses += 1
        banks, bank_bytes = i64(config.scratchpad.banks), i64(config.scratchpad.bank_bytes)
        if instruction.group == Group.ATOMIC:
            cycles = atomic_degree(context, banks, bank_bytes, i64(instruction.bytes))
        else:
            cycles = conflict_degree(context, banks, bank_bytes, i64(instruction.bytes), i64(instruction.vec))
        counters.scratchpad_conflict_cycles += cycles - 1
        if sm.tenants & HAS_LISTENERS != 0:
            emit_of_warp(sm.frame.events, CONFLICT, i64(context.now), slot, pc, in_scratchpad, cycles - 1)
        latency = i64(config.pipelines[Category.SHARED].latency)
    constants = instruction.space == Space.CONST or instruction.space == Space.PARAM
    if constants:
        cycles = _distinct(context)
        cached = i64(0)
    warp.outstanding += 1
    counters.register_writes += hold(warp, instruction, cached != 0)
    executed(sm, instruction, slot, pc, i64(context.mask), now)
    number = i64(NEAR)
    near = latency + cycles - 1 if cached == 0 or in_scratchpad != 0 else i64(0)
    if cached != 0:
        number = issue_memory(sm.lsu, config, context, instruction, cached, slot, pc)
        if sm.lsu.path.delivers != 0 and sm.tenants & HAS_OPERANDS == 0:
            take_values(sm.lsu, warp, instruction, number)
    cycles = max(cycles, i64(config.pipelines[instruction.category].interval))
    queue_memory(sm.lsu, number, ready, cycles, near, slot, pc)
    if constants and touched != 0:
        queue_constants(sm.lsu, context, sm.constants.line_shift)


# ----------------------------------------------------------------------------------------- sources that come afterwards


@jit
def _put_off(sm, config, context, instruction, slot, pc):
    """Keep an instruction until its sources are delivered.

    Returns whether its warp waits, since the instruction decides where it goes on.
    """
    warp = sm.warps[slot]
    bit = i64(1) << slot
    kept = warp.put_off[(i64(warp.put_off_first) + i64(warp.put_off_count)) % W.PUT_OFF]
    warp.put_off_count += 1
    kept.pc = pc
    kept.mask = context.mask
    kept.active = context.active
    kept.collector = collect(sm, config, instruction, i64(NEVER))
    if _is_access(instruction):
        sm.lsu.queue.collecting += 1
    if instruction.group == Group.CONTROL:
        warp.buffered += 1
        sm.blocked = i64(sm.blocked) | bit
        return True
    hold_sources(warp, instruction)
    warp.pc += 1
    W.pop_reconverged(warp)
    if _is_access(instruction):
        sm.ordered = i64(sm.ordered) | bit
        warp.outstanding += 1
        if _takes_room(config, instruction):
            take_room(sm.lsu.gates, slot)
    return False


@inline
def _takes_room(config, instruction):
    """Whether an instruction may need the path; it has issued, and its addresses are not known yet."""
    kind = kind_of(config, instruction)
    return kind == LOAD or kind == STORE or kind == ATOMIC


@jit
def deliver(sm, launch, config, context, slot, now):
    """Execute the oldest instruction of a warp that waits for its sources: they are there now."""
    warp = sm.warps[slot]
    bit = i64(1) << slot
    kept = warp.put_off[warp.put_off_first]
    pc = i64(kept.pc)
    where = address_of(warp, pc)
    instruction = at_instruction(where)
    warp.put_off_first = (warp.put_off_first + 1) % W.PUT_OFF
    warp.put_off_count -= 1
    show(sm, launch, context, instruction, slot, now)
    context.mask = kept.mask
    context.active = kept.active
    if instruction.group == Group.CONTROL:
        warp.buffered -= 1
        sm.blocked = i64(sm.blocked) & ~bit
        start = control(sm, config, context, instruction, slot, now, now)
    else:
        release_sources(warp, instruction)
        if _is_access(instruction):
            sm.ordered = i64(sm.ordered) & ~bit
            warp.outstanding -= 1
            sm.lsu.queue.collecting -= 1
            if _takes_room(config, instruction):
                return_room(sm.lsu.gates, slot)
        start = _execute(sm, launch, config, context, where, slot, pc, now, now)
    if not _is_access(instruction):
        sm.collector[config.pipelines[instruction.category].pipe, kept.collector] = start
    if instruction.group == Group.CONTROL:
        _go_on(sm, config, slot, pc)
    refresh(sm, config, slot)
