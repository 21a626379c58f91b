"""Conversions against exact rational arithmetic."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from lockstep.models.execution.convert import execute_convert
from lockstep.models.execution.isa import Convert, Fetch, Flag, Integer, Round, Write
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import Warp, floats, generator, words
from lockstep.verif.models.execution.rationals import BF16, F16, F32, F64, Flushing, Format, resized

MODES = (Round.RN, Round.RZ, Round.RM, Round.RP)
COUNT = 640
FLUSHING = Flushing(32, 24)
WIDE = {"fetch": Fetch.PAIR, "write": Write.PAIR}


def limits(kind: Integer) -> tuple[int, int, int]:
    """Width, least and greatest value."""
    bits = int(kind.name[1:])
    return (bits, -(1 << bits - 1), (1 << bits - 1) - 1) if kind.name[0] == "S" else (bits, 0, (1 << bits) - 1)


def whole(value: Fraction, rnd: Round) -> int:
    modes: dict[Round, Callable[[Fraction], int]] = {
        Round.RN: round, Round.RZ: math.trunc, Round.RM: math.floor, Round.RP: math.ceil
    }  # fmt: skip
    return modes[rnd](value)


def fractional(rng: np.random.Generator, form: Format) -> np.ndarray:
    """Floats, many of them near integers, halves and the limits of integer types."""
    values = floats(rng, COUNT, form.width)
    near = np.exp2(rng.uniform(-2, 66, COUNT)) * rng.choice([-1, 1], COUNT)
    near = np.where(rng.random(COUNT) < 0.5, np.floor(near * 2) / 2, near)
    edge = rng.choice([2.0**k for k in (7, 8, 15, 16, 31, 32, 51, 52, 53, 63, 64)], COUNT) * rng.choice([-1, 1], COUNT)
    near = np.where(rng.random(COUNT) < 0.3, edge + rng.choice([-1, -0.5, 0, 0.5, 1], COUNT), near)
    near = near.astype(np.float32).view(np.uint32) if form is F32 else near.view(np.uint64)
    return np.where(rng.random(COUNT) < 0.3, values, near).astype(values.dtype)


@pytest.mark.parametrize("kind", Integer, ids=lambda kind: kind.name)
@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_float_to_integer(form: Format, kind: Integer) -> None:
    rng = generator()
    bits, least, most = limits(kind)
    warp = Warp(execute_convert)
    op = Convert.F32_TO_INT if form is F32 else Convert.F64_TO_INT
    fetch, write = (Fetch.WORD if form is F32 else Fetch.PAIR), (Write.PAIR if bits == 64 else Write.WORD)
    for rnd in MODES:
        a = fractional(rng, form)
        actual = warp.map(op, [a], sub=kind, rnd=rnd, fetch=fetch, write=write)
        for lane in range(COUNT):
            value = form.value(int(a[lane]))
            if value != value:
                expected = 0 if form is F32 and bits < 64 else least or 1 << bits - 1
            elif isinstance(value, float):
                expected = most if value > 0 else least
            else:
                expected = max(least, min(most, whole(value, rnd)))
            mask = (1 << max(bits, 32)) - 1
            assert int(actual[lane]) == expected & mask, [hex(int(a[lane])), hex(int(actual[lane])), hex(expected)]


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("kind", Integer, ids=lambda kind: kind.name)
def test_integer_to_float(kind: Integer, rnd: Round) -> None:
    rng = generator()
    bits, least, _ = limits(kind)
    sign = "S" if least else "U"
    fetch = Fetch.PAIR if bits == 64 else Fetch[f"{sign}{bits}" + ("" if bits == 32 else "_LONG")]
    a = words(rng, COUNT, 64) if bits == 64 else words(rng, COUNT, bits).astype(np.uint32)
    low = 1 << bits
    values = [int(v) % low for v in a]
    values = [v - low if least and v >> bits - 1 else v for v in values]
    warp = Warp(execute_convert)
    for op, form, write in (
        (Convert.INT_TO_F32, F32, Write.WORD),
        (Convert.INT_TO_F64, F64, Write.PAIR),
        (Convert.INT_TO_F32, F16, Write.F16),
        (Convert.INT_TO_F32, BF16, Write.BF16),
    ):
        actual = warp.map(op, [a], sub=kind, rnd=rnd, fetch=fetch, write=write)
        for lane, value in enumerate(values):
            assert int(actual[lane]) == form.round(Fraction(value), rnd), [value, form, hex(int(actual[lane]))]


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
def test_f64_to_narrower_floats(rnd: Round) -> None:
    rng = generator()
    warp = Warp(execute_convert)
    a = floats(rng, 4 * COUNT, 64)
    scaled = rng.standard_normal(4 * COUNT) * np.exp2(rng.uniform(-160, 130, 4 * COUNT))
    half = rng.standard_normal(4 * COUNT) * np.exp2(rng.uniform(-30, 18, 4 * COUNT))
    choice = rng.random(4 * COUNT)
    a = np.where(choice < 0.4, scaled.view(np.uint64), np.where(choice < 0.7, half.view(np.uint64), a))
    # Ties and near ties in the shorter formats.
    a = np.where(rng.random(4 * COUNT) < 0.4, a & ~np.uint64((1 << 28) - 1), a)
    near = a & ~np.uint64((1 << 41) - 1) | rng.integers(0, 2, 4 * COUNT, np.uint64)
    a = np.where(rng.random(4 * COUNT) < 0.3, near, a)
    for form, write in ((F32, Write.WORD), (F16, Write.F16), (BF16, Write.BF16)):
        actual = warp.map(Convert.F64_TO_F32, [a], rnd=rnd, fetch=Fetch.PAIR, write=write)
        for lane in range(len(a)):
            value = F64.value(int(a[lane]))
            expected = form.round(value, rnd, bool(a[lane] >> np.uint64(63)))
            expected = expected if value == value else resized(F64, form, int(a[lane]))
            assert int(actual[lane]) == expected, [form, hex(int(a[lane])), hex(int(actual[lane])), hex(expected)]


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
def test_f64_to_f32_flushes(rnd: Round) -> None:
    """Around the least normal number and far from it."""
    rng = generator()
    near = (1 + np.floor(rng.uniform(-9, 9, COUNT)) * 2.0**-26) * 2.0**-126 * rng.choice([-1, 1], COUNT)
    a = np.where(rng.random(COUNT) < 0.5, near.view(np.uint64), floats(rng, COUNT, 64))
    actual = Warp(execute_convert).map(Convert.F64_TO_F32, [a], rnd=rnd, flags=Flag.FTZ, fetch=Fetch.PAIR)
    for lane in range(COUNT):
        value = F64.value(int(a[lane]))
        expected = FLUSHING.round(value, rnd, bool(a[lane] >> np.uint64(63)))
        expected = expected if value == value else resized(F64, F32, int(a[lane]))
        assert int(actual[lane]) == expected, [hex(int(a[lane])), hex(int(actual[lane])), hex(expected)]


@pytest.mark.parametrize("flags", [0, Flag.FTZ])
def test_f32_to_f64(flags: int) -> None:
    a = floats(generator(), COUNT)
    actual = Warp(execute_convert).map(Convert.F32_TO_F64, [a], write=Write.PAIR, flags=flags)
    for lane in range(COUNT):
        value = F32.value(int(a[lane]))
        nan = 0x7FFF_FFFF_E000_0000 if flags else resized(F32, F64, int(a[lane]))
        expected = F64.round(value, Round.RN, bool(a[lane] >> 31)) if value == value else nan
        assert int(actual[lane]) == expected


def test_saturated_f64() -> None:
    """.sat on results of 64 bits: between 0 and 1, NaN and -0 as 0."""
    rng = generator()
    warp = Warp(execute_convert)
    small = rng.integers(0, 5, COUNT, np.uint64) - np.uint64(2)
    for op, a, options in (
        (Convert.INT_TO_F64, small, {"sub": Integer.S64, "fetch": Fetch.PAIR}),
        (Convert.F32_TO_F64, floats(rng, COUNT), {}),
        (Convert.ROUND_F64, floats(rng, COUNT, 64), {"fetch": Fetch.PAIR}),
    ):
        plain, actual = (warp.map(op, [a], write=Write.PAIR, flags=flags, **options) for flags in (0, Flag.SAT))
        values = plain.view(np.float64)
        expected = np.where(np.isnan(values) | (values <= 0), 0.0, np.minimum(values, 1.0))
        assert (actual == expected.view(np.uint64)).all()


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_round_to_integral(form: Format, rnd: Round) -> None:
    a = fractional(generator(), form)
    op, options = (Convert.ROUND_F32, {}) if form is F32 else (Convert.ROUND_F64, WIDE)
    actual = Warp(execute_convert).map(op, [a], rnd=rnd, **options)
    for lane in range(COUNT):
        value = form.value(int(a[lane]))
        negative = bool(int(a[lane]) & form.sign)
        if isinstance(value, Fraction):
            expected = form.round(Fraction(whole(value, rnd)), Round.RN, negative)
        else:
            expected = int(a[lane])
            if value != value:
                expected = form.nan if form is F32 else resized(F64, F64, expected)
        assert int(actual[lane]) == expected, [hex(int(a[lane])), hex(int(actual[lane])), hex(expected)]


@pytest.mark.parametrize("kind", Integer, ids=lambda kind: kind.name)
def test_clamp(kind: Integer) -> None:
    rng = generator()
    bits, least, most = limits(kind)
    warp = Warp(execute_convert)
    for flags in (0, Flag.SIGNED):
        a = words(rng, COUNT, 64)
        write = Write.PAIR if bits == 64 else Write.WORD
        actual = warp.map(Convert.CLAMP, [a], sub=kind, flags=flags, fetch=Fetch.PAIR, write=write)
        for lane in range(COUNT):
            value = int(a[lane].view(np.int64)) if flags else int(a[lane])
            assert int(actual[lane]) == max(least, min(most, value)) & (1 << max(bits, 32)) - 1


def everything(seed: int) -> str:
    """A digest of every operation's results on some operands."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    warp = Warp(execute_convert)
    for op in Convert:
        single = op in (Convert.F32_TO_INT, Convert.F32_TO_F64, Convert.ROUND_F32)
        for kind in Integer:
            for rnd in MODES:
                whole_numbers = op.name.startswith("INT") or op == Convert.CLAMP
                a = words(rng, 32, 64) if whole_numbers else fractional(rng, F32 if single else F64)[:32]
                for write in (Write.WORD, Write.PAIR, Write.F16) if op != Convert.CLAMP else (Write.PAIR,):
                    warp.execute(op, [a], sub=kind, rnd=rnd, fetch=Fetch.WORD if single else Fetch.PAIR, write=write)
                    digest.update(warp.registers.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
