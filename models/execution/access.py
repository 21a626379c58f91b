"""Loads and stores of every space (:class:`isa.Memory`).

An access moves ``vec`` elements of ``bytes`` each between memory and the registers ``v``. Loads extend an element to
the width of the data registers, stores take its low bytes; data for RZ is dropped, data from RZ is zero. When several
lanes store to one place the highest lane wins. A prefetch with a bad address does nothing. Where marks are kept
(``written``), a load of an unwritten byte is a fault, whether its value is used or not; but for spilled registers.

Where lines have values, global memory is not accessed here, but later (``memory.values``).
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, RZ, Fault, Flag, Memory
from lockstep.models.execution.operands import fill_words, register_address, result_address
from lockstep.models.execution.space import (
    CONSECUTIVE,
    FAULTY,
    GENERIC,
    GLOBAL,
    UNIFORM,
    device_address,
    host_address,
    lanes_found,
    resolve,
    row_bytes,
    spaces,
    words_of,
)
from lockstep.models.execution.written import check_read, is_strict, mark_written
from lockstep.models.jit import i64, inline, jit, pointer_to, slot, u32, u64, words_u32

LOAD, STORE, PREFETCH = int(Memory.LOAD), int(Memory.STORE), int(Memory.PREFETCH)
SIGNED, SPILL = int(Flag.SIGNED), int(Flag.SPILL)
at_context, at_instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def data_register(instruction, piece):
    """The register of a piece: an element, or one half of an element of 64 bits."""
    if instruction.bytes < 8:
        return i64(instruction.v[piece])
    register = i64(instruction.v[piece >> 1])
    return register if register == RZ else register + (piece & 1)


@inline
def piece_bytes(instruction):
    """Bytes of a piece."""
    return min(i64(instruction.bytes), 4)


@inline
def pieces(instruction):
    """The pieces of a lane's access."""
    return i64(instruction.vec) * (i64(instruction.bytes) // piece_bytes(instruction))


@inline
def _displacement(piece, width, row):
    """Bytes from the first piece of a lane to another."""
    return ((piece * width) >> 2) * row + ((piece * width) & 3)


@jit
def load_elements(x, instruction, space, lanes, shape):
    """Load into the data registers of ``lanes``, whose addresses lie in ``space``.

    ``shape`` is CONSECUTIVE, UNIFORM or 0.
    """
    bytes_ = i64(instruction.bytes)
    width = piece_bytes(instruction)
    memory = words_u32(host_address(x, space), words_of(x, space))
    address = x.address
    keep = (1 << 8 * width) - 1
    sign = 1 << 8 * width - 1 if i64(instruction.flags) & SIGNED else 0
    written = 0xFFFF if instruction.data == 2 else 0xFFFF_FFFF
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        if register == RZ:
            continue
        target = words_u32(register_address(x, register), LANES)
        shift = _displacement(piece, width, row_bytes(space)) - device_address(x, space)
        if shape & CONSECUTIVE and bytes_ == 4 and instruction.vec == 1:
            first = (address[0] + shift) >> 2
            for lane in range(x.lanes):
                target[lane] = memory[first + lane]
        elif shape & UNIFORM and width == 4:
            fill_words(register_address(x, register), memory[(address[0] + shift) >> 2], x.lanes)
        elif width == 4:
            for lane in range(x.lanes):
                inside = (lanes >> lane) & 1
                word = memory[u64((address[lane] + shift) & -inside) >> u64(2)]
                target[lane] = word if inside else target[lane]
        else:
            for lane in range(x.lanes):
                inside = (lanes >> lane) & 1
                offset = (address[lane] + shift) & -inside
                value = (i64(memory[offset >> 2]) >> ((offset & 3) << 3)) & keep
                target[lane] = u32(((value ^ sign) - sign) & written) if inside else target[lane]
        if instruction.data == 8 and bytes_ < 8:
            upper = words_u32(register_address(x, register + 1), LANES)
            for lane in range(x.lanes):
                high = u32(-(i64(target[lane]) >> 31)) if sign else u32(0)
                upper[lane] = high if (lanes >> lane) & 1 else upper[lane]


@jit
def store_elements(x, instruction, space, lanes, shape):
    """Store the data registers of ``lanes``, whose addresses lie in ``space``."""
    bytes_ = i64(instruction.bytes)
    width = piece_bytes(instruction)
    memory = words_u32(host_address(x, space), words_of(x, space))
    address = x.address
    keep = (1 << 8 * width) - 1
    for piece in range(pieces(instruction)):
        register = data_register(instruction, piece)
        where = register_address(x, register)
        if register == RZ:
            where = result_address(x)
            fill_words(where, 0, x.lanes)
        source = words_u32(where, LANES)
        shift = _displacement(piece, width, row_bytes(space)) - device_address(x, space)
        if shape & CONSECUTIVE and bytes_ == 4 and instruction.vec == 1:
            first = (address[0] + shift) >> 2
            for lane in range(x.lanes):
                memory[first + lane] = source[lane]
        elif width == 4:
            for lane in range(x.lanes):
                if (lanes >> lane) & 1:
                    memory[u64(address[lane] + shift) >> u64(2)] = source[lane]
        else:
            for lane in range(x.lanes):
                if (lanes >> lane) & 1:
                    offset = address[lane] + shift
                    left = (offset & 3) << 3
                    rest = i64(memory[offset >> 2]) & ~(keep << left)
                    memory[offset >> 2] = u32(rest | ((i64(source[lane]) & keep) << left))


@slot
def execute_memory(context, address):
    """Execute a load, a store or a prefetch; returns the fault, with nothing performed, or 0."""
    x = at_context(context)
    instruction = at_instruction(address)
    size = i64(instruction.bytes) * i64(instruction.vec)
    found = resolve(x, instruction, size, i64(instruction.op == STORE))
    if instruction.op == PREFETCH:
        x.touched = x.touched & ~x.touched_shared
        x.touched_shared = 0
        x.fault = Fault.NONE
        return i64(Fault.NONE)
    if found == FAULTY:
        return i64(x.fault)
    if x.probe != 0:
        return i64(Fault.NONE)
    if is_strict(x) and instruction.op == LOAD and i64(instruction.flags) & SPILL == 0:
        fault = check_read(x, found, size, instruction.space == GENERIC)
        if fault != Fault.NONE:
            return fault
    flags = found & ~(CONSECUTIVE - 1)
    first, last = spaces(found)
    for each in range(first, last + 1):
        lanes = lanes_found(x, found, each)
        if lanes != 0 and (x.late == 0 or each != GLOBAL):
            if instruction.op == LOAD:
                load_elements(x, instruction, each, lanes, flags)
            else:
                store_elements(x, instruction, each, lanes, flags)
    if is_strict(x) and instruction.op == STORE:
        mark_written(x, found, size)
    return i64(Fault.NONE)
