"""Operands of RegLess: what has issued asks its shard's banks for them, and waits until they have come.

The frame slot *operands*: :func:`read`.
"""

from __future__ import annotations

from lockstep.models.core.frame import LATER
from lockstep.models.core.state import at_instruction, instruction_of
from lockstep.models.core.warp import PUT_OFF, register_address
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, assign, call, ctz, i64, jit, without_lowest
from lockstep.models.regless.instructions import (
    delivers_result,
    ends,
    first_operand,
    has,
    is_read,
    is_written,
    operand_of,
)
from lockstep.models.regless.results import queue_result
from lockstep.models.regless.state import CM, MD, at_config, at_value
from lockstep.spec.register_regions import BANKS, FLAG_BITS, OPERANDS
from lockstep.spec.regless.parameters import MAX_BANK_LINES, MAX_REGISTERS


@jit
def read(state, sm):
    """An instruction issues: its operands come later, if it has any."""
    operand = sm.frame.operand
    slot, pc = i64(operand.slot), i64(operand.pc)
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    k, w = slot % schedulers, slot // schedulers
    queues, md, cm = state.queues[k], state.shard[k].region_metadata, state.shard[k].capacity_manager
    first, end = first_operand(state, pc), first_operand(state, pc + 1)
    md.io.i.issue.valid = 1
    md.io.i.issue.payload.warp = w
    md.io.i.issue.payload.slots = max((end - first + OPERANDS - 1) // OPERANDS, 1)
    if call(md.binding.comb, md.binding.handle, addressof(md.io)) != 0:
        sm.fault = Fault.DIFFERENCE
    instruction = at_instruction(i64(operand.instruction))
    if md.io.c.last.valid != 0:
        cm.io.i.last.valid = 1
        cm.io.i.last.payload.warp = w
        cm.io.i.last.payload.end = i64(ends(sm.warps[slot], instruction, i64(operand.lanes)))
        queues.closing |= i64(1) << w
        state.counts.region_cycles += i64(operand.now) + 1
        if cm.io.i.last.payload.end != 0:  # the launch may be over before the hardware knows
            queues.ending |= i64(1) << w
            state.counts.held_cycles += i64(operand.now) + 1
    queues.busy |= MD | CM
    queues.issued = 1
    queues.issued_slot = slot
    queues.issued_pc = pc
    sm.frame.operands.wake = i64(operand.now) + 1
    if first == end:
        return i64(operand.now) + 1
    waiting = state.waiting[slot]
    place = (waiting.first + waiting.count) % PUT_OFF
    waiting.count += 1
    waiting.pc[place] = pc
    waiting.left[place] = i64(delivers_result(instruction))
    for index in range(first, end):
        _, registers = operand_of(state, index)
        waiting.left[place] += registers
    state.waits |= i64(1) << slot
    return i64(LATER)


@jit
def present_accesses(state, sm, queues, md, k, schedulers):
    """What has issued in the last cycle: its accesses go to their banks, with the flags of its operands."""
    slot, pc = i64(queues.issued_slot), i64(queues.issued_pc)
    queues.issued = 0
    first, end = first_operand(state, pc), first_operand(state, pc + 1)
    if first == end:
        return
    instruction = instruction_of(sm.warps[slot], pc)
    waiting = state.waiting[slot]
    place = (waiting.first + waiting.count - 1) % PUT_OFF
    delivers = delivers_result(instruction)
    flags = md.io.o.flags.payload.slots
    for index in range(first, end):
        at = index - first
        flag = (i64(flags[at // OPERANDS]) >> FLAG_BITS * (at % OPERANDS)) & ((1 << FLAG_BITS) - 1)
        number, registers = operand_of(state, index)
        source = not delivers and not is_written(instruction, number, registers)
        for register in range(number, number + registers):
            source |= is_read(instruction, register)
        for register in range(number, number + registers):
            written = delivers or has(instruction.writes, register)
            if written:
                state.flags[slot * MAX_REGISTERS + register] = flag
            b = (slot // schedulers + register) % BANKS
            bank = queues.bank[b]
            access = queues.accesses[b].ring[bank.last % MAX_BANK_LINES]
            bank.last += 1
            queues.asked |= i64(1) << b
            access.slot = slot
            access.number = register
            access.result = i64(not source)
            access.flags = 0 if written else flag
            access.written = i64(written)
            access.place = place


@jit
def exchange_operands(state, sm, queues, shard):
    """What the banks deliver goes to the warps' registers; what they can take next is presented to them."""
    osu, cm = shard.operand_staging_unit.io, shard.capacity_manager.io
    left = i64(queues.reserved)
    queues.reserved = 0
    while left != 0:
        cm.i.reserved[ctz(left)].valid = 0
        left = without_lowest(left)
    left = i64(queues.awaited)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        bank, operand = queues.bank[b], osu.o.operand[b]
        if operand.valid != 0:
            access = queues.accesses[b].ring[bank.first % MAX_BANK_LINES]
            bank.first += 1
            if bank.first == bank.next:
                queues.awaited &= ~(i64(1) << b)
            if bank.first == bank.last:  # the ring is empty, and begins again where memory is in the cache
                bank.first = bank.next = bank.last = 0
            slot, number = i64(access.slot), i64(access.number)
            if operand.payload.number != number:
                sm.fault = Fault.DIFFERENCE
            if access.result == 0:
                state.counts.reads += 1
                assign(at_value(register_address(sm.warps[slot], number)), operand.payload)
            waiting = state.waiting[slot]
            waiting.left[access.place] -= 1
            if access.written != 0:
                queues.reserved |= i64(1) << b
                queues.owed[operand.payload.warp] += 1
                cm.i.reserved[b].valid = 1
                cm.i.reserved[b].payload.warp = operand.payload.warp
            pc = i64(waiting.pc[access.place])
            if waiting.left[access.place] == 1 and delivers_result(instruction_of(sm.warps[slot], pc)):
                queue_result(state, queues, b, slot, number, number, pc, i64(sm.frame.now))
    left = i64(queues.asked)
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        bank, into = queues.bank[b], osu.i.access[b]
        into.valid = i64(bank.next != bank.last)
        if into.valid == 0:
            queues.asked &= ~(i64(1) << b)
        else:
            access = queues.accesses[b].ring[bank.next % MAX_BANK_LINES]
            into.payload.warp = i64(access.slot) // i64(at_config(i64(sm.config)).core.schedulers)
            into.payload.number = access.number
            into.payload.result = access.result
            into.payload.flags = access.flags
            if osu.o.access[b].ready != 0:
                bank.next += 1
                queues.awaited |= i64(1) << b
