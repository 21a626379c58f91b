"""Atomic operations and reductions (:class:`isa.Atomic`) in global, shared and generic space.

The lanes operate one after the other in the order of their numbers; each gets the value that it found. Additions of
f32 treat subnormals as zero in global memory and keep them in shared memory, as PTX states; the other
floating-point additions keep them. A result that is not a number is the canonical one. But an f64 has the bits of an
operand that is none: in global memory of b before those found there, in shared memory the other way round, and quiet.
Every operation reads, the exchange too: where marks are kept (``written``), its place must have been written.

Where lines have values, atomics on global memory are performed by :func:`operate`, when a slice looks their request up.
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, GLOBAL_BASE, INSTRUCTION, LANES, RZ, Atomic, Fault
from lockstep.models.execution.numerics import LOW_HALF, NAN_F32, RN, flush, half_to_single, round_to
from lockstep.models.execution.operands import (
    fill_words,
    register_address,
    result_address,
    scratch_address,
    store_longs,
    store_words,
)
from lockstep.models.execution.space import (
    FAULTY,
    GENERIC,
    GLOBAL,
    device_address,
    host_address,
    lanes_found,
    resolve,
    row_bytes,
    spaces,
    words_of,
)
from lockstep.models.execution.written import check_read, is_strict
from lockstep.models.jit import (
    bits_f32,
    bits_f64,
    ctz,
    f32_bits,
    f64,
    f64_bits,
    i64,
    inline,
    jit,
    pointer_to,
    slot,
    u32,
    u64,
    without_lowest,
    words_i64,
    words_u32,
)
from lockstep.models.memory.values import CARGO

_INVALID_F64 = -(1 << 51)  # 0xfff8 and zeros
_QUIET_F64 = 1 << 51
_SIGN = -(1 << 63)

ADD, EXCH, CAS, INC, DEC = int(Atomic.ADD), int(Atomic.EXCH), int(Atomic.CAS), int(Atomic.INC), int(Atomic.DEC)
MIN_S, MIN_U, MAX_S, MAX_U = int(Atomic.MIN_S), int(Atomic.MIN_U), int(Atomic.MAX_S), int(Atomic.MAX_U)
AND, OR, XOR = int(Atomic.AND), int(Atomic.OR), int(Atomic.XOR)
ADD_F32, ADD_F64, ADD_F16 = int(Atomic.ADD_F32), int(Atomic.ADD_F64), int(Atomic.ADD_F16)
ADD_F16X2, ADD_BF16X2 = int(Atomic.ADD_F16X2), int(Atomic.ADD_BF16X2)
at_context, at_instruction, at_cargo = pointer_to(CONTEXT), pointer_to(INSTRUCTION), pointer_to(CARGO)


@inline
def _add_single(a, b):
    """Bits of the sum of two f32."""
    total = bits_f32(u32(a)) + bits_f32(u32(b))
    return i64(f32_bits(total)) if total == total else i64(NAN_F32)


@inline
def _add_double(old, b, in_global):
    """Bits of the sum of two f64."""
    first, second = bits_f64(u64(old)), bits_f64(u64(b))
    total = first + second
    if total == total:
        return i64(f64_bits(total))
    if in_global:
        return i64(b) if second != second else (i64(old) if first != first else i64(_INVALID_F64))
    nan = i64(old) if first != first else (i64(b) if second != second else i64(_INVALID_F64))
    return i64(nan | _QUIET_F64)


@inline
def _add_narrow(a, b, precision):
    """Bits of the sum of two f16 (precision 11) or bf16 (8), which are the low halves of ``a`` and ``b``."""
    if precision == 8:
        a, b = (a & LOW_HALF) << 16, (b & LOW_HALF) << 16
    else:
        a, b = half_to_single(a), half_to_single(b)
    return round_to(f64(bits_f32(u32(a))) + f64(bits_f32(u32(b))), RN, i64(16), precision)


@jit
def combine(op, old, b, c, sign, in_global):
    """The new value of a place. Operands are zero-extended; ``sign`` is their sign bit, 0 for 64 bits."""
    if op == ADD:
        return i64(old + b)
    if op == MIN_S or op == MAX_S:
        a, b = (old ^ sign) - sign, (b ^ sign) - sign
        return i64(min(a, b) if op == MIN_S else max(a, b))
    if op == MIN_U or op == MAX_U:
        a, b = old ^ _SIGN, b ^ _SIGN
        return i64((min(a, b) if op == MIN_U else max(a, b)) ^ _SIGN)
    if op == CAS:
        return i64(c if old == b else old)
    if op == INC:
        return i64(0 if old >= b else old + 1)
    if op == DEC:
        return i64(b if old == 0 or old > b else old - 1)
    if op == ADD_F32:
        return flush(_add_single(flush(old), flush(b))) if in_global else _add_single(old, b)
    if op == ADD_F64:
        return _add_double(old, b, in_global)
    if op == ADD_F16 or op == ADD_F16X2 or op == ADD_BF16X2:
        precision = i64(8 if op == ADD_BF16X2 else 11)
        upper = i64(0) if op == ADD_F16 else _add_narrow(old >> 16, b >> 16, precision)
        return i64((upper << 16) | _add_narrow(old, b, precision))
    if op == AND:
        return i64(old & b)
    if op == OR:
        return i64(old | b)
    return i64(old ^ b if op == XOR else b)


@inline
def _operand(x, instruction, which, word):
    """Host address of the lower (``word`` = 0) or upper words of operand ``which``: a register, or else a constant."""
    register = i64(instruction.v[2 * which])
    if register != RZ:
        return register_address(x, register + word)
    place = scratch_address(x, 2 * word + which - 1)
    fill_words(place, i64(instruction.imm[which]) >> 32 * word, x.lanes)
    return place


@jit
def _perform(x, instruction, space, lanes):
    """Operate in the order of the lanes; the old values go to the result."""
    op, bytes_ = i64(instruction.op), i64(instruction.bytes)
    long = bytes_ == 8
    keep = (1 << 8 * bytes_) - 1 if bytes_ < 4 else 0xFFFF_FFFF
    sign = 0 if long else (keep + 1) >> 1
    row = row_bytes(space) >> 2
    memory = words_u32(host_address(x, space), words_of(x, space))
    origin = device_address(x, space)
    result = words_i64(result_address(x), LANES)
    upper = i64(1 if long else 0)
    b_low = words_u32(_operand(x, instruction, 1, i64(0)), LANES)
    b_high = words_u32(_operand(x, instruction, 1, upper), LANES)
    c_low = words_u32(_operand(x, instruction, 2, i64(0)), LANES)
    c_high = words_u32(_operand(x, instruction, 2, upper), LANES)
    for lane in range(x.lanes):
        if (lanes >> lane) & 1 == 0:
            continue
        offset = i64(x.address[lane]) - origin
        place, left = offset >> 2, (offset & 3) << 3
        word = i64(memory[place])
        old, b, c = (word >> left) & keep, i64(b_low[lane]) & keep, i64(c_low[lane]) & keep
        if long:
            old = i64(old | (i64(memory[place + row]) << 32))
            b = i64(b | (i64(b_high[lane]) << 32))
            c = i64(c | (i64(c_high[lane]) << 32))
        new = combine(op, old, b, c, sign, space == GLOBAL)
        memory[place] = u32((word & ~(keep << left)) | ((new & keep) << left))
        if long:
            memory[place + row] = u32(new >> 32)
        result[lane] = old


@slot
def operate(address, arena):
    """Perform what a request of an atomic brings (``memory.values``): its lanes operate on global memory at ``arena``.

    Their old values come in the place of their operands.
    """
    cargo = at_cargo(address)
    instruction = at_instruction(i64(cargo.instruction))
    op, bytes_ = i64(instruction.op), i64(instruction.bytes)
    long = bytes_ == 8
    keep = (1 << 8 * bytes_) - 1 if bytes_ < 4 else 0xFFFF_FFFF
    sign = 0 if long else (keep + 1) >> 1
    places = words_u32(i64(cargo.addresses), LANES)
    rows = words_u32(i64(cargo.operands), 4 * LANES)
    left = i64(cargo.lanes)
    while left != 0:
        lane = ctz(left)
        left = without_lowest(left)
        offset = i64(places[lane]) - GLOBAL_BASE
        memory = words_u32(i64(arena) + (offset & ~3), 2)
        shift = (offset & 3) << 3
        word = i64(memory[0])
        old, b, c = (word >> shift) & keep, i64(rows[lane]) & keep, i64(rows[2 * LANES + lane]) & keep
        if long:
            old = i64(old | (i64(memory[1]) << 32))
            b = i64(b | (i64(rows[LANES + lane]) << 32))
            c = i64(c | (i64(rows[3 * LANES + lane]) << 32))
        new = combine(op, old, b, c, sign, True)
        memory[0] = u32((word & ~(keep << shift)) | ((new & keep) << shift))
        if long:
            memory[1] = u32(new >> 32)
        rows[lane] = u32(old)
        rows[LANES + lane] = u32(old >> 32)
    return i64(0)


@inline
def _store_result(x, instruction):
    """Write the old values to the destination."""
    destination = i64(instruction.v[0])
    if instruction.bytes == 8:
        store_longs(x, destination, result_address(x))
    elif destination != RZ:
        longs = words_i64(result_address(x), LANES)
        words = words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            words[lane] = u32(longs[lane])
        store_words(x, destination, result_address(x))


@slot
def execute_atomic(context, address):
    """Execute an atomic operation; returns the fault, with nothing performed, or 0."""
    x = at_context(context)
    instruction = at_instruction(address)
    found = resolve(x, instruction, i64(instruction.bytes), i64(1))
    if found == FAULTY:
        return i64(x.fault)
    if x.probe != 0:
        return i64(Fault.NONE)
    if is_strict(x):
        fault = check_read(x, found, i64(instruction.bytes), instruction.space == GENERIC)
        if fault != Fault.NONE:
            return fault
    first, last = spaces(found)
    done = i64(0)
    for each in range(first, last + 1):
        lanes = lanes_found(x, found, each)
        if lanes != 0 and (x.late == 0 or each != GLOBAL):
            _perform(x, instruction, each, lanes)
            done |= lanes
    if done != 0:
        whole = i64(x.mask)
        x.mask = done
        _store_result(x, instruction)
        x.mask = whole
    return i64(Fault.NONE)
