"""Which bytes of memory have been written, where somebody asks (``Gpu(strict=True)``).

Every byte of global memory, scratchpad and local memory then has a *mark*, a byte at a fixed distance in host memory:
0xFF if it has been written, else 0. Bytes are unwritten when memory has been allocated, a CTA's scratchpad when the CTA
starts, a warp's local memory when the warp starts; with or without marks, they hold :data:`isa.POISON` from then on.

Module-scope variables, parameters, and the texels of textures and surfaces are written from the start.
"""

from __future__ import annotations

from lockstep.models.execution.isa import POISON, Fault
from lockstep.models.execution.space import (
    device_address,
    host_address,
    lanes_found,
    marks_from,
    program_address,
    row_bytes,
    spaces,
    words_of,
)
from lockstep.models.jit import ctz, i64, inline, jit, u32, without_lowest, words_u32

_NONE, _UNWRITTEN = int(Fault.NONE), int(Fault.UNWRITTEN)
_POISON_WORD = POISON * 0x0101_0101


@jit
def poison(where, nbytes, marks):
    """Let memory, a multiple of four bytes, be unwritten; its marks, if any, lie ``marks`` bytes further."""
    words = words_u32(where, nbytes >> 2)
    for k in range(nbytes >> 2):
        words[k] = u32(_POISON_WORD)
    if marks != 0:
        kept = words_u32(where + marks, nbytes >> 2)
        for k in range(nbytes >> 2):
            kept[k] = u32(0)


@inline
def is_strict(x):
    """Whether marks are kept."""
    return x.memory_marks != 0


@jit
def _first_unwritten(x, space, lanes, size):
    """The first lane with an unwritten byte in its access of ``size`` bytes, and the byte's number in it; or -1, 0."""
    distance = marks_from(x, space)
    if distance == 0:
        return i64(-1), i64(0)
    marks = words_u32(host_address(x, space) + distance, words_of(x, space))
    row, origin = row_bytes(space), device_address(x, space)
    width = min(size, i64(4))
    keep = (1 << 8 * width) - 1
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        offset = i64(x.address[lane]) - origin
        for k in range((size + 3) // 4):
            place = offset + k * row
            missing = ~(i64(marks[place >> 2]) >> ((place & 3) << 3)) & keep
            if missing != 0:
                return i64(lane), i64(4 * k + (ctz(missing) >> 3))
    return i64(-1), i64(0)


@jit
def check_read(x, found, size, generic):
    """Check that all that the resolved lanes read has been written; returns the fault, with its place in the context.

    ``found`` is what ``space.resolve`` has returned, ``size`` the bytes of each lane; ``generic`` says whether the
    program's addresses are.
    """
    first, last = spaces(found)
    fault = i64(_NONE)
    for each in range(first, last + 1):
        lanes = lanes_found(x, found, each)
        lane, byte = _first_unwritten(x, each, lanes, size)
        if lane >= 0 and (fault == _NONE or lane < x.fault_lane):
            fault = i64(_UNWRITTEN)
            x.fault = fault
            x.fault_lane = lane
            x.fault_address = program_address(x, each, generic, lane) + byte
    if fault != _NONE:
        x.touched = 0
        x.touched_shared = 0
    return fault


@jit
def mark_written(x, found, size):
    """Mark what the resolved lanes have written, as :func:`check_read` looks for it."""
    first, last = spaces(found)
    width = min(size, i64(4))
    keep = (1 << 8 * width) - 1
    for each in range(first, last + 1):
        lanes = lanes_found(x, found, each)
        distance = marks_from(x, each)
        if lanes == 0 or distance == 0:
            continue
        marks = words_u32(host_address(x, each) + distance, words_of(x, each))
        row, origin = row_bytes(each), device_address(x, each)
        while lanes != 0:
            lane = ctz(lanes)
            lanes = without_lowest(lanes)
            offset = i64(x.address[lane]) - origin
            for k in range((size + 3) // 4):
                place = offset + k * row
                marks[place >> 2] = u32(i64(marks[place >> 2]) | keep << ((place & 3) << 3))
