"""Register allocation: virtual registers to physical ones of 32 bits, with spilling to local memory above a limit.

A register occupies the *points* behind the micro-operations after which its value is still needed, and those where it
is written. Point sets are integers, one bit per micro-operation, so two registers may share a place when the
conjunction of their sets is zero: live ranges with holes cost nothing. 64-bit values take an aligned even/odd pair.
Registers are coloured in the order in which they become live, lowest free place first; or pairs before the others, when
that takes fewer registers.

A thread's register keeps its value where the thread does not execute, so a write under a guard reads its register too;
but only what may have been written on the way needs to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lockstep.models.execution import isa
from lockstep.models.execution.isa import Category, Flag, Group, Memory, Space
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft, Refused
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

ROUNDS = 100  # of spilling; a kernel that needs more does not fit
LOOP_WEIGHT = 10  # how much more often a loop's body runs than what surrounds it


class Pressure(Refused):
    """The kernel does not fit into its registers."""


@dataclass(slots=True)
class Allocation:
    physical: list[int]  # of every virtual register; NONE where it is not used
    registers: int
    predicates: int
    local_bytes: int
    spilled: int  # 32-bit registers


@dataclass(slots=True)
class Liveness:
    """Where every virtual register is live."""

    points: list[int]  # bit p: occupied behind micro-operation p
    ranges: list[list[tuple[int, int]]]  # the same as inclusive intervals
    references: list[list[int]] = field(default_factory=list)  # micro-operations that name it


def allocation(draft: Draft) -> None:
    """Allocate the registers of a draft: the tenant of the stage *allocation*. Raises :class:`Pressure`."""
    kernel = draft.kernel
    found = allocate(draft.code, draft.limit, kernel.local_bytes)
    draft.physical = found.physical
    kernel.registers, kernel.predicates = found.registers, found.predicates
    kernel.local_bytes, kernel.spilled = found.local_bytes, found.spilled


def allocate(code: Code, limit: int, local_bytes: int) -> Allocation:
    """Give every virtual register its place among ``limit`` registers, adding spill code to ``code`` when they do not
    suffice. ``local_bytes`` of local memory are in use already. Raises :class:`Pressure`."""
    temporaries: set[int] = set()
    spilled = 0
    for _ in range(ROUNDS):
        live = liveness(code)
        victims = _crowded_out(code, live, limit, temporaries)
        if not victims:
            physical, failed = _colour(code, live, limit)
            if not failed:
                count = max((p + words(code.bits[r]) for r, p in enumerate(physical) if p != NONE), default=1)
                return _with_predicates(code, live, Allocation(physical, count, 0, -(-local_bytes // 4) * 4, spilled))
            victims = _neighbours(code, live, failed, temporaries)
        if not victims:
            break
        spilled += sum(words(code.bits[register]) for register in victims)
        local_bytes = _spill(code, victims, temporaries, local_bytes)
    raise Pressure(f"needs more than {limit} registers per thread, even with spilling")


def words(bits: int) -> int:
    """32-bit registers that a value takes; 0 for a predicate."""
    return 2 if bits == 64 else 0 if bits == 1 else 1


# ------------------------------------------------------------------------------------------------------------- liveness


def liveness(code: Code) -> Liveness:
    """Solve the data-flow equations over the basic blocks, then walk each block backwards."""
    graph = ControlFlowGraph(code.successors())
    reads = [micro.registers_read() for micro in code.list]
    writes = [micro.registers_written() for micro in code.list]
    for index, micro in enumerate(code.list):
        if micro.guard != NONE:
            reads[index] += writes[index]
    live_in, live_out = _block_liveness(graph, reads, writes)
    undefined = _undefined(graph, live_in[0], writes)
    count = len(code.bits)
    result = Liveness([0] * count, [[] for _ in range(count)], [[] for _ in range(count)])

    def occupy(register: int, first: int, last: int) -> None:
        if first <= last:
            result.points[register] |= ((1 << (last - first + 1)) - 1) << first
            result.ranges[register].append((first, last))

    for number, block in enumerate(graph.blocks):
        until = dict.fromkeys(live_out[number], block[-1])  # live registers -> last point of their range
        for index in reversed(block):
            for register in writes[index]:
                occupy(register, index, until.pop(register, index))
                result.references[register].append(index)
            for register in reads[index]:
                until.setdefault(register, index - 1)
                result.references[register].append(index)
        for register, last in until.items():
            if register not in undefined[number]:
                occupy(register, block.start, last)
    return result


def _block_liveness(
    graph: ControlFlowGraph, reads: list[list[int]], writes: list[list[int]]
) -> tuple[list[set[int]], list[set[int]]]:
    """The registers that are live at the start and at the end of every block."""
    used: list[set[int]] = []
    defined: list[set[int]] = []
    for block in graph.blocks:
        use, define = set[int](), set[int]()
        for index in block:
            use.update(register for register in reads[index] if register not in define)
            define.update(writes[index])
        used.append(use)
        defined.append(define)
    live_in = [set(use) for use in used]
    live_out: list[set[int]] = [set() for _ in used]
    todo = list(range(len(used)))
    waiting = set(todo)
    while todo:
        number = todo.pop()
        waiting.discard(number)
        live_out[number] = set().union(*(live_in[successor] for successor in graph.successors[number]))
        entering = used[number] | (live_out[number] - defined[number])
        if entering != live_in[number]:
            live_in[number] = entering
            fresh = [p for p in graph.predecessors[number] if p not in waiting]
            waiting.update(fresh)
            todo += fresh
    return live_in, live_out


def _undefined(graph: ControlFlowGraph, exposed: set[int], writes: list[list[int]]) -> list[set[int]]:
    """Of the registers that are live at the entry: those that no path has written at the start of each block."""
    undefined = [set(exposed) for _ in graph.blocks]
    todo = list(range(len(undefined) - 1, -1, -1)) if exposed else []
    while todo:
        number = todo.pop()
        leaving = undefined[number].difference(*(writes[index] for index in graph.blocks[number]))
        for successor in graph.successors[number]:
            if not undefined[successor] <= leaving:
                undefined[successor] &= leaving
                todo.append(successor)
    return undefined


# ------------------------------------------------------------------------------------------------------------ colouring


def _colour(code: Code, live: Liveness, limit: int) -> tuple[list[int], list[int]]:
    """The better of two greedy orders; returns the places, and the registers that found none."""
    order = sorted(
        (register for register, points in enumerate(live.points) if points and words(code.bits[register])),
        key=lambda register: min(live.ranges[register]),
    )
    pairs_first = sorted(order, key=lambda register: -words(code.bits[register]))
    attempts = [_greedy(code, live, limit, some) for some in (order, pairs_first)]
    return min(attempts, key=lambda attempt: (len(attempt[1]), max(attempt[0], default=0)))


def _greedy(code: Code, live: Liveness, limit: int, order: list[int]) -> tuple[list[int], list[int]]:
    occupied = [0] * limit
    physical = [NONE] * len(code.bits)
    failed = []
    for register in order:
        points = live.points[register]
        if words(code.bits[register]) == 2:
            for place in range(0, limit - 1, 2):
                if not occupied[place] & points and not occupied[place + 1] & points:
                    occupied[place] |= points
                    occupied[place + 1] |= points
                    physical[register] = place
                    break
            else:
                failed.append(register)
        else:
            for place in range(limit):
                if not occupied[place] & points:
                    occupied[place] |= points
                    physical[register] = place
                    break
            else:
                failed.append(register)
    return physical, failed


def _with_predicates(code: Code, live: Liveness, allocation: Allocation) -> Allocation:
    """Place the predicates too; there is no room for them to spill into."""
    occupied = [0] * isa.MAX_PREDICATES
    for register, points in enumerate(live.points):
        if code.bits[register] == 1 and points:
            for place, taken in enumerate(occupied):
                if not taken & points:
                    occupied[place] |= points
                    allocation.physical[register] = place
                    allocation.predicates = max(allocation.predicates, place + 1)
                    break
            else:
                raise Pressure(f"needs more than {isa.MAX_PREDICATES} predicates at a time")
    # Undefined values may sit anywhere: they are read only where nothing has been written.
    for register, references in enumerate(live.references):
        if references and allocation.physical[register] == NONE:
            allocation.physical[register] = 0
            allocation.predicates = max(allocation.predicates, int(code.bits[register] == 1))
            allocation.registers = max(allocation.registers, words(code.bits[register]))
    return allocation


# ------------------------------------------------------------------------------------------------------------- spilling


def weights(code: Code) -> np.ndarray:
    """How often each micro-operation runs, guessed from the loops around it."""
    change = np.zeros(len(code.list) + 1, np.int64)
    for index, micro in enumerate(code.list):
        for target in micro.targets:
            if code.labels[target] <= index:
                change[code.labels[target]] += 1
                change[index + 1] -= 1
    return float(LOOP_WEIGHT) ** np.minimum(np.cumsum(change)[:-1], 6)


def _scores(code: Code, live: Liveness, temporaries: set[int]) -> list[float]:
    """The cost of spilling a register, per register and point that it frees; infinite for those that may not be."""
    weight = weights(code)
    scores = []
    for register, points in enumerate(live.points):
        if not points or register in temporaries or code.bits[register] == 1:
            scores.append(np.inf)
        else:
            cost = sum(float(weight[index]) for index in live.references[register])
            scores.append(cost / (points.bit_count() * words(code.bits[register])))
    return scores


def _crowded_out(code: Code, live: Liveness, limit: int, temporaries: set[int]) -> list[int]:
    """The registers to spill so that at no point more than ``limit`` are live: a sweep over the points in order."""
    starting: list[list[int]] = [[] for _ in code.list]
    ending: list[list[int]] = [[] for _ in code.list]
    for register, ranges in enumerate(live.ranges):
        if words(code.bits[register]):
            for first, last in ranges:
                starting[first].append(register)
                ending[last].append(register)
    scores: list[float] = []
    victims: dict[int, None] = {}
    present: set[int] = set()
    pressure = 0
    for point in range(len(code.list)):
        for register in starting[point]:
            if register not in victims:
                present.add(register)
                pressure += words(code.bits[register])
        while pressure > limit:
            scores = scores or _scores(code, live, temporaries)
            victim = min(present, key=lambda register: (scores[register], register))
            if scores[victim] == np.inf:
                raise Pressure(f"needs {pressure} registers for one instruction, {limit} are allowed")
            victims[victim] = None
            present.remove(victim)
            pressure -= words(code.bits[victim])
        for register in ending[point]:
            if register in present:
                present.remove(register)
                pressure -= words(code.bits[register])
    return list(victims)


def _neighbours(code: Code, live: Liveness, failed: list[int], temporaries: set[int]) -> list[int]:
    """For registers that found no place: the cheapest ones that are in the way."""
    scores = _scores(code, live, temporaries)
    victims: list[int] = []
    for register in failed:
        points = live.points[register]
        near = [r for r, other in enumerate(live.points) if other & points and scores[r] < np.inf]
        if near and not any(victim in near for victim in victims):
            victims.append(min(near, key=lambda other: scores[other]))
    return victims


def _spill(code: Code, victims: list[int], temporaries: set[int], local_bytes: int) -> int:
    """Keep the victims in local memory: load before each use, store after each write. Returns the new size of it."""
    slots = {}
    for register in victims:
        size = 4 * words(code.bits[register])
        slots[register] = local_bytes = -(-local_bytes // size) * size
        local_bytes += size
    expansions = []
    for micro in code.list:
        written = [register for register in micro.registers_written() if register in slots]
        read = [register for register in micro.registers_read() if register in slots]
        if not written and not read:
            expansions.append([micro])
            continue
        if micro.guard != NONE:
            read += written  # lanes that do not write keep their values
        names = {}
        for register in dict.fromkeys((*read, *written)):
            names[register] = code.register(code.bits[register])
            temporaries.add(names[register])
        micro.rename(names)
        expansions.append(
            [
                *(_transfer(code, Memory.LOAD, slots[r], names[r], micro.line) for r in dict.fromkeys(read)),
                micro,
                *(_transfer(code, Memory.STORE, slots[r], names[r], micro.line) for r in dict.fromkeys(written)),
            ]
        )
    code.replace(expansions)
    return local_bytes


def _transfer(code: Code, op: Memory, slot: int, register: int, line: int) -> Micro:
    size = 4 * words(code.bits[register])
    side = {0: register}
    return Micro(
        Group.MEMORY, op, Category.LOCAL, space=Space.LOCAL, bytes=size, data=size, offset=slot, line=line,
        flags=Flag.SPILL, results=side if op == Memory.LOAD else {}, operands=side if op == Memory.STORE else {},
    )  # fmt: skip
