"""Results of RegLess: each is written by its bank when it is there, and nothing of it stays in the frame's file.

The frame slot *operands*: :func:`take` and :func:`write`.
"""

from __future__ import annotations

from lockstep.models.core.frame import LATER
from lockstep.models.core.scoreboard import release
from lockstep.models.core.state import at_instruction, instruction_of
from lockstep.models.core.warp import PUT_OFF, register_address
from lockstep.models.execution.isa import LANES
from lockstep.models.jit import assign, ctz, i64, inline, jit, u32, without_lowest, words_u32
from lockstep.models.regless.instructions import delivers_result
from lockstep.models.regless.state import at_config, at_value
from lockstep.models.time import NEVER
from lockstep.spec.register_regions import BANKS
from lockstep.spec.regless.parameters import MAX_REGISTERS, POISON


@jit
def take(state, sm):
    """An instruction has executed: its results stay where they are, for later; its sources are gone."""
    operand = sm.frame.operand
    slot, warp = i64(operand.slot), sm.warps[operand.slot]
    instruction = at_instruction(i64(operand.instruction))
    for word in range(4):
        bits, written = i64(instruction.need[word]), i64(instruction.writes[word])
        while bits != 0:
            bit = ctz(bits)
            bits = without_lowest(bits)
            if (written >> bit) & 1 != 0:
                state.lanes[slot * MAX_REGISTERS + 64 * word + bit] = u32(i64(operand.lanes))
            else:
                poison(warp, 64 * word + bit)
    return i64(0)


@inline
def poison(warp, register):
    words = words_u32(register_address(warp, register), LANES)
    for lane in range(LANES):
        words[lane] = POISON


@jit
def write(state, sm):
    """The results of an instruction will be there: they are to be written then, each by its bank."""
    operand = sm.frame.operand
    slot, ready = i64(operand.slot), i64(operand.ready)
    instruction = at_instruction(i64(operand.instruction))
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues = state.queues[slot % schedulers]
    first = i64(-1)
    for word in range(4):
        bits = i64(instruction.writes[word])
        while bits != 0:
            number = 64 * word + ctz(bits)
            bits = without_lowest(bits)
            first = number if first < 0 else first
            state.left[slot * MAX_REGISTERS + first] += 1
            bank = (slot // schedulers + number) % BANKS
            queue_result(state, queues, bank, slot, number, first, i64(operand.pc), ready)
    if first < 0:
        return i64(0)
    sm.frame.operands.wake = min(i64(sm.frame.operands.wake), ready)
    return i64(LATER)


@inline
def queue_result(state, queues, b, slot, number, first, pc, ready):
    bank = queues.bank[b]
    result = queues.results[b].result[bank.results]
    bank.results += 1
    queues.unwritten |= i64(1) << b
    result.ready = ready
    result.pc = pc
    result.slot = slot
    result.number = number
    result.first = first
    queues.due = min(i64(queues.due), ready)


@inline
def write_results(state, sm, config, queues, shard, schedulers, now):
    """Write the results that are there, one for each bank, the longest there first."""
    osu, cm = shard.operand_staging_unit.io, shard.capacity_manager.io
    left = i64(queues.written)
    queues.written = 0
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        osu.i.write[b].valid = 0
        cm.i.written[b].valid = 0
    if queues.due > now:
        return
    queues.due = NEVER
    left = i64(queues.unwritten)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        _write(state, sm, config, queues, osu, cm, b, schedulers, now)
        bank = queues.bank[b]
        if bank.results == 0:
            queues.unwritten &= ~(i64(1) << b)
        for k in range(bank.results):
            queues.due = min(i64(queues.due), max(i64(queues.results[b].result[k].ready), now + 1))


@inline
def _count_down(state, queues, w, now):
    """A warp owes one result less; its region may end with it."""
    queues.owed[w] -= 1
    if queues.owed[w] == 0 and (i64(queues.draining) >> w) & 1 != 0:
        queues.draining &= ~(i64(1) << w)
        state.counts.held_cycles += now + 1


@jit
def _write(state, sm, config, queues, osu, cm, b, schedulers, now):
    """Write a bank's next result, if one is there."""
    bank, results = queues.bank[b], queues.results[b]
    chosen = i64(0)
    for k in range(1, bank.results):
        if results.result[k].ready < results.result[chosen].ready:
            chosen = i64(k)
    result = results.result[chosen]
    if result.ready > now:
        return
    slot, number, first, pc = i64(result.slot), i64(result.number), i64(result.first), i64(result.pc)
    bank.results -= 1
    for k in range(chosen, bank.results):
        assign(results.result[k], results.result[k + 1])
    event, place = osu.i.write[b], slot * MAX_REGISTERS + number
    queues.written |= i64(1) << b
    event.valid = 1
    event.payload.warp = slot // schedulers
    event.payload.number = number
    event.payload.flags = state.flags[place]
    event.payload.mask = state.lanes[place]
    assign(event.payload, at_value(register_address(sm.warps[slot], number)))
    poison(sm.warps[slot], number)
    cm.i.written[b].valid = 1
    cm.i.written[b].payload.warp = slot // schedulers
    _count_down(state, queues, slot // schedulers, now)
    state.counts.writes += 1
    if delivers_result(instruction_of(sm.warps[slot], pc)):
        waiting = state.waiting[slot]
        waiting.left[(waiting.first + waiting.count - 1) % PUT_OFF] = 0
        return
    state.left[slot * MAX_REGISTERS + first] -= 1
    if state.left[slot * MAX_REGISTERS + first] == 0:
        release(sm, config, slot, pc, now)
