"""Whether the annotations of a kernel keep every value that some lane will read, and no other: abstract interpretation.

One lane is followed, with the warp around it. A *position* says where the warp is, by region, and what the lane does:
it executes, or it waits to go on at another region until the warp has come to the point where the two meet. Lanes part
at every branch that has a guard or a table; which of them goes first is open. So the positions are those that a stack
of reconvergence points can bring about, and a few more.

Along all ways through the positions, for every register at once: may the lane have written it, may its value have been
lost since, may there be a copy of it? Back along them: may the lane read it before it overwrites it? The first finds
what is read without being there, the second what is kept without being read. Within a region, what is present is
certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import networkx as nx

from lockstep.models.execution.isa import Control, Group
from lockstep.spec.register_regions import BANKS, Entry
from lockstep.verif.regless.code import Instruction, Staged, bits


class Position(NamedTuple):
    """The warp is in a region, by its start. The lane executes (``resume`` -1), or waits to go on at ``resume`` since
    it parted at a ``branch``, by pc, from the others, which take one ``way``."""

    region: int
    resume: int = -1
    branch: int = -1
    way: int = -1


class Facts(NamedTuple):
    """Sets of registers: the lane may have written it; its value may be lost; there may be a copy."""

    written: int = 0
    lost: int = 0
    copies: int = 0

    def join(self, other: Facts) -> Facts:
        return Facts(*(a | b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Branch:
    """Where lanes part: the regions ``inside`` each way until they meet; ``ways`` without those that are there at
    once."""

    pc: int
    meeting: int
    inside: Mapping[int, frozenset[int]]
    ways: frozenset[int]


def check(regions: Sequence[Staged]) -> list[str]:
    """What is wrong with the regions of a kernel, each in one line."""
    return Checker(regions).errors()


class Checker:
    def __init__(self, regions: Sequence[Staged]) -> None:
        self.regions = {region.start: region for region in regions}
        self.end = regions[-1].code[-1].pc + 1
        self.found: dict[str, None] = {}
        self.graph = nx.DiGraph()
        self.graph.add_nodes_from(self.regions)
        for region in regions:
            self.graph.add_edges_from((region.start, to) for to in region.code[-1].successors if to != self.end)
        reached = {0} | nx.descendants(self.graph, 0)
        parting = (self.regions[start].code[-1] for start in sorted(reached))
        self.branches = [self._branch(last) for last in parting if last.parts]
        self.start_of = {region.code[-1].pc: region.start for region in regions}
        self.by_pc = {branch.pc: branch for branch in self.branches}
        self.positions = self._positions()
        self.at: dict[int, list[Position]] = {start: [] for start in self.regions}
        for position in self.positions:
            self.at[position.region].append(position)
        self.needs = self._needs()
        self.needed = dict.fromkeys(self.regions, 0)  # when a region starts, by any lane
        for position in self.positions:
            self.needed[position.region] |= self.needs[position]

    def errors(self) -> list[str]:
        for region in self.regions.values():
            self._presence(region)
        facts = self._facts()
        copies = dict.fromkeys(self.regions, 0)
        for position, known in facts.items():
            copies[position.region] |= known.copies
            self._through(position, known, self._report)
        for start, there in copies.items():
            dead = there & ~self.needed[start] & ~self.regions[start].registers(Entry.INVALIDATE)
            for register in _members(dead):
                self._report(f"the region at {start} keeps r{register}, which is dead")
        return list(self.found)

    def _report(self, text: str) -> None:
        self.found[text] = None

    # ------------------------------------------------------------------------------------------------------- positions

    def _branch(self, last: Instruction) -> Branch:
        inside = {}
        for way in dict.fromkeys(last.successors):
            open_to = nx.subgraph_view(self.graph, filter_node=lambda node: node != last.meeting)
            reached = {way} | nx.descendants(open_to, way) if way in open_to else set()
            inside[way] = frozenset(reached)
        return Branch(last.pc, last.meeting, inside, frozenset(way for way in inside if inside[way]))

    def _ends(self, start: int) -> bool:
        """Whether all lanes that are there may end with a region."""
        last = self.regions[start].code[-1]
        return self.end in last.successors or (last.group == Group.CONTROL and last.op == Control.EXIT)

    def _next(self, position: Position) -> set[Position]:
        region, resume, pc, way = position
        if resume < 0:
            return self._after_executing(region)
        branch = self.by_pc[pc]
        turns = {Position(resume)} | {Position(other, resume, pc, other) for other in branch.ways - {way, resume}}
        result = set()
        for to in self.graph.successors(region):
            result |= turns if to == branch.meeting else {Position(to, resume, pc, way)}
        if self._ends(region):
            result |= turns
        for other in self.branches:  # at which those part who go on
            if self.start_of[other.pc] in branch.inside[way]:
                result |= {Position(to, resume, pc, way) for to in self._other_ways(other, region)}
        return result

    def _after_executing(self, region: int) -> set[Position]:
        last = self.regions[region].code[-1]
        result = {Position(to) for to in self.graph.successors(region)}
        if last.pc in self.by_pc:  # the others go first
            branch = self.by_pc[last.pc]
            result |= {Position(way, to, last.pc, way) for way in branch.ways for to in branch.inside if to != way}
        for branch in self.branches:  # the others go on when it has come to the end of its way
            if branch.meeting in self.graph.successors(region):
                ways = self._other_ways(branch, region) & branch.ways
                result |= {Position(way, branch.meeting, branch.pc, way) for way in ways}
        return {position for position in result if position.resume != self.end}

    def _other_ways(self, branch: Branch, region: int) -> set[int]:
        """The ways that a warp may take after it has come, with a region, to the end of one."""
        ways = {way for way, inside in branch.inside.items() if region in inside}
        ends = self._ends(region)
        if not ways or (not ends and branch.meeting not in self.graph.successors(region)):
            return set()
        others = set(branch.ways - ways if len(ways) == 1 else branch.ways)
        return others | {branch.meeting} - {self.end} if ends else others

    def _positions(self) -> nx.DiGraph:
        graph = nx.DiGraph()
        graph.add_node(Position(0))
        todo = [Position(0)]
        while todo:
            position = todo.pop()
            for to in self._next(position):
                if to not in graph:
                    todo.append(to)
                graph.add_edge(position, to)
        return graph

    # ------------------------------------------------------------------------------------------------ what lanes need

    def _needs(self) -> dict[Position, int]:
        """What the lane may still read, when a region starts."""
        needs = dict.fromkeys(self.positions, 0)
        waiting: dict[int, list[Position]] = {}
        for position in self.positions:
            waiting.setdefault(position.resume, []).append(position)
        todo = dict.fromkeys(self.positions)
        while todo:
            position, _ = todo.popitem()
            needed = self._needed_after(position, needs)
            if position.resume < 0:
                for instruction in reversed(self.regions[position.region].code):
                    needed = _needed_before(instruction, needed)
            if needed != needs[position]:
                needs[position] = needed
                todo |= dict.fromkeys(self.positions.predecessors(position))
                if position.resume < 0:
                    todo |= dict.fromkeys(waiting.get(position.region, ()))
        return needs

    def _needed_after(self, position: Position, needs: Mapping[Position, int]) -> int:
        needed = needs.get(Position(position.resume), 0)  # its turn may never come: others may loop for ever
        for to in self.positions.successors(position):
            needed |= needs[to]
        return needed

    def _needed_inside(self, start: int) -> list[int]:
        """What any lane may still read, behind every instruction of a region."""
        waiting = after = 0
        for position in self.at[start]:
            if position.resume < 0:
                after |= self._needed_after(position, self.needs)
                continue
            waiting |= self.needs[position]
        result = []
        for instruction in reversed(self.regions[start].code):
            result.append(after | waiting)
            after = _needed_before(instruction, after)
        return result[::-1]

    # ----------------------------------------------------------------------------------------------- inside a region

    def _presence(self, region: Staged) -> None:
        """Every read is present, every register is given up where it is used last, and the banks suffice."""
        if not self.at[region.start]:
            return  # nothing leads there
        present = region.registers(Entry.PRELOAD, Entry.PRELOAD_LAST)
        loaded = region.registers(Entry.PRELOAD)
        last = region.registers(Entry.PRELOAD_LAST)
        pending, most = 0, [0] * BANKS
        for instruction, needed in zip(region.code, self._needed_inside(region.start), strict=True):
            where = f"{instruction.pc} (line {instruction.line})"
            for register in _members(bits(instruction.reads) & ~present):
                self._report(f"{where} reads r{register}, which is not present")
            touched = bits(instruction.writes) | bits(instruction.reads)
            present |= touched
            pending &= ~touched  # what it wrote before has come, or the instruction would not issue
            for bank in range(BANKS):
                held = [register for register in _members(present | pending) if register % BANKS == bank]
                most[bank] = max(most[bank], len(held))
            for operand, used_last, erased in instruction.flags:
                registers = bits(operand)
                if not registers & needed and not erased:
                    self._report(f"{where} keeps {_names(operand)}, which is dead")
                if used_last and registers & ~present:
                    self._report(f"{where} gives up {_names(operand)}, which is not present")
                if erased and loaded & registers:
                    self._report(f"{where} erases {_names(operand)}, of which memory keeps a copy")
                if used_last and not erased and last & registers:
                    self._report(f"{where} keeps {_names(operand)}, of which memory has dropped its copy")
                if used_last:
                    present &= ~registers
                    pending |= registers & bits(instruction.writes)
                    last, loaded = last & ~registers, loaded & ~registers
        for register in _members(present):
            self._report(f"the region at {region.start} ends with r{register} held")
        if tuple(most) != region.usage:
            self._report(f"the region at {region.start} needs {most} of its banks, and says {list(region.usage)}")

    def _facts(self) -> dict[Position, Facts]:
        facts = {Position(0): Facts()}
        todo = dict.fromkeys(facts)
        while todo:
            position, _ = todo.popitem()
            known = self._through(position, facts[position], lambda text: None)
            for to in self.positions.successors(position):
                before = facts.get(to)
                joined = known if before is None else before.join(known)
                if joined != before:
                    facts[to] = joined
                    todo[to] = None
        return facts

    def _through(self, position: Position, known: Facts, report: Callable[[str], None]) -> Facts:
        """The facts behind a region."""
        region = self.regions[position.region]
        written, lost, copies = known
        dropped = region.registers(Entry.INVALIDATE)
        lost, copies = lost | dropped & written, copies & ~dropped
        present = region.registers(Entry.PRELOAD, Entry.PRELOAD_LAST)
        copies |= present
        for instruction in region.code:
            where = f"{instruction.pc} (line {instruction.line})"
            executes = position.resume < 0
            if executes:
                for register in _members(bits(instruction.reads) & written & lost):
                    report(f"{where} reads r{register}, whose value may be lost")
            writes = bits(instruction.writes)
            new = writes & ~present
            for register in _members(new & copies):
                report(f"{where} writes r{register} beside an older copy")
            if not executes or instruction.guard is not None:
                lost |= new & written
            elif executes:
                lost &= ~writes
            if executes:
                written |= writes
            present |= writes
            copies |= writes
            for operand, used_last, erased in instruction.flags:
                registers = bits(operand)
                if used_last:
                    present &= ~registers
                if erased:
                    copies &= ~registers
                    lost |= registers & written
        return Facts(written, lost, copies)


def _needed_before(instruction: Instruction, needed: int) -> int:
    if instruction.guard is None:
        needed &= ~bits(instruction.writes)
    return needed | bits(instruction.reads)


def _members(registers: int) -> list[int]:
    return [register for register in range(registers.bit_length()) if registers >> register & 1]


def _names(operand: Sequence[int]) -> str:
    return " and ".join(f"r{register}" for register in operand)
