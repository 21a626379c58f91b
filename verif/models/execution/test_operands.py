"""Fetch and write: every mode, immediates, absent operands, RZ, partial masks."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from lockstep.models.execution.integer import execute_int, execute_long
from lockstep.models.execution.isa import RZ, Fetch, Int, Kind, Long, Write
from lockstep.verif.bench import interpreted
from lockstep.verif.models.execution.lanes import ALL, DESTINATION, LONG, POISON, Warp, floats, generator, words
from lockstep.verif.models.execution.rationals import BF16, F16, F32, resized

MODES = [mode for mode in Fetch if mode != Fetch.NONE]


def fetched(mode: Fetch, low: int, high: int) -> int:
    """The lane value of a register (pair)."""
    name = mode.name.removesuffix("_LONG")
    if mode == Fetch.WORD:
        return low
    if mode == Fetch.PAIR:
        return low | high << 32
    if mode == Fetch.FTZ:
        return low & 0x8000_0000 if low & 0x7F80_0000 == 0 else low
    if mode == Fetch.BF16:
        return (low & 0xFFFF) << 16
    if mode == Fetch.F16:
        if low & 0x7FFF > 0x7C00:
            return (low & 0x8000) << 16 | 0x7F80_0000 | (low & 0x3FF) << 13
        return F32.round(F16.value(low & 0xFFFF), 0, bool(low & 0x8000))
    bits = int(name[1:])
    value = low & (1 << bits) - 1
    if name[0] == "S" and value >> bits - 1:
        value -= 1 << bits
    return value & ((1 << 64) - 1 if mode in LONG else ALL)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("kind", [Kind.REGISTER, Kind.IMMEDIATE, Kind.NONE], ids=lambda kind: kind.name)
def test_fetch(mode: Fetch, kind: Kind) -> None:
    """Seen through a move, as each of the operands that a sum has."""
    rng = generator()
    long = mode in LONG
    warp = Warp(execute_long if long else execute_int)
    plain, write = (Fetch.PAIR, Write.PAIR) if long else (Fetch.WORD, Write.WORD)
    mask = (1 << 64) - 1 if long else ALL
    for position in range(2):
        for _ in range(8):
            values = words(rng, 32, 64) if rng.random() < 0.5 else floats(rng, 32).astype(np.uint64)
            other = words(rng, 32, 64)
            operand = {
                Kind.REGISTER: values if mode == Fetch.PAIR else values.astype(np.uint32),
                Kind.IMMEDIATE: int(values[0].view(np.int64)),
                Kind.NONE: None,
            }[kind]
            fixed = other if long else other.astype(np.uint32)
            pair = [operand, fixed] if position == 0 else [fixed, operand]
            fetch = (mode, plain) if position == 0 else (plain, mode)
            warp.execute(Long.ADD if long else Int.ADD, pair, fetch=fetch, write=write)
            result = warp.long if long else warp.word
            for lane in range(32):
                source = int(values[0 if kind == Kind.IMMEDIATE else lane])
                value = 0 if kind == Kind.NONE else fetched(mode, source & ALL, source >> 32)
                assert int(result[lane]) == (value + int(fixed[lane])) & mask, (mode, hex(source))


def test_rz_reads_zero_and_is_not_written() -> None:
    warp = Warp(execute_int)
    warp.execute(Int.ADD, [np.full(32, 5, np.uint32), np.full(32, 7, np.uint32)])
    warp.instruction["src"][0, 1] = RZ
    warp.slot(warp.context.ctypes.data, warp.instruction.ctypes.data)
    assert (warp.word == 5).all()
    warp.instruction["dst"] = RZ
    warp.slot(warp.context.ctypes.data, warp.instruction.ctypes.data)
    assert (warp.registers[RZ] == POISON).all()


@pytest.mark.parametrize("write", list(Write), ids=lambda write: write.name)
def test_write_under_a_mask(write: Write) -> None:
    rng = generator()
    long = write == Write.PAIR
    warp = Warp(execute_long if long else execute_int)
    for mask in (0, ALL, 1, 0x8000_0000, int(rng.integers(1 << 32)), int(rng.integers(1 << 32))):
        warp.registers[DESTINATION : DESTINATION + 2] = POISON
        values = words(rng, 32, 64) if long else floats(rng, 32)
        fetch = Fetch.PAIR if long else Fetch.WORD
        warp.execute(Long.MOV if long else Int.MOV, [values], fetch=fetch, write=write, mask=mask)
        for lane in range(32):
            value, old = int(values[lane]), POISON | POISON << 32 if long else POISON
            if write == Write.HALF:
                value &= 0xFFFF
            elif write in (Write.F16, Write.BF16):
                form = F16 if write == Write.F16 else BF16
                number = F32.value(value)
                rounded = form.round(number, 0, bool(value >> 31))
                value = rounded if number == number else resized(F32, form, value)
            expected = value if mask >> lane & 1 and write != Write.NONE else old
            assert int((warp.long if long else warp.word)[lane]) == expected
    assert (warp.registers[DESTINATION + 2 :] == POISON).all()


def everything(seed: int) -> str:
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    for mode in MODES:
        long = mode in LONG
        warp = Warp(execute_long if long else execute_int)
        operands: list[np.ndarray | int | None] = [words(rng, 32, 64 if mode == Fetch.PAIR else 32), -5, None]
        for write in (Write.PAIR,) if long else (Write.WORD, Write.HALF, Write.F16, Write.BF16):
            mask = int(rng.integers(1 << 32))
            warp.execute(Long.MAD if long else Int.MAD, operands, fetch=mode, write=write, mask=mask)
            digest.update(warp.registers.tobytes())
    return digest.hexdigest()


def test_interpreted_is_identical() -> None:
    seed = random.randrange(1 << 32)
    print(seed)
    assert everything(seed) == interpreted(everything, seed)
