"""Binary floating point over exact rationals: the oracle of the tests, in any format and rounding mode."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from lockstep.models.execution.isa import Round

Number = Fraction | float  # a float stands for an infinity or NaN


@dataclass(frozen=True)
class Format:
    """A binary format: bits in all, bits of the significand with the hidden one."""

    width: int
    precision: int

    @property
    def bias(self) -> int:
        return (1 << self.width - self.precision - 1) - 1

    @property
    def infinity(self) -> int:
        return 2 * self.bias + 1 << self.precision - 1

    @property
    def sign(self) -> int:
        return 1 << self.width - 1

    @property
    def nan(self) -> int:
        return self.sign - 1

    def value(self, bits: int) -> Number:
        size = bits & self.sign - 1
        negative = bool(bits & self.sign)
        if size >= self.infinity:
            return math.nan if size > self.infinity else (-math.inf if negative else math.inf)
        field = max(size >> self.precision - 1, 1)
        significand = size - (field - 1 << self.precision - 1)
        result = Fraction(significand) * Fraction(2) ** (field + 1 - self.bias - self.precision)
        return -result if negative else result

    def round(self, value: Number, rnd: int, negative_zero: bool = False, root: bool = False) -> int:
        """The bits of a value. With ``root``, of its square root."""
        if isinstance(value, float):
            return self.nan if value != value else self.infinity | (self.sign if value < 0 else 0)
        if value == 0:
            return self.sign if negative_zero else 0
        negative = value < 0
        size = abs(value)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if root:
            exponent //= 2
        exponent = max(exponent - self.precision - 1, 2 - self.bias - self.precision)
        while True:  # the unit in the last place is 2**exponent
            scaled = size / Fraction(4 if root else 2) ** exponent
            kept = math.isqrt(math.floor(scaled)) if root else math.floor(scaled)
            if kept < 1 << self.precision:
                break
            exponent += 1
        half = Fraction(2 * kept + 1, 2)
        above = scaled - (half * half if root else half)
        inexact = scaled != (kept * kept if root else kept)
        up = {
            Round.RN: above > 0 or (above == 0 and kept & 1),
            Round.RNA: above >= 0,
            Round.RZ: False,
            Round.RM: inexact and negative,
            Round.RP: inexact and not negative,
        }[Round(rnd)]
        encoded = kept + bool(up) + (exponent - (2 - self.bias - self.precision) << self.precision - 1)
        if encoded >= self.infinity:
            toward = rnd == Round.RZ or (rnd == Round.RM and not negative) or (rnd == Round.RP and negative)
            encoded = self.infinity - 1 if toward else self.infinity
        return encoded | (self.sign if negative else 0)


@dataclass(frozen=True)
class Flushing(Format):
    """A format whose operations have ``.ftz``: results that are subnormal with unlimited exponents are zero."""

    def round(self, value: Number, rnd: int, negative_zero: bool = False, root: bool = False) -> int:
        bits = super().round(value, rnd, negative_zero, root)
        wide = Format(self.width + 4, self.precision)
        unlimited = wide.value(wide.round(value, rnd, negative_zero, root))
        flushes = isinstance(unlimited, Fraction) and abs(unlimited) < Fraction(2) ** (1 - self.bias)
        return bits & self.sign if flushes else bits


F16, BF16, F32, F64 = Format(16, 11), Format(16, 8), Format(32, 24), Format(64, 53)


def resized(source: Format, form: Format, bits: int) -> int:
    """A NaN in another format: its sign and the upper bits of its payload, quiet."""
    payload = (bits & (1 << source.precision - 1) - 1) << 64 - source.precision
    sign = form.sign if bits & source.sign else 0
    return sign | form.infinity | 1 << form.precision - 2 | payload >> 64 - form.precision


def fused(form: Format, a: int, b: int, c: int, rnd: int) -> int:
    """a * b + c, rounded once."""
    values = [form.value(v) for v in (a, b, c)]
    negative = bool((a ^ b) & form.sign)
    if any(isinstance(v, float) for v in values):
        # Signs stand for the finite ones: only infinities and NaN decide.
        p, q, r = (v if isinstance(v, float) else float((v > 0) - (v < 0)) for v in values)
        return form.round(p * q + r, rnd)
    x, y, z = (Fraction(v) for v in values)
    # A zero sum of terms of the same sign keeps it; otherwise it is negative only when rounding down.
    same = negative == bool(c & form.sign)
    minus = negative if same and x * y == 0 else rnd == Round.RM
    return form.round(x * y + z, rnd, minus)


def quotient(form: Format, a: int, b: int, rnd: int) -> int:
    x, y = form.value(a), form.value(b)
    negative = bool((a ^ b) & form.sign)
    infinite = -math.inf if negative else math.inf
    if x != x or y != y or (isinstance(x, float) and isinstance(y, float)) or x == y == 0:
        return form.nan
    if isinstance(x, float) or y == 0:
        return form.round(infinite, rnd)
    return form.round(Fraction(0) if isinstance(y, float) else Fraction(x) / Fraction(y), rnd, negative)


def square_root(form: Format, a: int, rnd: int) -> int:
    value = form.value(a)
    if value == 0:
        return a
    if value != value or value < 0:
        return form.nan
    return form.round(value, rnd, root=True)
