"""Conversions between number formats: the group CONVERT. PTX ISA 9.0, ``cvt``.

Narrow floats are widened by the fetch and rounded by the write; a result that will be rounded to 16 bits is first
rounded to odd, so that the two roundings act as one. A float that is converted to an integer is clamped to its range;
NaN becomes 0, but the bit pattern 100...0 when the source is f64 or the result has 64 bits. Between f64 and other
formats, a NaN keeps its sign and the upper bits of its payload, and becomes quiet; with ``.ftz``, f32's is the
canonical one.
"""

from __future__ import annotations

from lockstep.models.execution.floating import finish, finish_long
from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, Convert, Flag, Integer, Round, Write
from lockstep.models.execution.numerics import MAGIC, ODD, SIGN_F32, WIDE_F32, narrow, pack, rounds_below_normal
from lockstep.models.execution.operands import fetch, result_address, scratch_address, write
from lockstep.models.jit import (
    bits_f64,
    f32,
    f64,
    f64_bits,
    i64,
    inline,
    pointer_to,
    slot,
    u32,
    u64,
    words_f32,
    words_f64,
    words_i64,
    words_u32,
    words_u64,
)

_RN, _RM, _RP = int(Round.RN), int(Round.RM), int(Round.RP)
_U64, _S64, _SIGNED = int(Integer.U64), int(Integer.S64), int(Flag.SIGNED)
_F16, _BF16 = int(Write.F16), int(Write.BF16)
_INTEGRAL = 2.0**52  # f64 values from here on are integers
_TOO_LARGE = 2.0**63
_SIGN = -(1 << 63)
_MAGIC_BITS = 0x4338 << 48
_QUIET = 1 << 51
_CANONICAL = 0x7FFF_FFFF_E000_0000  # PTX's f32 NaN, widened
_FTZ, _SAT = int(Flag.FTZ), int(Flag.SAT)

_context, _instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def integral(value, rnd):
    """An f64 rounded to an integer; zero keeps the sign, NaN becomes quiet."""
    size = abs(value)
    nearest = (size + _INTEGRAL) - _INTEGRAL if size < _INTEGRAL else size
    away = rnd == (_RM if value < 0.0 else _RP)
    nearest = nearest - 1.0 if nearest > size and rnd != _RN and not away else nearest
    nearest = nearest + 1.0 if nearest < size and away else nearest
    quiet = 0 if value == value else _QUIET
    return bits_f64(u64(i64(f64_bits(nearest)) | (i64(f64_bits(value)) & _SIGN) | quiet))


@inline
def exactly(value):
    """A signed integer below 2**51 as an f64."""
    return bits_f64(u64(value + _MAGIC_BITS)) - MAGIC


@inline
def _range(kind):
    """The least and the greatest value of an integer type; the latter of U64 as far as it is a positive int64."""
    width = 8 << (kind >> 1)
    unsigned = (kind & 1) ^ 1
    most = (1 << (width - 1)) - 1
    if unsigned and width < 64:
        most = 2 * most + 1
    return (0 if unsigned else -(1 << (width - 1))), most


@inline
def _to_integer(x, kind, rnd, nan, values):
    """f64 values to integers of up to 32 bits."""
    least, most = _range(kind)
    low, high = exactly(least), exactly(most)
    words = words_u32(result_address(x), LANES)
    for lane in range(x.lanes):
        value = values[lane]
        rounded = integral(value, rnd)
        rounded = low if rounded < low else (high if rounded > high else rounded)
        bits = i64(f64_bits(rounded + MAGIC))
        words[lane] = u32(bits if value == value else nan)


@inline
def _to_long(x, kind, rnd, values):
    """f64 values to 64-bit integers."""
    longs = words_u64(result_address(x), LANES)
    least = 0 if kind == _U64 else _SIGN
    most = -1 if kind == _U64 else ~_SIGN
    for lane in range(x.lanes):
        value = integral(values[lane], rnd)
        large = value >= _TOO_LARGE
        rest = value - _TOO_LARGE if large else value
        result = least if rest < 0.0 else most
        if (large and kind == _S64) or rest >= _TOO_LARGE:
            result = most
        elif rest >= 0.0 or (rest > -_TOO_LARGE and kind == _S64):
            result = i64(rest) ^ (_SIGN if large else 0)
        longs[lane] = u64(result if value == value else _SIGN)


@inline
def _from_integer(value, unsigned, rnd, width, precision):
    """A 64-bit integer as the bits of a float."""
    negative = i64(value < 0 and not unsigned)
    size = u64(-value) if negative else u64(value)
    spare = 2 if size >> u64(62) != u64(0) else 0
    sticky = i64(spare != 0 and (size & u64(3)) != u64(0))
    return pack(negative, i64(size >> u64(spare)) | sticky, spare, rnd, width, precision)


@inline
def _clamp(x, kind, signed, a):
    """Integers to the range of a narrower or differently signed type."""
    longs = words_i64(result_address(x), LANES)
    least, most = _range(kind)
    for lane in range(x.lanes):
        value = i64(a[lane])
        clamped = min(max(value, least), most)
        longs[lane] = clamped if value >= 0 or signed else (value if kind == _U64 else most)
    if kind < _U64:
        words = words_u32(result_address(x), LANES)
        for lane in range(x.lanes):
            words[lane] = u32(longs[lane])


@slot
def execute_convert(context, instruction):
    """Group.CONVERT."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    kind = i64(instruction.sub)
    flags = i64(instruction.flags)
    rnd = i64(instruction.rnd)
    twice = instruction.write == _F16 or instruction.write == _BF16
    at_a = fetch(x, instruction, 0)
    a, values, singles = words_i64(at_a, LANES), words_f64(at_a, LANES), words_f32(at_a, LANES)
    r, r_single, r_bits = (
        words_f64(result_address(x), LANES),
        words_f32(result_address(x), LANES),
        words_u32(result_address(x), LANES),
    )
    r_long = words_i64(result_address(x), LANES)
    if op == Convert.F32_TO_INT or op == Convert.ROUND_F32:
        values = words_f64(scratch_address(x, i64(3)), LANES)
        for lane in range(x.lanes):
            values[lane] = f64(singles[lane])
    if op == Convert.F32_TO_INT or op == Convert.F64_TO_INT:
        if kind >= _U64:
            _to_long(x, kind, rnd, values)
        else:
            least = 1 << ((8 << (kind >> 1)) - 1)
            nan = 0 if op == Convert.F32_TO_INT else (-least if kind & 1 else least)
            _to_integer(x, kind, rnd, nan, values)
    elif op == Convert.INT_TO_F32:
        if kind < _U64 and rnd == _RN and not twice:
            for lane in range(x.lanes):
                r_single[lane] = f32(exactly(i64(a[lane])))
        else:
            for lane in range(x.lanes):
                mode = ODD if twice else rnd
                r_bits[lane] = u32(_from_integer(i64(a[lane]), kind == _U64, mode, i64(32), i64(24)))
    elif op == Convert.INT_TO_F64:
        if kind < _U64:
            for lane in range(x.lanes):
                r[lane] = exactly(i64(a[lane]))
        else:
            for lane in range(x.lanes):
                r_long[lane] = _from_integer(i64(a[lane]), kind == _U64, rnd, i64(64), i64(53))
    elif op == Convert.F32_TO_F64:
        for lane in range(x.lanes):
            value = f64(singles[lane])
            r[lane] = bits_f64(u64(_CANONICAL)) if value != value and flags & _FTZ else value
    elif op == Convert.F64_TO_F32:
        if rnd == _RN and not twice:
            for lane in range(x.lanes):
                r_single[lane] = f32(values[lane])
        else:
            for lane in range(x.lanes):
                r_bits[lane] = u32(narrow(values[lane], ODD if twice else rnd, i64(32), i64(24)))
        if flags & _FTZ:
            for lane in range(x.lanes):
                if rounds_below_normal(narrow(values[lane], rnd, i64(WIDE_F32), i64(24))):
                    r_bits[lane] = u32(i64(r_bits[lane]) & SIGN_F32)
    elif op == Convert.ROUND_F32:
        for lane in range(x.lanes):
            r_single[lane] = f32(integral(values[lane], rnd))
    elif op == Convert.ROUND_F64:
        for lane in range(x.lanes):
            r[lane] = integral(values[lane], rnd)
    else:
        _clamp(x, kind, (flags & _SIGNED) != 0, a)
    if op == Convert.INT_TO_F32 or op == Convert.ROUND_F32 or (op == Convert.F64_TO_F32 and flags & _SAT):
        finish(x, flags, instruction.write == _F16)
    if op == Convert.INT_TO_F64 or op == Convert.F32_TO_F64 or op == Convert.ROUND_F64:
        finish_long(x, flags)
    write(x, instruction)
    return 0
