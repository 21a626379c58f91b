"""What steers warps: whether values that depend on timing decide where a kernel's warps go, or what they access.

Values that depend on timing come from clocks and from the places of warps, from loads and atomics that race, and from
loads of words that such values, or clashing stores, were written to (``models.traces.races``). They are followed
through registers and predicates, instruction by instruction along all paths of the code. They steer where they are a
guard, an index of a branch, a barrier's number, or an address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from lockstep.models.execution.isa import PT, RZ, Control, Fetch, Group, Kind, Memory, Special, Texture, Warp
from lockstep.sim.traces.schema import Mark

__all__ = ["judge"]

PLACES = {
    Special.SMID: "the number of its SM", Special.NSMID: "the number of SMs", Special.CLOCK: "the clock",
    Special.CLOCK_HI: "the clock", Special.CLOCK64: "the clock", Special.GLOBALTIMER: "the time",
    Special.GLOBALTIMER_HI: "the time",
}  # fmt: skip
MEMORY = (Group.MEMORY, Group.ATOMIC, Group.TEXTURE)
STORES = (Group.MEMORY, Memory.STORE), (Group.TEXTURE, Texture.SURFACE_STORE)
RACE = "what it reads in a race with another warp"
ORDER = "what it reads, which depends on the order of other warps' accesses,"
INHERITED = "what it reads, which an earlier launch has left as its timing wanted it,"
_PREDICATES = 256  # bits of a state from here on


class Races(Protocol):
    """What was found while the launch ran."""

    racing: np.ndarray
    clashing: np.ndarray
    inheriting: np.ndarray
    edges: np.ndarray


class _Instruction:
    """What flows through an instruction, as masks: registers, and predicates above them."""

    def __init__(self, row: np.void) -> None:
        self.group, self.op = int(row["group"]), int(row["op"])
        self.reads = 0
        for register in row["read"][: int(row["reads"])].tolist():
            self.reads |= 1 << register
        for predicate in (int(row["psrc"]), int(row["psrc2"])):
            if predicate != PT:
                self.reads |= 1 << _PREDICATES + predicate
        self.guard = 0 if row["guard"] == PT else 1 << _PREDICATES + int(row["guard"])
        words = sum(int(word) << 64 * k for k, word in enumerate(row["writes"].tolist()))
        self.writes = words & ~(1 << RZ) | int(row["pwrites"]) << _PREDICATES
        self.stores = (self.group, self.op) in STORES or self.group == Group.ATOMIC
        self.steers = self.guard | self._steering(row)

    def _steering(self, row: np.void) -> int:
        """The registers that say where it goes, or what it touches."""
        found = 0
        sources = [k for k in range(4) if row["kind"][k] == Kind.REGISTER and row["src"][k] != RZ]
        if self.group in MEMORY:
            if 0 in sources:
                found |= (3 if row["fetch"][0] == Fetch.PAIR else 1) << int(row["src"][0])
            if self.group == Group.TEXTURE:
                found |= self.reads
        elif self.group == Group.CONTROL:
            for k in sources:
                found |= 1 << int(row["src"][k])
        return found


def _successors(code: np.ndarray, table: list[int], pc: int) -> Iterator[int]:
    row = code[pc]
    op = int(row["op"]) if row["group"] == Group.CONTROL else -1
    guarded = row["guard"] != PT
    if op == Control.BRANCH:
        yield int(row["target"])
    if op == Control.INDEXED:
        first = int(row["target"])
        yield from table[first : first + int(row["imm"][3])]
    if pc + 1 < len(code) and (guarded or op not in (Control.BRANCH, Control.EXIT, Control.INDEXED)):
        yield pc + 1


def _flow(
    instructions: list[_Instruction], following: list[list[int]], sources: dict[int, str]
) -> tuple[set[int], set[int]]:
    """The instructions that values from these sources steer, and the stores of such values."""
    states = [0] * len(instructions)
    seen = [False] * len(instructions)
    waiting = set(sources)
    steered, stores = set(), set()
    while waiting:
        pc = waiting.pop()
        one, state = instructions[pc], states[pc]
        if state & one.steers:
            steered.add(pc)
        tainted = state & one.reads != 0
        if tainted and one.stores:
            stores.add(pc)
        after = state if one.guard else state & ~one.writes
        if tainted or pc in sources:
            after |= one.writes
        for next_pc in following[pc]:
            if after & ~states[next_pc] or not seen[next_pc]:
                states[next_pc] |= after
                seen[next_pc] = True
                if after:
                    waiting.add(next_pc)
    return steered, stores


def judge(code: np.ndarray, table: list[int], races: Races) -> tuple[list[Mark], set[int]]:
    """The instructions by whose values warps are steered that depend on timing; stores that leave such values."""
    sources = {int(pc): INHERITED for pc in np.flatnonzero(races.inheriting)}
    sources |= {int(pc): RACE for pc in np.flatnonzero(races.racing)}
    for pc in np.flatnonzero((code["group"] == Group.WARP) & (code["op"] == Warp.SPECIAL)).tolist():
        if int(code["sub"][pc]) in PLACES:
            sources[pc] = f"{PLACES[Special(int(code['sub'][pc]))]}, which it reads,"
    written = {int(pc) for pc in np.flatnonzero(races.clashing)}
    if not sources and not written:
        return [], set()
    instructions = [_Instruction(row) for row in code]
    following = [list(_successors(code, table, pc)) for pc in range(len(code))]
    loads = [pc for pc, one in enumerate(instructions) if one.group == Group.MEMORY and one.op == Memory.LOAD]
    while True:
        steered, stores = _flow(instructions, following, sources)
        written |= stores
        more = {pc for pc in loads if pc not in sources and _reads_of(races.edges, written, pc)}
        if not more:
            break
        sources |= dict.fromkeys(more, ORDER)
    if not steered:
        return [], written
    blamed = {pc: why for pc, why in sources.items() if _flow(instructions, following, {pc: why})[0]}
    lines = code["line"].tolist()
    found = [
        Mark(pc, lines[pc], f"{why} decides where warps go or what they access")
        for pc, why in sorted((blamed or sources).items())
    ]
    return found, written


def _reads_of(edges: np.ndarray, written: set[int], pc: int) -> bool:
    """Whether a load has read what some stores have written; of large kernels, that is not known."""
    if edges.size == 0:
        return bool(written)
    return bool(edges[sorted(written), pc].any()) if written else False
