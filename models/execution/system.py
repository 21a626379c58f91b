"""Calls of CUDA's system library (:class:`isa.System`): the host executes them, between two instructions of the model.

The slot ``host`` of the context gets the context and the operation. It finds generic pointers of the lanes in ``a`` and
``b``, reads what they point to with :func:`copy_bytes`, leaves results in ``r`` as 64-bit numbers, and returns a fault
or 0.
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, Fault
from lockstep.models.execution.operands import fetch, result_address, write
from lockstep.models.execution.space import (
    FAULTY,
    GENERIC,
    GLOBAL,
    PAIRED,
    device_address,
    host_address,
    lanes_in,
    resolve_lanes,
    words_of,
)
from lockstep.models.execution.written import check_read, is_strict
from lockstep.models.jit import call, i64, inline, jit, pointer_to, record, slot, u32, words_i64, words_u8, words_u32

COPY = record(
    [
        ("lane", "i8"),
        ("address", "i8"),  # generic
        ("bytes", "i8"),  # at most; afterwards those copied
        ("string", "i8"),  # ends with the first zero, which is copied
        ("target", "i8"),  # host address
    ]
)
at_context, at_instruction, at_copy = pointer_to(CONTEXT), pointer_to(INSTRUCTION), pointer_to(COPY)
_NONE = int(Fault.NONE)


@inline
def _byte(x, lane):
    """The byte at the place that has been found for a lane."""
    value = i64(0)
    for space in range(GLOBAL, PAIRED + 1):
        if (lanes_in(x, space) >> lane) & 1:
            offset = i64(x.address[lane]) - device_address(x, space)
            word = i64(words_u32(host_address(x, space), words_of(x, space))[offset >> 2])
            value = (word >> ((offset & 3) << 3)) & 0xFF
    return value


@jit
def _read_byte(x, lane, address):
    """The byte that a lane sees at a generic address, or minus the fault."""
    x.address[lane] = address
    found = resolve_lanes(x, i64(GENERIC), i64(1), i64(0))
    if found == FAULTY:
        return -i64(x.fault)
    fault = check_read(x, found, i64(1), True) if is_strict(x) else i64(_NONE)
    return -fault if fault != _NONE else i64(_byte(x, lane))


@slot
def copy_bytes(context, address):
    """Copy bytes that a lane sees to the host (:data:`COPY`); returns the fault, or 0. Overwrites ``b``."""
    x = at_context(context)
    wanted = at_copy(address)
    most, lane, mask = i64(wanted.bytes), i64(wanted.lane), i64(x.mask)
    target = words_u8(i64(wanted.target), most)
    x.mask = i64(1) << lane
    copied, byte = i64(0), i64(1)
    while copied < most and (byte != 0 or wanted.string == 0):
        byte = i64(_read_byte(x, lane, i64(wanted.address) + copied))
        if byte < 0:
            break
        target[copied] = byte
        copied += 1
    x.mask = mask
    wanted.bytes = copied
    return -byte if byte < 0 else i64(_NONE)


@slot
def execute_system(context, address):
    """Let the host execute a call; returns the fault, or 0."""
    x = at_context(context)
    instruction = at_instruction(address)
    fetch(x, instruction, 0)
    fetch(x, instruction, 1)
    fault = call(i64(x.host), context, i64(instruction.op))
    if fault == _NONE:
        longs, words = words_i64(result_address(x), LANES), words_u32(result_address(x), LANES)
        for lane in range(LANES):
            words[lane] = u32(longs[lane])
        write(x, instruction)
    return fault
