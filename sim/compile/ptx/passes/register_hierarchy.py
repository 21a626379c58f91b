"""Which level of a register hierarchy each access goes to: Gebhart et al., MICRO 2011.

A thread has registers of the main file, ``entries`` of a small file beside its lanes, and the last result. The two
small ones hold values in a *strand* alone: a run of instructions of a basic block in which the warp is not taken out of
the active set, since none waits at a barrier or for a value from memory that the strand itself has asked for.

A candidate is the value of a definition, with its reads in the strand; or a value of the main file that the strand
reads several times. It saves the energy of its accesses to the main file, and costs that of writing the small one. In
order of savings per instruction that it stays, candidates take the last result's place if arithmetic instructions alone
write and read them, else an entry that is free as long. A value that is needed behind the strand is written to the main
file, too. What a guarded instruction writes, and what comes from memory, stays in the main file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from lockstep.models.execution.isa import Category, Group
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.passes.register_regions.liveness import liveness
from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation, add_deliveries, blocks, members

SMALL = Fraction(1, 4)  # energy of an access to the small file, to that of one to the main file
LAST, ENTRY, MAIN = range(3)
LEVELS = 3
READS, WRITES = range(2)

ELSEWHERE = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE, Group.CONTROL)
SPECIAL = (Category.SPECIAL, Category.SPECIAL_DOUBLE)


@dataclass
class Value:
    """A candidate, by places in its strand.

    ``start``: the instruction that writes it, or reads it first; ``reads``: the others that read it; ``needed``: behind
    the strand; ``arithmetic``: no other instructions write or read it.
    """

    register: int
    start: int
    written: bool
    arithmetic: bool
    needed: bool = False
    reads: list[int] = field(default_factory=list)

    @property
    def savings(self) -> Fraction:
        """In accesses to the main file."""
        return len(self.reads) * (1 - SMALL) + int(self.written and not self.needed) - SMALL

    @property
    def end(self) -> int:
        """The last instruction that reads it; it is written, at least."""
        return max(self.reads, default=self.start + 1)

    @property
    def density(self) -> Fraction:
        return self.savings / (self.end - self.start)


def annotate(draft: Draft, *, entries: int) -> None:
    """Give a kernel the table ``hierarchy.accesses``: for each instruction its reads of the last result, of the small
    file and of the main file, then its writes of them."""
    add_deliveries(draft)
    graph = ControlFlowGraph(draft.code.successors())
    code = blocks(draft, graph)
    live = liveness(draft.code, graph, code)
    accesses = np.zeros((len(draft.code.list), 2, LEVELS), np.int16)
    for number, operations in enumerate(code):
        arithmetic = [_arithmetic(draft, operation) for operation in operations]
        for part in strands(operations):
            found = values(operations[part], arithmetic[part], live.after[number][part][-1])
            _count(accesses, operations[part], place(found, entries))
    draft.kernel.tables["hierarchy.accesses"] = accesses


def strands(operations: Sequence[Operation]) -> Iterator[slice]:
    """The strands of a basic block."""
    start = asked = 0
    for number, operation in enumerate(operations):
        if number > start and (operation.touched & asked or operations[number - 1].waits):
            yield slice(start, number)
            start, asked = number, 0
        if operation.long:
            asked |= operation.writes
    yield slice(start, len(operations))


def values(strand: Sequence[Operation], arithmetic: Sequence[bool], needed: int) -> list[Value]:
    """The candidates of a strand, behind which the registers in ``needed`` are."""
    found: list[Value] = []
    now: dict[int, Value | None] = {}  # None: the main file alone has it

    def begin(register: int, number: int, written: bool) -> None:
        now[register] = value = Value(register, number, written, arithmetic[number])
        found.append(value)

    for number, operation in enumerate(strand):
        for register in members(operation.reads):
            if register not in now:
                begin(register, number, False)
            elif (value := now[register]) is not None:
                value.reads.append(number)
                value.arithmetic &= arithmetic[number]
        for register in members(operation.writes):
            if operation.guarded and (value := now.get(register)) is not None:
                value.needed = True  # by the lanes that keep it
            now[register] = None
            if not operation.guarded and not operation.long:
                begin(register, number, True)
    for register, last in now.items():
        if last is not None:
            last.needed |= bool(needed >> register & 1)
    return found


def place(candidates: Sequence[Value], entries: int) -> list[tuple[Value, int]]:
    """The candidates that a small level takes, and which one."""
    last: list[Value] = []
    files: list[list[Value]] = [[] for _ in range(entries)]
    placed = []
    for value in sorted(candidates, key=lambda each: (-each.density, each.start, each.register)):
        levels = [(ENTRY, file) for file in files]
        if value.arithmetic and value.written:
            levels.insert(0, (LAST, last))
        found = next(((level, taken) for level, taken in levels if _free(taken, value)), None)
        if found and value.savings > 0:
            found[1].append(value)
            placed.append((value, found[0]))
    return placed


def _free(taken: Sequence[Value], value: Value) -> bool:
    """Whether a place is free. A value may be written where another is read last."""
    return all(value.end <= other.start or other.end <= value.start for other in taken)


def _count(accesses: np.ndarray, strand: Sequence[Operation], placed: Sequence[tuple[Value, int]]) -> None:
    for operation in strand:
        accesses[operation.pc, :, MAIN] = operation.reads.bit_count(), operation.writes.bit_count()
    for value, level in placed:
        accesses[strand[value.start].pc, WRITES, level] += 1
        if value.written and not value.needed:
            accesses[strand[value.start].pc, WRITES, MAIN] -= 1
        for number in value.reads:
            accesses[strand[number].pc, READS, level] += 1
            accesses[strand[number].pc, READS, MAIN] -= 1


def _arithmetic(draft: Draft, operation: Operation) -> bool:
    micro = draft.code.list[operation.pc]
    return micro.group not in ELSEWHERE and micro.category not in SPECIAL
