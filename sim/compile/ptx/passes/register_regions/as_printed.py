"""Soft definitions by algorithm 2 of Kloosterman's thesis, to the letter: to show what it loses. Nothing else uses it.

Algorithm 2 looks for a dominator of the definition, with no point between the two at which control meets again, that
has another successor at whose start the register is live. So both arms of a branch that define a register, for a use
behind the branch, come out as hard: neither finds it live at the other arm. Of the body of a loop that is tested at
its end, the other successor is found, but no dominator outside the body. Guards it does not look at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.micro import Code
from lockstep.sim.compile.ptx.passes.register_regions.liveness import Blocks, Liveness, copies
from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation


def without_guards(blocks: Blocks) -> list[list[Operation]]:
    """The same operations, as if all lanes executed them."""
    return [[replace(operation, guarded=False) for operation in block] for block in blocks]


def liveness(code: Code, graph: ControlFlowGraph, blocks: Blocks) -> Liveness:
    """Liveness in which soft definitions do not end a live range."""
    soft = [0] * len(blocks)
    while True:
        live_in, points = _solve(graph, blocks, soft)
        found = [_soft(graph, block, live_in) for block in range(len(blocks))]
        if found == soft:
            break
        soft = [a | b for a, b in zip(soft, found, strict=True)]
    before = [[b for b, _ in block] for block in points]
    after = [[a for _, a in block] for block in points]
    return Liveness(before, after, soft, copies(code, graph, blocks, before, after))


def _soft(graph: ControlFlowGraph, block: int, live_in: Sequence[int]) -> int:
    """The registers whose definitions in a block are soft: ``IsSoftDef``, for all registers at once."""
    result = 0
    dominators = _chain(graph.dominators, block)
    for dominator in dominators - {block}:
        if dominators & (_chain(graph.post_dominators, dominator) - {dominator}):
            continue
        for successor in graph.successors[dominator]:
            if successor not in dominators:
                result |= live_in[successor]
    return result


def _chain(immediate: Sequence[int | None], block: int) -> set[int]:
    """A block and all that dominate it, or postdominate it."""
    found = set[int]()
    here: int | None = block
    while here is not None and here not in found and here < len(immediate):
        found.add(here)
        here = immediate[here]
    return found


def _solve(
    graph: ControlFlowGraph, blocks: Blocks, soft: Sequence[int]
) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """The registers that are live at the start of every block, and before and after each of its operations."""
    live_in = [0] * len(blocks)
    points: list[list[tuple[int, int]]] = [[] for _ in blocks]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            live = 0
            for successor in graph.successors[number]:
                live |= live_in[successor]
            points[number] = []
            for operation in reversed(blocks[number]):
                after = live
                live = live & ~(operation.writes & ~soft[number]) | operation.reads
                points[number].append((live, after))
            points[number].reverse()
            changed |= live != live_in[number]
            live_in[number] = live
    return live_in, points
