"""Which registers a warp needs, while some of its lanes wait elsewhere: Kloosterman's thesis, section 4.4.4, corrected.

A register is *live* for a lane if the lane may read it before it overwrites it; a guarded write overwrites nothing for
sure. It is *warp-live* if it is live for a lane that is there or for one that waits. After a branch at which the lanes
of a warp may part, those that are not executing wait at another successor of the branch, or at the point where they
meet again. So inside such a branch, that is from one successor up to that point, what is live at the other successors
and at that point is warp-live too. A definition of such a register is *soft*: it must not lose the values of waiting
lanes.

Registers that nobody can have written have no value to lose. ``copies`` has those that may have one, at the start of
every block. Control of a warp takes edges that no lane takes: from where some lanes are done to where others wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lockstep.models.execution.isa import Control, Group
from lockstep.sim.compile.ptx.cfg import ControlFlowGraph
from lockstep.sim.compile.ptx.micro import NONE, Code
from lockstep.sim.compile.ptx.passes.register_regions.operations import Operation, mask

Blocks = Sequence[Sequence[Operation]]


@dataclass(frozen=True)
class Liveness:
    """Of every block: ``before`` and ``after`` each of its operations, the registers that are warp-live; ``waiting``,
    those that are so for lanes that wait, so that their definitions in the block are soft; ``copies``, those that may
    have a value when it starts."""

    before: list[list[int]]
    after: list[list[int]]
    waiting: list[int]
    copies: list[int]


@dataclass(frozen=True)
class Divergence:
    """A branch at which lanes may part: ``inside`` has, by successor, the blocks up to ``meeting``, the block at which
    they meet, or the graph's exit."""

    inside: dict[int, frozenset[int]]
    meeting: int


def liveness(code: Code, graph: ControlFlowGraph, blocks: Blocks) -> Liveness:
    """Warp-liveness of a kernel."""
    live_in, live_out = ordinary(graph, blocks)
    waiting = [0] * len(blocks)
    needed = [*live_in, 0]  # nothing at the exit
    for branch in divergences(code, graph):
        for successor, inside in branch.inside.items():
            others = needed[branch.meeting]
            for other in branch.inside:
                others |= needed[other] if other != successor else 0
            for block in inside:
                waiting[block] |= others
    before: list[list[int]] = []
    after: list[list[int]] = []
    for number, operations in enumerate(blocks):
        points = _walk(operations, live_out[number])
        before.append([live | waiting[number] for live, _ in points])
        after.append([live | waiting[number] for _, live in points])
    return Liveness(before, after, waiting, copies(code, graph, blocks, before, after))


def ordinary(graph: ControlFlowGraph, blocks: Blocks) -> tuple[list[int], list[int]]:
    """The registers that are live for a lane at the start and at the end of every block."""
    live_in, live_out = [0] * len(blocks), [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            live_out[number] = 0
            for successor in graph.successors[number]:
                live_out[number] |= live_in[successor]
            points = _walk(blocks[number], live_out[number])
            changed |= live_in[number] != points[0][0]
            live_in[number] = points[0][0]
    return live_in, live_out


def _walk(block: Sequence[Operation], live: int) -> list[tuple[int, int]]:
    """The registers that are live before and after every operation of a block."""
    points = []
    for operation in reversed(block):
        after = live
        live = (live if operation.guarded else live & ~operation.writes) | operation.reads
        points.append((live, after))
    return points[::-1]


def divergences(code: Code, graph: ControlFlowGraph) -> Iterator[Divergence]:
    """The branches at which the lanes of a warp may part."""
    for number in sorted(graph.reachable):
        last = code.list[graph.blocks[number][-1]]
        parts = last.op == Control.INDEXED or (last.op == Control.BRANCH and last.guard != NONE)
        successors = graph.successors[number]
        if last.group == Group.CONTROL and parts and len(successors) > 1:
            meeting = graph.post_dominators[number]
            yield Divergence({each: _inside(graph, each, meeting) for each in successors}, meeting)


def _inside(graph: ControlFlowGraph, start: int, meeting: int) -> frozenset[int]:
    """The blocks that control can reach from one without passing the meeting point."""
    found, todo = set[int](), [start]
    while todo:
        block = todo.pop()
        if block != meeting and block not in found:
            found.add(block)
            todo += graph.successors[block]
    return frozenset(found)


def copies(
    code: Code, graph: ControlFlowGraph, blocks: Blocks, before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
) -> list[int]:
    """The registers that may have a value when a block starts, if it goes where they are no longer warp-live."""
    edges = [set(successors) for successors in graph.successors]
    for branch in divergences(code, graph):
        for successor, inside in branch.inside.items():
            others = branch.inside.keys() - {successor}
            for block in inside:
                if block in graph.exits:
                    edges[block] |= {*others, branch.meeting} - {graph.exit}
                elif branch.meeting in graph.successors[block]:
                    edges[block] |= others - {branch.meeting}
    result = [0] * len(blocks)
    todo = list(range(len(blocks)))
    while todo:
        number = todo.pop()
        there = result[number] & before[number][0]
        for operation, needed in zip(blocks[number], after[number], strict=True):
            there = remaining(operation, there, needed)
        for successor in edges[number]:
            if there & ~result[successor]:
                result[successor] |= there
                todo.append(successor)
    return result


def remaining(operation: Operation, copies: int, needed: int) -> int:
    """The registers that may have a value behind an operation, where those ``needed`` are warp-live. An operand goes
    as a whole."""
    dead = (operand for operand in operation.operands if not mask([operand]) & needed)
    return (copies | operation.touched) & ~mask(dead)
