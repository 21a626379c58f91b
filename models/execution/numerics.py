"""Scalar numerics behind the floating-point instructions: exact rounding in every mode and format, approximations.

One function, :func:`pack`, rounds: it takes an exact value as an integer significand times a power of two, where an
inexact tail is folded into the lowest (*sticky*) bit, and encodes it in the binary format that is given by its width
and its precision (bits of the significand with the hidden one). :func:`exact` computes a*b + c, a / b or the square
root that way in any format: from the f64 result of operands scaled to [1, 4) and the sign of its exact residual.

The approximations compute in f64 with polynomials and round once; only +, -, *, / and bit operations are used, so that
they are the same, bit for bit, compiled and interpreted.
"""

from __future__ import annotations

import math

import numpy as np

from lockstep.models.execution.isa import Round
from lockstep.models.jit import bits_f32, bits_f64, clz64, f32, f32_bits, f64, f64_bits, fma64, i64, inline, u32, u64

RN, RZ, RM, RP, RNA = int(Round.RN), int(Round.RZ), int(Round.RM), int(Round.RP), int(Round.RNA)
ODD = RNA + 1  # to the odd one of two neighbours: a second rounding to a shorter format is then as good as one

NAN_F16 = 0x7FFF
NAN_F32 = 0x7FFF_FFFF  # PTX's canonical NaN
INF_F32 = 0x7F80_0000
SIGN_F32 = 0x8000_0000
LOW_HALF = 0xFFFF
WIDE_F32 = 1 + 11 + 23  # bits of a format with the precision of f32 and the exponents of f64


@inline
def pack(negative, significand, exponent, rnd, width, precision):
    """Encode ``significand * 2**exponent`` (0 <= significand < 2**62) rounded by ``rnd``; the bits as an int64."""
    bias = (1 << (width - precision - 1)) - 1
    smallest = 2 - bias - precision  # exponent of the least subnormal
    infinity = (2 * bias + 1) << (precision - 1)
    encoded = 0
    if significand != 0:
        shift = max(64 - clz64(significand) - precision, smallest - exponent)
        if shift <= 0:
            kept = significand << -shift
        else:
            rest_bits = min(shift, 63)
            kept = significand >> rest_bits
            rest = significand - (kept << rest_bits)
            half = 1 << (rest_bits - 1)
            if rnd == RN:
                up = rest > half or (rest == half and (kept & 1) == 1)
            elif rnd == RNA:
                up = rest >= half
            elif rnd == RZ:
                up = False
            elif rnd == ODD:
                up = rest != 0 and (kept & 1) == 0
            else:
                up = rest != 0 and (rnd == RM) == (negative != 0)
            kept += i64(up)
        field = exponent + shift - smallest  # the hidden bit of what is kept adds one to it
        encoded = infinity
        if field < 2 * bias:
            encoded = (field << (precision - 1)) + kept
        down = rnd == RZ or rnd == ODD or (rnd == RM and negative == 0) or (rnd == RP and negative != 0)
        if encoded == infinity and down:
            encoded -= 1
    return i64(encoded | (negative << (width - 1)))


@inline
def round_to(value, rnd, width, precision):
    """An f64 in another binary format, as bits: NaN becomes all ones without the sign."""
    bits = i64(f64_bits(value))
    negative = (bits >> 63) & 1
    field = (bits >> 52) & 0x7FF
    significand = bits & ((1 << 52) - 1)
    if field == 0x7FF:
        if significand != 0:
            return i64((1 << (width - 1)) - 1)
        return i64(((1 << (width - 1)) - (1 << (precision - 1))) | (negative << (width - 1)))
    significand |= (1 << 52) if field != 0 else 0
    return pack(negative, significand, max(field, 1) - 1075, rnd, width, precision)


@inline
def narrow(value, rnd, width, precision):
    """As :func:`round_to`, but a NaN keeps its sign and the upper bits of its payload, and becomes quiet."""
    bits = i64(f64_bits(value))
    payload = (bits & ((1 << 52) - 1)) >> (53 - precision)
    quiet = (1 << (width - 1)) - (1 << (precision - 2))
    nan = ((bits >> 63) & 1) << (width - 1) | quiet | payload
    return round_to(value, rnd, width, precision) if value == value else i64(nan)


@inline
def rounds_below_normal(bits):
    """Whether a number is below f32's least normal one; ``bits`` are in the format WIDE_F32.

    That decides what ``.ftz`` makes zero: numbers too that f32 only rounds up to its least normal one because it has no
    smaller exponents.
    """
    return (bits & ((1 << (WIDE_F32 - 1)) - 1)) < (1023 - 126) << 23


@inline
def half_to_single(word):
    """The low half of a word, an f16, as bits of an f32. Exact; NaN keeps its sign and its payload."""
    magnitude = i64(word) & 0x7FFF
    scaled = i64(f32_bits(bits_f32(u32(magnitude << 13)) * f32(2.0**112)))
    special = INF_F32 | (magnitude << 13)
    return (scaled if magnitude < 0x7C00 else special) | (i64(word) & 0x8000) << 16


@inline
def flush(word):
    """Bits of an f32 with subnormals made zero of the same sign."""
    return i64(word) & (SIGN_F32 if (i64(word) & INF_F32) == 0 else 0xFFFF_FFFF)


# ---------------------------------------------------------------------------------------------- exact f64 operations

PRODUCT, QUOTIENT, ROOT = 0, 1, 2


@inline
def _scale(value):
    """A finite f64 other than zero as (m, e) with value = m * 2**e and 1 <= |m| < 2."""
    bits = i64(f64_bits(value))
    shift = 0
    if (bits >> 52) & 0x7FF == 0:
        bits = i64(f64_bits(value * f64(2.0**54)))
        shift = 54
    exponent = ((bits >> 52) & 0x7FF) - 1023
    return bits_f64(u64(bits - (exponent << 52))), exponent - shift


@inline
def _two_sum(a, b):
    """The rounded sum of two f64 and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inline
def power_of_two(exponent):
    """2**exponent for a normal result."""
    return bits_f64(u64((exponent + 1023) << 52))


@inline
def exact(kind, a, b, c, rnd, width, precision):
    """a*b + c (PRODUCT), a / b (QUOTIENT) or sqrt(a) (ROOT) of f64 values, correctly rounded to a format; its bits.

    For RN the precision must be below 52, since the residual enters as a sticky bit only. The operands are those of an
    operation with a finite result other than zero: all finite, a, b and the root's operand not zero.
    """
    first, exponent = _scale(a)
    residue = f64(0)
    if kind == ROOT:
        if exponent & 1:
            first = first * f64(2)
            exponent -= 1
        value = np.sqrt(first)
        residue = fma64(-value, value, first)
        exponent >>= 1
    else:
        second, other = _scale(b)
        if kind == QUOTIENT:
            value = first / second
            residue = fma64(-value, second, first) * second
            exponent -= other
        else:
            value = first * second
            residue = fma64(first, second, -value)
            exponent += other
            if c != f64(0):
                addend, other = _scale(c)
                # What lies 200 binades below the other term acts as a sticky bit wherever it lies.
                gap = other - exponent
                if gap > 200:
                    exponent = other - 200
                addend = addend * power_of_two(min(max(gap, -200), 200))
                value, low = _two_sum(value, addend)
                low, lowest = _two_sum(low, residue)
                value, low = _two_sum(value, low)
                residue = low if low != f64(0) else lowest
    bits = i64(f64_bits(value))
    negative = (bits >> 63) & 1
    field = (bits >> 52) & 0x7FF
    significand = 0
    if field != 0:
        significand = ((bits & ((1 << 52) - 1)) | (1 << 52)) << 2
        if residue != f64(0):
            significand += 1 if (residue > f64(0)) == (negative == 0) else -1
    elif rnd == RM:
        negative = 1
    return pack(negative, significand, exponent + field - 1077, rnd, width, precision)


@inline
def directed(kind, a, b, c, rnd, width, precision):
    """As :func:`exact` for any operands, special ones too, and the roundings other than RN."""
    if kind == PRODUCT:
        value = fma64(a, b, c)
        # An exact zero sum of two zeros has its own rule, which the native operation follows except in RM.
        special = a == f64(0) or b == f64(0)
        if special and rnd == RM and value == f64(0) and c == f64(0):
            negative = ((f64_bits(a) ^ f64_bits(b)) | f64_bits(c)) >> u64(63)
            return i64(negative) << (width - 1)
    elif kind == QUOTIENT:
        value = a / b
        special = a == f64(0) or b == f64(0)
    else:
        value = np.sqrt(a)
        special = a <= f64(0)
    finite = a - a == f64(0) and b - b == f64(0) and c - c == f64(0)
    if special or not finite:
        return round_to(value, rnd, width, precision)
    return exact(kind, a, b, c, rnd, width, precision)


# ---------------------------------------------------------------------------------------------------- approximations

MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer, which then stands in the low bits
_LN2 = math.log(2)
_E1, _E2, _E3, _E4, _E5, _E6, _E7, _E8 = (_LN2**n / math.factorial(n) for n in range(1, 9))
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = (2 / _LN2 / (2 * n + 1) for n in range(7))
_S1, _S2, _S3, _S4, _S5, _S6 = ((-1.0) ** n / math.factorial(2 * n + 1) for n in range(1, 7))
_C1, _C2, _C3, _C4, _C5, _C6 = ((-1.0) ** n / math.factorial(2 * n) for n in range(1, 7))
_HALF_PI = math.pi / 2
_HALF_PI_LOW = 6.123233995736766e-17  # pi / 2 - _HALF_PI
_SQRT_HALF = 0x3FE6_A09E_667F_3BCD  # bits of sqrt(1/2)
_LARGEST_ANGLE = 2.0**48  # beyond, f64 leaves too little of the fraction: taken as 0


@inline
def exp2(value):
    """2**value in f64 for |value| <= 1000; relative error below 2**-32."""
    shifted = value + MAGIC
    f = value - (shifted - MAGIC)
    power = bits_f64(u64((i64(f64_bits(shifted)) + 1023) << 52))
    series = _E4 + f * (_E5 + f * (_E6 + f * (_E7 + f * _E8)))
    return (1.0 + f * (_E1 + f * (_E2 + f * (_E3 + f * series)))) * power


@inline
def ex2(x):
    """ex2.approx. PTX ISA: 2 ulp over the full range."""
    value = f64(x)
    value = f64(-200) if value < -200.0 else value
    return f32(exp2(f64(200) if value > 200.0 else value))


@inline
def lg2(x):
    """lg2.approx. PTX ISA: absolute error 2**-22 in (0.5, 2), relative error 2**-22 elsewhere."""
    value = f64(x)
    bits = i64(f64_bits(value))
    exponent = (bits - _SQRT_HALF) >> 52
    m = bits_f64(u64(bits - (exponent << 52)))
    s = (m - 1.0) / (m + 1.0)
    t = s * s
    series = _L0 + t * (_L1 + t * (_L2 + t * (_L3 + t * (_L4 + t * (_L5 + t * _L6)))))
    result = (bits_f64(u64(exponent + (0x433 << 52) + (1 << 51))) - MAGIC) + s * series
    result = result if value > 0.0 else f64(-np.inf if value == 0.0 else np.nan)
    return f32(value if value == f64(np.inf) else result)


@inline
def sine(x, quarter):
    """sin.approx (quarter 0) and cos.approx (1). PTX ISA: absolute error 2**-20.5 in [-2 pi, 2 pi]."""
    value = f64(x)
    value = value * 0.0 if abs(value) > _LARGEST_ANGLE else value
    shifted = value * (1 / _HALF_PI) + MAGIC
    k = shifted - MAGIC
    r = fma64(-k, f64(_HALF_PI_LOW), fma64(-k, f64(_HALF_PI), value))
    t = r * r
    odd = r * (1.0 + t * (_S1 + t * (_S2 + t * (_S3 + t * (_S4 + t * (_S5 + t * _S6))))))
    even = 1.0 + t * (_C1 + t * (_C2 + t * (_C3 + t * (_C4 + t * (_C5 + t * _C6)))))
    quadrant = i64(f64_bits(shifted)) + quarter
    result = even if quadrant & 1 else odd
    return f32(-result if quadrant & 2 else result)


@inline
def hyperbolic_tangent(x):
    """tanh.approx. PTX ISA: relative error 2**-11."""
    value = f64(x)
    size = abs(value)
    e = exp2((f64(20) if size > 20.0 else size) * (2 / _LN2))
    result = (e - 1.0) / (e + 1.0)
    result = -result if value < 0.0 else result
    return f32(value if size < 2.0**-12 else result)
