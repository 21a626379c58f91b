"""The fixed-point formats: ranges, codes, and rounding from both sides of a tie."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lockstep.spec.scavenger import control
from lockstep.spec.scavenger.fixed import ERROR, GAIN, IPC, LEAD, MARGIN, REQUESTS, SHARE, WARPS, Format, nearest


@pytest.mark.parametrize(
    ("numerator", "denominator", "expected"),
    [(0, 3, 0), (1, 3, 0), (1, 2, 1), (-1, 2, -1), (-1, 3, 0), (3, 2, 2), (-3, 2, -2), (5, 3, 2), (-5, 3, -2)],
)
def test_ties_go_away_from_zero(numerator: int, denominator: int, expected: int) -> None:
    assert nearest(numerator, denominator) == expected


def test_the_formats_as_they_are_written() -> None:
    formats = [IPC, ERROR, GAIN, SHARE, WARPS, REQUESTS, LEAD]
    assert [*map(str, formats)] == ["U3.16", "S3.16", "U2.6", "U1.8", "U7.8", "U9.8", "S21.16"]
    assert [each.bits for each in formats] == [19, 20, 8, 9, 15, 17, 38]


def test_gains_and_ends_of_ranges_are_exact() -> None:
    assert (control.PROPORTIONAL, control.INTEGRAL, MARGIN.code(1.1)) == (96, 64, 282)
    assert GAIN.number(control.PROPORTIONAL) == 1.5 and GAIN.number(control.INTEGRAL) == 1
    assert WARPS.code(64) == 64 * 256 and REQUESTS.code(256) == 65536 and SHARE.code(1) == 256


def test_codes() -> None:
    assert ERROR.code(-0.5) == -32768 and ERROR.number(-32768) == Fraction(-1, 2)
    assert IPC.code(Fraction(1, 100)) == 655 and IPC.code(Fraction(3, 1 << 17)) == 2
    assert IPC.most == (1 << 19) - 1 and (ERROR.least, ERROR.most) == (-(1 << 19), (1 << 19) - 1)
    for wrong in (8, -0.001):
        with pytest.raises(ValueError, match=r"is no U3\.16"):
            IPC.code(wrong)


@pytest.mark.parametrize("code", [-8, -1, 0, 1, 7])
def test_signed_codes_on_unsigned_ports(code: int) -> None:
    small = Format(2, 1, signed=True)
    assert 0 <= small.port(code) < 16 and small.read(small.port(code)) == code
