"""Integer operations against Python's unbounded integers, written as PTX ISA 9.0 describes them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from lockstep.models.execution.integer import execute_int, execute_long
from lockstep.models.execution.isa import PT, RZ, Fetch, Int, Long, Write
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import (
    ALL,
    DESTINATION,
    PAIRS,
    POISON,
    PREDICATE,
    WORDS,
    Warp,
    generator,
    words,
)

Operation = Callable[..., int]


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def divide(a: int, b: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * divide(a, b)


def clamp(value: int) -> int:
    return max(-(1 << 31), min((1 << 31) - 1, value))


def bit_field(a: int, b: int, c: int, bits: int, sign: bool) -> int:
    position, length = b & 255, c & 255
    top = a >> min(position + length - 1, bits - 1) & 1 if sign and length else 0
    return sum(
        (a >> position + i & 1 if i < length and position + i < bits else top) << i for i in range(bits)
    )


def insert(a: int, b: int, c: int, d: int, bits: int) -> int:
    position, length = c & 255, d & 255
    for i in range(length):
        if position + i < bits:
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


def find(a: int, bits: int, sign: bool, amount: int) -> int:
    word = ~a & (1 << bits) - 1 if sign and a >> bits - 1 else a
    position = word.bit_length() - 1
    return position if position < 0 or not amount else bits - 1 - position


def permute(a: int, b: int, c: int, mode: int) -> int:
    source = [(b << 32 | a) >> 8 * k & 255 for k in range(8)]
    k = c & 3
    if mode == 0:
        out = []
        for i in range(4):
            selector = c >> 4 * i & 15
            byte = source[selector & 7]
            out.append((255 if byte & 128 else 0) if selector & 8 else byte)
    else:
        out = [source[i] for i in {
            1: (k, k + 1, k + 2, k + 3),
            2: (k, (k - 1) % 8, (k - 2) % 8, (k - 3) % 8),
            3: (k, k, k, k),
            4: tuple(max(i, k) for i in range(4)),
            5: tuple(min(i, k) for i in range(4)),
            6: (2 * (k & 1), 2 * (k & 1) + 1) * 2,
        }[mode]]  # fmt: skip
    return sum(byte << 8 * i for i, byte in enumerate(out))


def look_up(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def extend(a: int, b: int, sub: int, sign: bool) -> int:
    low = b & 31
    if b >= 32 and sub == 0:
        return a
    if low == 0:
        return 0
    return signed(a, low) if sign else a & (1 << low) - 1


def bit_mask(a: int, b: int, sub: int) -> int:
    start, width = a & 31, b & 31
    if sub == 0 and a >= 32:
        return 0
    if sub == 0 and b >= 32:
        return ALL << start
    return ((1 << width) - 1) << start


def find_nth(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else -1
    positions = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [p for p in positions if mask >> p & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


def s32(a: int) -> int:
    return signed(a, 32)


def s24(a: int, sub: int) -> int:
    return signed(a, 24) if sub else a & 0xFF_FFFF


# a, b, c and sub to the result, of which the low 32 bits count.
INT: dict[int, Operation] = {
    Int.MOV: lambda a, b, c, s: a,
    Int.ADD: lambda a, b, c, s: a + b,
    Int.SUB: lambda a, b, c, s: a - b,
    Int.MUL: lambda a, b, c, s: a * b,
    Int.MULHI_S: lambda a, b, c, s: s32(a) * s32(b) >> 32,
    Int.MULHI_U: lambda a, b, c, s: a * b >> 32,
    Int.MULHI16: lambda a, b, c, s: s32(a) * s32(b) >> 16,
    Int.MAD: lambda a, b, c, s: a * b + c,
    Int.MADHI_S: lambda a, b, c, s: (s32(a) * s32(b) >> 32) + c,
    Int.MADHI_U: lambda a, b, c, s: (a * b >> 32) + c,
    Int.MULHI24: lambda a, b, c, s: s24(a, s) * s24(b, s) >> 16,
    Int.MUL24: lambda a, b, c, s: s24(a, s) * s24(b, s),
    Int.MAD24: lambda a, b, c, s: s24(a, s) * s24(b, s) + c,
    Int.MADHI24: lambda a, b, c, s: (s24(a, s) * s24(b, s) >> 16) + c,
    Int.SAD_S: lambda a, b, c, s: c + abs(s32(a) - s32(b)),
    Int.SAD_U: lambda a, b, c, s: c + abs(a - b),
    Int.DIV_S: lambda a, b, c, s: divide(s32(a), s32(b)),
    Int.DIV_U: lambda a, b, c, s: divide(a, b),
    Int.REM_S: lambda a, b, c, s: remainder(s32(a), s32(b)),
    Int.REM_U: lambda a, b, c, s: remainder(a, b),
    Int.ABS: lambda a, b, c, s: abs(s32(a)),
    Int.NEG: lambda a, b, c, s: -a,
    Int.MIN_S: lambda a, b, c, s: min(s32(a), s32(b)),
    Int.MIN_U: lambda a, b, c, s: min(a, b),
    Int.MAX_S: lambda a, b, c, s: max(s32(a), s32(b)),
    Int.MAX_U: lambda a, b, c, s: max(a, b),
    Int.AND: lambda a, b, c, s: a & b,
    Int.OR: lambda a, b, c, s: a | b,
    Int.XOR: lambda a, b, c, s: a ^ b,
    Int.NOT: lambda a, b, c, s: ~a,
    Int.CNOT: lambda a, b, c, s: int(a == 0),
    Int.SHL: lambda a, b, c, s: a << min(b, 32),
    Int.SHR_S: lambda a, b, c, s: s32(a) >> min(b, 32),
    Int.SHR_U: lambda a, b, c, s: a >> min(b, 32),
    Int.SHF_L_CLAMP: lambda a, b, c, s: (b << 32 | a) << min(c, 32) >> 32,
    Int.SHF_L_WRAP: lambda a, b, c, s: (b << 32 | a) << (c & 31) >> 32,
    Int.SHF_R_CLAMP: lambda a, b, c, s: (b << 32 | a) >> min(c, 32),
    Int.SHF_R_WRAP: lambda a, b, c, s: (b << 32 | a) >> (c & 31),
    Int.BFE_S: lambda a, b, c, s: bit_field(a, b, c, 32, True),
    Int.BFE_U: lambda a, b, c, s: bit_field(a, b, c, 32, False),
    Int.BFI: lambda a, b, c, s, d: insert(a, b, c, d, 32),
    Int.BREV: lambda a, b, c, s: int(f"{a:032b}"[::-1], 2),
    Int.POPC: lambda a, b, c, s: a.bit_count(),
    Int.CLZ: lambda a, b, c, s: 32 - a.bit_length(),
    Int.BFIND_S: lambda a, b, c, s: find(a, 32, True, s),
    Int.BFIND_U: lambda a, b, c, s: find(a, 32, False, s),
    Int.PRMT: lambda a, b, c, s: permute(a, b, c, s),
    Int.LOP3: lambda a, b, c, s: look_up(a, b, c, s),
    Int.ADD_SAT: lambda a, b, c, s: clamp(s32(a) + s32(b)),
    Int.SUB_SAT: lambda a, b, c, s: clamp(s32(a) - s32(b)),
    Int.MADHI_SAT: lambda a, b, c, s: clamp((s32(a) * s32(b) >> 32) + s32(c)),
    Int.SZEXT_S: lambda a, b, c, s: extend(a, b, s, True),
    Int.SZEXT_U: lambda a, b, c, s: extend(a, b, s, False),
    Int.BMSK: lambda a, b, c, s: bit_mask(a, b, s),
    Int.FNS: lambda a, b, c, s: find_nth(a, b & 31, s32(c)),
}


def s64(a: int) -> int:
    return signed(a, 64)


LONG: dict[int, Operation] = {
    Long.MOV: lambda a, b, c, s: a,
    Long.ADD: lambda a, b, c, s: a + b,
    Long.SUB: lambda a, b, c, s: a - b,
    Long.MUL: lambda a, b, c, s: a * b,
    Long.MULHI_S: lambda a, b, c, s: s64(a) * s64(b) >> 64,
    Long.MULHI_U: lambda a, b, c, s: a * b >> 64,
    Long.MAD: lambda a, b, c, s: a * b + c,
    Long.MADHI_S: lambda a, b, c, s: (s64(a) * s64(b) >> 64) + c,
    Long.MADHI_U: lambda a, b, c, s: (a * b >> 64) + c,
    Long.SAD_S: lambda a, b, c, s: c + abs(s64(a) - s64(b)),
    Long.SAD_U: lambda a, b, c, s: c + abs(a - b),
    Long.DIV_S: lambda a, b, c, s: divide(s64(a), s64(b)),
    Long.DIV_U: lambda a, b, c, s: divide(a, b),
    Long.REM_S: lambda a, b, c, s: remainder(s64(a), s64(b)),
    Long.REM_U: lambda a, b, c, s: remainder(a, b),
    Long.ABS: lambda a, b, c, s: abs(s64(a)),
    Long.NEG: lambda a, b, c, s: -a,
    Long.MIN_S: lambda a, b, c, s: min(s64(a), s64(b)),
    Long.MIN_U: lambda a, b, c, s: min(a, b),
    Long.MAX_S: lambda a, b, c, s: max(s64(a), s64(b)),
    Long.MAX_U: lambda a, b, c, s: max(a, b),
    Long.AND: lambda a, b, c, s: a & b,
    Long.OR: lambda a, b, c, s: a | b,
    Long.XOR: lambda a, b, c, s: a ^ b,
    Long.NOT: lambda a, b, c, s: ~a,
    Long.CNOT: lambda a, b, c, s: int(a == 0),
    Long.SHL: lambda a, b, c, s: a << min(b, 64),
    Long.SHR_S: lambda a, b, c, s: s64(a) >> min(b, 64),
    Long.SHR_U: lambda a, b, c, s: a >> min(b, 64),
    Long.BFE_S: lambda a, b, c, s: bit_field(a, b, c, 64, True),
    Long.BFE_U: lambda a, b, c, s: bit_field(a, b, c, 64, False),
    Long.BFI: lambda a, b, c, s, d: insert(a, b, c, d, 64),
    Long.BREV: lambda a, b, c, s: int(f"{a:064b}"[::-1], 2),
    Long.POPC: lambda a, b, c, s: a.bit_count(),
    Long.CLZ: lambda a, b, c, s: 64 - a.bit_length(),
    Long.BFIND_S: lambda a, b, c, s: find(a, 64, True, s),
    Long.BFIND_U: lambda a, b, c, s: find(a, 64, False, s),
    Long.PACK: lambda a, b, c, s: a & ALL | (b & ALL) << 32,
    Long.PACK16: lambda a, b, c, s, d: sum((v & 0xFFFF) << 16 * k for k, v in enumerate((a, b, c, d))),
    Long.PACK16X2: lambda a, b, c, s: a & 0xFFFF | (b & 0xFFFF) << 16,
    Long.PACK8X4: lambda a, b, c, s, d: sum((v & 0xFF) << 8 * k for k, v in enumerate((a, b, c, d))),
}
UNPACK = {Long.UNPACK: (32, 2), Long.UNPACK16: (16, 4), Long.UNPACK16X2: (16, 2), Long.UNPACK8X4: (8, 4)}
TWO_FORMS = "MULHI24", "MUL24", "MAD24", "MADHI24", "BFIND_S", "BFIND_U", "SZEXT_S", "SZEXT_U", "BMSK"
SUBS: dict[int, Sequence[int]] = {
    Int.PRMT: range(7),
    Int.LOP3: (0x00, 0x1B, 0x96, 0xCA, 0xE8, 0xFF),
    **{Int[n]: (0, 1) for n in TWO_FORMS},
}
COUNT = 1024


def small(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    """Often small numbers, as shift amounts and positions are."""
    return np.where(rng.random(len(values)) < 0.6, values % 70, values).astype(values.dtype)


def check(slot, op: int, operation: Operation, bits: int, sub: int, rng: np.random.Generator) -> None:
    a, b, c, d = (words(rng, COUNT, bits) for _ in range(4))
    if op in (Int.FNS,) and bits == 32:
        c = (np.array(rng.integers(-40, 40, COUNT))).astype(np.int32).view(np.uint32)
        b = b % 32
    shift = op in (
        (Int.SHL, Int.SHR_S, Int.SHR_U, Int.SZEXT_S, Int.SZEXT_U, Int.BMSK)
        if bits == 32
        else (Long.SHL, Long.SHR_S, Long.SHR_U)
    )
    if shift or operation.__code__.co_names[:1] == ("bit_field",):
        b = small(rng, b)
    c, d = small(rng, c), small(rng, d)
    options: dict = {"sub": sub}
    if bits == 64:
        narrow = op in (Long.POPC, Long.CLZ, Long.BFIND_S, Long.BFIND_U, Long.PACK16X2, Long.PACK8X4)
        options |= {"fetch": Fetch.PAIR, "write": Write.WORD if narrow else Write.PAIR}
    warp = Warp(slot)
    four = operation.__code__.co_argcount == 5
    actual = warp.map(op, [a, b, c, d] if four else [a, b, c], **options)
    keep = (1 << (32 if options.get("write") == Write.WORD else bits)) - 1
    for lane in range(COUNT):
        values = [int(v[lane]) for v in (a, b, c, d)]
        last = values[3:] if four else []
        expected = operation(*values[:3], sub, *last) & keep
        assert int(actual[lane]) == expected, [hex(v) for v in (*values, int(actual[lane]), expected)]


@pytest.mark.parametrize("op", list(Int), ids=lambda op: op.name)
def test_int(op: Int) -> None:
    rng = generator()
    for sub in SUBS.get(op, (0,)):
        check(execute_int, op, INT[op], 32, sub, rng)


@pytest.mark.parametrize("op", [op for op in Long if op not in UNPACK], ids=lambda op: op.name)
def test_long(op: Long) -> None:
    rng = generator()
    for sub in (0, 1) if op in (Long.BFIND_S, Long.BFIND_U) else (0,):
        check(execute_long, op, LONG[op], 64, sub, rng)


def test_packed_pieces_may_be_immediates() -> None:
    warp = Warp(execute_long)
    first = words(generator(), 32)
    warp.execute(Long.PACK16, [first, 0x1_2345, first, -2], fetch=Fetch.U32, write=Write.PAIR)
    expected = (first.astype(np.uint64) & np.uint64(0xFFFF)) * np.uint64(0x1_0000_0001)
    assert (warp.long == expected | np.uint64(0xFFFE_0000_2345_0000)).all()


@pytest.mark.parametrize("op", UNPACK, ids=lambda op: op.name)
def test_unpack(op: Long) -> None:
    bits, pieces = UNPACK[op]
    rng = generator()
    warp = Warp(execute_long)
    values = words(rng, 32, 64)
    warp.execute(op, [values], fetch=Fetch.PAIR, write=Write.WORD)
    for piece in range(pieces):
        expected = (values >> np.uint64(bits * piece)) & np.uint64((1 << bits) - 1)
        assert (warp.registers[DESTINATION + 2 * piece] == expected).all()
    assert (warp.registers[DESTINATION + 2 * pieces :] == POISON).all() and (warp.registers[RZ] == POISON).all()


CARRIES = {
    Int.ADD: (Long.ADD, lambda a, b, c, carry, bits: a + b + carry),
    Int.SUB: (Long.SUB, lambda a, b, c, carry, bits: a - b - carry),
    Int.MAD: (Long.MAD, lambda a, b, c, carry, bits: (a * b) % (1 << bits) + c + carry),
    Int.MADHI_U: (Long.MADHI_U, lambda a, b, c, carry, bits: (a * b >> bits) + c + carry),
    Int.MADHI_S: (
        Long.MADHI_S,
        lambda a, b, c, carry, bits: (signed(a, bits) * signed(b, bits) >> bits) % (1 << bits) + c + carry,
    ),
}


@pytest.mark.parametrize("op", CARRIES, ids=lambda op: op.name)
@pytest.mark.parametrize("bits", [32, 64])
def test_carry_chains(op: Int, bits: int) -> None:
    long, operation = CARRIES[op]
    rng = generator()
    warp = Warp(execute_int if bits == 32 else execute_long)
    options = WORDS if bits == 32 else PAIRS
    for psrc in (PT, 10):
        for _ in range(20):
            a, b, c = (words(rng, 32, bits) for _ in range(3))
            b = np.where(rng.random(32) < 0.3, ~a, b)
            carries, mask, before = (int(rng.integers(1 << 32)) for _ in range(3))
            warp.predicates[PREDICATE] = before
            operands = [a, b, c]
            warp.execute(
                long if bits == 64 else op, operands, psrc=psrc, pdst=PREDICATE, predicates=(carries, 0), mask=mask,
                **options,
            )  # fmt: skip
            for lane in range(32):
                carry = carries >> lane & 1 if psrc != PT else 0
                total = operation(int(a[lane]), int(b[lane]), int(c[lane]), carry, bits)
                old = before >> lane & 1
                assert int(warp.predicates[PREDICATE]) >> lane & 1 == (total >> bits & 1 if mask >> lane & 1 else old)
                if mask >> lane & 1:
                    assert int((warp.word if bits == 32 else warp.long)[lane]) == total % (1 << bits)


def everything(seed: int) -> str:
    """A digest of every operation's results on some operands."""
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    for slot, ops, bits in ((execute_int, Int, 32), (execute_long, Long, 64)):
        warp = Warp(slot)
        for op in ops:
            operands = [small(rng, words(rng, 32, bits)) for _ in range(4)]
            for sub in SUBS.get(op, (0,)) if bits == 32 else (0,):
                for pdst in (PT, PREDICATE) if op.name in ("ADD", "SUB", "MAD", "MADHI_S", "MADHI_U") else (PT,):
                    warp.execute(
                        op, operands, sub=sub, pdst=pdst, mask=int(rng.choice([ALL, 0x0F0F_1234])),
                        fetch=Fetch.PAIR if bits == 64 else Fetch.WORD,
                        write=Write.PAIR if bits == 64 else Write.WORD,
                    )  # fmt: skip
                    digest.update(warp.registers.tobytes() + warp.predicates.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
