"""From issue to start: sources, an operand collector, a pipeline. All are reservations, so that nothing is stepped.

But for the load/store unit: what is before an instruction there may wait for the L1, so its start is not known when it
issues. It is in the unit's queue from its issue on, and that holds its collector.

Without a tenant of the frame slot *operands*, the register file answers at issue: each bank delivers one register per
cycle, in order of issue. A tenant may answer later; the instruction waits for it in its warp's record, and holds its
collector.
"""

from __future__ import annotations

from lockstep.models.core.events import schedule
from lockstep.models.core.frame import HAS_OPERANDS, LATER
from lockstep.models.core.state import PIPE_LSU, instruction_of
from lockstep.models.jit import addressof, call, i64, inline, jit
from lockstep.models.lsu.queue import lsu_full
from lockstep.models.marks import Part, mark
from lockstep.models.time import NEVER


@inline
def collectors(config, pipe):
    """How many operand collectors the pipelines of a kind share; those of the load/store unit are counted there."""
    core = config.core
    if pipe == 0:
        return i64(core.collectors_alu)
    return i64(core.collectors_sfu) if pipe == 1 else i64(core.collectors_dp)


@inline
def blocked_until(sm, config, pipe, now):
    """The cycle up to which a pipeline takes no further instruction: no collector is free."""
    granted = i64(sm.granted[pipe])
    if pipe == PIPE_LSU:
        return i64(NEVER) if lsu_full(sm.lsu, config, granted) else now
    most = collectors(config, pipe)
    if granted >= most:
        return now + 1
    return i64(sm.collector[pipe, (i64(sm.collector_at[pipe]) + granted) % most])


@inline
def read(sm, config, instruction, slot, pc, lanes, now):
    """The cycle in which the sources of an instruction that issues are there, or LATER."""
    sm.counters.register_reads += i64(instruction.reads)
    if sm.tenants & HAS_OPERANDS != 0:
        ready = _asked(sm, i64(sm.frame.operands.read), instruction, slot, pc, lanes, now)
    else:
        ready = now + 1
        banks = i64(config.core.register_banks)
        for k in range(instruction.reads):
            bank = (slot + i64(instruction.read[k])) % banks
            granted = max(i64(sm.bank_free[bank]), now + 1)
            sm.bank_free[bank] = granted + 1
            ready = max(ready, granted)
    if ready != LATER:
        sm.counters.bank_conflict_cycles += ready - now - 1
    return ready


@jit
def _asked(sm, function, instruction, slot, pc, lanes, now):
    before = mark(Part.MECHANISMS)
    operand = sm.frame.operand
    operand.slot = slot
    operand.pc = pc
    operand.instruction = addressof(instruction)
    operand.lanes = lanes
    operand.now = now
    answer = call(function, i64(sm.frame.operands.handle), addressof(sm))
    mark(before)
    return answer


@inline
def collect(sm, config, instruction, start):
    """Take a collector up to ``start``; returns which. Those of the load/store unit are counted there."""
    pipe = i64(config.pipelines[instruction.category].pipe)
    if pipe == PIPE_LSU:
        return i64(0)
    at = i64(sm.collector_at[pipe])
    sm.collector[pipe, at] = start
    sm.collector_at[pipe] = (at + 1) % collectors(config, pipe)
    return at


@inline
def reserve_pipeline(sm, config, instruction, ready):
    """Reserve a pipeline from ``ready`` on, when the sources are there; returns the start cycle."""
    pipe = i64(config.pipelines[instruction.category].pipe)
    if pipe == 0:
        copies = i64(config.pipes.alu)
    elif pipe == 1:
        copies = i64(config.pipes.sfu)
    else:
        copies = i64(config.pipes.dp)
    best = i64(0)
    for k in range(1, copies):
        if sm.pipe_free[pipe, k] < sm.pipe_free[pipe, best]:
            best = i64(k)
    start = max(ready, i64(sm.pipe_free[pipe, best]))
    sm.pipe_free[pipe, best] = start + i64(config.pipelines[instruction.category].interval)
    return start


@inline
def executed(sm, instruction, slot, pc, lanes, now):
    """Let the operands' tenant take the results out of the warp's registers."""
    if sm.tenants & HAS_OPERANDS != 0 and sm.frame.operands.take != 0:
        _asked(sm, i64(sm.frame.operands.take), instruction, slot, pc, lanes, now)


@inline
def write_back(sm, time, slot, pc, now):
    """The results of an instruction are there at ``time``: write them, and tell the scoreboard then."""
    if sm.tenants & HAS_OPERANDS != 0 and sm.frame.operands.write != 0:
        sm.frame.operand.ready = time
        warp = sm.warps[slot]
        instruction = instruction_of(warp, pc)
        cycles = _asked(sm, i64(sm.frame.operands.write), instruction, slot, pc, i64(warp.present), now)
        if cycles == LATER:
            return
        time += cycles
    schedule(sm.wheel, time, slot, pc)
