"""Integer arithmetic and logic: the groups INT (32-bit lanes) and LONG (64-bit lanes).

Frequent operations have a loop of their own, which the compiler vectorises; the others share one loop over a scalar
function. Semantics: PTX ISA 9.0, sections 9.7.1 (integer), 9.7.2 (extended precision) and 9.7.8 (logic and shift).
Narrower operations arrive extended to 32 bits and are cut off by the write.
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, PT, Int, Long, Write
from lockstep.models.execution.operands import (
    LOW_HALF,
    fetch,
    read_predicate,
    result_address,
    scratch_address,
    sources,
    store_words,
    write,
    write_predicate,
)
from lockstep.models.jit import (
    clz64,
    i64,
    inline,
    pointer_to,
    popcount,
    slot,
    u32,
    u64,
    words_i32,
    words_i64,
    words_u32,
    words_u64,
)

WORD = 0xFFFF_FFFF
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
_PAIR = int(Write.PAIR)

_context, _instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)

# Byte selectors of the modes of prmt, four of 16 bits for the values of c: default (unused), f4e, b4e, rc8, ecl, ecr,
# rc16.
_PRMT = (
    0,
    0x6543_5432_4321_3210,
    0x0123_7012_6701_5670,
    0x3333_2222_1111_0000,
    0x3333_3222_3211_3210,
    0x3210_2210_1110_0000,
    0x3232_1010_3232_1010,
)


@inline
def _signed(word):
    """Bits as a signed 32-bit value."""
    return ((i64(word) & WORD) ^ (1 << 31)) - (1 << 31)


@inline
def _divide(a, b):
    """Quotient of two values, rounded towards zero; all ones when b is 0."""
    quotient = abs(a) // max(abs(b), 1)
    return -1 if b == 0 else (-quotient if (a < 0) != (b < 0) else quotient)


@inline
def _remainder(a, b):
    """Remainder with the sign of a; all ones when b is 0."""
    rest = abs(a) % max(abs(b), 1)
    return -1 if b == 0 else (-rest if a < 0 else rest)


@inline
def _reverse(a):
    """The bits of a 32-bit word in reverse order."""
    a = ((a >> 1) & 0x5555_5555) | ((a & 0x5555_5555) << 1)
    a = ((a >> 2) & 0x3333_3333) | ((a & 0x3333_3333) << 2)
    a = ((a >> 4) & 0x0F0F_0F0F) | ((a & 0x0F0F_0F0F) << 4)
    a = ((a >> 8) & 0x00FF_00FF) | ((a & 0x00FF_00FF) << 8)
    return (a >> 16) | ((a & LOW_HALF) << 16)


@inline
def _find_nth(mask, base, offset):
    """fns: position of the offset-th set bit counted from ``base``, upwards or downwards; all ones if there is none."""
    if base >= 32:
        return WORD
    step = 1 if offset >= 0 else -1
    left = abs(offset) - 1 if offset != 0 else 0
    last = base if offset == 0 else (31 if offset > 0 else 0)
    for position in range(base, last + step, step):
        if (mask >> position) & 1:
            if left == 0:
                return position
            left -= 1
    return WORD


@inline
def _extend_from(signed, wrap, a, b):
    """szext: the low b bits of a, extended."""
    if b >= 32 and not wrap:
        return a
    width = b & 31
    if width == 0:
        return 0
    low = a & ((1 << width) - 1)
    return low - (1 << width) if signed and (low >> (width - 1)) & 1 else low


@inline
def _bit_mask(wrap, a, b):
    """bmsk: b ones from bit a on."""
    if not wrap and a >= 32:
        return 0
    start = a & 31
    width = 32 if b >= 32 and not wrap else b & 31
    return (((1 << width) - 1) << start) & WORD


@inline
def _rare(op, sub, a, b, c):
    """The operations without a loop of their own, on one lane; a, b and c are unsigned."""
    if op == Int.DIV_U:
        return _divide(a, b)
    if op == Int.REM_U:
        return _remainder(a, b)
    if op == Int.DIV_S:
        return _divide(_signed(a), _signed(b))
    if op == Int.REM_S:
        return _remainder(_signed(a), _signed(b))
    if op == Int.MULHI16:
        return (_signed(a) * _signed(b)) >> 16
    if op == Int.SAD_S:
        return c + abs(_signed(a) - _signed(b))
    if op == Int.SAD_U:
        return c + abs(a - b)
    if op == Int.CNOT:
        return 1 if a == 0 else 0
    if op == Int.BREV:
        return _reverse(a)
    if op == Int.CLZ:
        return 32 if a == 0 else clz64(a) - 32
    if op == Int.BFIND_S or op == Int.BFIND_U:
        word = a ^ WORD if op == Int.BFIND_S and _signed(a) < 0 else a
        return WORD if word == 0 else (clz64(word) - 32 if sub == 1 else 63 - clz64(word))
    if op == Int.ADD_SAT:
        return min(max(_signed(a) + _signed(b), _LEAST), _MOST)
    if op == Int.SUB_SAT:
        return min(max(_signed(a) - _signed(b), _LEAST), _MOST)
    if op == Int.MADHI_SAT:
        return min(max(((_signed(a) * _signed(b)) >> 32) + _signed(c), _LEAST), _MOST)
    if op == Int.FNS:
        return _find_nth(a, b, _signed(c))
    if op == Int.SZEXT_S or op == Int.SZEXT_U:
        return _extend_from(op == Int.SZEXT_S, sub == 1, a, b)
    if op == Int.BMSK:
        return _bit_mask(sub == 1, a, b)
    # 24-bit products, as sign- or zero-extended values.
    product = (a & 0xFF_FFFF) * (b & 0xFF_FFFF)
    if sub == 1:
        product = (((a & 0xFF_FFFF) ^ 0x80_0000) - 0x80_0000) * (((b & 0xFF_FFFF) ^ 0x80_0000) - 0x80_0000)
    if op == Int.MULHI24:
        return product >> 16
    if op == Int.MADHI24:
        return (product >> 16) + c
    return product + (c if op == Int.MAD24 else 0)


@inline
def _carry(x, instruction, op, r, a, b, c):
    """Sums with a carry or borrow in and out, as lane masks in predicates."""
    carries = read_predicate(x, i64(instruction.psrc), 0) if instruction.psrc != PT else 0
    out = 0
    for lane in range(x.lanes):
        if op == Int.ADD or op == Int.SUB:
            first, second = i64(a[lane]), i64(b[lane])
        elif op == Int.MAD:
            first, second = (i64(a[lane]) * i64(b[lane])) & WORD, i64(c[lane])
        elif op == Int.MADHI_S:
            first, second = ((_signed(a[lane]) * _signed(b[lane])) >> 32) & WORD, i64(c[lane])
        else:
            first, second = ((i64(a[lane]) * i64(b[lane])) >> 32) & WORD, i64(c[lane])
        carry = (carries >> lane) & 1
        total = first - second - carry if op == Int.SUB else first + second + carry
        r[lane] = u32(total)
        out |= ((total >> 32) & 1) << lane
    write_predicate(x, i64(instruction.pdst), out)


@inline
def _bit_field(x, signed, r, a, b, c):
    """bfe: c bits of a from bit b on."""
    for lane in range(x.lanes):
        value = _signed(a[lane]) if signed else i64(a[lane])
        width = min(i64(c[lane]) & 0xFF, 32)
        field = i64(value >> min(i64(b[lane]) & 0xFF, 63)) & ((1 << width) - 1)
        top = ((1 << width) >> 1) if signed else 0
        r[lane] = u32((field ^ top) - top)


@inline
def _permute(x, mode, r, a, b, c):
    """prmt: bytes of b:a chosen by nibbles of a selector; the nibble's top bit spreads the byte's sign."""
    table = _PRMT[mode]
    for lane in range(x.lanes):
        selector = i64(c[lane])
        if mode != 0:
            selector = (table >> (16 * (selector & 3))) & LOW_HALF
        source = i64(a[lane]) | (i64(b[lane]) << 32)
        word = 0
        for k in range(4):
            nibble = (selector >> (4 * k)) & 15
            byte = (source >> (8 * (nibble & 7))) & 0xFF
            spread = 0xFF if byte & 0x80 else 0
            word |= (spread if nibble & 8 else byte) << (8 * k)
        r[lane] = u32(word)


@inline
def look_up(x, table, r, a, b, c):
    """lop3: a truth table on the bits of three words; index 4a + 2b + c."""
    t0, t1, t2, t3 = -(table & 1), -((table >> 1) & 1), -((table >> 2) & 1), -((table >> 3) & 1)
    t4, t5, t6, t7 = -((table >> 4) & 1), -((table >> 5) & 1), -((table >> 6) & 1), -((table >> 7) & 1)
    for lane in range(x.lanes):
        third = i64(c[lane])
        second = i64(b[lane])
        first = i64(a[lane])
        low = (((t0 & ~third) | (t1 & third)) & ~second) | (((t2 & ~third) | (t3 & third)) & second)
        high = (((t4 & ~third) | (t5 & third)) & ~second) | (((t6 & ~third) | (t7 & third)) & second)
        r[lane] = u32((low & ~first) | (high & first))


@slot
def execute_int(context, instruction):
    """Group.INT."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    sub = i64(instruction.sub)
    at_a, at_b, at_c = sources(x, instruction)
    at_d = at_c
    if op == Int.BFI:
        at_d = fetch(x, instruction, 3)
    a, b, c, d = words_u32(at_a, LANES), words_u32(at_b, LANES), words_u32(at_c, LANES), words_u32(at_d, LANES)
    sa, sb = words_i32(at_a, LANES), words_i32(at_b, LANES)
    r = words_u32(result_address(x), LANES)
    if instruction.psrc != PT or instruction.pdst != PT:
        _carry(x, instruction, op, r, a, b, c)
    elif op == Int.MOV:
        for lane in range(x.lanes):
            r[lane] = a[lane]
    elif op == Int.ADD:
        for lane in range(x.lanes):
            r[lane] = u32(a[lane] + b[lane])
    elif op == Int.SUB:
        for lane in range(x.lanes):
            r[lane] = u32(a[lane] - b[lane])
    elif op == Int.MUL:
        for lane in range(x.lanes):
            r[lane] = u32(a[lane] * b[lane])
    elif op == Int.MAD:
        for lane in range(x.lanes):
            r[lane] = u32(a[lane] * b[lane] + c[lane])
    elif op == Int.MULHI_U or op == Int.MADHI_U:
        addend = -1 if op == Int.MADHI_U else 0
        for lane in range(x.lanes):
            r[lane] = u32(((i64(a[lane]) * i64(b[lane])) >> 32) + (i64(c[lane]) & addend))
    elif op == Int.MULHI_S or op == Int.MADHI_S:
        addend = -1 if op == Int.MADHI_S else 0
        for lane in range(x.lanes):
            r[lane] = u32(((i64(sa[lane]) * i64(sb[lane])) >> 32) + (i64(c[lane]) & addend))
    elif op == Int.ABS:
        for lane in range(x.lanes):
            r[lane] = u32(abs(i64(sa[lane])))
    elif op == Int.NEG:
        for lane in range(x.lanes):
            r[lane] = u32(-i64(a[lane]))
    elif op == Int.MIN_S:
        for lane in range(x.lanes):
            r[lane] = u32(sa[lane] if sa[lane] < sb[lane] else sb[lane])
    elif op == Int.MIN_U:
        for lane in range(x.lanes):
            r[lane] = a[lane] if a[lane] < b[lane] else b[lane]
    elif op == Int.MAX_S:
        for lane in range(x.lanes):
            r[lane] = u32(sa[lane] if sa[lane] > sb[lane] else sb[lane])
    elif op == Int.MAX_U:
        for lane in range(x.lanes):
            r[lane] = a[lane] if a[lane] > b[lane] else b[lane]
    elif op == Int.AND:
        for lane in range(x.lanes):
            r[lane] = a[lane] & b[lane]
    elif op == Int.OR:
        for lane in range(x.lanes):
            r[lane] = a[lane] | b[lane]
    elif op == Int.XOR:
        for lane in range(x.lanes):
            r[lane] = a[lane] ^ b[lane]
    elif op == Int.NOT:
        for lane in range(x.lanes):
            r[lane] = u32(~a[lane])
    elif op == Int.SHL:
        for lane in range(x.lanes):
            r[lane] = u32(i64(a[lane]) << (i64(b[lane]) & 31) if b[lane] < 32 else 0)
    elif op == Int.SHR_U:
        for lane in range(x.lanes):
            r[lane] = u32(i64(a[lane]) >> (i64(b[lane]) & 31) if b[lane] < 32 else 0)
    elif op == Int.SHR_S:
        for lane in range(x.lanes):
            r[lane] = u32(i64(sa[lane]) >> min(i64(b[lane]), 31))
    elif Int.SHF_L_CLAMP <= op <= Int.SHF_R_WRAP:
        # The amount is at most 32 or is taken modulo 32; a shift to the left takes the upper half of the result.
        clamp = op == Int.SHF_L_CLAMP or op == Int.SHF_R_CLAMP
        left = op == Int.SHF_L_CLAMP or op == Int.SHF_L_WRAP
        for lane in range(x.lanes):
            amount = min(i64(c[lane]), 32) if clamp else i64(c[lane]) & 31
            amount = 32 - amount if left else amount
            r[lane] = u32((i64(a[lane]) | (i64(b[lane]) << 32)) >> amount)
    elif op == Int.BFE_S or op == Int.BFE_U:
        _bit_field(x, op == Int.BFE_S, r, a, b, c)
    elif op == Int.BFI:
        for lane in range(x.lanes):
            ones = (1 << min(i64(d[lane]) & 0xFF, 32)) - 1
            place = min(i64(c[lane]) & 0xFF, 32)
            r[lane] = u32((i64(b[lane]) & ~(ones << place)) | ((i64(a[lane]) & ones) << place))
    elif op == Int.POPC:
        for lane in range(x.lanes):
            r[lane] = u32(popcount(i64(a[lane])))
    elif op == Int.PRMT:
        _permute(x, sub, r, a, b, c)
    elif op == Int.LOP3:
        look_up(x, sub, r, a, b, c)
    else:
        for lane in range(x.lanes):
            r[lane] = u32(_rare(op, sub, i64(a[lane]), i64(b[lane]), i64(c[lane])))
    write(x, instruction)
    return 0


# ------------------------------------------------------------------------------------------------------ 64-bit lanes


@inline
def multiply_high(a, b):
    """Bits 127..64 of the product of two u64."""
    low = u64(WORD)
    half = u64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    other = a0 * b1 + (middle & low)
    return a1 * b1 + (middle >> half) + (other >> half)


@inline
def _multiply_high_signed(a, b):
    """Bits 127..64 of the product of two signed 64-bit values, as an u64."""
    high = multiply_high(u64(a), u64(b))
    return high - (u64(b) if a < 0 else u64(0)) - (u64(a) if b < 0 else u64(0))


@inline
def _divide_long(a, b):
    """Quotient of two u64; all ones when b is 0."""
    return u64(-1) if b == u64(0) else a // b


@inline
def _remainder_long(a, b):
    """Remainder of two u64; all ones when b is 0."""
    return u64(-1) if b == u64(0) else a % b


@inline
def _magnitude(a):
    """|a| of a signed 64-bit value as an u64."""
    return u64(-i64(a)) if a < 0 else u64(a)


@inline
def _rare_long(op, sub, a, b, c):
    """The operations without a loop of their own, on one lane; all values are signed 64-bit; the result is an u64."""
    first, second, third = u64(a), u64(b), u64(c)
    if op == Long.MULHI_U or op == Long.MADHI_U:
        return multiply_high(first, second) + (third if op == Long.MADHI_U else u64(0))
    if op == Long.MULHI_S or op == Long.MADHI_S:
        return _multiply_high_signed(a, b) + (third if op == Long.MADHI_S else u64(0))
    if op == Long.SAD_S:
        return third + (first - second if a > b else second - first)
    if op == Long.SAD_U:
        return third + (first - second if first > second else second - first)
    if op == Long.DIV_U:
        return _divide_long(first, second)
    if op == Long.REM_U:
        return _remainder_long(first, second)
    if op == Long.DIV_S:
        quotient = _divide_long(_magnitude(a), _magnitude(b))
        return u64(-i64(quotient)) if b != 0 and (a < 0) != (b < 0) else quotient
    if op == Long.REM_S:
        rest = _remainder_long(_magnitude(a), _magnitude(b))
        return u64(-i64(rest)) if a < 0 and b != 0 else rest
    if op == Long.CNOT:
        return u64(1) if a == 0 else u64(0)
    if op == Long.BFE_S or op == Long.BFE_U:
        place = i64(second) & 0xFF
        width = i64(third) & 0xFF
        if width == 0:
            return u64(0)
        spare = 64 - min(width, 64)
        if op == Long.BFE_S:
            return u64(i64(i64(a >> min(place, 63)) << spare) >> spare)
        return (first >> u64(place)) << u64(spare) >> u64(spare) if place < 64 else u64(0)
    if op == Long.BREV:
        return (u64(_reverse(a & WORD)) << u64(32)) | u64(_reverse((a >> 32) & WORD))
    if op == Long.POPC:
        return u64(popcount(a))
    if op == Long.CLZ:
        return u64(64 if a == 0 else clz64(first))
    if op == Long.BFIND_S or op == Long.BFIND_U:
        word = ~a if op == Long.BFIND_S and a < 0 else a
        if word == 0:
            return u64(WORD)
        return u64(clz64(u64(word)) if sub == 1 else 63 - clz64(u64(word)))
    return u64(0)


@inline
def _carry_long(x, instruction, op, r, a, b, c):
    """As :func:`_carry`: the carry out of 64 bits is seen in the sign bits of the operands and the sum."""
    carries = read_predicate(x, i64(instruction.psrc), 0) if instruction.psrc != PT else 0
    out = 0
    for lane in range(x.lanes):
        if op == Long.ADD or op == Long.SUB:
            first, second = i64(a[lane]), i64(b[lane])
        elif op == Long.MAD:
            first, second = i64(i64(a[lane]) * i64(b[lane])), i64(c[lane])
        elif op == Long.MADHI_S:
            first, second = i64(_multiply_high_signed(i64(a[lane]), i64(b[lane]))), i64(c[lane])
        else:
            first, second = i64(multiply_high(u64(a[lane]), u64(b[lane]))), i64(c[lane])
        carry = (carries >> lane) & 1
        total = i64(first - second - carry if op == Long.SUB else first + second + carry)
        r[lane] = u64(total)
        if op == Long.SUB:
            over = (~first & second) | (~(first ^ second) & total)
        else:
            over = (first & second) | ((first | second) & ~total)
        out |= ((over >> 63) & 1) << lane
    write_predicate(x, i64(instruction.pdst), out)


@inline
def _pack(x, bits, pieces):
    """Assemble values from pieces of ``bits`` bits in a b c d, the lowest first; 64-bit lanes lie in scratch."""
    ones = (1 << bits) - 1
    for piece in range(pieces):
        source = words_i64(scratch_address(x, piece), LANES)
        r = words_i64(result_address(x), LANES)
        for lane in range(x.lanes):
            r[lane] = i64((i64(r[lane]) if piece > 0 else 0) | ((i64(source[lane]) & ones) << (piece * bits)))


@inline
def _unpack(x, instruction, bits, pieces, a):
    """Take values apart: the pieces go to dst, v[0], v[1], v[2]."""
    words = words_u32(result_address(x), LANES)
    for piece in range(pieces):
        for lane in range(x.lanes):
            words[lane] = u32((i64(a[lane]) >> (piece * bits)) & ((1 << bits) - 1))
        register = i64(instruction.dst) if piece == 0 else i64(instruction.v[piece - 1])
        store_words(x, register, result_address(x))


@slot
def execute_long(context, instruction):
    """Group.LONG."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    at_a, at_b, at_c = sources(x, instruction)
    at_d = at_c
    if op == Long.BFI or op >= Long.PACK:
        at_d = fetch(x, instruction, 3)
    a, b, c, d = words_i64(at_a, LANES), words_i64(at_b, LANES), words_i64(at_c, LANES), words_i64(at_d, LANES)
    ua, ub = words_u64(at_a, LANES), words_u64(at_b, LANES)
    r = words_u64(result_address(x), LANES)
    if instruction.psrc != PT or instruction.pdst != PT:
        _carry_long(x, instruction, op, r, a, b, c)
    elif op == Long.MOV:
        for lane in range(x.lanes):
            r[lane] = ua[lane]
    elif op == Long.ADD:
        for lane in range(x.lanes):
            r[lane] = ua[lane] + ub[lane]
    elif op == Long.SUB:
        for lane in range(x.lanes):
            r[lane] = ua[lane] - ub[lane]
    elif op == Long.MUL:
        for lane in range(x.lanes):
            r[lane] = ua[lane] * ub[lane]
    elif op == Long.MAD:
        for lane in range(x.lanes):
            r[lane] = u64(a[lane] * b[lane] + c[lane])
    elif op == Long.ABS:
        for lane in range(x.lanes):
            r[lane] = u64(-i64(a[lane]) if a[lane] < 0 else i64(a[lane]))
    elif op == Long.NEG:
        for lane in range(x.lanes):
            r[lane] = u64(-i64(a[lane]))
    elif op == Long.MIN_S:
        for lane in range(x.lanes):
            r[lane] = ua[lane] if a[lane] < b[lane] else ub[lane]
    elif op == Long.MIN_U:
        for lane in range(x.lanes):
            r[lane] = ua[lane] if ua[lane] < ub[lane] else ub[lane]
    elif op == Long.MAX_S:
        for lane in range(x.lanes):
            r[lane] = ua[lane] if a[lane] > b[lane] else ub[lane]
    elif op == Long.MAX_U:
        for lane in range(x.lanes):
            r[lane] = ua[lane] if ua[lane] > ub[lane] else ub[lane]
    elif op == Long.AND:
        for lane in range(x.lanes):
            r[lane] = ua[lane] & ub[lane]
    elif op == Long.OR:
        for lane in range(x.lanes):
            r[lane] = ua[lane] | ub[lane]
    elif op == Long.XOR:
        for lane in range(x.lanes):
            r[lane] = ua[lane] ^ ub[lane]
    elif op == Long.NOT:
        for lane in range(x.lanes):
            r[lane] = ~ua[lane]
    elif op == Long.SHL:
        for lane in range(x.lanes):
            r[lane] = u64(i64(a[lane]) << (i64(b[lane]) & 63)) if ub[lane] < u64(64) else u64(0)
    elif op == Long.SHR_U:
        for lane in range(x.lanes):
            r[lane] = ua[lane] >> (ub[lane] & u64(63)) if ub[lane] < u64(64) else u64(0)
    elif op == Long.SHR_S:
        for lane in range(x.lanes):
            r[lane] = u64(i64(a[lane]) >> (i64(b[lane]) if ub[lane] < u64(64) else 63))
    elif op == Long.BFI:
        for lane in range(x.lanes):
            place, width = i64(c[lane]) & 0xFF, i64(d[lane]) & 0xFF
            ones = u64(-1) if width >= 64 else u64((1 << width) - 1)
            ones = ones << u64(place) if place < 64 else u64(0)
            moved = ua[lane] << u64(place) if place < 64 else u64(0)
            r[lane] = (ub[lane] & ~ones) | (moved & ones)
    elif op >= Long.PACK:
        bits = 32 if op <= Long.UNPACK else (16 if op <= Long.UNPACK16X2 else 8)
        pieces = 2 if op <= Long.UNPACK or (bits == 16 and op >= Long.PACK16X2) else 4
        if (op - Long.PACK) & 1:
            _unpack(x, instruction, bits, pieces, a)
            return 0
        _pack(x, bits, pieces)
    else:
        for lane in range(x.lanes):
            r[lane] = _rare_long(op, i64(instruction.sub), i64(a[lane]), i64(b[lane]), i64(c[lane]))
    if instruction.write != _PAIR:
        words = words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            words[lane] = u32(r[lane])
    write(x, instruction)
    return 0
