"""Operands of a kernel's instructions, from the tables that RegLess's pass has made."""

from __future__ import annotations

from lockstep.models.execution.isa import Control, Group
from lockstep.models.jit import i64, inline, words_i16, words_i32

PAIR = 256  # in the table of operands: the lower register of a pair


@inline
def operand_of(state, index):
    """An operand of the kernel: its register, or the lower one of its pair, and how many they are."""
    number = i64(words_i16(i64(state.tables.regions_operands) + 2 * index, 1)[0])
    return (number - PAIR, i64(2)) if number >= PAIR else (number, i64(1))


@inline
def first_operand(state, pc):
    """The index of an instruction's first operand."""
    return i64(words_i32(i64(state.tables.regions_operand) + 4 * pc, 1)[0])


@inline
def has(mask, number):
    return (i64(mask[number >> 6]) >> (number & 63)) & 1 != 0


@inline
def delivers_result(instruction):
    """Whether an instruction with an operand is the no-op that has the result of the barrier before it."""
    return instruction.group == Group.CONTROL and instruction.op == Control.NOP


@inline
def ends(warp, instruction, lanes):
    """Whether the warp ends with an instruction."""
    exits = instruction.group == Group.CONTROL and instruction.op == Control.EXIT
    return exits and i64(warp.alive) & ~lanes == 0


@inline
def is_written(instruction, number, registers):
    found = False
    for register in range(number, number + registers):
        found |= has(instruction.writes, register)
    return found


@inline
def is_read(instruction, register):
    found = False
    for k in range(instruction.reads):
        found |= instruction.read[k] == register
    return found
