"""Registers numbered against bank conflicts: those of one instruction, and those staged together, in different banks.

Hardware puts a register into the bank of its number modulo 8, turned by the warp. So two registers that an instruction
names meet in a bank in every warp, or in none. Places are numbered one after the other, those with the most conflicts
first, each where it meets the fewest: first of all with places in the same instruction, weighted by the loops around
it, then with places that are live at the same time. Pairs come before other places, while there is room for them
everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import NONE, Code
from lockstep.sim.compile.ptx.passes.register_regions.liveness import liveness
from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation, blocks, members, operations
from lockstep.spec.register_regions import BANKS

LOOP_WEIGHT = 8  # how much more often a loop's body runs than what surrounds it
MAX_DEPTH = 4
TOGETHER = 64  # what a conflict in one instruction counts beside one of being live together

Conflicts = dict[int, Counter[int]]


def renumber(draft: Draft) -> None:
    """Give the registers of a kernel new places that conflict less, unless the old ones are as good. Predicates
    stay."""
    found = conflicts(draft)
    pairs = sorted({place for place, bits in _placed(draft) if bits == 64})
    new = _places(draft.kernel.registers, pairs, found)
    if _cost(new, found) < _cost(range(draft.kernel.registers), found):
        for register, bits in enumerate(draft.code.bits):
            if register < len(draft.physical) and bits != 1 and draft.physical[register] != NONE:
                draft.physical[register] = new[draft.physical[register]]


def bank_conflicts(code: Iterable[Operation]) -> int:
    """Pairs of registers that one instruction names in the same bank, over all instructions of the code."""
    count = 0
    for operation in code:
        banks = Counter(register % BANKS for register in members(operation.touched))
        count += sum(of * (of - 1) // 2 for of in banks.values())
    return count


def conflicts(draft: Draft) -> Conflicts:
    """The cost of two places in one bank."""
    result: Conflicts = {place: Counter() for place in range(draft.kernel.registers)}

    def add(registers: int, weight: int) -> None:
        for one, other in combinations(members(registers), 2):
            result[one][other] += weight
            result[other][one] += weight

    for operation, weight in zip(operations(draft), _weights(draft.code), strict=True):
        add(operation.touched, weight * TOGETHER)
    graph = ControlFlowGraph(draft.code.successors())
    code = blocks(draft, graph)
    live = liveness(draft.code, graph, code)
    for number, block in enumerate(code):
        if block:
            near = 0
            for operation in block:
                near |= operation.touched
            add(near & live.before[number][0], 1)
    return result


def _placed(draft: Draft) -> Iterable[tuple[int, int]]:
    return ((place, draft.code.bits[register]) for register, place in enumerate(draft.physical) if place != NONE)


def _weights(code: Code) -> list[int]:
    """How often every micro-operation runs, guessed from the loops around it: branches that go back."""
    depth = [0] * (len(code.list) + 1)
    for index, micro in enumerate(code.list):
        for start in (code.labels[target] for target in micro.targets):
            if start <= index:
                depth[start] += 1
                depth[index + 1] -= 1
    result, here = [], 0
    for change in depth[:-1]:
        here += change
        result.append(LOOP_WEIGHT ** min(here, MAX_DEPTH))
    return result


def _places(count: int, pairs: Sequence[int], conflicts: Conflicts) -> list[int]:
    """The new number of every place; pairs stay aligned."""
    taken: dict[int, int] = {}  # new number -> place
    new = [0] * count

    def cost(place: int, number: int) -> int:
        return sum(conflicts[place][taken[other]] for other in range(number % BANKS, count, BANKS) if other in taken)

    def put(place: int, number: int) -> None:
        taken[number], new[place] = place, number

    def weight(place: int) -> int:
        return -sum(conflicts[place].values())

    for low in sorted(pairs, key=lambda low: weight(low) + weight(low + 1)):
        free = (number for number in range(0, count - 1, 2) if number not in taken)
        number = min(free, key=lambda number: cost(low, number) + cost(low + 1, number + 1))
        put(low, number)
        put(low + 1, number + 1)
    halves = {half for low in pairs for half in (low, low + 1)}
    for place in sorted((place for place in range(count) if place not in halves), key=weight):
        put(place, min((n for n in range(count) if n not in taken), key=lambda number: cost(place, number)))
    return new


def _cost(new: Sequence[int], conflicts: Conflicts) -> int:
    return sum(
        weight
        for place, others in conflicts.items()
        for other, weight in others.items()
        if new[place] % BANKS == new[other] % BANKS
    )
