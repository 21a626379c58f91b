"""Atomic operations against a reference that takes the lanes one by one."""

from __future__ import annotations

import random
import struct
from typing import Any

import numpy as np
import pytest

from lockstep.models.execution.atomic import execute_atomic
from lockstep.models.execution.isa import GRANULE, LANES, RZ, Atomic, Fault, Space
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.execution.machine import WINDOWS, Machine, chain, source

ADDRESS, OLD, B, C = 2, 10, 20, 30  # first registers of pairs
WIDTHS = {
    **{op: (4, 8) for op in Atomic},
    Atomic.INC: (4,), Atomic.DEC: (4,), Atomic.ADD_F32: (4,), Atomic.ADD_F64: (8,), Atomic.ADD_F16X2: (4,),
    Atomic.ADD_BF16X2: (4,), Atomic.ADD_F16: (2,), Atomic.CAS: (2, 4, 8), Atomic.EXCH: (4, 8),
}  # fmt: skip


def convert(code: str, bits: int) -> Any:
    return struct.unpack(code, struct.pack({2: "H", 4: "I", 8: "Q"}[struct.calcsize(code)], bits))[0]


def half(a: int, b: int) -> int:
    total = np.array([a], np.uint16).view(np.float16).astype(np.float64)
    total = total + np.array([b], np.uint16).view(np.float16)
    return 0x7FFF if np.isnan(total[0]) else int(total.astype(np.float16).view(np.uint16)[0])


def bfloat(a: int, b: int) -> int:
    a, b = convert("f", a << 16), convert("f", b << 16)
    total = np.float64(a) + np.float64(b)
    if np.isnan(total):
        return 0x7FFF
    if np.isinf(total) or abs(total) >= 2.0**128 - 2.0**119:
        return 0x7F80 if total > 0 else 0xFF80
    unit = max(np.frexp(total)[1] - 8, -133) if total else 0
    return int(np.float32(np.round(total / 2.0**unit) * 2.0**unit).view(np.uint32)) >> 16


def flushed(bits: int) -> int:
    return bits & 0x8000_0000 if bits & 0x7F80_0000 == 0 else bits


def single(a: int, b: int, flushes: bool) -> int:
    if flushes:
        a, b = flushed(a), flushed(b)
    total = np.float32(convert("f", a)) + np.float32(convert("f", b))
    bits = 0x7FFF_FFFF if np.isnan(total) else int(total.view(np.uint32))
    return flushed(bits) if flushes else bits


def double(a: int, b: int, in_global: bool) -> int:
    total = np.float64(convert("d", a)) + np.float64(convert("d", b))
    if not np.isnan(total):
        return int(total.view(np.uint64))
    nans = [bits for bits in ((b, a) if in_global else (a, b)) if bits & (1 << 63) - 1 > 0x7FF << 52]
    return (nans[0] | (0 if in_global else 1 << 51)) if nans else 0xFFF8 << 48


def signed(value: int, width: int) -> int:
    """The number that has the bits of an unsigned one of ``width`` bytes."""
    return value - (1 << 8 * width) if value >> 8 * width - 1 else value


def combined(op: Atomic, width: int, old: int, b: int, c: int, space: Space) -> int:
    """The definition of each operation, on unsigned numbers of ``width`` bytes."""
    with np.errstate(all="ignore"):
        new = {
            Atomic.ADD: lambda: old + b,
            Atomic.EXCH: lambda: b,
            Atomic.MIN_S: lambda: min(signed(old, width), signed(b, width)),
            Atomic.MAX_S: lambda: max(signed(old, width), signed(b, width)),
            Atomic.MIN_U: lambda: min(old, b),
            Atomic.MAX_U: lambda: max(old, b),
            Atomic.AND: lambda: old & b,
            Atomic.OR: lambda: old | b,
            Atomic.XOR: lambda: old ^ b,
            Atomic.INC: lambda: 0 if old >= b else old + 1,
            Atomic.DEC: lambda: b if old == 0 or old > b else old - 1,
            Atomic.CAS: lambda: c if old == b else old,
            Atomic.ADD_F32: lambda: single(old, b, space == Space.GLOBAL),
            Atomic.ADD_F64: lambda: double(old, b, space == Space.GLOBAL),
            Atomic.ADD_F16: lambda: half(old, b),
            Atomic.ADD_F16X2: lambda: half(old & 0xFFFF, b & 0xFFFF) | half(old >> 16, b >> 16) << 16,
            Atomic.ADD_BF16X2: lambda: bfloat(old & 0xFFFF, b & 0xFFFF) | bfloat(old >> 16, b >> 16) << 16,
        }[op]()
    return new & ((1 << 8 * width) - 1)


def interesting(rng: random.Random, width: int) -> int:
    """Small numbers, so that operations meet equal operands, and the special values of floating point."""
    special = [0, 1, 2, 0x3F80_0000, 0x7F80_0000, 0x0080_0000, 0x0000_1234, 0x7FC0_0001, 0xFF80_0000, 0x3C00_4000]
    small = rng.choice([rng.getrandbits(3), rng.choice(special), rng.getrandbits(32), 0xFFFF_FFFF])
    return rng.choice([small, small << 32, rng.getrandbits(64)]) & ((1 << 8 * width) - 1) if width == 8 else small


def prepare(rng: random.Random, machine: Machine, op: Atomic, width: int, space: Space) -> tuple[int, list, dict]:
    """Random operands and few places, so that lanes collide. Returns the mask, the places and the fields."""
    spaces = [Space.GLOBAL, Space.SHARED] if space == Space.GENERIC else [space]
    machine.valid[0] = GRANULE
    places = []
    for _ in range(LANES):
        places.append((rng.choice(spaces), width * rng.randrange(rng.choice([2, 5, 256 // width]))))
    for each, at in places:
        machine.write(each, at, width, 0, interesting(rng, width))
    windowed = (Space.GENERIC, Space.GLOBAL)
    machine.set_long(ADDRESS, [at + (WINDOWS[each] if space in windowed else 0) for each, at in places])
    machine.set_long(B, [interesting(rng, width) for _ in range(LANES)])
    machine.set_long(C, [interesting(rng, width) for _ in range(LANES)])
    v = {0: rng.choice([OLD, OLD, RZ]), 2: rng.choice([B] * 3 + [RZ]), 4: rng.choice([C] * 3 + [RZ])}
    b, c = (signed(interesting(rng, width), 8) for _ in range(2))
    fields = dict(op=op, bytes=width, data=width, space=space, v=v) | source(ADDRESS) | {"imm": [0, b, c, 0]}
    return mask(rng, LANES) or 1, places, fields


@pytest.mark.parametrize("op", Atomic, ids=lambda op: op.name.lower())
def test_operation(op: Atomic) -> None:
    rng = seeded()
    for width in WIDTHS[op]:
        for space in (Space.GLOBAL, Space.SHARED, Space.GENERIC) * 8:
            machine = Machine(execute_atomic, rng)
            lanes, places, fields = prepare(rng, machine, op, width, space)
            before = machine.copy()
            assert machine.run(lanes, **fields) == Fault.NONE
            after = machine.copy()
            machine.restore(before)
            destination = fields["v"][0]

            def operand(which: int, lane: int, fields: dict = fields, before: dict = before) -> int:
                register = fields["v"][2 * which]
                if register == RZ:
                    return fields["imm"][which]
                low, high = before["registers"][register : register + 2, lane]
                return int(low) | int(high) << 32

            keep = (1 << 8 * width) - 1
            for lane in range(LANES):
                if not lanes >> lane & 1:
                    continue
                each, at = places[lane]
                old = machine.read(each, at, width, lane)
                new = combined(op, width, old, operand(1, lane) & keep, operand(2, lane) & keep, each)
                machine.write(each, at, width, lane, new)
                if destination != RZ:
                    machine.registers[OLD, lane] = old & 0xFFFF_FFFF
                    if width == 8:
                        machine.registers[OLD + 1, lane] = old >> 32
                assert machine.x.address[lane] == machine.physical(each, at, lane)
            assert machine.differences(after) == []
            assert machine.x.touched == lanes
            assert machine.x.touched_shared == sum(1 << k for k in range(LANES) if places[k][0] == Space.SHARED) & lanes


def test_every_lane_counts() -> None:
    machine = Machine(execute_atomic, seeded())
    machine.valid[0] = GRANULE
    machine.set_long(ADDRESS, [WINDOWS[Space.GLOBAL]] * LANES)
    machine.set_long(B, [1] * LANES)
    machine.write(Space.GLOBAL, 0, 4, 0, 100)
    machine.run(0xFFFF_FFFF, op=Atomic.ADD, space=Space.GLOBAL, v={0: OLD, 2: B}, **source(ADDRESS))
    assert machine.registers[OLD].tolist() == list(range(100, 132))
    assert machine.read(Space.GLOBAL, 0, 4, 0) == 132


@pytest.mark.parametrize(
    ("space", "address", "fault"),
    [
        (Space.GLOBAL, WINDOWS[Space.GLOBAL] + 2, Fault.MISALIGNED),
        (Space.GLOBAL, WINDOWS[Space.GLOBAL] + GRANULE, Fault.OUT_OF_BOUNDS),
        (Space.SHARED, 2048, Fault.OUT_OF_BOUNDS),
        (Space.GENERIC, WINDOWS[Space.PARAM], Fault.READ_ONLY),
    ],
)
def test_faults_leave_everything(space: Space, address: int, fault: Fault) -> None:
    machine = Machine(execute_atomic, seeded())
    machine.valid[:2] = GRANULE, 0
    good = 0 if space == Space.SHARED else WINDOWS[Space.GLOBAL]
    machine.set_long(ADDRESS, [good] * 7 + [address] * 25)
    before = machine.copy()
    assert machine.run(0xFFFF_FFFF, op=Atomic.ADD, space=space, v={0: OLD, 2: B}, **source(ADDRESS)) == fault
    assert (machine.x.fault_lane, machine.x.fault_address) == (7, address)
    assert machine.differences(before) == []


def series(seed: int) -> str:
    rng = random.Random(seed)
    machine = Machine(execute_atomic, rng)

    def step() -> None:
        op = rng.choice(list(Atomic))
        space = rng.choice([Space.GLOBAL, Space.SHARED, Space.GENERIC])
        lanes, _, fields = prepare(rng, machine, op, rng.choice(WIDTHS[op]), space)
        machine.run(lanes, **fields)

    return chain(machine, 80, step)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
