"""From a kernel whose registers are placed to regions, their metadata, and the tables that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.passes.register_regions.liveness import Blocks, Liveness, liveness, remaining
from lockstep.sim.compile.ptx.passes.register_regions.operations import (
    Operand,
    Operation,
    add_deliveries,
    blocks,
    members,
    usage,
)
from lockstep.sim.compile.ptx.passes.register_regions.regions import Block, Bounds, Region, regions
from lockstep.sim.compile.ptx.passes.register_regions.words import Metadata, encode
from lockstep.spec.register_regions import FLAG_BITS, MAX_USAGE, OPERANDS, Entry

NO_REGION = -1
PAIR = 256  # added to the lower register of a pair in the table of operands


@dataclass(frozen=True)
class Annotated:
    """A region with the operations in it; ``live``: what is warp-live before each, of what may have a value."""

    operations: Sequence[Operation]
    live: Sequence[int]
    region: Region

    @property
    def metadata(self) -> Metadata:
        """The contents of its words."""
        region = self.region
        entries = [(Entry.INVALIDATE, register) for register in members(region.invalidated)]
        for register in members(region.preloads):
            entries.append((Entry.PRELOAD_LAST if region.last >> register & 1 else Entry.PRELOAD, register))
        slots = [slot for flags in region.flags for slot in _slots(flags)]
        return Metadata(tuple(slots), region.usage, tuple(entries))


def annotate(draft: Draft, *, registers: int, lines: int) -> None:
    """Divide a kernel into regions of at most ``registers`` registers at a time, and ``lines`` of a bank.

    Its tables are then, by name, where a region's first instruction is the one at which it starts:

    ``regions.words``
        The metadata words of all regions, in the order of the code.
    ``regions.first``
        For every instruction the index of the first word of the region that it starts, or -1.
    ``regions.operands``
        The operands of all instructions, in the order of the encoding: a register, or the lower one of a pair plus
        256.
    ``regions.operand``
        For every instruction the index of its first operand, and one more for the end.

    ``stream.words``
        For every instruction how many words have been fetched with it from the kernel's begin on.

    Raises :class:`Refused` for an instruction that needs more registers than a region may have.
    """
    add_deliveries(draft)
    found = divide(draft, Bounds(registers, lines))
    draft.whole = True
    draft.kernel.tables |= tables(found, len(draft.code.list))


def divide(draft: Draft, bounds: Bounds) -> list[Annotated]:
    """The regions of a kernel, in the order of the code. Raises :class:`Refused`."""
    graph = ControlFlowGraph(draft.code.successors())
    code = blocks(draft, graph)
    check(draft, [operation for block in code for operation in block], bounds)
    return list(annotated(code, liveness(draft.code, graph, code), bounds))


def annotated(code: Blocks, live: Liveness, bounds: Bounds) -> Iterator[Annotated]:
    """The regions of a kernel with some liveness."""
    for number, operations in enumerate(code):
        block = Block(operations, live.before[number], live.after[number], live.waiting[number])
        copies = live.copies[number]
        for region in regions(block, copies, bounds):
            part = slice(region.part.start, region.part.stop)
            points = []
            for operation, before, after in zip(operations[part], block.before[part], block.after[part], strict=True):
                points.append(before & copies)
                copies = remaining(operation, copies, after)
            yield Annotated(operations[part], points, region)


def tables(regions: Sequence[Annotated], length: int) -> dict[str, np.ndarray]:
    """The tables of regions, which hold ``length`` instructions."""
    words: list[int] = []
    words_to = np.zeros(length, np.int32)
    first = np.full(length, NO_REGION, np.int32)
    operands: list[list[int]] = [[] for _ in range(length)]
    for one in regions:
        first[one.operations[0].pc] = len(words)
        words += encode(one.metadata)
        for operation in one.operations:
            words_to[operation.pc] = len(words)
            operands[operation.pc] = [_number(operand) for operand in operation.operands]
    return {
        "regions.words": np.array(words, np.uint64),
        "regions.first": first,
        "stream.words": words_to,
        "regions.operands": np.array([number for some in operands for number in some], np.int16),
        "regions.operand": np.cumsum([0, *map(len, operands)], dtype=np.int32),
    }


def check(draft: Draft, operations: Sequence[Operation], bounds: Bounds) -> None:
    """Refuse what no region can have: a region has one instruction at least."""
    for operation in operations:
        line = draft.code.list[operation.pc].line
        needed = max(usage(operation.touched))
        if needed > bounds.usage:
            most = f"a region has {bounds.usage} (lines of a bank: {bounds.lines}; most that metadata say: {MAX_USAGE})"
            raise Refused(f"needs {needed} registers of one bank for the instruction in line {line}: {most}")
        if operation.touched.bit_count() > bounds.registers:
            count = operation.touched.bit_count()
            most = f"a region has {bounds.registers}"
            raise Refused(f"needs {count} registers for the instruction in line {line}: {most}")


def _slots(flags: Sequence[int]) -> Iterator[int]:
    """The flags of one instruction, by slots."""
    for start in range(0, max(len(flags), 1), OPERANDS):
        some = flags[start : start + OPERANDS]
        yield sum(flag << FLAG_BITS * place for place, flag in enumerate(some))


def _number(operand: Operand) -> int:
    return operand[0] + (PAIR if len(operand) > 1 else 0)
