"""Loads and stores against a reference that moves bytes one by one."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest

from lockstep.models.execution.access import execute_memory
from lockstep.models.execution.isa import GRANULE, LANES, RZ, Fault, Fetch, Flag, Memory, Space
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.execution.machine import WINDOWS, Machine, chain, source

SPACES = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM)
EXTENT = {Space.GLOBAL: 64 * GRANULE, Space.CONST: 64 * GRANULE, Space.SHARED: 2048, Space.LOCAL: 48, Space.PARAM: 94}
FIRST_DATA = 16
ADDRESS = 2  # register pair


@dataclass
class Case:
    """A random access: for each lane the space and the offset in it, and what is wrong with it."""

    op: int
    space: Space
    bytes: int
    vec: int
    data: int
    signed: bool
    lanes: int
    targets: list[tuple[Space, int]]
    offset: int
    v: dict[int, int]

    @property
    def size(self) -> int:
        return self.bytes * self.vec


def good_offsets(machine: Machine, space: Space, size: int) -> list[int]:
    """Aligned offsets of accesses that are allowed."""
    every = range(0, EXTENT[space] - size + 1, size)
    if space not in (Space.GLOBAL, Space.CONST):
        return list(every)
    return [at for at in every if at % GRANULE + size <= machine.valid[at // GRANULE]]


def draw(rng: random.Random, machine: Machine, space: Space, op: int, bytes_: int, vec: int) -> Case:
    size = bytes_ * vec
    spaces = [space]
    if space == Space.GENERIC:
        usable = (Space.GLOBAL, Space.SHARED, Space.LOCAL) + ((Space.PARAM,) if op == Memory.LOAD else ())
        spaces = rng.sample(usable, rng.choice([1, 1, 2, len(usable)]))
    good = {each: good_offsets(machine, each, size) for each in spaces}
    pattern = rng.choice(["random", "consecutive", "uniform", "few"])
    targets = []
    start = {each: rng.randrange(max(len(good[each]) - LANES, 1)) for each in spaces}
    for lane in range(LANES):
        each = rng.choice(spaces)
        choices = good[each]
        index = rng.randrange(len(choices))
        if pattern == "consecutive":
            index = (start[each] + lane) % len(choices)
        elif pattern != "random":
            index = (start[each] + (rng.randrange(3) if pattern == "few" else 0)) % len(choices)
        targets.append((each, choices[index]))
    if rng.random() < 0.25:
        for _ in range(rng.choice([1, 2])):
            lane = rng.randrange(LANES)
            each = targets[lane][0]
            targets[lane] = each, rng.choice([
                EXTENT[each] - EXTENT[each] % size + rng.randrange(2) * size, rng.randrange(EXTENT[each]),
            ])  # fmt: skip
    data = rng.choice([8] if bytes_ == 8 else [4, 8] if bytes_ == 4 else [2, 4, 8])
    v = {e: RZ if rng.random() < 0.1 else FIRST_DATA + 2 * e for e in range(vec)}
    if op == Memory.LOAD and rng.random() < 0.2:
        v[0] = ADDRESS  # the address is overwritten
    offset = rng.choice([0, 0, size, -size, 4096])
    return Case(op, space, bytes_, vec, data, rng.random() < 0.5, mask(rng, LANES) or 1, targets, offset, v)


def windowed(case: Case, space: Space) -> bool:
    """Whether the program names addresses of a space with its window."""
    return case.space == Space.GENERIC or space in (Space.GLOBAL, Space.CONST)


def set_addresses(machine: Machine, case: Case) -> None:
    starts = [WINDOWS[space] if windowed(case, space) else 0 for space, _ in case.targets]
    machine.set_long(ADDRESS, [start + at - case.offset for start, (_, at) in zip(starts, case.targets, strict=True)])


def execute(machine: Machine, case: Case, fetch: Fetch = Fetch.PAIR) -> int:
    return machine.run(
        case.lanes, op=case.op, space=case.space, bytes=case.bytes, vec=case.vec, data=case.data, offset=case.offset,
        flags=Flag.SIGNED if case.signed else 0, v=case.v, **source(ADDRESS, fetch=fetch),
    )  # fmt: skip


def fault_of(machine: Machine, case: Case, lane: int) -> Fault:
    space, at = case.targets[lane]
    if case.op == Memory.STORE and space in (Space.CONST, Space.PARAM):
        return Fault.READ_ONLY
    if at % case.size:
        return Fault.MISALIGNED
    limit = EXTENT[space]
    if space in (Space.GLOBAL, Space.CONST) and at < limit:
        limit = at // GRANULE * GRANULE + int(machine.valid[at // GRANULE])
    return Fault.OUT_OF_BOUNDS if at + case.size > limit else Fault.NONE


def perform(machine: Machine, case: Case) -> None:
    """The access as the definition has it, on the machine's memories."""
    stored = machine.registers.copy()
    for lane in range(LANES):
        if not case.lanes >> lane & 1:
            continue
        space, at = case.targets[lane]
        for element, register in case.v.items():
            where = at + element * case.bytes
            if case.op == Memory.STORE:
                low, high = (0, 0) if register == RZ else (int(stored[register, lane]), int(stored[register + 1, lane]))
                machine.write(space, where, case.bytes, lane, low | high << 32)
            elif register != RZ:
                value = machine.read(space, where, case.bytes, lane)
                if case.signed and value >> 8 * case.bytes - 1:
                    value -= 1 << 8 * case.bytes
                value &= (1 << 8 * case.data) - 1
                machine.registers[register, lane] = value & 0xFFFF_FFFF
                if case.data == 8:
                    machine.registers[register + 1, lane] = value >> 32


def check(rng: random.Random, machine: Machine, case: Case) -> None:
    narrow = case.space != Space.GENERIC and rng.random() < 0.5
    set_addresses(machine, case)
    before = machine.copy()
    returned = execute(machine, case, Fetch.U32 if narrow else Fetch.PAIR)
    after = machine.copy()
    machine.restore(before)
    lanes = [lane for lane in range(LANES) if case.lanes >> lane & 1]
    faults = [lane for lane in lanes if fault_of(machine, case, lane)]
    if faults:
        space, at = case.targets[faults[0]]
        address = at + (WINDOWS[space] if windowed(case, space) else 0)
        assert returned == machine.x.fault == fault_of(machine, case, faults[0]), case
        assert (machine.x.fault_lane, machine.x.fault_address, machine.x.touched) == (faults[0], address, 0)
    else:
        assert returned == Fault.NONE, case
        perform(machine, case)
        assert machine.x.touched == case.lanes
        assert machine.x.touched_shared == sum(1 << lane for lane in lanes if case.targets[lane][0] == Space.SHARED)
        for lane in lanes:
            assert machine.x.address[lane] == machine.physical(*case.targets[lane], lane)
    assert machine.differences(after) == [], case


@pytest.mark.parametrize("space", [Space.GENERIC, *SPACES], ids=lambda s: s.name.lower())
def test_every_width_and_vector(space: Space) -> None:
    rng = seeded()
    room = 48 if space in (Space.LOCAL, Space.GENERIC) else 94
    for bytes_, vec, op in itertools.product((1, 2, 4, 8), (1, 2, 4, 8), (Memory.LOAD, Memory.STORE)):
        for _ in range(6 if bytes_ * vec <= room else 0):
            machine = Machine(execute_memory, rng)
            machine.valid[:2] = GRANULE
            check(rng, machine, draw(rng, machine, space, op, bytes_, vec))


@pytest.mark.parametrize("consecutive", [False, True])
@pytest.mark.parametrize(("vec", "short", "valid"), [(1, 3, 100), (1, 3, 102), (1, 3, 0), (4, 1, 252), (4, 2, 112)])
def test_end_of_an_allocation(consecutive: bool, vec: int, short: int, valid: int) -> None:
    """One granule is not wholly allocated: the first lane beyond its valid bytes is at fault."""
    machine = Machine(execute_memory, seeded())
    machine.valid[:] = GRANULE
    machine.valid[short] = valid
    size = 4 * vec
    start = 3 * GRANULE if vec == 1 else 128
    offsets = [start + size * lane for lane in range(LANES)]
    if not consecutive:
        offsets[0] = 10 * GRANULE
    machine.set_long(ADDRESS, [WINDOWS[Space.GLOBAL] + at for at in offsets])
    bad = [k for k, at in enumerate(offsets) if at // GRANULE == short and at % GRANULE + size > valid]
    fields = dict(op=Memory.LOAD, space=Space.GLOBAL, vec=vec, v={e: FIRST_DATA + e for e in range(vec)})
    assert bad and machine.run(0xFFFF_FFFF, **fields, **source(ADDRESS)) == Fault.OUT_OF_BOUNDS
    assert machine.x.fault_lane == bad[0]
    good = sum(1 << k for k in range(LANES) if k not in bad)
    assert machine.run(good, **fields, **source(ADDRESS)) == Fault.NONE


def test_highest_lane_wins() -> None:
    machine = Machine(execute_memory, seeded())
    machine.valid[:] = GRANULE
    machine.set_long(ADDRESS, [WINDOWS[Space.GLOBAL]] * LANES)
    assert machine.run(0x00F0_0F00, op=Memory.STORE, space=Space.GLOBAL, v={0: FIRST_DATA}, **source(ADDRESS)) == 0
    assert machine.read(Space.GLOBAL, 0, 4, 0) == machine.registers[FIRST_DATA, 23]


def test_absolute_and_wrapping_addresses() -> None:
    """An address can be an immediate, and a 32-bit register below zero plus an offset."""
    machine = Machine(execute_memory, seeded())
    expected = machine.read(Space.SHARED, 8, 4, 0)
    common = dict(op=Memory.LOAD, space=Space.SHARED, v={0: FIRST_DATA})
    assert machine.run(1, offset=4, **common, **source(immediate=4)) == 0
    assert machine.registers[FIRST_DATA, 0] == expected
    machine.registers[ADDRESS, 0] = -8 & 0xFFFF_FFFF
    assert machine.run(1, offset=16, **(common | {"v": {0: FIRST_DATA + 1}}), **source(ADDRESS, fetch=Fetch.U32)) == 0
    assert machine.registers[FIRST_DATA + 1, 0] == expected


@pytest.mark.parametrize("address", [0, 1 << 22, -1 & (1 << 64) - 1, 1 << 63, 1 << 40, 0xFFFF_FFFC])
def test_addresses_of_no_space(address: int) -> None:
    machine = Machine(execute_memory, seeded())
    machine.valid[:] = GRANULE
    good = WINDOWS[Space.GLOBAL]
    for space in (Space.GLOBAL, Space.GENERIC):
        machine.set_long(ADDRESS, [good] * 5 + [address] * 27)
        before = machine.copy()
        fault = machine.run(0xFFFF_FFFF, op=Memory.STORE, space=space, v={0: FIRST_DATA}, **source(ADDRESS))
        assert fault == (Fault.MISALIGNED if address % 4 else Fault.OUT_OF_BOUNDS)
        assert (machine.x.fault_lane, machine.x.fault_address & (1 << 64) - 1) == (5, address)
        assert machine.differences(before) == []


def test_prefetch_ignores_bad_addresses() -> None:
    machine = Machine(execute_memory, seeded())
    machine.valid[:] = GRANULE
    machine.set_long(ADDRESS, [WINDOWS[Space.GLOBAL] + 4 * lane for lane in range(LANES)])
    before = machine.copy()
    assert machine.run(0xFF, op=Memory.PREFETCH, space=Space.GLOBAL, bytes=1, **source(ADDRESS)) == 0
    assert machine.x.touched == 0xFF
    machine.set_long(ADDRESS, [4] * LANES)
    before = machine.copy()
    assert machine.run(0xFF, op=Memory.PREFETCH, space=Space.GLOBAL, bytes=1, **source(ADDRESS)) == 0
    assert (machine.x.touched, machine.x.fault) == (0, 0)
    assert machine.differences(before) == []


def series(seed: int) -> str:
    rng = random.Random(seed)
    machine = Machine(execute_memory, rng)
    machine.valid[:2] = GRANULE

    def step() -> None:
        space, op = rng.choice([Space.GENERIC, *SPACES]), rng.choice([Memory.LOAD, Memory.STORE])
        case = draw(rng, machine, space, op, rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4]))
        set_addresses(machine, case)
        execute(machine, case)

    return chain(machine, 80, step)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
