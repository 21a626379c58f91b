"""Register allocation: random programs compute the same before and after it, under tight limits too."""

from __future__ import annotations

import os
import random
from itertools import pairwise

import pytest

from lockstep.models.execution.isa import (
    Category,
    Compare,
    Control,
    Fetch,
    Group,
    Int,
    Long,
    Memory,
    Predicate,
    Space,
    Write,
)
from lockstep.sim.compile.ptx.allocate import Allocation, Pressure, allocate, liveness, words
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro, Source, move

SEED = int(os.environ.get("LOCKSTEP_SEED", random.randrange(1 << 32)))
MASK = {16: 0xFFFF, 32: 0xFFFF_FFFF, 64: 0xFFFF_FFFF_FFFF_FFFF}


def program(rng: random.Random, variables: int, blocks: int) -> Code:
    """A random program over variables of 32 and 64 bits and predicates, with loops, guards and stores."""
    code = Code()
    values = [code.register(rng.choice((32, 32, 64))) for _ in range(variables)]
    flags = [code.register(1) for _ in range(3)]
    for register in values:
        code.list.append(move(code.bits[register], register, constant(rng, code.bits[register])))
    code.list += [compare(code, rng, values, flag) for flag in flags]
    labels = [code.label() for _ in range(blocks)]
    for label in labels:
        code.place(label)
        scratch = values + [code.register(rng.choice((32, 64))) for _ in range(3)]
        for register in scratch[len(values) :]:
            code.list.append(move(code.bits[register], register, constant(rng, code.bits[register])))
        for _ in range(rng.randrange(2, 12)):
            micro = operation(code, rng, scratch, flags)
            if rng.random() < 0.2:
                micro.guard, micro.guard_not = rng.choice(flags), rng.random() < 0.5
            code.list.append(micro)
        guard = rng.choice((NONE, *flags))
        code.list.append(
            Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(rng.choice(labels),), guard=guard)
        )
    code.list.append(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
    return code


def random_program(seed: float) -> Code:
    rng = random.Random(seed)
    return program(rng, rng.randrange(3, 30), rng.randrange(1, 8))


def constant(rng: random.Random, bits: int) -> Source:
    return Source(Fetch.PAIR if bits == 64 else Fetch.WORD, bits=rng.getrandbits(bits - 1))


def compare(code: Code, rng: random.Random, values: list[int], flag: int) -> Micro:
    sources = tuple(Source(Fetch.WORD, rng.choice(values)) for _ in range(2))
    return Micro(Group.PREDICATE, Predicate.SETP_U32, Category.COMPARE, sources, sub=Compare.LT, pdst=flag)


def operation(code: Code, rng: random.Random, values: list[int], flags: list[int]) -> Micro:
    kind = rng.randrange(5)
    target = rng.choice(values)
    if kind == 0:
        return compare(code, rng, values, rng.choice(flags))
    if kind == 1:
        data = rng.choice(values)
        micro = store(data)
        micro.offset = rng.randrange(8)
        return micro
    words32 = [register for register in values if code.bits[register] == 32]
    if kind == 2 and len(words32) > 1:
        low, high = rng.sample(words32, 2)
        source = Source(Fetch.PAIR, rng.choice([r for r in values if code.bits[r] == 64] or [NONE]))
        return Micro(Group.LONG, Long.UNPACK, Category.INTEGER, (source,), low, Write.WORD, results={0: high})
    if code.bits[target] == 64:
        sources = tuple(
            Source(Fetch.PAIR if code.bits[r] == 64 else Fetch.U32, r) for r in (rng.choice(values), rng.choice(values))
        )
        return Micro(Group.LONG, Long.ADD, Category.INTEGER, sources, target, Write.PAIR)
    sources = (Source(Fetch.WORD, rng.choice(values)), Source(Fetch.WORD, rng.choice(values)))
    return Micro(Group.INT, Int.ADD, Category.INTEGER, sources, target, Write.WORD)


class Machine:
    """Executes one thread of such a program; registers are virtual, or physical words when an allocation is given."""

    def __init__(self, code: Code, allocation: Allocation | None) -> None:
        self.code = code
        self.physical = allocation.physical if allocation else None
        self.file: dict[object, int] = {}
        self.local: dict[int, int] = {}
        self.stores: list[tuple[int, int]] = []

    def read(self, register: int) -> int:
        if self.physical is None:
            return self.file.get(register, 0)
        place, bits = self.physical[register], self.code.bits[register]
        if bits == 1:
            return self.file.get(("p", place), 0)
        low = self.file.get(place, 0)
        return low | self.file.get(place + 1, 0) << 32 if bits == 64 else low

    def write(self, register: int, value: int) -> None:
        if self.physical is None:
            self.file[register] = value
            return
        place, bits = self.physical[register], self.code.bits[register]
        if bits == 1:
            self.file["p", place] = value
            return
        self.file[place] = value & MASK[32]
        if bits == 64:
            self.file[place + 1] = value >> 32

    def fetch(self, source: Source) -> int:
        if source.register == NONE:
            return source.bits
        value = self.read(source.register)
        return value if source.fetch == Fetch.PAIR else value & MASK[32]

    def run(self, steps: int) -> list[tuple[int, int]]:
        """Run until the end, or until so many branches have been passed."""
        pc = 0
        while pc < len(self.code.list) and steps:
            micro = self.code.list[pc]
            pc += 1
            if micro.guard != NONE and bool(self.read(micro.guard)) == micro.guard_not:
                continue
            if micro.group == Group.CONTROL:
                steps -= 1
                pc = self.code.labels[micro.targets[0]] if micro.op == Control.BRANCH else len(self.code.list)
            elif micro.group == Group.MEMORY and micro.space == Space.LOCAL:
                if micro.op == Memory.STORE:
                    self.local[micro.offset] = self.read(micro.operands[0])
                else:
                    self.write(micro.results[0], self.local.get(micro.offset, 0))
            elif micro.group == Group.MEMORY:
                self.stores.append((micro.offset, self.read(micro.operands[0])))
            elif micro.group == Group.PREDICATE:
                a, b = map(self.fetch, micro.sources)
                self.write(micro.pdst, int(a < b))
            elif micro.group == Group.LONG and micro.op == Long.UNPACK:
                value = self.fetch(micro.sources[0])
                self.write(micro.dst, value & MASK[32])
                self.write(micro.results[0], value >> 32)
            else:
                self.write(micro.dst, sum(map(self.fetch, micro.sources)) & MASK[self.code.bits[micro.dst]])
        return self.stores


def check_places(code: Code, allocation: Allocation, limit: int) -> None:
    """Every value inside the file, pairs aligned, and no two values at one place at one time."""
    live = liveness(code)
    taken: dict[tuple[bool, int], int] = {}
    for register, points in enumerate(live.points):
        place, bits = allocation.physical[register], code.bits[register]
        if not points:
            continue
        if bits == 1:
            assert 0 <= place < allocation.predicates
        else:
            assert place % words(bits) == 0
            assert place + words(bits) <= allocation.registers <= limit
        for word in range(max(words(bits), 1)):
            key = bits == 1, place + word
            assert not taken.get(key, 0) & points
            taken[key] = taken.get(key, 0) | points


@pytest.mark.parametrize("limit", [16, 20, 63, 255])
def test_programs_compute_the_same(limit: int) -> None:
    print("LOCKSTEP_SEED", SEED)
    spilled = 0
    for number in range(25):
        rng = random.Random(f"{SEED} {limit} {number}")
        seed = rng.random()

        expected = Machine(random_program(seed), None).run(60)
        code = random_program(seed)
        before = len(code.list)
        allocation = allocate(code, limit, 8)
        check_places(code, allocation, limit)
        assert Machine(code, allocation).run(60) == expected
        assert (len(code.list) > before) == (allocation.spilled > 0)
        assert allocation.local_bytes >= 8 + 4 * allocation.spilled
        spilled += allocation.spilled
    assert (spilled > 0) == (limit < 63)


def test_lowest_places_first() -> None:
    code = Code()
    first, second, pair = code.register(32), code.register(32), code.register(64)
    code.list = [
        move(32, first, Source(Fetch.WORD, bits=1)),
        move(64, pair, Source(Fetch.PAIR, bits=2)),
        move(32, second, Source(Fetch.WORD, bits=3)),
        store(first),
        store(second),
        store(pair),
        Micro(Group.CONTROL, Control.EXIT, Category.CONTROL),
    ]
    allocation = allocate(code, 63, 0)
    assert sorted(allocation.physical) == [0, 1, 2] or sorted(allocation.physical) == [0, 2, 3]
    assert allocation.registers == 4
    assert allocation.spilled == allocation.local_bytes == allocation.predicates == 0


def test_a_result_may_take_its_sources_place() -> None:
    code = Code()
    registers = [code.register(32) for _ in range(20)]
    code.list = [move(32, registers[0], Source(Fetch.WORD, bits=1))]
    code.list += [move(32, b, Source(Fetch.WORD, a)) for a, b in pairwise(registers)]
    code.list += [store(registers[-1]), Micro(Group.CONTROL, Control.EXIT, Category.CONTROL)]
    assert allocate(code, 63, 0).registers == 1


def test_an_unused_result_does_not_destroy_a_live_value() -> None:
    code = Code()
    kept, unused = code.register(32), code.register(32)
    code.list = [
        move(32, kept, Source(Fetch.WORD, bits=1)),
        move(32, unused, Source(Fetch.WORD, bits=2)),
        store(kept),
        Micro(Group.CONTROL, Control.EXIT, Category.CONTROL),
    ]
    allocation = allocate(code, 63, 0)
    assert allocation.physical[kept] != allocation.physical[unused]


def test_a_guarded_write_keeps_the_old_value_alive() -> None:
    code = Code()
    value, other, guard = code.register(32), code.register(32), code.register(1)
    guarded = move(32, value, Source(Fetch.WORD, bits=2))
    guarded.guard = guard
    code.list = [
        move(32, value, Source(Fetch.WORD, bits=1)),
        move(32, other, Source(Fetch.WORD, bits=3)),
        guarded,
        store(value),
        store(other),
        Micro(Group.CONTROL, Control.EXIT, Category.CONTROL),
    ]
    allocation = allocate(code, 63, 0)
    assert allocation.physical[value] != allocation.physical[other]
    assert liveness(code).points[value] == 0b00111


def test_what_no_path_has_written_is_not_kept() -> None:
    """The first guarded write of a value in the code needs no place before it; the second one keeps the first."""
    code = Code()
    other, value, guard = code.register(32), code.register(32), code.register(1)
    guarded = [move(32, value, Source(Fetch.WORD, bits=n)) for n in range(2)]
    for micro in guarded:
        micro.guard = guard
    loop = code.label()
    code.list = [move(32, other, Source(Fetch.WORD, bits=1)), store(other)]
    code.list += [guarded[0], store(other), guarded[1], store(value)]
    code.list.append(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
    assert liveness(code).points[value] == 0b0011100
    code.place(loop)
    code.labels[loop] = 0
    code.list[-1] = Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(loop,))
    assert liveness(code).points[value] == 0b1111111


def test_the_spilled_value_is_the_one_outside_the_loop() -> None:
    """Seventeen values in sixteen registers: the one that the loop does not touch goes to memory."""
    code = Code()
    registers = [code.register(32) for _ in range(17)]
    guard = code.register(1)
    code.list = [move(32, register, Source(Fetch.WORD, bits=1)) for register in registers]
    loop = code.label()
    code.place(loop)
    code.list += [store(register) for register in registers[1:]]
    code.list.append(Micro(Group.CONTROL, Control.BRANCH, Category.CONTROL, targets=(loop,), guard=guard))
    code.list += [store(register) for register in reversed(registers)]
    code.list.append(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
    allocation = allocate(code, 16, 12)
    assert allocation.spilled == 1
    spills = [micro for micro in code.list if micro.space == Space.LOCAL]
    assert [(micro.op, micro.offset, micro.category) for micro in spills] == [
        (Memory.STORE, 12, Category.LOCAL),
        (Memory.LOAD, 12, Category.LOCAL),
    ]
    assert allocation.physical[registers[0]] == NONE
    assert allocation.local_bytes == 16


def test_too_many_predicates() -> None:
    code = Code()
    flags = [code.register(1) for _ in range(64)]
    sources = (Source(Fetch.WORD, bits=1), Source(Fetch.WORD, bits=2))
    code.list = [Micro(Group.PREDICATE, Predicate.SETP_U32, Category.COMPARE, sources, pdst=flag) for flag in flags]
    for flag in flags:
        guarded = Micro(Group.MEMORY, Memory.STORE, Category.GLOBAL, space=Space.GLOBAL)
        guarded.guard = flag
        code.list.append(guarded)
    code.list.append(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
    with pytest.raises(Pressure, match="63 predicates"):
        allocate(code, 63, 0)


def test_one_instruction_that_does_not_fit() -> None:
    code = Code()
    registers = [code.register(64) for _ in range(9)]
    load = Micro(Group.MEMORY, Memory.LOAD, Category.GLOBAL, space=Space.GLOBAL, data=8, vec=8)
    load.results = dict(enumerate(registers[:8]))
    code.list = [load, move(64, registers[8], Source(Fetch.PAIR, bits=0))]
    code.list += [store(register) for register in registers]
    code.list.append(Micro(Group.CONTROL, Control.EXIT, Category.CONTROL))
    assert allocate(code, 16, 0).spilled
    code.list[0].results |= {8: registers[8]}
    with pytest.raises(Pressure, match="16 are allowed"):
        allocate(code, 16, 0)


def store(register: int) -> Micro:
    return Micro(Group.MEMORY, Memory.STORE, Category.GLOBAL, space=Space.GLOBAL, operands={0: register})
