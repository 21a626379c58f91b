"""f32 and f64 against exact rational arithmetic; the approximations against their bounds in PTX ISA 9.0."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from lockstep.models.execution.floating import execute_double, execute_float
from lockstep.models.execution.isa import Double, Fetch, Flag, Float, Round, Write
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import ALL, PAIRS, WORDS, Warp, floats, generator
from lockstep.verif.models.execution.promised import PROMISED, Promise
from lockstep.verif.models.execution.rationals import (
    F16,
    F32,
    F64,
    Flushing,
    Format,
    fused,
    quotient,
    square_root,
)

MODES = (Round.RN, Round.RZ, Round.RM, Round.RP)
SLOTS = {32: execute_float, 64: execute_double}
OPS = {32: Float, 64: Double}
WIDE = {32: WORDS, 64: PAIRS}
COUNT = 640
FLUSHING = Flushing(32, 24)


def is_nan(form: Format, bits: int) -> bool:
    return bits & form.sign - 1 > form.infinity


def nan_of(form: Format, *operands: int) -> int:
    """The NaN that an operation gives: canonical in f32, else that of a, c or b, or the default."""
    quiet = form.sign >> form.width - form.precision + 1
    order = (operands[0], *reversed(operands[1:]))
    first = next((v | quiet for v in order if is_nan(form, v)), 0xFFF8 << 48)
    return form.nan if form.width == 32 else first


# Operation: operands, and bits of them and the rounding to bits of the result.
ARITHMETIC: dict[str, tuple[int, Callable[..., int]]] = {
    "ADD": (2, lambda f, r, a, b: fused(f, a, f.bias << f.precision - 1, b, r)),
    "SUB": (2, lambda f, r, a, b: fused(f, a, f.bias << f.precision - 1, b ^ f.sign, r)),
    "MUL": (2, lambda f, r, a, b: fused(f, a, b, (a ^ b) & f.sign, r)),
    "FMA": (3, lambda f, r, a, b, c: fused(f, a, b, c, r)),
    "DIV": (2, lambda f, r, a, b: quotient(f, a, b, r)),
    "RCP": (1, lambda f, r, a: quotient(f, f.bias << f.precision - 1, a, r)),
    "SQRT": (1, lambda f, r, a: square_root(f, a, r)),
}


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_rounding(form: Format, name: str, rnd: Round) -> None:
    rng = generator()
    arity, operation = ARITHMETIC[name]
    operands = [floats(rng, COUNT, form.width) for _ in range(arity)]
    if arity > 1:  # cancellation, neighbours, and operands far apart
        near = operands[0] + rng.integers(0, 3, COUNT).astype(operands[0].dtype)
        near ^= operands[0].dtype.type(form.sign)
        operands[-1] = np.where(rng.random(COUNT) < 0.2, near, operands[-1])
    op = OPS[form.width][name]
    actual = Warp(SLOTS[form.width]).map(op, operands, rnd=rnd, **WIDE[form.width])
    for lane in range(COUNT):
        values = [int(v[lane]) for v in operands]
        expected = operation(form, rnd, *values)
        if is_nan(form, expected):
            expected = nan_of(form, *values)
        assert int(actual[lane]) == expected, [hex(v) for v in (*values, int(actual[lane]), expected)]


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_results_near_the_range_limits(form: Format, rnd: Round) -> None:
    """Overflow and subnormal results."""
    rng = generator()
    scale = np.array([0, 1, form.bias // 2, form.bias, 2 * form.bias - 2, 2 * form.bias], np.uint64)
    operands = []
    for _ in range(3):
        fields = rng.choice(scale, COUNT) + rng.integers(0, 3, COUNT, np.uint64)
        fields = np.minimum(fields, np.uint64(2 * form.bias)) << np.uint64(form.precision - 1)
        low = rng.integers(0, 1 << form.precision - 1, COUNT, np.uint64)
        bits = fields | low | rng.integers(0, 2, COUNT, np.uint64) << np.uint64(form.width - 1)
        operands.append(bits.astype(np.uint64 if form.width == 64 else np.uint32))
    warp = Warp(SLOTS[form.width])
    for name, (arity, operation) in ARITHMETIC.items():
        actual = warp.map(OPS[form.width][name], operands[:arity], rnd=rnd, **WIDE[form.width])
        for lane in range(COUNT):
            values = [int(v[lane]) for v in operands[:arity]]
            expected = operation(form, rnd, *values)
            expected = nan_of(form, *values) if is_nan(form, expected) else expected
            assert int(actual[lane]) == expected, [name, *(hex(v) for v in (*values, int(actual[lane]), expected))]


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_carry_beyond_twice_the_range(form: Format, rnd: Round) -> None:
    """MAX * (1 + ulp) + MAX lies so little below twice the bound of the range that rounding carries into it."""
    largest, above_one = form.infinity - 1, (form.bias << form.precision - 1) + 1
    signs = [(largest | (form.sign if negative else 0)) for negative in (False, True)]
    operands = [np.array(v, np.uint64 if form.width == 64 else np.uint32) for v in ([above_one] * 2, signs, signs)]
    actual = Warp(SLOTS[form.width]).map(OPS[form.width]["FMA"], operands, rnd=rnd, **WIDE[form.width])
    expected = [fused(form, above_one, value, value, rnd) for value in signs]
    assert [int(v) for v in actual] == expected


def flushed(bits: int) -> int:
    return bits & F32.sign if bits & F32.infinity == 0 else bits


def meeting_the_least_normal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers whose products, and then whose quotients, lie within some units of f32's least normal number."""
    factors, half, least = rng.uniform(1, 2, COUNT).astype(np.float32), COUNT // 2, np.float32(2.0**-126)
    first = np.concatenate([factors[:half] / np.float32(2), factors[half:] * least]).view(np.uint32)
    second = np.concatenate([2 * least / factors[:half], factors[half:]]).view(np.uint32)
    steps = rng.integers(-1, 2, (2, COUNT))
    return (first + steps[0]).astype(np.uint32), (second + steps[1]).astype(np.uint32)


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
@pytest.mark.parametrize("name", ["MUL", "FMA", "DIV"])
def test_flush_around_the_least_normal(name: str, rnd: Round) -> None:
    """What is subnormal with unlimited exponents is flushed, even where f32 rounds it up to a normal number."""
    arity, operation = ARITHMETIC[name]
    operands = [*meeting_the_least_normal(generator()), np.zeros(COUNT, np.uint32)][:arity]
    actual = Warp(execute_float).map(Float[name], operands, flags=Flag.FTZ, fetch=Fetch.FTZ, rnd=rnd)
    for lane in range(COUNT):
        values = [flushed(int(v[lane])) for v in operands]
        expected = operation(FLUSHING, rnd, *values)
        assert int(actual[lane]) == expected, [hex(v) for v in (*values, int(actual[lane]), expected)]
    assert {0, 0x0080_0000} <= set(actual.tolist())


@pytest.mark.parametrize("name", ["ADD", "MUL", "FMA", "DIV", "RCP", "SQRT"])
def test_flush_and_saturate(name: str) -> None:
    rng = generator()
    arity, operation = ARITHMETIC[name]
    operands = [floats(rng, COUNT) for _ in range(arity)]
    warp = Warp(execute_float)
    for flags in (Flag.FTZ, Flag.SAT, Flag.FTZ | Flag.SAT):
        fetch = Fetch.FTZ if flags & Flag.FTZ else Fetch.WORD
        actual = warp.map(Float[name], operands, flags=flags, fetch=fetch)
        for lane in range(COUNT):
            values = [int(v[lane]) for v in operands]
            used = [flushed(v) for v in values] if flags & Flag.FTZ else values
            expected = operation(FLUSHING if flags & Flag.FTZ else F32, Round.RN, *used)
            if flags & Flag.SAT:
                value = F32.value(expected)
                expected = 0 if value != value or value <= 0 else (0x3F80_0000 if value > 1 else expected)
            assert int(actual[lane]) == expected, [hex(v) for v in (*values, int(actual[lane]), expected)]


def extremum(form: Format, largest: bool, a: int, b: int, flags: int = 0) -> int:
    sign = 0
    if flags & Flag.XORSIGN:
        sign = (a ^ b) & form.sign
        a, b = a & form.sign - 1, b & form.sign - 1
    nans = [v for v in (a, b) if is_nan(form, v)]
    if len(nans) == 2 or (nans and flags & Flag.NAN):
        return nan_of(form, a, b)
    if nans:
        return (b if is_nan(form, a) else a) ^ sign
    order = sorted((a, b), key=lambda v: (form.value(v), not v & form.sign))
    return order[largest] ^ sign


@pytest.mark.parametrize("largest", [False, True])
def test_extrema(largest: bool) -> None:
    rng = generator()
    name = "MAX" if largest else "MIN"
    for form in (F32, F64):
        a, b, c = (floats(rng, COUNT, form.width) for _ in range(3))
        warp = Warp(SLOTS[form.width])
        for flags in (0, Flag.NAN, Flag.XORSIGN, Flag.NAN | Flag.XORSIGN) if form is F32 else (0,):
            actual = warp.map(OPS[form.width][name], [a, b], flags=flags, **WIDE[form.width])
            for lane in range(COUNT):
                expected = extremum(form, largest, int(a[lane]), int(b[lane]), flags)
                assert int(actual[lane]) == expected, [hex(int(v[lane])) for v in (a, b, actual)]
    for flags in (0, Flag.NAN):
        a, b, c = (floats(rng, COUNT) for _ in range(3))
        actual = Warp(execute_float).map(Float[name], [a, b, c], flags=flags)
        for lane in range(COUNT):
            first = extremum(F32, largest, int(a[lane]), int(b[lane]), flags)
            assert int(actual[lane]) == extremum(F32, largest, first, int(c[lane]), flags)


@pytest.mark.parametrize("form", [F32, F64], ids=["f32", "f64"])
def test_signs_and_moves(form: Format) -> None:
    rng = generator()
    a, b = (floats(rng, COUNT, form.width) for _ in range(2))
    warp = Warp(SLOTS[form.width])
    operations = {
        "ABS": lambda a, b: a & form.sign - 1,
        "NEG": lambda a, b: a ^ form.sign,
        "COPYSIGN": lambda a, b: a & form.sign | b & form.sign - 1,
        "MOV": lambda a, b: a,
    }
    for name, operation in operations.items():
        actual = warp.map(OPS[form.width][name], [a, b] if name == "COPYSIGN" else [a], **WIDE[form.width])
        for lane in range(COUNT):
            expected = operation(int(a[lane]), int(b[lane]))
            if is_nan(form, expected) and (form is F32 or name in ("ABS", "NEG")) and name != "COPYSIGN":
                expected = nan_of(form, int(a[lane]))
            assert int(actual[lane]) == expected


@pytest.mark.parametrize("rnd", MODES, ids=lambda rnd: rnd.name)
def test_half_precision_results(rnd: Round) -> None:
    """f32 lanes rounded by the write, from sources that are halves or not."""
    rng = generator()
    warp = Warp(execute_float)
    a = floats(rng, 4 * COUNT)
    # Around f16's range, with ties.
    a = np.where(rng.random(len(a)) < 0.7, (a & 0x8FFF_F000) + np.uint32(0x3300_0000), a)
    for write, form in ((Write.F16, F16), (Write.BF16, Format(16, 8))):
        for flags in (0, Flag.RELU):
            actual = warp.map(Float.MOV, [a], write=write, rnd=rnd, flags=flags)
            for lane in range(len(a)):
                expected = form.round(F32.value(int(a[lane])), rnd, bool(a[lane] & F32.sign))
                assert int(actual[lane]) == (0 if flags and expected & form.sign else expected)
    halves = np.arange(1 << 16, dtype=np.uint32)
    for fetch, form in ((Fetch.F16, F16), (Fetch.BF16, Format(16, 8))):
        actual = warp.map(Float.MOV, [halves | 0xABCD_0000], fetch=fetch)
        for half in rng.choice(halves, 4 * COUNT):
            expected = F32.round(form.value(int(half)), Round.RN, bool(half & 0x8000))
            assert int(actual[half]) == expected


# ----------------------------------------------------------------------------------------------------- approximations


def ulps(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors of f32 results in units of the exact value's last place."""
    size = np.maximum(np.abs(exact), 2.0**-126)
    return np.abs(actual.astype(np.float64) - exact) / 2.0 ** (np.floor(np.log2(size)) - 23)


def relative(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(actual.astype(np.float64) - exact) / np.abs(exact)


def absolute(actual: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(actual.astype(np.float64) - exact)


def positive(rng: np.random.Generator) -> np.ndarray:
    return np.exp2(rng.uniform(-148, 127.9, 32_000))


def around(limit: float) -> Callable[[np.random.Generator], np.ndarray]:
    def draw(rng: np.random.Generator) -> np.ndarray:
        values = rng.uniform(-limit, limit, 16_000)
        return np.concatenate([values, values * np.exp2(rng.uniform(-40, 0, 16_000))])

    return draw


def log_wide(rng: np.random.Generator) -> np.ndarray:
    values = positive(rng)
    return values[(values <= 0.5) | (values >= 2)]


def of(name: str) -> Promise:
    return PROMISED[f"{name}.approx.f32"]


# Operation, operands, exact function, error measure, bound of PTX, bound that this implementation keeps.
Array = Callable[..., np.ndarray]
APPROXIMATIONS: dict[str, tuple[Float, Array, Array, Array, float, float]] = {
    "rcp": (Float.RCP_APPROX, positive, lambda v: 1 / v, ulps, of("rcp").units, 0.5),
    "sqrt": (Float.SQRT_APPROX, positive, np.sqrt, relative, of("sqrt").relative, 2**-24),
    "rsqrt": (Float.RSQRT_APPROX, positive, lambda v: 1 / np.sqrt(v), relative, of("rsqrt").relative, 2**-23),
    "sin": (Float.SIN, around(2 * math.pi), np.sin, absolute, of("sin").absolute, 2**-24.9),
    "cos": (Float.COS, around(2 * math.pi), np.cos, absolute, of("cos").absolute, 2**-24.9),
    "sin wide": (Float.SIN, around(100 * math.pi), np.sin, absolute, 2**-14.7, 2**-24.9),
    "cos wide": (Float.COS, around(1e6), np.cos, absolute, math.inf, 2**-24.9),
    "lg2 near 1": (Float.LG2, lambda rng: rng.uniform(0.5, 2, 32_000), np.log2, absolute, of("lg2").absolute, 2**-24.9),
    "lg2": (Float.LG2, log_wide, np.log2, relative, of("lg2").relative, 2**-23.9),
    "lg2 ulp": (Float.LG2, positive, np.log2, ulps, math.inf, 0.51),
    "ex2": (Float.EX2, around(128), np.exp2, ulps, of("ex2").units, 0.51),
    "ex2 small": (Float.EX2, lambda rng: rng.uniform(-149, -126, 32_000), np.exp2, ulps, of("ex2").units, 0.51),
    "tanh": (Float.TANH, around(12), np.tanh, relative, of("tanh").relative, 2**-23),
}


@pytest.mark.parametrize("name", APPROXIMATIONS)
def test_approximation_errors(name: str) -> None:
    op, draw, function, measure, bound, own = APPROXIMATIONS[name]
    values = draw(generator()).astype(np.float32)
    values = values[values != 0]
    exact = function(values.astype(np.float64))
    keep = np.abs(exact) <= np.finfo(np.float32).max
    if measure is relative:  # a subnormal result has fewer bits
        keep &= np.abs(exact) >= 2.0**-126
    actual = Warp(execute_float).map(op, [values.view(np.uint32)]).view(np.float32)
    error = float(measure(actual[keep], exact[keep]).max())
    print(f"{name}: {error:.4g} = 2**{math.log2(error):.2f}")
    assert error <= bound and error <= own * (1 + 1e-6)


def test_division_approximations() -> None:
    rng = generator()
    warp = Warp(execute_float)
    a, b = (floats(rng, 4096) for _ in range(2))
    a[:4] = [0x7F80_0000, 0x7F80_0000, 0x3F80_0000, 0xBF80_0000]  # inf, inf, 1, -1
    b[:4] = [0x7E80_0001, 0x7E80_0000, 0x7F7F_FFFF, 0x7E80_0001]  # around 2**126
    x, y = a.view(np.float32), b.view(np.float32)
    with np.errstate(all="ignore"):
        exact = np.where(np.isnan(x / y), np.uint32(F32.nan), (x / y).view(np.uint32))
        large = (np.abs(y) > 2.0**126) & np.isfinite(y)
        flushed = np.where(np.isinf(x) | np.isnan(x), np.uint32(F32.nan), (a ^ b) & np.uint32(F32.sign))
    assert large[:4].tolist() == [True, False, True, True]
    assert (warp.map(Float.DIV_FULL, [a, b]) == exact).all()
    assert (warp.map(Float.DIV_APPROX, [a, b]) == np.where(large, flushed, exact)).all()


INF, NAN, TINY = math.inf, math.nan, 2.0**-149
# Results for -inf, -0, +0, +inf, NaN; then further pairs.
SPECIAL: dict[Float, tuple[list[float], dict[float, float]]] = {
    Float.RCP_APPROX: ([-0.0, -INF, INF, 0.0, NAN], {}),
    Float.SQRT_APPROX: ([NAN, -0.0, 0.0, INF, NAN], {-1.0: NAN}),
    Float.RSQRT_APPROX: ([NAN, -INF, INF, 0.0, NAN], {-1.0: NAN}),
    Float.SIN: ([NAN, -0.0, 0.0, NAN, NAN], {TINY: TINY, -TINY: -TINY}),
    Float.COS: ([NAN, 1.0, 1.0, NAN, NAN], {TINY: 1.0}),
    Float.LG2: ([NAN, -INF, -INF, INF, NAN], {-1.0: NAN, TINY: -149.0, 1.0: 0.0, -TINY: NAN}),
    Float.EX2: ([0.0, 1.0, 1.0, INF, NAN], {TINY: 1.0, 128.0: INF, -150.5: 0.0, -149.0: TINY}),
    Float.TANH: ([-1.0, -0.0, 0.0, 1.0, NAN], {TINY: TINY, -TINY: -TINY}),
}


@pytest.mark.parametrize("op", SPECIAL, ids=lambda op: op.name)
def test_special_values_of_approximations(op: Float) -> None:
    results, further = SPECIAL[op]
    values = np.array([-INF, -0.0, 0.0, INF, NAN, *further], np.float32).view(np.uint32)
    expected = np.array([*results, *further.values()], np.float32).view(np.uint32)
    expected[np.isnan(expected.view(np.float32))] = F32.nan
    assert Warp(execute_float).map(op, [values]).tolist() == expected.tolist()


def test_f64_approximations() -> None:
    rng = generator()
    warp = Warp(execute_double)
    nan = np.array([0x7FF8_0000_0000_0001, 0xFFF8 << 48], np.uint64)
    for op in (Double.RCP_APPROX, Double.RSQRT_APPROX):
        assert (warp.map(op, [nan], flags=Flag.FTZ, **WIDE[64]) == 0x7FFF_FFFF << 32).all()
    values = np.concatenate([np.exp2(rng.uniform(-1000, 1000, 4000)), [0.0, INF, 5e-324]])
    for op, function in ((Double.RCP_APPROX, lambda v: 1 / v), (Double.RSQRT_APPROX, lambda v: 1 / np.sqrt(v))):
        actual = warp.map(op, [values.view(np.uint64)], flags=Flag.FTZ, **WIDE[64])
        assert (actual & np.uint64(ALL) == 0).all()
        with np.errstate(divide="ignore"):
            error = relative(actual.view(np.float64)[:4000], function(values[:4000]))
        assert error.max() <= 2.0**-19
        assert actual.view(np.float64)[4000:].tolist() == [INF, 0.0, INF]
    full = warp.map(Double.RSQRT_APPROX, [values.view(np.uint64)], **WIDE[64]).view(np.float64)
    exact = 1 / np.sqrt(values[:4000].astype(np.longdouble))
    assert np.max(np.abs(full[:4000] - exact) / exact) <= 2.0**-51.9
    assert full[4000:].tolist() == [INF, 0.0, 1 / math.sqrt(5e-324)]


# ------------------------------------------------------------------------------------------------------------- modes


def everything(seed: int) -> str:
    """A digest of every operation's results on some operands."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    for bits, slot in SLOTS.items():
        warp = Warp(slot)
        for op in OPS[bits]:
            operands = [floats(rng, 32, bits) for _ in range(3)]
            for rnd in MODES if op.name in ARITHMETIC else (Round.RN,):
                for flags in (0, Flag.FTZ | Flag.SAT, Flag.XORSIGN):
                    warp.execute(op, operands, rnd=rnd, flags=flags, **WIDE[bits])
                    digest.update(warp.registers.tobytes())
    for op, write in ((Float.ADD, Write.F16), (Float.MUL, Write.BF16)):
        fetch = Fetch.F16 if write == Write.F16 else Fetch.BF16
        warp = Warp(execute_float)
        warp.execute(op, [floats(rng, 32), floats(rng, 32)], fetch=fetch, write=write)
        digest.update(warp.registers.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
