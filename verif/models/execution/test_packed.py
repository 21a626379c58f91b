"""Packed half precision against exact rational arithmetic, dot products and video operations against Python."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from lockstep.models.execution.floating import execute_float
from lockstep.models.execution.isa import Compare, Fetch, Flag, Float, Packed, Round, Write
from lockstep.models.execution.packed import execute_packed
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import ALL, Warp, floats, generator, words
from lockstep.verif.models.execution.rationals import BF16, F16, F32, Flushing, Format, fused
from lockstep.verif.models.execution.test_floating import extremum, is_nan
from lockstep.verif.models.execution.test_predicate import true

COUNT = 512
FORMATS = {"F16": F16, "BF16": BF16}
FLUSHING = Flushing(16, 11)


def halves(rng: np.random.Generator, form: Format, count: int) -> np.ndarray:
    """Random half-precision bits: any, of similar magnitude, and special values."""
    one = form.bias << form.precision - 1
    edge = [0, 1, (1 << form.precision - 1) - 1, 1 << form.precision - 1, one, form.infinity - 1, form.infinity, 0x7FFF]
    near = one + rng.integers(-(4 << form.precision - 1), 4 << form.precision - 1, count)
    choice = rng.random(count)
    bits = np.where(choice < 0.8, near, rng.choice(edge, count))
    bits = np.where(choice < 0.4, rng.integers(0, 1 << 15, count), bits)
    return (bits | rng.integers(0, 2, count) << 15).astype(np.uint32)


def limited(form: Format, bits: int, flags: int) -> int:
    value = form.value(bits)
    if flags & Flag.RELU and value == value and bits & 0x8000:
        bits = 0
    if flags & Flag.SAT:
        bits = 0 if value != value or bits & 0x8000 else min(bits, form.bias << form.precision - 1)
    return bits


@pytest.mark.parametrize("factor, other, product", [(0x0C25, 0x33B8, 0), (0x0C24, 0x33BA, 0x0400)])
def test_a_product_that_rounds_to_a_normal_number_is_not_flushed(factor: int, other: int, product: int) -> None:
    """The first would be 0x0400, too, if it were not flushed: f16 has no smaller exponent for 11 bits of it."""
    values = [np.full(COUNT, bits, np.uint32) for bits in (factor, other)]
    options = {"fetch": Fetch.F16, "write": Write.F16, "flags": Flag.FTZ}
    assert arithmetic(F16, "MUL", [factor, other, 0], Flag.FTZ) == product
    assert set(Warp(execute_float).map(Float.MUL, values, **options)[:COUNT]) == {product}


def flushed(half: int) -> int:
    return half & 0x8000 if half & 0x7C00 == 0 else half


def arithmetic(form: Format, name: str, values: list[int], flags: int) -> int:
    if flags & Flag.FTZ and form is F16:
        values = [flushed(v) for v in values]
        form = FLUSHING
    a, b, c = values
    one = form.bias << form.precision - 1
    if name == "MUL":
        b, c = b, (a ^ b) & 0x8000
    elif name in ("ADD", "SUB"):
        b, c = one, b ^ (0x8000 if name == "SUB" else 0)
    return limited(form, fused(form, a, b, c, Round.RN), flags)


@pytest.mark.parametrize("flags", [0, Flag.SAT, Flag.FTZ, Flag.RELU])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "FMA"])
@pytest.mark.parametrize("kind", FORMATS)
def test_arithmetic(kind: str, name: str, flags: int) -> None:
    form, rng = FORMATS[kind], generator()
    low, high = ([halves(rng, form, COUNT) for _ in range(3)] for _ in range(2))
    packed = [x | y << 16 for x, y in zip(low, high, strict=True)]
    actual = Warp(execute_packed).map(Packed[f"{name}_{kind}X2"], packed, flags=flags)
    for lane in range(COUNT):
        for part, shift in ((low, 0), (high, 16)):
            values = [int(v[lane]) for v in part]
            result = int(actual[lane]) >> shift & 0xFFFF
            assert result == arithmetic(form, name, values, flags), [hex(v) for v in (*values, result)]
    options = {"fetch": Fetch[kind], "write": Write[kind], "flags": flags}
    scalar = not flags & Flag.RELU and (form is F16 or not flags & Flag.FTZ)  # as PTX has them
    if name == "FMA" or scalar:
        slot, op = (execute_packed, Packed[f"FMA_{kind}"]) if name == "FMA" else (execute_float, Float[name])
        actual = Warp(slot).map(op, low[: 3 if name == "FMA" else 2], **options)
        for lane in range(COUNT):
            assert int(actual[lane]) == arithmetic(form, name, [int(v[lane]) for v in low], flags)


@pytest.mark.parametrize("kind", FORMATS)
def test_extrema_and_signs(kind: str) -> None:
    form, rng = FORMATS[kind], generator()
    a, b = halves(rng, form, COUNT), halves(rng, form, COUNT)
    warp = Warp(execute_packed)
    for largest, name in ((False, "MIN"), (True, "MAX")):
        for flags in (0, Flag.NAN, Flag.XORSIGN):
            actual = warp.map(Packed[f"{name}_{kind}X2"], [a << 16, b << 16], flags=flags)
            for lane in range(COUNT):
                values = int(a[lane]), int(b[lane])
                nans = [is_nan(form, v) for v in values]
                wrong = all(nans) or (any(nans) and flags & Flag.NAN)
                expected = 0x7FFF if wrong else extremum(form, largest, *values, flags)
                assert int(actual[lane]) == expected << 16
    for name, changed in (("NEG", lambda bits: bits ^ 0x8000), ("ABS", lambda bits: bits & 0x7FFF)):
        actual = warp.map(Packed[f"{name}_{kind}X2"], [a | b << 16])
        for lane in range(COUNT):
            low, high = (0x7FFF if is_nan(form, int(v[lane])) else changed(int(v[lane])) for v in (a, b))
            assert int(actual[lane]) == low | high << 16


def test_flush_of_pairs() -> None:
    """.ftz where nothing is rounded: the sources count as zero."""
    rng = generator()
    warp = Warp(execute_packed)
    a, b = ((halves(rng, F16, COUNT) & rng.choice([0x83FF, 0xFFFF], COUNT)).astype(np.uint32) for _ in range(2))
    zeroed = [np.array([flushed(int(v)) for v in values], np.uint32) for values in (a, b)]
    for name in ("MIN", "MAX", "NEG", "ABS", "SET"):
        arity, options = (1 if name in ("NEG", "ABS") else 2), {"sub": Compare.LT} if name == "SET" else {}
        actual = warp.map(Packed[f"{name}_F16X2"], [a, b][:arity], flags=Flag.FTZ, **options)
        assert (actual == warp.map(Packed[f"{name}_F16X2"], zeroed[:arity], **options)).all()


@pytest.mark.parametrize("kind", FORMATS)
def test_conversion_of_pairs(kind: str) -> None:
    form, rng = FORMATS[kind], generator()
    warp = Warp(execute_packed)
    a, b = ((floats(rng, COUNT) & 0x8FFF_F000) + np.uint32(0x3300_0000) for _ in range(2))
    for rnd in (Round.RN, Round.RZ):
        for flags in (0, Flag.RELU):
            actual = warp.map(Packed[f"CVT_{kind}X2"], [a, b], rnd=rnd, flags=flags)
            for lane in range(COUNT):
                high, low = (
                    limited(form, form.round(F32.value(int(v[lane])), rnd, bool(v[lane] >> 31)), flags) for v in (a, b)
                )
                assert int(actual[lane]) == high << 16 | low


def test_comparison_of_pairs() -> None:
    rng = generator()
    warp = Warp(execute_packed)
    for comparison in Compare:
        for flags, one in ((0, 0xFFFF), (Flag.SAT, 0x3C00)):
            a, b = halves(rng, F16, 64), halves(rng, F16, 64)
            b = np.where(rng.random(64) < 0.3, a, b)
            actual = warp.map(
                Packed.SET_F16X2, [a[:32] | a[32:] << 16, b[:32] | b[32:] << 16], sub=comparison, flags=flags
            )
            for lane in range(64):
                result = true(comparison, F16.value(int(a[lane])), F16.value(int(b[lane])))
                assert int(actual[lane % 32]) >> lane // 32 * 16 & 0xFFFF == (one if result else 0)


@pytest.mark.parametrize("name", ["EX2", "TANH"])
def test_approximations_on_pairs(name: str) -> None:
    """All 65536 halves, within one unit in the last place (PTX ISA: relative error 2**-9.9 and 2**-10.987)."""
    bits = np.arange(1 << 16, dtype=np.uint32)
    actual = Warp(execute_packed).map(Packed[f"{name}_F16X2"], [bits << 16])
    assert (actual & 0xFFFF == (0x3C00 if name == "EX2" else 0)).all()
    with np.errstate(over="ignore", invalid="ignore"):
        values = bits.astype(np.uint16).view(np.float16).astype(np.float64)
        exact = np.exp2(values) if name == "EX2" else np.tanh(values)
    for half in bits[::7]:
        result, value = int(actual[half]) >> 16, exact[half]
        if math.isnan(value):
            assert result == F16.nan
        elif math.isinf(value):
            assert result == F16.infinity
        else:
            expected = F16.round(Fraction(value), Round.RN, bool(half & 0x8000) and name == "TANH")
            assert abs(result - expected) <= 1


def pieces(word: int, bits: int, sign: bool) -> list[int]:
    values = [word >> k & (1 << bits) - 1 for k in range(0, 32, bits)]
    return [v - (1 << bits) if sign and v >> bits - 1 else v for v in values]


@pytest.mark.parametrize("sub", range(4))
def test_dot_products(sub: int) -> None:
    rng = generator()
    warp = Warp(execute_packed)
    a, b, c = (words(rng, COUNT) for _ in range(3))
    for op in (Packed.DP4A, Packed.DP2A_LO, Packed.DP2A_HI):
        actual = warp.map(op, [a, b, c], sub=sub)
        for lane in range(COUNT):
            first = pieces(int(a[lane]), 8 if op == Packed.DP4A else 16, bool(sub & 1))
            second = pieces(int(b[lane]), 8, bool(sub & 2))[2 if op == Packed.DP2A_HI else 0 :]
            total = int(c[lane]) + sum(x * y for x, y in zip(first, second, strict=False))
            assert int(actual[lane]) == total & ALL


@pytest.mark.parametrize("sub", range(4))
def test_video(sub: int) -> None:
    rng = generator()
    warp = Warp(execute_packed)
    a, b, c = (words(rng, COUNT) for _ in range(3))
    operations: dict[Packed, Callable[[int, int], int]] = {
        Packed.VABSDIFF4: lambda x, y: abs(x - y),
        Packed.VADD4: lambda x, y: x + y,
        Packed.VSUB4: lambda x, y: x - y,
        Packed.VMIN4: min,
        Packed.VMAX4: max,
    }
    for op, operation in operations.items():
        actual = warp.map(op, [a, b, c], sub=sub)
        for lane in range(COUNT):
            first, second = (pieces(int(v[lane]), 8, bool(sub & 1)) for v in (a, b))
            results = [operation(x, y) for x, y in zip(first, second, strict=True)]
            merged = sum((r & 255) << 8 * k for k, r in enumerate(results))
            assert int(actual[lane]) == ((int(c[lane]) + sum(results)) & ALL if sub & 2 else merged)


def everything(seed: int) -> str:
    """A digest of every operation's results on some operands."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    warp = Warp(execute_packed)
    for op in Packed:
        for flags in (0, Flag.SAT, Flag.FTZ | Flag.RELU, Flag.NAN, Flag.XORSIGN):
            form = BF16 if "BF16" in op.name else F16
            a, b, c = (halves(rng, form, 32) | halves(rng, form, 32) << 16 for _ in range(3))
            warp.execute(op, [a, b, c], flags=flags, sub=int(rng.integers(4)))
            digest.update(warp.registers.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
