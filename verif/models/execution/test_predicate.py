"""Comparisons, selections and predicate logic against Python."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from lockstep.models.execution.isa import (
    GLOBAL_BASE,
    LOCAL_WINDOW,
    PARAM_WINDOW,
    PT,
    SHARED_WINDOW,
    Bool,
    Compare,
    Fetch,
    Flag,
    Predicate,
    Space,
    Write,
)
from lockstep.models.execution.predicate import execute_predicate
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import (
    ALL,
    COMPLEMENT,
    PAIRS,
    POISON,
    PREDICATE,
    WORDS,
    Warp,
    Widths,
    floats,
    generator,
    words,
)
from lockstep.verif.models.execution.rationals import F32, F64

TYPES = ("S32", "U32", "S64", "U64", "F32", "F64")


def value(kind: str, bits: int):
    """The number that the bits are in a type."""
    if kind[0] == "F":
        return (F32 if kind == "F32" else F64).value(bits)
    width = int(kind[1:])
    return bits - (1 << width) if kind[0] == "S" and bits >> width - 1 else bits


def true(comparison: int, a, b) -> bool:
    """A comparison by the meaning of its name: unordered forms are true for NaN."""
    unordered = a != a or b != b
    if unordered:
        return comparison in (Compare.NAN, *range(Compare.LTU, Compare.GEU + 1))
    if comparison in (Compare.NUM, Compare.NAN):
        return comparison == Compare.NUM
    name = Compare(comparison).name[:2]
    return {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}[name]


def joined(how: int, a: int, b: int) -> int:
    return {Bool.NONE: a, Bool.AND: a & b, Bool.OR: a | b, Bool.XOR: a ^ b}[Bool(how)]


def operands(rng: np.random.Generator, kind: str, count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    draw = floats if kind[0] == "F" else words
    a, b = draw(rng, count, int(kind[1:])), draw(rng, count, int(kind[1:]))
    return a, np.where(rng.random(count) < 0.25, a, b)


def options(kind: str) -> dict:
    return {"fetch": Fetch.PAIR} if kind.endswith("64") else {}


def lanes(mask: int) -> np.ndarray:
    return (mask >> np.arange(32)) & 1


def masked(values) -> int:
    return sum(bool(v) << lane for lane, v in enumerate(values))


@pytest.mark.parametrize("kind", TYPES)
def test_setp(kind: str) -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    for comparison in Compare:
        for how in Bool:
            a, b = operands(rng, kind)
            other, mask, before = (int(rng.integers(1 << 32)) for _ in range(3))
            negated = int(rng.integers(2))
            warp.predicates[[PREDICATE, COMPLEMENT]] = before
            warp.execute(
                Predicate[f"SETP_{kind}"], [a, b], sub=comparison | how << 4, psrc=10, psrc_not=negated, mask=mask,
                pdst=PREDICATE, pdst2=COMPLEMENT, predicates=(other, 0), write=Write.NONE, **options(kind),
            )  # fmt: skip
            numbers = ((value(kind, int(x)), value(kind, int(y))) for x, y in zip(a, b, strict=True))
            result = masked(true(comparison, x, y) for x, y in numbers)
            other ^= ALL * negated
            for index, expected in ((PREDICATE, result), (COMPLEMENT, result ^ ALL)):
                expected = joined(how, expected, other) & mask | before & ~mask
                assert int(warp.predicates[index]) == expected, (comparison, how)
    assert (warp.word == POISON).all()


def test_flush_of_halves() -> None:
    """.ftz of f16, which are fetched as f32: subnormal ones are equal to zero."""
    warp = Warp(execute_predicate)
    a = np.arange(0x3F0, 0x410, dtype=np.uint32)
    for flags, least in ((0, 1), (Flag.FTZ, 0x400)):
        warp.execute(Predicate.SET_F32, [a, 0], sub=Compare.GT, flags=flags, fetch=Fetch.F16)
        assert ((warp.word == ALL) == (a >= least)).all()


@pytest.mark.parametrize("kind", TYPES)
def test_set(kind: str) -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    for comparison in Compare:
        for flags, one in ((0, ALL), (Flag.SAT, 0x3F80_0000)):
            a, b = operands(rng, kind)
            other = int(rng.integers(1 << 32))
            warp.execute(
                Predicate[f"SET_{kind}"], [a, b], sub=comparison | Bool.XOR << 4, psrc=10, flags=flags,
                predicates=(other, 0), **options(kind),
            )  # fmt: skip
            for lane in range(32):
                result = true(comparison, value(kind, int(a[lane])), value(kind, int(b[lane]))) ^ (other >> lane & 1)
                assert int(warp.word[lane]) == (one if result else 0)


def test_selections() -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    for op, bits in ((Predicate.SELP, 32), (Predicate.SELP64, 64)):
        a, b = words(rng, 32, bits), words(rng, 32, bits)
        wide = PAIRS if bits == 64 else WORDS
        for negated in (0, 1):
            chosen = int(rng.integers(1 << 32))
            warp.execute(op, [a, b], psrc=10, psrc_not=negated, predicates=(chosen, 0), **wide)
            expected = np.where(lanes(chosen) ^ negated, a, b)
            assert ((warp.long if bits == 64 else warp.word) == expected).all()
    for op, bits, kind in (
        (Predicate.SLCT_S32, 32, "S32"),
        (Predicate.SLCT_F32, 32, "F32"),
        (Predicate.SLCT64_S32, 64, "S32"),
        (Predicate.SLCT64_F32, 64, "F32"),
    ):
        a, b = words(rng, 32, bits), words(rng, 32, bits)
        c = operands(rng, kind)[0]
        c[:4] = [0x8000_0000, 0, 0x7FC0_0000, 0xFF80_0000]
        widths = Widths(fetch=(Fetch.PAIR, Fetch.PAIR, Fetch.WORD), write=Write.PAIR) if bits == 64 else WORDS
        warp.execute(op, [a, b, c], **widths)
        expected = np.where([value(kind, int(v)) >= 0 for v in c], a, b)
        assert ((warp.long if bits == 64 else warp.word) == expected).all()


def test_predicate_logic() -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    table = {
        Predicate.MOV: lambda p, q: p,
        Predicate.AND: lambda p, q: p & q,
        Predicate.OR: lambda p, q: p | q,
        Predicate.XOR: lambda p, q: p ^ q,
        Predicate.NOT: lambda p, q: p ^ ALL,
    }
    for op, operation in table.items():
        for p_not, q_not, constant in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)):
            p, q = int(rng.integers(1 << 32)), int(rng.integers(1 << 32))
            psrc2 = PT if constant else 11
            warp.execute(
                op, [], pdst=PREDICATE, psrc=10, psrc_not=p_not, psrc2=psrc2, psrc2_not=q_not, predicates=(p, q),
                write=Write.NONE,
            )  # fmt: skip
            q = ALL if constant else q
            assert int(warp.predicates[PREDICATE]) == operation(p ^ ALL * p_not, q ^ ALL * q_not)
    warp.execute(Predicate.FROM, [], psrc=10, predicates=(0x8000_0005, 0))
    assert (warp.word == lanes(0x8000_0005)).all()
    before = warp.predicates[PT]
    warp.execute(Predicate.MOV, [], pdst=PT, psrc=10, predicates=(1, 0), write=Write.NONE)
    assert warp.predicates[PT] == before


def test_testp() -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    for form, op in ((F32, Predicate.TESTP_F32), (F64, Predicate.TESTP_F64)):
        least = 1 << form.precision - 1
        for _ in range(4):
            a = floats(rng, 32, form.width)
            sizes = (a & a.dtype.type(form.sign - 1)).astype(np.uint64)
            finite, infinite, nan = sizes < form.infinity, sizes == form.infinity, sizes > form.infinity
            subnormal = (sizes > 0) & (sizes < least)
            for sub, expected in enumerate((finite, infinite, ~nan, nan, finite & ~subnormal, subnormal)):
                warp.execute(op, [a], sub=sub, pdst=PREDICATE, write=Write.NONE, **options(f"F{form.width}"))
                assert int(warp.predicates[PREDICATE]) == masked(expected)


def test_lop3_with_predicate() -> None:
    rng = generator()
    warp = Warp(execute_predicate)
    for how in (Bool.AND, Bool.OR, Bool.XOR):
        a, b = words(rng, 32), words(rng, 32)
        b = np.where(rng.random(32) < 0.5, a, b)
        other = int(rng.integers(1 << 32))
        warp.execute(Predicate.LOP3, [a, b, 0], sub=0x3C, pdst=PREDICATE, psrc=10, imm3=how, predicates=(other, 0))
        assert (warp.word == a ^ b).all()
        assert int(warp.predicates[PREDICATE]) == joined(how, masked(a != b), other)


def test_spaces() -> None:
    warp = Warp(execute_predicate)
    edges = [0, PARAM_WINDOW, SHARED_WINDOW, LOCAL_WINDOW, GLOBAL_BASE]
    spaces = [Space.GLOBAL, Space.PARAM, Space.SHARED, Space.LOCAL, Space.GLOBAL]
    addresses = np.resize(np.array([e + d for e in edges for d in (-1, 0) if e + d >= 0], np.uint64), 32)
    for space in (Space.GLOBAL, Space.PARAM, Space.SHARED, Space.LOCAL):
        warp.execute(Predicate.ISSPACE, [addresses], sub=space, pdst=PREDICATE, fetch=Fetch.PAIR, write=Write.NONE)
        inside = [spaces[max(k for k, e in enumerate(edges) if e <= int(v))] == space for v in addresses]
        assert int(warp.predicates[PREDICATE]) == masked(inside)


def everything(seed: int) -> str:
    """A digest of every operation's results on some operands."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    warp = Warp(execute_predicate)
    for op in Predicate:
        long = op.name.endswith("64") or "64_" in op.name or op == Predicate.ISSPACE
        for sub in range(6):
            kind = "F64" if long else "F32"
            a, b = operands(rng, kind)
            fetch = (Fetch.PAIR, Fetch.PAIR, Fetch.WORD) if long else Fetch.WORD
            write = Write.PAIR if op in (Predicate.SELP64, Predicate.SLCT64_F32, Predicate.SLCT64_S32) else Write.WORD
            logic = op <= Predicate.SETP_F64 or Predicate.MOV <= op <= Predicate.NOT
            warp.execute(
                op, [a, b, floats(rng, 32)], sub=sub, psrc=10, psrc2=11, pdst=PREDICATE, pdst2=COMPLEMENT, fetch=fetch,
                write=Write.NONE if logic else write, predicates=(0x1234_5678, 0xFEDC_BA98), mask=0xF0FF_00FF,
            )  # fmt: skip
            digest.update(warp.registers.tobytes() + warp.predicates.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
