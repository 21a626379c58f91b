"""A warp whose registers are staged, beside one that has them all.

An interpreter of control flow and registers: instructions compute nothing, but every value that a lane writes is a new
one, and predicates are random. What a lane reads must be present, and be what it wrote last. Lines that are new hold
poison, and lines that no region needs go to memory, and leave the staging unit, at random moments. So whatever the
metadata lose is missed by the next lane that reads it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from lockstep.models.execution.isa import Control, Group
from lockstep.spec.register_regions import BANKS, Entry
from lockstep.verif.regless.code import Instruction, Staged

LANES = 6
POISON = -1
Values = list[int | None]


class Violation(AssertionError):
    """What went wrong, and where."""


@dataclass
class Line:
    """A register in the staging unit; ``held`` while a region needs it."""

    values: Values
    dirty: bool = False
    held: bool = True


@dataclass
class Unit:
    """The registers of a warp in the staging unit and in memory."""

    rng: random.Random
    lines: dict[int, Line] = field(default_factory=dict)
    memory: dict[int, Values] = field(default_factory=dict)

    def start(self, region: Staged) -> None:
        """Drop and load what the entries say."""
        for register in list(self.lines):
            if self.rng.random() < 0.4:
                self._leave(register)
        for action, register in region.entries:
            if action == Entry.INVALIDATE:
                self.lines.pop(register, None)
                self.memory.pop(register, None)
                continue
            if register not in self.lines:
                self.lines[register] = Line(list(self.memory.get(register, [POISON] * LANES)))
            self.lines[register].held = True
            self.lines[register].dirty |= register not in self.memory
            if action == Entry.PRELOAD_LAST:
                self.memory.pop(register, None)

    def _leave(self, register: int) -> None:
        line = self.lines.pop(register)
        if line.dirty:
            self.memory[register] = line.values

    def line(self, register: int) -> Line | None:
        line = self.lines.get(register)
        return line if line and line.held else None

    def new(self, register: int, where: str) -> Line:
        if register in self.lines or register in self.memory:
            raise Violation(f"{where} writes r{register} beside an older copy")
        self.lines[register] = Line([POISON] * LANES)
        return self.lines[register]

    def release(self, register: int, erase: bool, where: str) -> None:
        line = self.line(register)
        if line is None:
            raise Violation(f"{where} releases r{register}, which is not present")
        line.held = False
        if erase:
            del self.lines[register]
            if register in self.memory:
                raise Violation(f"{where} erases r{register}, of which memory keeps a copy")


@dataclass
class Entries:
    """One entry of the stack of a warp that diverged."""

    pc: int
    meeting: int
    lanes: set[int]


class Warp:
    """One warp on its way through a kernel. ``seen``: the instructions that it came to."""

    def __init__(self, regions: Sequence[Staged], rng: random.Random) -> None:
        self.rng = rng
        self.region_at = {region.start: region for region in regions}
        self.code = {instruction.pc: instruction for region in regions for instruction in region.code}
        self.end = len(self.code)
        self.unit = Unit(rng)
        self.plain: dict[int, Values] = {}
        self.predicates: dict[int, list[bool]] = {}
        self.stack = [Entries(0, self.end, set(range(LANES)))]
        self.region: Staged | None = None
        self.pending: set[int] = set()  # results that may be on their way, and are not used again
        self.serial = 0
        self.seen: set[int] = set()

    def run(self, steps: int) -> None:
        """Raises :class:`Violation`."""
        for _ in range(steps):
            while self.stack and (not self.stack[-1].lanes or self.stack[-1].pc in (self.stack[-1].meeting, self.end)):
                self.stack.pop()
            if not self.stack:
                return
            self._step(self.stack[-1])

    def _step(self, top: Entries) -> None:
        instruction = self.code[top.pc]
        self.seen.add(top.pc)
        if top.pc in self.region_at:
            self.region = self.region_at[top.pc]
            self.pending = set()
            self.unit.start(self.region)
        executing = {lane for lane in top.lanes if self._holds(instruction, lane)}
        self._registers(instruction, executing)
        assert self.region is not None
        if instruction is self.region.code[-1]:
            left = [register for register, line in self.unit.lines.items() if line.held]
            if left:
                raise Violation(f"the region at {self.region.start} ends with r{left[0]} held")
        self._control(top, instruction, executing)

    def _holds(self, instruction: Instruction, lane: int) -> bool:
        if instruction.guard is None:
            return True
        predicate, inverted = instruction.guard
        return self._predicate(predicate)[lane] != inverted

    def _predicate(self, predicate: int) -> list[bool]:
        if predicate not in self.predicates:
            self.predicates[predicate] = [self.rng.random() < 0.5 for _ in range(LANES)]
        return self.predicates[predicate]

    def _registers(self, instruction: Instruction, executing: set[int]) -> None:
        where = f"{instruction.pc} (line {instruction.line})"
        for register in instruction.reads:
            line = self.unit.line(register)
            if line is None:
                raise Violation(f"{where} reads r{register}, which is not present")
            plain = self.plain.get(register, [None] * LANES)
            for lane in executing:
                if plain[lane] is not None and plain[lane] != line.values[lane]:
                    raise Violation(f"{where} reads r{register} in lane {lane}: its value is lost")
        for register in instruction.writes:
            line = self.unit.line(register) or self.unit.new(register, where)
            line.dirty = True
            self.serial += 1
            for lane in executing:
                self.plain.setdefault(register, [None] * LANES)[lane] = self.serial
                line.values[lane] = self.serial
        for predicate in instruction.predicates:
            for lane in executing:
                self._predicate(predicate)[lane] = self.rng.random() < 0.5
        self.pending -= {*instruction.reads, *instruction.writes}
        self._count(where)
        for operand, last, erased in instruction.flags:
            for register in operand:
                if last:
                    self.unit.release(register, erased, where)
                    self.pending |= {register} & set(instruction.writes)
                elif erased:
                    raise Violation(f"{where} erases r{register} without a last use")

    def _count(self, where: str) -> None:
        assert self.region is not None
        held = {register for register, line in self.unit.lines.items() if line.held} | self.pending
        for bank in range(BANKS):
            if sum(register % BANKS == bank for register in held) > self.region.usage[bank]:
                raise Violation(f"{where} needs more registers of bank {bank} than its region has")

    def _control(self, top: Entries, instruction: Instruction, executing: set[int]) -> None:
        if instruction.group == Group.CONTROL and instruction.op == Control.EXIT:
            for entry in self.stack:
                entry.lanes = entry.lanes - executing
            top.pc += 1
            return
        ways: dict[int, set[int]] = {}
        branch = instruction.group == Group.CONTROL and instruction.op in (Control.BRANCH, Control.INDEXED)
        for lane in top.lanes:
            targets = instruction.successors
            if instruction.guard and branch:
                targets = targets[:-1] if lane in executing else targets[-1:]
            ways.setdefault(self.rng.choice(targets), set()).add(lane)
        if len(ways) == 1:
            (top.pc,) = ways
            return
        top.pc = instruction.meeting
        others = [(pc, lanes) for pc, lanes in ways.items() if pc != instruction.meeting]
        self.rng.shuffle(others)
        self.stack += [Entries(pc, instruction.meeting, lanes) for pc, lanes in others]
