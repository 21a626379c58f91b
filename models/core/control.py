"""Instructions that decide where a warp goes on: branches, exits, barriers, fences."""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.barriers import barrier, deadlocked, open_barrier
from lockstep.models.core.events import UNBLOCK, schedule
from lockstep.models.core.fetch import forget_fetches
from lockstep.models.core.frame import CTA_END, HAS_LISTENERS, WARP_END, emit
from lockstep.models.core.operands import reserve_pipeline
from lockstep.models.core.placement import give_back
from lockstep.models.core.state import stop
from lockstep.models.execution.isa import LANES, Control, Fault, at_grid
from lockstep.models.execution.operands import register_address
from lockstep.models.jit import ctz, i64, inline, jit, words_i32, words_u32
from lockstep.models.lsu.performed import leave_fence
from lockstep.models.lsu.tokens import FIRST_HALF
from lockstep.models.memory.l1 import l1_invalidate


@jit
def control(sm, config, context, instruction, slot, ready, now):
    """Execute a control instruction whose sources are there at ``ready``; returns its start cycle."""
    warp = sm.warps[slot]
    pc = i64(warp.pc)
    op = i64(instruction.op)
    start = reserve_pipeline(sm, config, instruction, ready)
    if op == Control.BRANCH or op == Control.INDEXED:
        fault = _branch(sm, config, context, instruction, slot)
        sm.blocked = i64(sm.blocked) | (i64(1) << slot)
        resume = start - 1 + i64(config.pipelines[instruction.category].latency)
        schedule(sm.wheel, resume, slot, UNBLOCK)
    elif op == Control.EXIT and context.mask != 0:
        fault = _exit(sm, config, slot, i64(context.mask), now)
    else:
        fault = i64(Fault.NONE)
        if context.mask != 0:
            fault = _synchronise(sm, config, context, instruction, slot, now)
        if op == Control.FENCE:
            leave_fence(sm.lsu.performed, slot)
        warp.pc += 1
        W.pop_reconverged(warp)
    if fault != Fault.NONE:
        stop(sm, fault, slot, pc)
    return start


@jit
def _synchronise(sm, config, context, instruction, slot, now):
    """A barrier or a fence; a trap, after which there is nothing to go on with. Returns the fault."""
    op = i64(instruction.op)
    if op == Control.TRAP:
        return i64(Fault.ASSERT) if instruction.sub == 1 else i64(Fault.TRAP)
    if op == Control.BARRIER or op == Control.ARRIVE or op == Control.REDUCE:
        return barrier(sm, config, context, instruction, slot, now)
    if op == Control.FENCE:
        sm.counters.fences += 1
        if sm.lsu.carried != 0 and instruction.sub != 0:
            l1_invalidate(sm.lsu.l1)
    return i64(Fault.NONE)


@inline
def _split_halves(mask, active, apart):
    """How many half-warps a branch splits: of their active lanes some do not take it, or are ``apart`` from others."""
    count = i64(0)
    for half in (FIRST_HALF, ~FIRST_HALF):
        taken = mask & half
        count += i64(taken != 0 and (taken != active & half or apart & half != 0))
    return count


@jit
def _branch(sm, config, context, instruction, slot):
    warp = sm.warps[slot]
    mask = i64(context.mask)
    limit = i64(config.core.reconvergence_stack)
    sm.counters.branches += 1
    if instruction.op == Control.BRANCH:
        if mask != 0 and mask != warp.mask:
            sm.counters.divergent_branches += 1
            sm.counters.divergent_halves += _split_halves(mask, i64(warp.mask), i64(0))
        return W.branch(warp, i64(instruction.target), i64(instruction.reconverge), mask, limit)
    entries = i64(instruction.imm[3])
    table = words_i32(i64(at_grid(context.grid).branch_table) + i64(instruction.target) * 4, entries)
    index = words_u32(register_address(context, i64(instruction.src[0])), LANES)
    targets = context.address
    splits = mask != 0 and mask != warp.mask
    apart = i64(0)  # lanes whose target is not that of the first lane of their half
    for lane in range(LANES):
        if (mask >> lane) & 1 != 0:
            if i64(index[lane]) >= entries:
                context.fault_lane = lane
                return i64(Fault.BAD_BRANCH_INDEX)
            targets[lane] = table[i64(index[lane])]
            splits |= targets[lane] != targets[ctz(mask)]
            first = ctz(mask & FIRST_HALF << (lane & LANES // 2))
            apart |= i64(targets[lane] != targets[first]) << lane
    if splits:
        sm.counters.divergent_branches += 1
        sm.counters.divergent_halves += _split_halves(mask, i64(warp.mask), apart)
    return W.branch_indexed(warp, targets, i64(instruction.reconverge), mask, limit)


@jit
def _exit(sm, config, slot, mask, now):
    """Lanes of a warp exit; with the last one, the warp ends. Returns the fault."""
    bit = i64(1) << slot
    warp = sm.warps[slot]
    if W.exit_lanes(warp, mask) == 0:
        return i64(Fault.NONE)
    cta = sm.ctas[warp.cta]
    sm.resident = i64(sm.resident) & ~bit
    forget_fetches(sm, bit)
    sm.blocked = i64(sm.blocked) | bit
    sm.warp_scheduler[slot % i64(config.core.schedulers)].io.i.finish |= bit
    sm.progress = now
    cta.live -= 1
    cta.warps = i64(cta.warps) & ~bit
    if sm.tenants & HAS_LISTENERS != 0:
        emit(sm.frame.events, WARP_END, now, slot, i64(warp.cta), i64(-1), i64(0), i64(0))
    if cta.live == 0:
        sm.ended[cta.grid] += 1
        give_back(sm, cta)
        sm.homes[cta.grid] &= ~(i64(1) << i64(cta.home))
        if sm.tenants & HAS_LISTENERS != 0:
            emit(sm.frame.events, CTA_END, now, i64(-1), i64(warp.cta), i64(-1), i64(0), i64(0))
        return i64(Fault.NONE)
    for b in range(W.BARRIERS):
        if cta.arrived[b] != 0 and W.complete(cta, b):
            open_barrier(sm, config, cta, b, now)
    return i64(Fault.BARRIER_DEADLOCK) if deadlocked(cta) else i64(Fault.NONE)
