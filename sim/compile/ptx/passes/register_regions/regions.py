"""Regions: runs of operations whose registers are staged together. Kloosterman's thesis, section 4.4.2, algorithm 1.

A region lies in one basic block, ends with a barrier if it has one, and does not hold a long load together with its
first use. Its registers are bounded, in all and by bank; so are its flags. A block that breaks a bound is cut, behind
at least six operations if it can be, where the fewest registers cross, and of such places at the last.

A result whose last use in its region is its own write counts until the region ends: it may still be on its way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation, mask, usage
from lockstep.spec.register_regions import BANKS, ERASE, LAST, MAX_SLOTS, MAX_USAGE

LEAST = 6  # operations of a region, if possible: 48 bytes in algorithm 1


@dataclass(frozen=True)
class Bounds:
    """The limits of a region: ``registers`` at a time, and ``lines`` of a bank."""

    registers: int
    lines: int

    @property
    def usage(self) -> int:
        return min(self.lines, MAX_USAGE)


@dataclass(frozen=True)
class Block:
    """The operations of a basic block; what is warp-live before and after each, and all along for lanes that wait."""

    operations: Sequence[Operation]
    before: Sequence[int]
    after: Sequence[int]
    waiting: int


@dataclass(frozen=True)
class Region:
    """A part of a block, and what its operations do to registers.

    ``invalidated``: registers that may have a value when it starts, and are dead. ``preloads``: those that it needs
    from the start; ``last``, of these, those whose values die inside. ``flags``: ``LAST`` and ``ERASE`` of every
    operand of every operation. ``usage``: the most registers of each bank at a time; ``most``: of all. ``copies``:
    those that may have a value when it has ended. ``divided``: there are no flags for a pair, since its halves differ.
    ``cut``: it would be longer with other bounds.
    """

    part: range
    invalidated: int
    preloads: int
    last: int
    flags: tuple[tuple[int, ...], ...]
    usage: tuple[int, ...]
    most: int
    copies: int
    divided: bool
    cut: bool = False

    def fits(self, bounds: Bounds) -> bool:
        return not self.divided and not self.exceeds(bounds)

    def exceeds(self, bounds: Bounds) -> bool:
        return self.most > bounds.registers or max(self.usage) > bounds.usage


def regions(block: Block, copies: int, bounds: Bounds) -> Iterator[Region]:
    """Cut a block into regions; ``copies``: the registers that may have a value at its start. Every operation fits."""
    start = 0
    ends = [index for index, operation in enumerate(block.operations, 1) if operation.waits]
    for end in dict.fromkeys([*ends, len(block.operations)]):
        run = _Run(block, end)
        while start < end:
            region = run.region(start, copies, bounds)
            yield region
            start, copies = region.part.stop, region.copies


def region_of(block: Block, part: range, copies: int) -> Region:
    """The fate of registers if a part of a block is a region."""
    operations, live = block.operations[part.start : part.stop], block.after[part.start : part.stop]
    invalidated = copies & ~block.before[part.start]
    copies &= ~invalidated
    later = _later(operations)
    present, preloads, last, divided = 0, 0, 0, False
    flags: list[tuple[int, ...]] = []
    for operation, after, mentioned in zip(operations, live, later, strict=True):
        soft = copies & (operation.writes if operation.guarded else operation.writes & block.waiting)
        preloads |= (operation.reads | soft) & ~present
        present |= operation.touched
        here = []
        for registers in map(_single, operation.operands):
            dead, named = registers & ~after, registers & mentioned
            if dead == registers:
                here.append(LAST | ERASE)
                present &= ~registers
                last |= registers & preloads
            else:
                here.append(0 if named else LAST)
                divided |= (bool(named) and 0 < dead) or 0 < named < registers
        copies = copies & ~operation.touched | present & operation.touched
        flags.append(tuple(here))
    most, banks = _need(operations, flags, preloads)
    return Region(part, invalidated, preloads, last, tuple(flags), banks, most, copies, divided)


def _later(operations: Sequence[Operation]) -> list[int]:
    """The registers that come again, behind every operation."""
    result, rest = [], 0
    for operation in reversed(operations):
        result.append(rest)
        rest |= operation.touched
    return result[::-1]


def _single(operand: tuple[int, ...]) -> int:
    return mask((operand,))


def _need(operations: Sequence[Operation], flags: Sequence[Sequence[int]], held: int) -> tuple[int, tuple[int, ...]]:
    """The most registers at a time, in all and by bank; ``held`` from the start."""
    most, banks = 0, (0,) * BANKS
    for operation, here in zip(operations, flags, strict=True):
        held |= operation.touched
        most = max(most, held.bit_count())
        banks = tuple(map(max, banks, usage(held)))
        held &= (
            ~mask(operand for operand, flag in zip(operation.operands, here, strict=True) if flag) | operation.writes
        )
    return most, banks


class _Run:
    """The operations of a block up to a barrier, or to its end: what regions are cut from."""

    def __init__(self, block: Block, end: int) -> None:
        self.block, self.end = block, end
        self.uses = self._uses()
        self.inputs, self.outputs = [0] * (end + 1), [0] * (end + 1)  # of what follows
        for index in reversed(range(end)):
            operation = block.operations[index]
            needed = self._needed(operation)
            self.inputs[index] = needed | self.inputs[index + 1] & ~operation.writes
            self.outputs[index] = self.outputs[index + 1] | operation.writes & block.after[end - 1]

    def region(self, start: int, copies: int, bounds: Bounds) -> Region:
        """The first region of what follows."""
        upper = self._upper(start)
        whole = region_of(self.block, range(start, upper), copies)
        if upper == self.end and whole.fits(bounds):
            return whole
        first = whole if whole.fits(bounds) else self._longest(start, upper, copies, bounds)
        cut = region_of(self.block, range(start, self._cut(start, first.part.stop)), copies)
        return replace(cut if cut.fits(bounds) else first, cut=whole.exceeds(bounds))

    def _upper(self, start: int) -> int:
        """Where a region must end for its flags, and for the first use of a long load in it."""
        slots, end = 0, start
        upper = self.end
        while end < upper:
            slots += self.block.operations[end].slots
            if slots > MAX_SLOTS:
                return end
            upper = min(upper, self.uses[end])
            end += 1
        return upper

    def _longest(self, start: int, upper: int, copies: int, bounds: Bounds) -> Region:
        """The longest region that fits, by bisection: a longer one needs more."""
        found = region_of(self.block, range(start, start + 1), copies)
        while upper - found.part.stop > 1:
            middle = (found.part.stop + upper) // 2
            region = region_of(self.block, range(start, middle), copies)
            if region.fits(bounds):
                found = region
            else:
                upper = middle
        return found

    def _cut(self, start: int, upper: int) -> int:
        """Where to end a region that could reach up to ``upper``."""
        loads = [(load, self.uses[load]) for load in range(start, upper) if self.uses[load] < self.end]
        lower = max(range(start + 1, upper + 1), key=lambda cut: sum(load < cut <= use for load, use in loads))
        crossing = self._crossing(start, upper)
        return min(range(upper, min(max(start + LEAST, lower), upper) - 1, -1), key=crossing.__getitem__)

    def _crossing(self, start: int, upper: int) -> dict[int, int]:
        """The inputs and outputs of both parts, by cut."""
        inputs = written = 0
        result = {}
        for index in range(start, upper):
            operation = self.block.operations[index]
            inputs |= self._needed(operation) & ~written
            written |= operation.writes
            outputs, cut = written & self.block.after[index], index + 1
            sets = inputs, outputs, self.inputs[cut], self.outputs[cut]
            result[cut] = sum(registers.bit_count() for registers in sets)
        return result

    def _needed(self, operation: Operation) -> int:
        return operation.reads | operation.writes & (-1 if operation.guarded else self.block.waiting)

    def _uses(self) -> list[int]:
        """Where the result of every long load is used first; the end for all else."""
        result = [self.end] * self.end
        pending: dict[int, int] = {}
        for index in range(self.end):
            operation = self.block.operations[index]
            for load in [load for load, written in pending.items() if written & operation.touched]:
                result[load] = index
                del pending[load]
            if operation.long:
                pending[index] = operation.writes
        return result
