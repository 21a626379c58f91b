"""State bits of an SM beside the table of a mechanism's paper (``Mechanism.storage``).

The figures on our side are the registers and memories of the RTL, so every difference is explained by them: the fields
of an entry first, then each register that the paper does not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from lockstep.spec.mechanism import Mechanism
from lockstep.spec.parameters import Gpu
from lockstep.spec.storage import Structure

if TYPE_CHECKING:
    from lockstep.rtl.netlist import Memory, Register


NOT_COUNTED = "not in the paper's table"


@dataclass(frozen=True)
class Difference:
    """A difference in size between our structure and the paper's: ``bits``, and where they are."""

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


State: TypeAlias = "tuple[list[Register], list[Memory]]"


def table(mechanism: Mechanism, gpu: Gpu, states: Mapping[str, State]) -> list[Row]:
    """The rows for those blocks of a mechanism whose state is given, the paper's first; none if it has no table."""
    if mechanism.storage is None:
        return []
    known = {structure.block: structure for structure in mechanism.storage.structures}
    own = states.keys() & set(mechanism.blocks)
    order = [*(block for block in known if block in own), *sorted(own - known.keys())]
    return [_row(block, known.get(block), states[block], mechanism.instances(block, gpu)) for block in order]


def _row(block: str, structure: Structure | None, state: State, count: int) -> Row:
    registers, memories = state
    memory_bits = count * sum(memory.bits for memory in memories)
    bits = memory_bits + count * sum(register.bits for register in registers)
    if structure is None:
        title = block.partition(".")[2].replace("_", " ").capitalize()
        return Row(title, block, count, None, bits, memory_bits, (), NOT_COUNTED)
    differences = tuple(_differences(structure, _parts(state, count)))
    return Row(structure.title, block, count, structure.bits, bits, memory_bits, differences, structure.reason)


def _parts(state: State, count: int) -> dict[str, int]:
    """The bits of each group of registers or memories whose names differ in numbers only."""
    registers, memories = state
    parts: dict[str, int] = defaultdict(int)
    for memory in memories:
        parts[f"memory {_plain(memory.name)}"] += count * memory.bits
    for register in registers:
        kind = "output register" if register.is_output else "register"
        parts[f"{kind} {_plain(register.name)}"] += count * register.bits
    return parts


def _plain(name: str) -> str:
    """A name without the numbers that tell the members of an array apart, and without interface plumbing."""
    words = [word for word in re.split(r"[._$]+", name) if word and not word.isdigit()]
    return "_".join(word for word in words if word != "payload")


def _differences(structure: Structure, parts: Mapping[str, int]) -> list[Difference]:
    """They add up to the whole difference."""
    entries = structure.entries // structure.slots
    entry = {
        name: bits
        for name, bits in parts.items()
        if not name.startswith("output") and bits >= entries and bits % entries == 0
    }
    width = sum(entry.values()) // entries
    fields = ", ".join(f"{name} {bits // entries} b" for name, bits in _largest(entry))
    theirs = f"{structure.slots} x {structure.entry_bits}" if structure.slots > 1 else f"{structure.entry_bits}"
    found = [
        Difference(
            sum(entry.values()) - structure.bits,
            f"{entries} entries of {width} b ({fields}), in the paper of {theirs} b",
        )
    ]
    return found + [Difference(bits, name) for name, bits in _largest(parts) if name not in entry]


def _largest(parts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(parts.items(), key=lambda part: (-part[1], part[0]))
