"""Packed arithmetic in 32-bit words: the group PACKED. Two f16 or bf16, dot products and video bytes.

Semantics: PTX ISA 9.0, sections on half precision arithmetic, ``cvt``, ``dp4a``, ``dp2a`` and the SIMD video
instructions. Half precision is computed in f64 and rounded once; ``fma`` by :func:`numerics.directed`. NaN results are
0x7fff. ``.ftz`` makes f16 sources and results zero that are subnormal, or round to the least normal number only because
there are no smaller exponents.
"""

from __future__ import annotations

from lockstep.models.execution.isa import CONTEXT, INSTRUCTION, LANES, Flag, Packed, Round, Write
from lockstep.models.execution.numerics import (
    LOW_HALF,
    NAN_F16,
    PRODUCT,
    directed,
    ex2,
    half_to_single,
    hyperbolic_tangent,
    round_to,
)
from lockstep.models.execution.operands import flush_halves, result_address, sources, write
from lockstep.models.execution.predicate import outcome
from lockstep.models.jit import bits_f32, f32, f64, fma64, i64, inline, pointer_to, slot, u32, words_f32, words_u32

_FTZ, _SAT, _NAN, _XORSIGN = int(Flag.FTZ), int(Flag.SAT), int(Flag.NAN), int(Flag.XORSIGN)
_RELU, _RN = int(Flag.RELU), int(Round.RN)
_SIGN, _MAGNITUDE = 0x8000, 0x7FFF
_LEAST_NORMAL_F16 = 0x0400
_LEAST_ROUNDED_F16 = 2.0**-14 - 2.0**-26  # rounded to 11 bits, it is f16's least normal number
_F16, _BF16 = 11, 8  # precisions
_WRITE_F16 = int(Write.F16)

_context, _instruction = pointer_to(CONTEXT), pointer_to(INSTRUCTION)


@inline
def _value(word, precision):
    """Half-precision bits as an f64."""
    return f64(bits_f32(u32(half_to_single(word) if precision == _F16 else i64(word) << 16)))


@inline
def _flush(half):
    """The bits of an f16, or a zero of its sign."""
    return half & (_SIGN if half & _MAGNITUDE < _LEAST_NORMAL_F16 else LOW_HALF)


@inline
def _limit(half, flags, precision):
    """``.sat`` and ``.relu`` on half-precision bits."""
    infinity = _SIGN - (1 << (precision - 1))
    one = 0x3C00 if precision == _F16 else 0x3F80
    size = half & _MAGNITUDE
    if flags & _RELU and half & _SIGN and size <= infinity:
        half = 0
    if flags & _SAT:
        half = min(half, one) if half <= infinity else 0
    return half


@inline
def _extremum(flags, largest, a, b, precision):
    """min and max of half-precision bits, as of f32."""
    infinity = _SIGN - (1 << (precision - 1))
    kept = _MAGNITUDE if flags & _XORSIGN else LOW_HALF
    sign = (a ^ b) & (kept ^ LOW_HALF)
    a &= kept
    b &= kept
    a_nan, b_nan = (a & _MAGNITUDE) > infinity, (b & _MAGNITUDE) > infinity
    if (a_nan and b_nan) or ((a_nan or b_nan) and flags & _NAN):
        return NAN_F16
    a_key = ~(a & _MAGNITUDE) if a & _SIGN else a
    b_key = ~(b & _MAGNITUDE) if b & _SIGN else b
    first = (b_nan or (a_key < b_key) != largest) and not a_nan
    return (a if first else b) ^ sign


@inline
def _arithmetic(op, flushes, a, b, c, precision):
    """Sums and products of f64 values, rounded to half precision; f16x2 operations stand for the others."""
    if op == Packed.FMA_F16X2:
        result = fma64(a, b, c)
    elif op == Packed.EX2_F16X2:
        result = f64(ex2(f32(a)))
    elif op == Packed.TANH_F16X2:
        result = f64(hyperbolic_tangent(f32(a)))
    elif op == Packed.ADD_F16X2:
        result = a + b
    elif op == Packed.SUB_F16X2:
        result = a - b
    else:
        result = a * b
    if op == Packed.FMA_F16X2:
        half = directed(PRODUCT, a, b, c, i64(_RN), i64(16), precision)
    else:
        half = round_to(result, i64(_RN), i64(16), precision)
    return half & (_SIGN if flushes and abs(result) < _LEAST_ROUNDED_F16 else LOW_HALF)


@inline
def _half(op, sub, flags, a, b, c, precision):
    """One half of an f16x2 operation, on bits."""
    flushes = flags & _FTZ != 0 and precision == _F16
    if flushes:
        a, b, c = _flush(a), _flush(b), _flush(c)
    if op == Packed.NEG_F16X2 or op == Packed.ABS_F16X2:
        if a & _MAGNITUDE > _SIGN - (1 << (precision - 1)):
            return NAN_F16
        return a ^ _SIGN if op == Packed.NEG_F16X2 else a & _MAGNITUDE
    if op == Packed.MIN_F16X2 or op == Packed.MAX_F16X2:
        return _extremum(flags, op == Packed.MAX_F16X2, a, b, precision)
    first, second = _value(a, precision), _value(b, precision)
    if op == Packed.SET_F16X2:
        true = 0x3C00 if flags & _SAT else LOW_HALF
        return true if (sub >> outcome(first, second)) & 1 else 0
    return _limit(_arithmetic(op, flushes, first, second, _value(c, precision), precision), flags, precision)


@inline
def _dot(op, sub, a, b, c):
    """dp4a, dp2a: products of the pieces of two words, added to c."""
    bits = 8 if op == Packed.DP4A else 16
    if op == Packed.DP2A_HI:
        b >>= 16
    a_sign = 1 << (bits - 1) if sub & 1 else 0
    b_sign = 0x80 if sub & 2 else 0
    for k in range(32 // bits):
        first = ((((a >> (bits * k)) & ((1 << bits) - 1)) ^ a_sign) - a_sign)
        second = (((b >> (8 * k)) & 0xFF) ^ b_sign) - b_sign
        c += first * second
    return c


@inline
def _video(op, sub, a, b, c):
    """vabsdiff4, vadd4, vsub4, vmin4, vmax4: four bytes of a result, or their sum added to c."""
    sign = 0x80 if sub & 1 else 0
    total = c
    merged = 0
    for k in range(4):
        first = (((a >> (8 * k)) & 0xFF) ^ sign) - sign
        second = (((b >> (8 * k)) & 0xFF) ^ sign) - sign
        if op == Packed.VABSDIFF4:
            result = abs(first - second)
        elif op == Packed.VADD4:
            result = first + second
        elif op == Packed.VSUB4:
            result = first - second
        elif op == Packed.VMIN4:
            result = min(first, second)
        else:
            result = max(first, second)
        total += result
        merged |= (result & 0xFF) << (8 * k)
    return total if sub & 2 else merged


@slot
def execute_packed(context, instruction):
    """Group.PACKED."""
    x = _context(context)
    instruction = _instruction(instruction)
    op = i64(instruction.op)
    sub = i64(instruction.sub)
    flags = i64(instruction.flags)
    rnd = i64(instruction.rnd)
    at_a, at_b, at_c = sources(x, instruction)
    flushes = flags & _FTZ != 0 and instruction.write == _WRITE_F16
    if flushes:
        flush_halves(x)
    a, b, c = words_u32(at_a, LANES), words_u32(at_b, LANES), words_u32(at_c, LANES)
    fa, fb, fc = words_f32(at_a, LANES), words_f32(at_b, LANES), words_f32(at_c, LANES)
    r = words_u32(result_address(x), LANES)
    bfloat = op == Packed.FMA_BF16X2 or op == Packed.FMA_BF16 or Packed.CVT_BF16X2 <= op <= Packed.ABS_BF16X2
    precision = _BF16 if bfloat else _F16
    if op == Packed.FMA_F16 or op == Packed.FMA_BF16:
        # Scalars come as f32 lanes and leave as such; the write then has nothing to round.
        for lane in range(x.lanes):
            half = _arithmetic(i64(Packed.FMA_F16X2), flushes, f64(fa[lane]), f64(fb[lane]), f64(fc[lane]), precision)
            half = _limit(half, flags, precision)
            r[lane] = u32(i64(half) << 16 if bfloat else half_to_single(half))
    elif op == Packed.CVT_F16X2 or op == Packed.CVT_BF16X2:
        for lane in range(x.lanes):
            high = _limit(round_to(f64(fa[lane]), rnd, i64(16), precision), flags, precision)
            low = _limit(round_to(f64(fb[lane]), rnd, i64(16), precision), flags, precision)
            r[lane] = u32((high << 16) | low)
    elif Packed.DP4A <= op <= Packed.DP2A_HI:
        for lane in range(x.lanes):
            r[lane] = u32(_dot(op, sub, i64(a[lane]), i64(b[lane]), i64(c[lane])))
    elif Packed.VABSDIFF4 <= op <= Packed.VMAX4:
        for lane in range(x.lanes):
            r[lane] = u32(_video(op, sub, i64(a[lane]), i64(b[lane]), i64(c[lane])))
    else:
        if op == Packed.FMA_BF16X2:
            op = i64(Packed.FMA_F16X2)
        elif bfloat:  # the same order as for f16x2, without fma
            op = op - Packed.ADD_BF16X2 + (1 if op >= Packed.MIN_BF16X2 else 0)
        for lane in range(x.lanes):
            word = 0
            for k in range(0, 32, 16):
                first, second = (i64(a[lane]) >> k) & LOW_HALF, (i64(b[lane]) >> k) & LOW_HALF
                third = (i64(c[lane]) >> k) & LOW_HALF
                word |= _half(op, sub, flags, first, second, third, precision) << k
            r[lane] = u32(word)
    write(x, instruction)
    return 0
