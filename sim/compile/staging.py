"""The listing of `lockstep ptx --show regions`: the regions whose registers hardware would stage, how many
registers are live, and what the metadata say about each operand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.passes.register_regions import as_printed
from lockstep.sim.compile.ptx.passes.register_regions.annotations import Annotated, divide
from lockstep.sim.compile.ptx.passes.register_regions.numbering import bank_conflicts
from lockstep.sim.compile.ptx.passes.register_regions.operations import (
    Operand,
    Operation,
    add_deliveries,
    blocks,
    members,
    operations,
)
from lockstep.sim.compile.ptx.passes.register_regions.regions import Bounds
from lockstep.sim.compile.ptx.passes.register_regions.words import encode
from lockstep.spec.register_regions import BANKS, ERASE, LAST, REGION_REGISTERS, REGISTERS

FLAGS = {0: "", LAST: " evict", LAST | ERASE: " erase"}


@dataclass(frozen=True)
class Instruction:
    """``line`` of the PTX; registers ``live`` before it, in the warp and by algorithm 2 of the thesis; its operands,
    with what becomes of them."""

    line: int
    live: int
    live_as_printed: int
    operands: list[str]


@dataclass(frozen=True)
class Region:
    """``registers``: the most at a time, ``banks``: of each bank. Numbers of registers to load, to load for the last
    time, and to drop, when it starts. ``words``: of metadata. ``cut``: it would be longer if it could have more
    registers, in all or of a bank."""

    registers: int
    banks: list[int]
    preloads: list[int]
    last_preloads: list[int]
    invalidations: list[int]
    words: int
    cut: bool
    instructions: list[Instruction]


@dataclass(frozen=True)
class Staging:
    """The regions of a kernel, or why it has none. ``bank_conflicts``: pairs of registers of one instruction in the
    same bank, over all instructions, as allocated and renumbered."""

    regions: list[Region]
    bank_conflicts: int
    bank_conflicts_as_allocated: int
    refused: str = ""

    @property
    def statistics(self) -> dict[str, float]:
        """Means over the regions, as in the thesis's figure 4.19 and table 4.2."""
        if not self.regions:
            return {}
        count = len(self.regions)
        preloads = sum(len(region.preloads) + len(region.last_preloads) for region in self.regions)
        live = [region.registers for region in self.regions]
        return {
            "regions": count,
            "instructions_per_region": sum(len(region.instructions) for region in self.regions) / count,
            "preloads_per_region": preloads / count,
            "live_registers_per_region": fmean(live),
            "live_registers_deviation": pstdev(live),
            "metadata_words": sum(region.words for region in self.regions),
        }

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"statistics": self.statistics}

    def show(self, lines: Sequence[str]) -> None:
        """Print it, with the ``lines`` of the PTX."""
        if self.refused:
            print(f"  {self.refused}")
            return
        found = self.statistics
        print(
            f"  {found['regions']} regions; in each {found['instructions_per_region']:.1f} instructions,"
            f" {found['preloads_per_region']:.1f} preloads,"
            f" {found['live_registers_per_region']:.1f} live registers at most"
            f" (deviation {found['live_registers_deviation']:.1f})"
        )
        print(
            f"  {found['metadata_words']} metadata words; bank conflicts {self.bank_conflicts},"
            f" as allocated {self.bank_conflicts_as_allocated}"
        )
        for number, region in enumerate(self.regions, 1):
            print(f"  region {number}: {_start(region)}")
            for one in region.instructions:
                text = " ".join(lines[one.line - 1].split()) if 0 < one.line <= len(lines) else ""
                counts = f"{one.line:6} {one.live:4} {one.live_as_printed:4}  {'#' * one.live:32}"
                print(f"{counts} {text}  // {', '.join(one.operands)}".removesuffix("  // "))


def bounds(schedulers: int) -> Bounds:
    """The bounds of a region in an SM whose ``schedulers`` have a staging unit each."""
    return Bounds(REGION_REGISTERS, REGISTERS // schedulers // BANKS)


def staging(draft: Draft, allocated: Draft, bounds: Bounds) -> Staging:
    """The regions of a kernel, from its draft after renumbering, and as it was allocated."""
    conflicts = bank_conflicts(operations(draft)), bank_conflicts(operations(allocated))
    add_deliveries(draft)
    try:
        found = divide(draft, bounds)
    except Refused as error:
        return Staging([], *conflicts, refused=str(error))
    printed = _as_printed(draft)
    return Staging([_region(draft, one, printed) for one in found], *conflicts)


def _as_printed(draft: Draft) -> dict[int, int]:
    """The registers that are live before every instruction, by algorithm 2."""
    graph = ControlFlowGraph(draft.code.successors())
    code = as_printed.without_guards(blocks(draft, graph))
    before = as_printed.liveness(draft.code, graph, code).before
    every = zip(code, before, strict=True)
    return {operation.pc: live for block, points in every for operation, live in zip(block, points, strict=True)}


def _region(draft: Draft, one: Annotated, printed: Mapping[int, int]) -> Region:
    region = one.region
    instructions = []
    for operation, flags, live in zip(one.operations, region.flags, one.live, strict=True):
        line = draft.code.list[operation.pc].line
        count = printed[operation.pc].bit_count()
        instructions.append(Instruction(line, live.bit_count(), count, _operands(operation, flags)))
    return Region(
        region.most, list(region.usage), list(members(region.preloads & ~region.last)), list(members(region.last)),
        list(members(region.invalidated)), len(encode(one.metadata)), region.cut,
        instructions,
    )  # fmt: skip


def _operands(operation: Operation, flags: Sequence[int]) -> list[str]:
    return [_name(operand) + FLAGS[flag] for operand, flag in zip(operation.operands, flags, strict=True)]


def _name(operand: Operand) -> str:
    return "+".join(f"r{register}" for register in operand)


def _start(region: Region) -> str:
    parts = [f"registers {region.registers}", f"banks {' '.join(map(str, region.banks))}"]
    for text, registers in (
        ("preload", region.preloads), ("preload and invalidate", region.last_preloads), ("invalidate",
        region.invalidations),
    ):  # fmt: skip
        if registers:
            parts.append(f"{text} {' '.join(f'r{register}' for register in registers)}")
    return "; ".join(parts)
