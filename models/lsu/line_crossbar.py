"""Golden model of ``rtl/lsu/line_crossbar.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, inline, jit, record, slots, without_lowest
from lockstep.models.time import NEVER
from lockstep.spec.mapping import LINE_WORDS, REGISTERS, Mapping

SINGLE, RANGE, RANDOM = int(Mapping.SINGLE), int(Mapping.RANGE), int(Mapping.RANDOM)
CONSECUTIVE = int(Mapping.CONSECUTIVE)

PORTS = ports("lsu.line_crossbar")
LOAD = PORTS["i"]["load"]["payload"]
STATE = record(
    [
        ("load", LOAD),  # whose line comes now, ...
        ("moves", "i8"),  # ... if there is one
        ("lanes", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. The load is memory: unseen unless it moves."""
    clear(io.o)
    state.moves = 0


@jit
def lanes_of(load, lanes, line_shift):
    """The lanes that a line of a load gives their words: what its mapping means."""
    if load.mapping == RANDOM:
        return i64(load.mask)
    thread = i64(load.thread)
    if load.mapping == SINGLE:
        return (i64(1) << thread) & (i64(1) << lanes) - 1
    if load.mapping == RANGE:
        words = i64(1) << line_shift - max(i64(load.size), i64(2))
        end = thread + max(words - i64(load.word), i64(0))
        return i64(load.active) & ((i64(1) << end) - (i64(1) << thread))
    return i64(load.active)


@inline
def word_of(load, lane):
    """The word of its line, counted in the access width, that a lane is given: what the mapping means."""
    if load.mapping == RANDOM:
        return i64(load.words[lane])
    if load.mapping == CONSECUTIVE:
        return lane
    return i64(load.word) + (lane - i64(load.thread) if load.mapping == RANGE else i64(0))


@jit
def _extended(word, size, offset, sign):
    """The byte or the two bytes at an offset, as a register."""
    bits = i64(8) << size
    value = word >> 8 * (offset & 4 - (i64(1) << size)) & (i64(1) << bits) - 1
    if sign != 0 and value >> bits - 1 != 0:
        value -= i64(1) << bits
    return value & 0xFFFF_FFFF


@inline
def _move(state, io):
    """Write the words of the line that has come."""
    load, write = state.load, io.o.write.payload
    size = i64(load.size)
    shift = max(size - 2, i64(0))  # log2 of the registers of an access
    lanes = lanes_of(load, i64(state.lanes), i64(io.i.line_shift))
    assign(write, load)
    write.lanes = lanes
    for k in range(REGISTERS):
        for lane in range(state.lanes):
            write.registers[k, lane] = 0
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        first = word_of(load, lane) << shift
        for k in range(i64(1) << shift):
            write.registers[k, lane] = io.i.line[first + k & LINE_WORDS - 1]
        if size < 2:
            word = i64(write.registers[0, lane])
            write.registers[0, lane] = _extended(word, size, i64(load.offset[lane]), load.sign)


@jit
def step(state, io):
    """One clock edge."""
    io.o.write.valid = state.moves
    if state.moves != 0:
        _move(state, io)
    state.moves = io.i.load.valid
    if state.moves != 0:
        assign(state.load, io.i.load.payload)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    return i64(0) if io.i.load.valid | state.moves | io.o.write.valid != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
