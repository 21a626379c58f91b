"""Where registers are written and read, and what dominates what."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from lockstep.models.execution.isa import Fetch, Group, Int, Long, Write
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

WHOLE = {16: Fetch.U16, 32: Fetch.WORD, 64: Fetch.PAIR}
"""The fetch that takes a register as it is."""


class Values:
    """The definitions and the uses of every register of a kernel: indices of micro-operations."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.definitions: dict[int, list[int]] = defaultdict(list)
        self.uses: dict[int, list[int]] = defaultdict(list)
        for index, micro in enumerate(code.list):
            for register in micro.registers_written():
                self.definitions[register].append(index)
            for register in micro.registers_read():
                self.uses[register].append(index)

    @cached_property
    def graph(self) -> ControlFlowGraph:
        return ControlFlowGraph(self.code.successors())

    def only_definition(self, register: int) -> int | None:
        """The one micro-operation that writes a register; None if there are several, or none."""
        found = self.definitions.get(register, [])
        return found[0] if len(found) == 1 else None

    def is_single(self, register: int) -> bool:
        """Whether a register has one definition, and a value wherever it is used, as in SSA form."""
        index = self.only_definition(register)
        return index is not None and all(self.dominates(index, use) for use in self.uses.get(register, []))

    def dominates(self, first: int, then: int) -> bool:
        """Whether every path to the micro-operation ``then`` leads over ``first``."""
        graph = self.graph
        outer, block = graph.block_of[first], graph.block_of[then]
        if outer == block and first < then:
            return True
        above = graph.dominators[block]
        while above is not None and above != outer:
            above = graph.dominators[above]
        return above == outer


def is_copy(micro: Micro, bits: int) -> bool:
    """Whether it moves a value into a register of so many bits, unchanged."""
    if len(micro.sources) != 1 or micro.guard != NONE:
        return False
    if bits == 64:
        return micro.group == Group.LONG and micro.op == Long.MOV and micro.write == Write.PAIR
    write = Write.HALF if bits == 16 else Write.WORD
    return micro.group == Group.INT and micro.op == Int.MOV and micro.write == write and micro.sub == 0
