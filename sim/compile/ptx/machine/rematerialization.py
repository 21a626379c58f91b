"""Values that one instruction makes of constants or special registers: made again where they are used, not kept.

That saves registers where the kernel needs most of them, and costs an instruction for uses that are near each other.
A value is not made again in a deeper loop than it is made in now.
"""

from __future__ import annotations

from lockstep.models.execution.isa import Group
from lockstep.sim.compile.ptx.allocate import liveness, weights
from lockstep.sim.compile.ptx.machine.copies import is_pure
from lockstep.sim.compile.ptx.machine.pressure import pressure, registers
from lockstep.sim.compile.ptx.machine.values import Values
from lockstep.sim.compile.ptx.micro import NONE, Code, Micro

_NEAR = 16  # instructions, assumed: between uses of one value that is made once


def rematerialize(code: Code) -> None:
    """Make values again as long as the kernel needs fewer registers then."""
    fewest = registers(code)
    while chosen := _chosen(code):
        trial = code.copy()
        _make_again(trial, chosen)
        needed = registers(trial)
        if needed >= fewest:
            return
        code.take(trial)
        fewest = needed


def _chosen(code: Code) -> set[int]:
    """Values so that at every point at which most registers have one, one fewer has: few of them, and seldom used.

    None if that cannot be.
    """
    values, live, weight = Values(code), liveness(code), weights(code)
    at = pressure(code, live)
    kept: dict[int, int] = {}
    costs: dict[int, float] = {}
    for index, micro in enumerate(code.list):
        uses = values.uses[micro.dst]
        if _is_cheap(micro) and values.is_single(micro.dst) and all(weight[use] <= weight[index] for use in uses):
            costs[micro.dst] = sum(float(weight[use]) for use in uses)
            kept[micro.dst] = _points(uses, values)
    most, chosen = max(at, default=0), set[int]()
    for point, count in enumerate(at):
        if count == most:
            over = [register for register in costs if (live.points[register] & ~kept[register]) >> point & 1]
            if not over:
                return set()
            if chosen.isdisjoint(over):
                chosen.add(min(over, key=lambda register: (costs[register], register)))
    return chosen


def _together(uses: list[int], values: Values) -> list[list[int]]:
    """Uses in groups: of one block, each near the one before."""
    groups: list[list[int]] = []
    block_of = values.graph.block_of
    for use in sorted(set(uses)):
        before = groups[-1][-1] if groups else None
        if before is not None and block_of[before] == block_of[use] and use - before <= _NEAR:
            groups[-1].append(use)
        else:
            groups.append([use])
    return groups


def _points(uses: list[int], values: Values) -> int:
    """The points from the first use to the last one of each group: bit p behind micro-operation p."""
    return sum((1 << some[-1]) - (1 << max(some[0] - 1, 0)) for some in _together(uses, values))


def _is_cheap(micro: Micro) -> bool:
    """Whether it makes a value of constants and special registers alone."""
    alone = micro.dst != NONE and micro.registers_written() == [micro.dst] and not micro.registers_read()
    return alone and is_pure(micro) and micro.group != Group.MEMORY


def _make_again(code: Code, chosen: set[int]) -> None:
    """Make the values before the first use of each group, in registers of their own."""
    values = Values(code)
    expansions: list[list[Micro]] = [[micro] for micro in code.list]
    for register in sorted(chosen):
        (definition,) = values.definitions[register]
        for uses in _together(values.uses[register], values):
            made = code.register(code.bits[register])
            expansions[uses[0]].insert(0, code.list[definition].writing(made))
            for use in uses:
                code.list[use].name_read({register: made})
        expansions[definition].remove(code.list[definition])
    code.replace(expansions)
