"""Marks of written bytes, against sets of bytes: what loads and atomics refuse, what stores add."""

from __future__ import annotations

import itertools
import random

import pytest

from lockstep.models.execution.access import execute_memory
from lockstep.models.execution.atomic import execute_atomic
from lockstep.models.execution.isa import GRANULE, LANES, Atomic, Fault, Memory, Space
from lockstep.verif.bench import interpreted, mask, seeded
from lockstep.verif.models.execution.machine import WINDOWS, Machine, chain, source

SPACES = (Space.GENERIC, Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM)
ADDRESS, DATA = 2, 16  # registers
EXTENT = {Space.GLOBAL: 4096, Space.CONST: 4096, Space.SHARED: 2048, Space.LOCAL: 48, Space.PARAM: 80}
WIDTHS = [pair for pair in itertools.product((1, 2, 4, 8), (1, 2, 4)) if pair[0] * pair[1] <= 16]


def strict(function: object, rng: random.Random) -> Machine:
    """A machine in which about one byte in 400 of every memory is unwritten."""
    machine = Machine(function, rng)
    machine.valid[:] = GRANULE
    machine.keep_marks()
    for marks in machine.marks.values():
        marks[:] = 0xFF
        marks[rng.sample(range(marks.size), marks.size // 400)] = 0
    return machine


def draw(rng: random.Random, space: Space, size: int) -> list[tuple[Space, int]]:
    """For each lane, the space and the offset that it accesses."""
    spaces = [space] if space != Space.GENERIC else rng.sample((Space.GLOBAL, Space.SHARED, Space.LOCAL), 2)
    every = [(each, rng.randrange(EXTENT[each] // size) * size) for each in (rng.choice(spaces) for _ in range(LANES))]
    start, first = every[0][1], every[0][0]
    consecutive = [(first, (start + lane * size) % (EXTENT[first] // size * size)) for lane in range(LANES)]
    return rng.choice([every, consecutive, [every[0]] * LANES])


def address(space: Space, of: Space, at: int) -> int:
    """What the program calls a byte of a space in an access to ``space``."""
    return at + (WINDOWS[of] if space in (Space.GENERIC, Space.GLOBAL, Space.CONST) else 0)


def set_addresses(machine: Machine, space: Space, targets: list[tuple[Space, int]]) -> None:
    machine.set_long(ADDRESS, [address(space, each, at) for each, at in targets])


def execute(machine: Machine, space: Space, targets: list[tuple[Space, int]], lanes: int, **fields: object) -> int:
    set_addresses(machine, space, targets)
    return machine.run(lanes, space=space, **fields, **source(ADDRESS))


def unwritten(machine: Machine, targets: list[tuple[Space, int]], lanes: int, size: int) -> tuple[int, Space, int]:
    """The first lane that accesses an unwritten byte, and the byte; or lane -1."""
    for lane, (space, at) in enumerate(targets):
        for byte in range(at, at + size):
            if lanes >> lane & 1 and not machine.written(space, byte, lane):
                return lane, space, byte
    return -1, Space.GLOBAL, 0


def check_read(machine: Machine, space: Space, targets: list, lanes: int, size: int, **fields: object) -> bool:
    """Execute what reads; returns whether it was refused, as it should be or not be."""
    set_addresses(machine, space, targets)
    before, marks = machine.copy(), {name: array.copy() for name, array in machine.marks.items()}
    lane, of, byte = unwritten(machine, targets, lanes, size)
    fault = execute(machine, space, targets, lanes, **fields)
    assert {name for name, array in marks.items() if (machine.marks[name] != array).any()} == set()
    if lane < 0:
        assert fault == Fault.NONE and machine.x.touched == lanes
        return False
    assert fault == machine.x.fault == Fault.UNWRITTEN
    assert (machine.x.fault_lane, machine.x.fault_address) == (lane, address(space, of, byte))
    assert machine.x.touched == machine.x.touched_shared == 0
    assert machine.differences(before) == []
    return True


@pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name.lower())
def test_loads(space: Space) -> None:
    rng, refused, done = seeded(), 0, 0
    for bytes_, vec in WIDTHS * 8:
        machine, size = strict(execute_memory, rng), bytes_ * vec
        targets, lanes = draw(rng, space, size), mask(rng, LANES) or 1
        registers = {element: DATA + 2 * element for element in range(vec)}
        wrong = check_read(
            machine, space, targets, lanes, size, op=Memory.LOAD, bytes=bytes_, vec=vec, v=registers,
            data=max(bytes_, 4),
        )  # fmt: skip
        refused, done = refused + wrong, done + (not wrong)
    assert done and (refused or space == Space.PARAM), (refused, done)
    assert space != Space.PARAM or not refused, "parameters are written"


@pytest.mark.parametrize("space", SPACES[:4], ids=lambda space: space.name.lower())
def test_stores(space: Space) -> None:
    """Marked are the bytes that are stored, and no others."""
    rng = seeded()
    for bytes_, vec in WIDTHS * 2:
        machine, size = strict(execute_memory, rng), bytes_ * vec
        targets, lanes = draw(rng, space, size), mask(rng, LANES) or 1
        for marks in machine.marks.values():
            marks[:] = 0
        registers = {element: DATA + 2 * element for element in range(vec)}
        fields = dict(op=Memory.STORE, bytes=bytes_, vec=vec, v=registers, data=max(bytes_, 4))
        assert execute(machine, space, targets, lanes, **fields) == Fault.NONE
        places = set()
        for lane, (each, at) in enumerate(targets):
            for byte in range(at, at + size if lanes >> lane & 1 else at):
                memory, index = machine.place(each, byte, lane)
                places.add((id(memory), index))
        found = {
            (id(getattr(machine, name)), k)
            for name, marks in machine.marks.items()
            for k, mark in enumerate(marks.tolist())
            if mark == 0xFF
        }
        assert found == places and all(set(marks.tolist()) <= {0, 0xFF} for marks in machine.marks.values())


@pytest.mark.parametrize("space", [Space.GENERIC, Space.GLOBAL, Space.SHARED], ids=lambda space: space.name.lower())
def test_atomics(space: Space) -> None:
    """All read what they change, the exchange too, and where nobody wants the old value."""
    rng, refused, done = seeded(), 0, 0
    for op, width, old in itertools.product((Atomic.ADD, Atomic.EXCH, Atomic.CAS), (4, 8), (DATA, 255)):
        for _ in range(12):
            machine = strict(execute_atomic, rng)
            targets = [(each if each != Space.LOCAL else Space.SHARED, at) for each, at in draw(rng, space, width)]
            fields = dict(op=op, bytes=width, data=width, v={0: old, 2: DATA + 2, 4: DATA + 4})
            wrong = check_read(machine, space, targets, mask(rng, LANES) or 1, width, **fields)
            refused, done = refused + wrong, done + (not wrong)
    assert refused and done


def test_prefetches_read_nothing() -> None:
    machine = strict(execute_memory, seeded())
    machine.marks["memory"][:] = 0
    targets = [(Space.GLOBAL, 4 * lane) for lane in range(LANES)]
    assert execute(machine, Space.GLOBAL, targets, 0xFF, op=Memory.PREFETCH, bytes=1) == Fault.NONE
    assert machine.x.touched == 0xFF


def test_other_faults_come_first() -> None:
    """A lane out of bounds is told before an unwritten byte of a lane below it."""
    machine = strict(execute_memory, seeded())
    machine.marks["shared"][:] = 0
    targets = [(Space.SHARED, 0)] * 5 + [(Space.SHARED, 2048)] * 27
    assert execute(machine, Space.SHARED, targets, 0xFFFF_FFFF, op=Memory.LOAD, v={0: DATA}) == Fault.OUT_OF_BOUNDS
    assert machine.x.fault_lane == 5


def test_a_pairs_segment_has_its_own_marks_or_none() -> None:
    """The scratchpad's upper half is the pair's: without marks there, nothing is checked."""
    for kept in (False, True):
        machine = strict(execute_memory, seeded())
        pair = machine.shared.copy()
        marks = machine.marks["shared"].copy()
        marks[:] = 0
        machine.marks["shared"][:1024] = 0xFF
        machine.marks["shared"][1024:] = 0
        machine.context["own_shared"], machine.context["pair_shared"] = 1024, pair.ctypes.data
        machine.context["pair_marks"] = (marks.ctypes.data - pair.ctypes.data) if kept else 0
        targets = [(Space.SHARED, 1024 + 64 * (lane - 10)) for lane in range(LANES)]
        fault = execute(machine, Space.SHARED, targets, 0x00FF_FFFF, op=Memory.LOAD, v={0: DATA})
        assert fault == (Fault.UNWRITTEN if kept else Fault.NONE)
        if kept:
            assert (machine.x.fault_lane, machine.x.fault_address) == (10, 1024)
            assert execute(machine, Space.GENERIC, targets, 0x00FF_FC00, op=Memory.LOAD, v={0: DATA}) == Fault.UNWRITTEN
            assert machine.x.fault_address == WINDOWS[Space.SHARED] + 1024
        assert execute(machine, Space.SHARED, targets, 0x00FF_FC00, op=Memory.STORE, v={0: DATA}) == Fault.NONE
        assert (marks[1024:1028] == (0xFF if kept else 0)).all() and not machine.marks["shared"][1024:].any()


def series(seed: int) -> str:
    rng = random.Random(seed)
    machine = strict(execute_memory, rng)

    def step() -> None:
        space, op = rng.choice(SPACES[:4]), rng.choice([Memory.LOAD, Memory.STORE])
        bytes_, vec = rng.choice(WIDTHS)
        registers = {element: DATA + 2 * element for element in range(vec)}
        fields = dict(op=op, bytes=bytes_, vec=vec, v=registers, data=max(bytes_, 4))
        execute(machine, space, draw(rng, space, bytes_ * vec), mask(rng, LANES) or 1, **fields)

    return chain(machine, 80, step)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
