"""Scalar numerics behind the floating-point instructions: rounding in every mode and format, and exact residuals.

One function, :func:`pack`, rounds: it takes an exact value as integer significand times a power of two (inexact tails
folded into the lowest, *sticky*, bit) and encodes it in a binary format given by its width and its precision (bits of
the significand with the hidden one). f32 operations with directed rounding compute in f64 with *rounding to odd*
(Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", IEEE TC 2008), which a second rounding to at
most 51 bits cannot hurt.
"""

from __future__ import annotations

from lockstep.models.core.isa import Round
from lockstep.models.jit import (
    bits_f32,
    clz64,
    f32,
    f32_bits,
    f64,
    f64_bits,
    i64,
    inline,
    jit,
    u32,
)

RN, RZ, RM, RP, RNA = int(Round.RN), int(Round.RZ), int(Round.RM), int(Round.RP), int(Round.RNA)

NAN_F16 = 0x7FFF
NAN_F32 = 0x7FFF_FFFF  # PTX's canonical NaN
INF_F32 = 0x7F80_0000
SIGN_F32 = 0x8000_0000
LOW_HALF = 0xFFFF


@jit
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
            else:
                up = rest != 0 and (rnd == RM) == (negative != 0)
            kept += i64(up)
        encoded = infinity
        if exponent + shift - smallest <= 2 * bias:
            encoded = min(infinity, ((exponent + shift - smallest) << (precision - 1)) + kept)
        if encoded == infinity and (rnd == RZ or (rnd == RM and negative == 0) or (rnd == RP and negative != 0)):
            encoded -= 1
    return i64(encoded | (negative << (width - 1)))


@jit
def round_to(value, rnd, width, precision):
    """An f64 in another binary format, as bits: NaN becomes all ones without the sign."""
    bits = i64(f64_bits(value))
    negative = (bits >> 63) & 1
    field = (bits >> 52) & 0x7FF
    fraction = bits & ((1 << 52) - 1)
    if field == 0x7FF:
        bias = (1 << (width - precision - 1)) - 1
        infinity = (2 * bias + 1) << (precision - 1)
        return i64((1 << (width - 1)) - 1 if fraction != 0 else infinity | (negative << (width - 1)))
    if field == 0:
        return pack(negative, fraction, -1074, rnd, width, precision)
    return pack(negative, fraction | (1 << 52), field - 1075, rnd, width, precision)


@inline
def single_to_half(bits, rnd):
    """Bits of an f32 to bits of an f16."""
    return round_to(f64(bits_f32(u32(bits))), rnd, 16, 11)


@inline
def single_to_bfloat(bits, rnd):
    """Bits of an f32 to bits of a bf16."""
    return round_to(f64(bits_f32(u32(bits))), rnd, 16, 8)


@inline
def half_to_single(word):
    """The low half of a word, an f16, as bits of an f32. Exact; NaN becomes canonical."""
    magnitude = i64(word) & 0x7FFF
    scaled = i64(f32_bits(bits_f32(u32(magnitude << 13)) * f32(2.0**112)))
    special = INF_F32 if magnitude == 0x7C00 else NAN_F32
    sign = 0 if magnitude > 0x7C00 else (i64(word) & 0x8000) << 16
    return (scaled if magnitude < 0x7C00 else special) | sign


@inline
def flush(word):
    """Bits of an f32 with subnormals made zero of the same sign."""
    return i64(word) & (SIGN_F32 if (i64(word) & INF_F32) == 0 else 0xFFFF_FFFF)
