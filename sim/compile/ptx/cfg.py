"""Control flow of a kernel: basic blocks, dominators, post-dominators and the reconvergence points of divergent warps.

A program is a list with the successors of every instruction, by index. An instruction without successors ends the
thread; so does the successor ``len(successors)``, the virtual exit, which lets an instruction name "or the thread ends"
beside other successors. Instruction 0 is the entry.

Warps reconverge at the immediate post-dominator of a divergent branch (Fung et al., "Dynamic Warp Formation and
Scheduling for Efficient GPU Control Flow", MICRO 2007, section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import networkx as nx

Successors = Sequence[tuple[int, ...]]


class ControlFlowGraph:
    """The basic blocks of a program and the edges between them. Blocks are numbered in program order.

    ``blocks``: the instruction indices of every block, as a range.
    ``block_of``: the block of every instruction.
    ``successors``, ``predecessors``: of every block, blocks only, without repetition; the virtual exit is left out.
    ``exits``: the blocks that can end the thread.
    """

    def __init__(self, successors: Successors) -> None:
        count = len(successors)
        leaders = {0} if count else set()
        for index, targets in enumerate(successors):
            if targets != (index + 1,):
                leaders.update(targets)
                leaders.add(index + 1)
        starts = sorted(leaders - {count})
        self.blocks = [range(start, stop) for start, stop in zip(starts, [*starts[1:], count], strict=False)]
        self.block_of = [number for number, block in enumerate(self.blocks) for _ in block]
        self.successors: list[tuple[int, ...]] = []
        self.exits: set[int] = set()
        incoming: list[list[int]] = [[] for _ in self.blocks]
        for number, block in enumerate(self.blocks):
            last = successors[block[-1]]
            if not last or count in last:
                self.exits.add(number)
            outgoing = tuple(dict.fromkeys(self.block_of[target] for target in last if target != count))
            self.successors.append(outgoing)
            for successor in outgoing:
                incoming[successor].append(number)
        self.predecessors = [tuple(numbers) for numbers in incoming]

    @property
    def exit(self) -> int:
        """The number of the virtual exit block, where all threads end up."""
        return len(self.blocks)

    @cached_property
    def graph(self) -> nx.DiGraph:
        """Blocks and the virtual exit, for networkx."""
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.blocks) + 1))
        graph.add_edges_from((block, to) for block, targets in enumerate(self.successors) for to in targets)
        graph.add_edges_from((block, self.exit) for block in self.exits)
        return graph

    @cached_property
    def reachable(self) -> frozenset[int]:
        """The blocks that control can reach from the entry."""
        return frozenset(nx.descendants(self.graph, 0) | {0}) - {self.exit}

    @cached_property
    def postorder(self) -> list[int]:
        """Reachable blocks, successors first where there are no loops: the order for backward data-flow problems."""
        return [block for block in nx.dfs_postorder_nodes(self.graph, 0) if block != self.exit]

    @cached_property
    def dominators(self) -> list[int | None]:
        """The immediate dominator of every block; None for the entry and for unreachable blocks."""
        return self._immediate_dominators(self.graph, 0)[:-1]

    @cached_property
    def post_dominators(self) -> list[int]:
        """The immediate post-dominator of every block, :attr:`exit` where the paths meet only at the end.

        An endless loop has none by definition. It is given a way out just before its first block, node ``~first``:
        the branches inside it then reconverge within the iteration, or at the start of the next.
        """
        graph = self.graph.copy()
        for component in list(nx.attracting_components(graph)):
            if self.exit not in component:
                first = min(component)
                entering = list(graph.in_edges(first))
                graph.remove_edges_from(entering)
                graph.add_edges_from((block, ~first) for block, _ in entering)
                graph.add_edges_from([(~first, first), (~first, self.exit)])
        immediate = self._immediate_dominators(graph.reverse(copy=False), self.exit)
        nearest = [self.exit if block is None else block for block in immediate[:-1]]
        return [block if block >= 0 else ~block for block in nearest]

    def _immediate_dominators(self, graph: nx.DiGraph, start: int) -> list[int | None]:
        immediate = nx.immediate_dominators(graph, start)
        immediate[start] = None  # the start itself in networkx before 3.6
        return [immediate.get(block) for block in range(self.exit + 1)]


def reconvergence(successors: Successors) -> list[int]:
    """For every instruction, the index where a warp that diverges there is whole again: the first instruction of the
    immediate post-dominator of its block, or ``len(successors)`` when that is the virtual exit."""
    if not successors:
        return []
    graph = ControlFlowGraph(successors)
    starts = [block.start for block in graph.blocks] + [len(successors)]
    return [starts[graph.post_dominators[block]] for block in graph.block_of]
