"""Values that loads get with the answer, and that stores send with their lines.

Loads read memory when they issue. Where the path ``delivers``, what they have read is taken out of their registers,
which hold :data:`POISON` from then on; the path moves it from the line to the lanes, and the registers are written with
what arrives there, in the cycle in which it does. So a kernel computes with what its hardware has moved.

A store writes memory when it issues. What its lanes have written is kept, the path moves it from the lanes to the lines
that it sends, and compares these with what memory was given: so a wrong byte stops the launch.

A load's line holds what the lanes of the load that it answers have read, and elsewhere poison too: loads that share a
request may have read at different times. Not moved are textures, which are filtered on the way, atomics, which are
answered lane by lane, and accesses of more than four bytes to local memory, whose words lie a row apart, in two lines
of which the path sends one.

Where lines have values (``memory.values``), no access to global memory reads or writes it at issue (:func:`defer`). A
store's values go with its lines to the slices. A load or an atomic gets its own from the lines and requests that answer
it, and its registers are written when the last answer is there (:func:`write_late`), or by the path if that delivers.
"""

from __future__ import annotations

from lockstep.models.core.warp import register_address
from lockstep.models.execution.access import data_register, piece_bytes, pieces
from lockstep.models.execution.isa import LANES, LOCAL_PHYSICAL, RZ, Flag, Group, Memory, Space
from lockstep.models.jit import addressof, ctz, i64, inline, jit, u32, without_lowest, words_u32
from lockstep.models.lsu.carried import row_of
from lockstep.models.lsu.performed import begun
from lockstep.models.lsu.tokens import lanes_of_line
from lockstep.models.memory.values import is_global
from lockstep.spec.mapping import LINE_WORDS, REGISTERS

POISON = 0xDEAD_BEEF

LOAD, PREFETCH, MEMORY, SIGNED = int(Memory.LOAD), int(Memory.PREFETCH), int(Group.MEMORY), int(Flag.SIGNED)
STORE, ATOMIC, GENERIC = int(Memory.STORE), int(Group.ATOMIC), int(Space.GENERIC)


@inline
def _is_extended(instruction):
    """Whether elements of less than 64 bits fill a pair of registers."""
    return instruction.data == 8 and instruction.bytes < 8


@jit
def _delivered(instruction, token):
    """Whether the path moves the values of an instruction."""
    size = i64(token.bytes)
    if instruction.group != MEMORY or instruction.op == PREFETCH or size > 4 * REGISTERS:
        return False
    mask = i64(token.mask)
    while size > 4 and mask != 0:
        if i64(token.address[ctz(mask)]) >= LOCAL_PHYSICAL:
            return False
        mask = without_lowest(mask)
    return True


@jit
def take_values(lsu, warp, instruction, number):
    """Take what a load has read out of its registers, in the lanes that the path answers; keep what a store writes."""
    token = lsu.token[number]
    token.delivered = i64(_delivered(instruction, token))
    if token.delivered == 0:
        return
    token.sign = i64(instruction.vec == 1 and i64(instruction.flags) & SIGNED != 0)
    values = lsu.values[number]
    width = piece_bytes(instruction)
    keep = (i64(1) << 8 * width) - 1
    for k in range((i64(token.bytes) + 3) // 4):
        for lane in range(LANES):
            values.registers[k, lane] = 0
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        if register == RZ:
            continue
        at = piece * width
        words = words_u32(register_address(warp, register), LANES)
        for lane in range(LANES):
            moved = (i64(words[lane]) & keep) << 8 * (at & 3)
            values.registers[at >> 2, lane] = u32(i64(values.registers[at >> 2, lane]) | moved)
        if instruction.op == LOAD:
            _poison(warp, register, i64(token.mask))
            if _is_extended(instruction):
                _poison(warp, register + 1, i64(token.mask))


@jit
def _poison(warp, register, mask):
    words = words_u32(register_address(warp, register), LANES)
    for lane in range(LANES):
        words[lane] = u32(POISON) if (mask >> lane) & 1 else words[lane]


@inline
def _put(lsu, number, lane, words):
    """Put what a lane has read or written at its place in the line. Returns the place."""
    token, values = lsu.token[number], lsu.values[number]
    size, at = i64(token.bytes), i64(token.address[lane]) & (i64(1) << lsu.l1.line_shift) - 1
    keep, left = (i64(1) << 8 * min(size, i64(4))) - 1, 8 * (at & 3)
    rest = i64(words[at >> 2]) & ~(keep << left)
    words[at >> 2] = u32(rest | (i64(values.registers[0, lane]) & keep) << left)
    for k in range(1, size // 4):
        words[(at >> 2) + k] = values.registers[k, lane]
    return at


@jit
def fill_line(lsu, number, line, words):
    """The line that answers a load, from what its lanes have read."""
    for k in range(LINE_WORDS):
        words[k] = u32(POISON)
    lanes = lanes_of_line(lsu, number, line)
    while lanes != 0:
        _put(lsu, number, ctz(lanes), words)
        lanes = without_lowest(lanes)


@jit
def fill_stored(lsu, number, lanes, words, stored):
    """The line that these lanes of a store write, the highest lane last, and which bytes of each word."""
    for k in range(LINE_WORDS):
        words[k] = 0
        stored[k] = 0
    size = i64(lsu.token[number].bytes)
    while lanes != 0:
        at = _put(lsu, number, ctz(lanes), words)
        lanes = without_lowest(lanes)
        for k in range((size + 3) // 4):
            stored[(at >> 2) + k] |= (i64(1) << min(size, i64(4))) - 1 << (at & 3)


@jit
def write_values(warp, instruction, write):
    """Write the registers of a load with what arrives at its lanes."""
    width = piece_bytes(instruction)
    keep, sign = i64(0xFFFF_FFFF), i64(0)  # one element: extended where it was moved
    if instruction.vec > 1 and width < 4:
        keep = (i64(1) << 8 * width) - 1
        sign = i64(1) << 8 * width - 1 if i64(instruction.flags) & SIGNED else i64(0)
    written = 0xFFFF if instruction.data == 2 else 0xFFFF_FFFF
    extended = _is_extended(instruction)
    lanes = i64(write.lanes)
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        if register == RZ:
            continue
        at = piece * width
        words = words_u32(register_address(warp, register), LANES)
        upper = words_u32(register_address(warp, register + 1), LANES)
        left = lanes
        while left != 0:
            lane = ctz(left)
            left = without_lowest(left)
            value = (i64(write.registers[at >> 2, lane]) >> 8 * (at & 3)) & keep
            words[lane] = u32(((value ^ sign) - sign) & written)
            if extended:
                high = i64(words[lane]) >> 31 if i64(instruction.flags) & SIGNED else i64(0)
                upper[lane] = u32(-high)


# ------------------------------------------------------------------------------------------- where lines have values


@jit
def _late_lanes(instruction, token):
    """The lanes of an instruction that access global memory."""
    group = i64(instruction.group)
    if (group != MEMORY or instruction.op == PREFETCH) and group != ATOMIC:
        return i64(0)
    mask = i64(token.mask)
    if instruction.space != GENERIC:
        return mask if is_global(i64(token.address[ctz(mask)])) else i64(0)
    late, left = i64(0), mask
    while left != 0:
        lane = ctz(left)
        left = without_lowest(left)
        late |= i64(is_global(i64(token.address[lane]))) << lane
    return late


@inline
def _copy_register(lsu, number, row, warp, register, value):
    """Carry a register, or a value in all lanes if there is none."""
    target = row_of(lsu, number, row)
    if register == RZ:
        for lane in range(LANES):
            target[lane] = u32(value)
        return
    words = words_u32(register_address(warp, register), LANES)
    for lane in range(LANES):
        target[lane] = words[lane]


@jit
def _carry_operands(lsu, warp, instruction, number):
    """Carry the operands of an atomic."""
    for which in range(1, 3):
        register = i64(instruction.v[2 * which])
        value = i64(instruction.imm[which])
        _copy_register(lsu, number, 2 * which - 2, warp, register, value)
        upper = register if register == RZ or instruction.bytes < 8 else register + 1
        _copy_register(lsu, number, 2 * which - 1, warp, upper, value >> 32)


@jit
def _carry_stored(lsu, warp, instruction, number):
    """Carry what a store writes."""
    width = piece_bytes(instruction)
    keep = (i64(1) << 8 * width) - 1
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        at = piece * width
        if at & 3 == 0:
            _copy_register(lsu, number, at >> 2, warp, register, i64(0))
        elif register != RZ:
            words, target = words_u32(register_address(warp, register), LANES), row_of(lsu, number, at >> 2)
            for lane in range(LANES):
                rest = i64(target[lane]) & ~(keep << 8 * (at & 3))
                target[lane] = u32(rest | (i64(words[lane]) & keep) << 8 * (at & 3))


@jit
def defer(lsu, warp, instruction, number):
    """Let an instruction that has issued do in lines and requests what it has not done: its late lanes."""
    token = lsu.token[number]
    token.late = _late_lanes(instruction, token)
    if token.late == 0:
        return
    token.instruction = addressof(instruction)
    token.epoch = begun(lsu.performed)
    if instruction.group == ATOMIC:
        _carry_operands(lsu, warp, instruction, number)
    elif instruction.op == STORE:
        _carry_stored(lsu, warp, instruction, number)
    else:
        for piece in range(pieces(instruction)):
            register = data_register(instruction, piece)
            if register != RZ:
                _poison(warp, register, i64(token.late))
                if _is_extended(instruction):
                    _poison(warp, register + 1, i64(token.late))


@jit
def _write_loaded(lsu, warp, instruction, number, late):
    width = piece_bytes(instruction)
    keep = (i64(1) << 8 * width) - 1
    sign = i64(1) << 8 * width - 1 if i64(instruction.flags) & SIGNED else i64(0)
    written = 0xFFFF if instruction.data == 2 else 0xFFFF_FFFF
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        if register == RZ:
            continue
        at = piece * width
        row, words = row_of(lsu, number, at >> 2), words_u32(register_address(warp, register), LANES)
        if width == 4:
            for lane in range(LANES):
                words[lane] = row[lane] if (late >> lane) & 1 else words[lane]
        for lane in range(LANES if width < 4 else 0):
            value = ((i64(row[lane]) >> 8 * (at & 3) & keep) ^ sign) - sign
            words[lane] = u32(value & written) if (late >> lane) & 1 else words[lane]
        if _is_extended(instruction):
            upper = words_u32(register_address(warp, register + 1), LANES)
            for lane in range(LANES):
                high = u32(-(i64(words[lane]) >> 31)) if sign != 0 else u32(0)
                upper[lane] = high if (late >> lane) & 1 else upper[lane]


@jit
def write_late(lsu, warp, instruction, number):
    """Write the registers of a load or an atomic, in its late lanes: all its answers are there."""
    late = i64(lsu.token[number].late)
    if instruction.group == MEMORY:
        _write_loaded(lsu, warp, instruction, number, late)
        return
    register = i64(instruction.v[0])
    for k in range(2 if instruction.bytes == 8 else 1):
        if register != RZ:
            row, words = row_of(lsu, number, k), words_u32(register_address(warp, register + k), LANES)
            for lane in range(LANES):
                words[lane] = row[lane] if (late >> lane) & 1 else words[lane]
