"""Regions with a fault, as a wrong compiler would make them: for those who must find it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lockstep.sim.compile.ptx.passes.register_regions.annotations import Annotated
from lockstep.sim.compile.ptx.passes.register_regions.operations import mask
from lockstep.spec.register_regions import ERASE, LAST


def erased_early(regions: list[Annotated]) -> Iterator[list[Annotated]]:
    """The erasure of a register moves to the instruction that names it before."""
    for number, one in enumerate(regions):
        flags = one.region.flags
        for late, operation in enumerate(one.operations):
            for place, operand in enumerate(operation.operands):
                before = [index for index in range(late) if operand in one.operations[index].operands]
                if flags[late][place] & ERASE and before and operation.reads & mask([operand]):
                    early = before[-1]
                    moved = [list(some) for some in flags]
                    moved[early][one.operations[early].operands.index(operand)] = LAST | ERASE
                    moved[late][place] = 0
                    yield _with(regions, number, flags=tuple(map(tuple, moved)))


def hard(regions: list[Annotated]) -> Iterator[list[Annotated]]:
    """A soft definition is taken for a hard one: what it writes first is not preloaded."""
    for number, one in enumerate(regions):
        read = written = soft = 0
        for operation in one.operations:
            read |= operation.reads & ~written
            soft |= operation.writes & ~read
            written |= operation.writes
        if lost := soft & one.region.preloads:
            yield _with(regions, number, preloads=one.region.preloads & ~lost, last=one.region.last & ~lost)


def not_preloaded(regions: list[Annotated]) -> Iterator[list[Annotated]]:
    """A preload is missed."""
    for number, one in enumerate(regions):
        for register in range(one.region.preloads.bit_length()):
            if one.region.preloads >> register & 1:
                kept = ~(1 << register)
                yield _with(regions, number, preloads=one.region.preloads & kept, last=one.region.last & kept)


def _with(regions: list[Annotated], number: int, **changes: object) -> list[Annotated]:
    changed = replace(regions[number], region=replace(regions[number].region, **changes))  # type: ignore[arg-type]
    return [*regions[:number], changed, *regions[number + 1 :]]
