"""Micro-operations as operand staging sees them: which physical registers each reads and writes, and how.

Sets of registers are integers, one bit per register. Predicates have a file of their own and are not staged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lockstep.models.execution.isa import Category, Control, Group, Memory, Space
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import NONE, Micro
from lockstep.spec.register_regions import BANKS, OPERANDS

Operand = tuple[int, ...]
"""A register, or an aligned pair."""

BANK_MASKS = [sum(1 << register for register in range(bank, 256, BANKS)) for bank in range(BANKS)]


@dataclass(frozen=True, slots=True)
class Operation:
    """One micro-operation.

    ``operands`` in the order of the encoding; ``guarded``: some lanes may not execute it; ``waits``: at a barrier;
    ``long``: its results come from memory, hundreds of cycles later.
    """

    pc: int
    operands: tuple[Operand, ...]
    reads: int
    writes: int
    guarded: bool
    waits: bool
    long: bool

    @property
    def touched(self) -> int:
        return self.reads | self.writes

    @property
    def slots(self) -> int:
        """Of the metadata's flags."""
        return max(1, -(-len(self.operands) // OPERANDS))


def operations(draft: Draft) -> list[Operation]:
    """Every micro-operation after the allocation."""
    micros = draft.code.list
    result = []
    for pc, micro in enumerate(micros):
        writer = micros[pc - 1] if pc and delivers(micros[pc - 1]) else micro
        read = _named(draft, (*(source.register for source in micro.sources), *micro.operands.values()))
        written = [] if delivers(micro) else _named(draft, (writer.dst, *writer.results.values()))
        guarded, long = writer.guard != NONE, bool(written) and _long(micro)
        operands = _operands([*read, *written])
        result.append(Operation(pc, operands, mask(read), mask(written), guarded, _waits(micro), long))
    return result


def blocks(draft: Draft, graph: ControlFlowGraph) -> list[list[Operation]]:
    """The operations of every basic block."""
    every = operations(draft)
    return [every[block.start : block.stop] for block in graph.blocks]


def delivers(micro: Micro) -> bool:
    """Whether the result comes when a barrier opens, with the no-op behind it: see :func:`add_deliveries`."""
    return _waits(micro) and micro.dst != NONE


def add_deliveries(draft: Draft) -> None:
    """Put a no-op behind every barrier with a result in a register, to have the result as its own."""
    draft.code.replace([
        [micro, Micro(Group.CONTROL, Control.NOP, Category.CONTROL)] if delivers(micro) else [micro]
        for micro in draft.code.list
    ])  # fmt: skip


def mask(operands: Iterable[Operand]) -> int:
    """The registers of operands as a set."""
    return sum({1 << register for operand in operands for register in operand})


def members(registers: int) -> Iterator[int]:
    """The registers of a set, lowest first."""
    while registers:
        lowest = registers & -registers
        yield lowest.bit_length() - 1
        registers ^= lowest


def usage(registers: int) -> tuple[int, ...]:
    """How many registers of a set lie in each bank."""
    return tuple((registers & bank).bit_count() for bank in BANK_MASKS)


def _named(draft: Draft, registers: Iterable[int]) -> list[Operand]:
    """Registers that a micro-operation names, by their places. A 64-bit value is read whole."""
    result: list[Operand] = []
    for register in registers:
        if register != NONE and (bits := draft.code.bits[register]) != 1:
            place = draft.physical[register]
            result.append((place, place + 1) if bits == 64 else (place,))
    return result


def _operands(named: Sequence[Operand]) -> tuple[Operand, ...]:
    """The operands of an instruction: halves apart where it names one of them by itself."""
    different = dict.fromkeys(named)
    count = Counter(register for operand in different for register in operand)
    result: dict[Operand, None] = {}
    for operand in different:
        if all(count[register] == 1 for register in operand):
            result[operand] = None
        else:
            result |= dict.fromkeys((register,) for register in operand)
    return tuple(result)


def _waits(micro: Micro) -> bool:
    return micro.group == Group.CONTROL and micro.op in (Control.BARRIER, Control.REDUCE)


def _long(micro: Micro) -> bool:
    if micro.group == Group.MEMORY:
        return micro.op == Memory.LOAD and micro.space in (Space.GENERIC, Space.GLOBAL, Space.LOCAL)
    return micro.group in (Group.ATOMIC, Group.TEXTURE)
