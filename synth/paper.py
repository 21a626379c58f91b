"""State bits beside table 3.1 of Kloosterman's thesis, "Per-SM storage and power overhead of WarpPool components".

The figures on our side are the registers and memories of the RTL, so every difference is explained by them: the fields
of an entry first, then each register that the paper does not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lockstep.models.parameters import Gpu
from lockstep.rtl.netlist import Memory, Register


@dataclass(frozen=True)
class Structure:
    """A row of the paper's table, and the sentence that says why our block differs."""

    title: str
    block: str
    entry_bits: int
    entries: int
    reason: str

    @property
    def bits(self) -> int:
        return self.entry_bits * self.entries


STRUCTURES = (
    Structure(
        "Instruction queues", "warppool.instruction_queues", 37, 128,
        "An entry has the instruction's ticket, size and kind beside warp and mask; pointers, and an output register "
        "for each coalescer, are outside the paper's figure.",
    ),
    Structure(
        "Intra-warp coalescers", "warppool.intra_warp_coalescer", 2048, 2,
        "The paper counts the addresses of two instructions; beside them stand their masks, the lanes still pending, "
        "ticket, size and kind, and the line that is presented, with its thread mapping, in an output register.",
    ),
    Structure(
        "Inter-warp queues", "warppool.inter_warp_queues", 124, 64,
        "A slot names warp and ticket; each tag has its valid bit and count of slots, each input a buffer of two "
        "entries, since its ready depends on state alone, and the request leaves through a register.",
    ),
    Structure(
        "Thread map table", "warppool.thread_map_table", 321, 8,
        "An entry has the mask and one word for each lane, read by lane; the paper's 321 bits have room for two "
        "five-bit fields for each lane.",
    ),
    Structure(
        "MSHR metadata", "warppool.mshr_metadata", 23, 1024,
        "Slots are as wide as the paper's; an entry also counts its slots, and the list of free entries and the "
        "register of the slots read are outside the paper's figure.",
    ),
)  # fmt: skip

NOT_COUNTED = "not in the paper's table"


@dataclass(frozen=True)
class Difference:
    """What makes our structure larger or smaller: ``bits``, and where they are."""

    bits: int
    what: str


@dataclass(frozen=True)
class Row:
    """One structure of an SM. Without a paper's figure, ``paper_bits`` is None."""

    title: str
    block: str
    instances: int
    paper_bits: int | None
    rtl_bits: int
    memory_bits: int
    differences: tuple[Difference, ...]
    reason: str

    def json(self) -> dict[str, Any]:
        return asdict(self)


State = tuple[list[Register], list[Memory]]


def table(gpu: Gpu, states: Mapping[str, State]) -> list[Row]:
    """The rows for those blocks of WarpPool whose state is given, the paper's first."""
    known = {structure.block: structure for structure in STRUCTURES}
    order = [*(block for block in known if block in states), *sorted(states.keys() - known.keys())]
    return [
        _row(block, known.get(block), states[block], gpu)
        for block in order
        if block.startswith("warppool.") and block != "warppool.warp_pool"
    ]


def _row(block: str, structure: Structure | None, state: State, gpu: Gpu) -> Row:
    instances = gpu.warppool.coalescers if block == "warppool.intra_warp_coalescer" else 1
    registers, memories = state
    memory_bits = instances * sum(memory.bits for memory in memories)
    bits = memory_bits + instances * sum(register.bits for register in registers)
    if structure is None:
        title = block.partition(".")[2].replace("_", " ").capitalize()
        return Row(title, block, instances, None, bits, memory_bits, (), NOT_COUNTED)
    differences = tuple(_differences(structure, _parts(state, instances)))
    return Row(structure.title, block, instances, structure.bits, bits, memory_bits, differences, structure.reason)


def _parts(state: State, instances: int) -> dict[str, int]:
    """The bits of each group of registers or memories whose names differ in numbers only."""
    registers, memories = state
    parts: dict[str, int] = defaultdict(int)
    for memory in memories:
        parts[f"memory {_plain(memory.name)}"] += instances * memory.bits
    for register in registers:
        kind = "output register" if register.is_output else "register"
        parts[f"{kind} {_plain(register.name)}"] += instances * register.bits
    return parts


def _plain(name: str) -> str:
    """A name without the numbers that tell the members of an array apart, and without interface plumbing."""
    words = [word for word in re.split(r"[._$]+", name) if word and not word.isdigit()]
    return "_".join(word for word in words if word != "payload")


def _differences(structure: Structure, parts: Mapping[str, int]) -> list[Difference]:
    """They add up to the whole difference."""
    entry = {
        name: bits
        for name, bits in parts.items()
        if not name.startswith("output") and bits >= structure.entries and bits % structure.entries == 0
    }
    width = sum(entry.values()) // structure.entries
    fields = ", ".join(f"{name} {bits // structure.entries} b" for name, bits in _largest(entry))
    found = [
        Difference(
            sum(entry.values()) - structure.bits,
            f"{structure.entries} entries of {width} b ({fields}), in the paper of {structure.entry_bits} b",
        )
    ]
    return found + [Difference(bits, name) for name, bits in _largest(parts) if name not in entry]


def _largest(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(parts.items(), key=lambda part: (-part[1], part[0]))
