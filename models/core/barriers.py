"""Barriers: arrival, reductions, release, deadlock."""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.events import UNBLOCK, schedule
from lockstep.models.core.frame import ARRIVED, HAS_LISTENERS, emit_of_warp
from lockstep.models.core.operands import executed
from lockstep.models.execution.isa import LANES, PT, RZ, Category, Control, Fault, Kind
from lockstep.models.execution.operands import read_predicate, register_address
from lockstep.models.jit import ctz, i64, jit, popcount, without_lowest, words_u32


@jit
def open_barrier(sm, config, cta, barrier, now):
    """Let the waiters of a completed barrier go on."""
    slots = W.release(cta, barrier)
    later = now + i64(config.pipelines[Category.SYNCHRONIZATION].latency)
    while slots != 0:
        slot = ctz(slots)
        slots = without_lowest(slots)
        schedule(sm.wheel, later, slot, UNBLOCK)
    sm.progress = now


@jit
def deadlocked(cta):
    """Whether every warp that is left waits at a barrier, and none of the barriers is complete."""
    return cta.live > 0 and popcount(i64(cta.waiting)) == cta.live


@jit
def _value(context, instruction, which, otherwise):
    """A uniform source: the value in the first lane that executes."""
    if instruction.kind[which] == Kind.IMMEDIATE:
        return i64(instruction.imm[which])
    if instruction.kind[which] == Kind.REGISTER:
        words = words_u32(register_address(context, i64(instruction.src[which])), LANES)
        return i64(words[ctz(i64(context.mask))])
    return otherwise


@jit
def barrier(sm, config, context, instruction, slot, now):
    """Execute a barrier instruction. Returns a fault."""
    warp = sm.warps[slot]
    cta = sm.ctas[warp.cta]
    which = _value(context, instruction, 0, i64(0))
    threads = _value(context, instruction, 1, i64(0))
    if which < 0 or which >= W.BARRIERS or threads % LANES != 0:
        return i64(Fault.BAD_BARRIER)
    if sm.lsu.path.reorders != 0 and (sm.lsu.gates.unsent >> slot) & 1 != 0:
        return i64(Fault.MEMORY_ORDER)  # the path must have held the barrier back
    sm.counters.barriers += 1
    if instruction.op == Control.REDUCE:
        votes = read_predicate(context, instruction.psrc, instruction.psrc_not) & i64(context.mask)
        cta.votes[which] += popcount(votes)
        cta.voters[which] += popcount(i64(context.mask))
    waits = instruction.op != Control.ARRIVE
    if sm.tenants & HAS_LISTENERS != 0:
        emit_of_warp(sm.frame.events, ARRIVED, now, slot, i64(warp.pc), i64(context.mask), i64(0))
    W.arrive(cta, which, slot, warp, threads, waits)
    if waits:
        sm.blocked = i64(sm.blocked) | (i64(1) << slot)
        sm.at_barrier = i64(sm.at_barrier) | (i64(1) << slot)
    if W.complete(cta, which):
        if instruction.op == Control.REDUCE:
            _broadcast(sm, instruction, cta, which, now)
        open_barrier(sm, config, cta, which, now)
    elif waits and deadlocked(cta):
        return i64(Fault.BARRIER_DEADLOCK)
    return i64(Fault.NONE)


@jit
def _broadcast(sm, instruction, cta, which, now):
    """The result of a barrier reduction goes to every lane that waits, in the instruction's destination."""
    votes = i64(cta.votes[which])
    result = votes
    if instruction.sub == 1:
        result = i64(1) if votes == cta.voters[which] else i64(0)
    elif instruction.sub == 2:
        result = i64(1) if votes != 0 else i64(0)
    slots = i64(cta.at[which])
    while slots != 0:
        slot = ctz(slots)
        warp = sm.warps[slot]
        slots = without_lowest(slots)
        mask = i64(warp.alive)
        if instruction.dst != RZ:
            registers = words_u32(W.register_address(warp, i64(instruction.dst)), LANES)
            for lane in range(LANES):
                if (mask >> lane) & 1 != 0:
                    registers[lane] = result
            executed(sm, instruction, slot, i64(warp.pc), mask, now)
        if instruction.pdst != PT:
            word = words_u32(i64(warp.preds) + i64(instruction.pdst) * 4, 1)
            word[0] = (i64(word[0]) & ~mask) | (mask if result != 0 else 0)
