"""The fixed-point formats of Scavenger, and how it rounds: to nearest, ties away from zero.

A format is written as in ``U3.16``: whole bits, a point, bits of fraction. ``S`` has a sign beside them, in two's
complement, also on ports, which are unsigned. The *code* of a number is its value in units of the last place.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """Numbers with a fixed point."""

    whole: int
    fraction: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'S' if self.signed else 'U'}{self.whole}.{self.fraction}"

    @property
    def bits(self) -> int:
        return self.signed + self.whole + self.fraction

    @property
    def one(self) -> int:
        """The code of 1."""
        return 1 << self.fraction

    @property
    def least(self) -> int:
        """The code of the smallest number."""
        return -(1 << self.bits - 1) if self.signed else 0

    @property
    def most(self) -> int:
        """The code of the largest number."""
        return (1 << self.whole + self.fraction) - 1

    def code(self, number: Fraction | float) -> int:
        """The code of the nearest number, of two the one farther from zero.

        Raises
        ------
        ValueError
            for a number out of range.
        """
        units = Fraction(number) * self.one
        code = nearest(units.numerator, units.denominator)
        if not self.least <= code <= self.most:
            raise ValueError(f"{number} is no {self}")
        return code

    def number(self, code: int) -> Fraction:
        return Fraction(code, self.one)

    def port(self, code: int) -> int:
        """A code as it stands on an unsigned port."""
        return code % (1 << self.bits)

    def read(self, port: int) -> int:
        """The code that stands on an unsigned port."""
        return port - (1 << self.bits) if self.signed and port >> self.bits - 1 else port


def nearest(numerator: int, denominator: int) -> int:
    """The integer nearest to a quotient, of two the one farther from zero. ``denominator`` is positive."""
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return magnitude if numerator >= 0 else -magnitude


IPC = Format(3, 16)  # instructions per cycle, and the target
ERROR = Format(3, 16, signed=True)  # target - IPC
GAIN = Format(2, 6)
SHARE = Format(1, 8)  # slack, and the weight of a change
WARPS = Format(7, 8)  # an allocation
REQUESTS = Format(9, 8)  # an allocation
LEAD = Format(21, 16, signed=True)  # instructions beyond the target, summed over a run
MARGIN = Format(1, 8)  # 1.1 is 282 / 256
MEAN = Format(6, 8)  # lanes by instruction, requests by memory instruction
