"""Memory regions, and the hints of region-p scheduling behind them: Chen's thesis, section 4.4.

With w warps on an SM and l cycles to DRAM, each warp must bring l/w instructions to hide a load of another. Loads from
global memory that bring fewer form a region: the result of each is needed less than l/w instructions later, and the
next load follows less than l/w instructions later. Every other load is a region of its own. Distances count the
micro-operations that issue on the shortest way forward. A region does not reach into a loop, out of one or over one,
so that every iteration has its own.

The hint is a flag on the last load of a region. Where control parts between its loads, each way can have a last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import networkx as nx

from lockstep.models.execution.isa import Flag, Group, Memory, Space
from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import Code, Micro


def hints(draft: Draft, *, latency: int, warps: int) -> None:
    """Let the priority shift behind every region of a kernel."""
    for region in regions(draft.code, latency, warps):
        for load in last(draft.code, region):
            draft.code.list[load].flags |= Flag.HINT


def regions(code: Code, latency: int, warps: int) -> list[list[int]]:
    """The memory regions of a kernel, in order: indices of loads. ``latency`` in core cycles."""
    loads = [index for index, micro in enumerate(code.list) if is_global_load(micro)]
    within = -(-latency // warps)  # distances below it are below latency / warps
    forward = _forward(code)
    short = {load for load in loads if _needed(code, forward, load, within)}
    loops = _loops(code)
    inside = [tuple(to for to in targets if loops[to] == loops[index]) for index, targets in enumerate(forward)]
    joined = nx.Graph()
    joined.add_nodes_from(loads)
    for load in short:
        joined.add_edges_from((load, other) for other in _ahead(inside, load, within) if other in short)
    return sorted(sorted(region) for region in nx.connected_components(joined))


def last(code: Code, region: Sequence[int]) -> list[int]:
    """The loads of a region behind which there is no other of it."""
    forward = _forward(code)
    end = len(code.list)
    return [load for load in region if not any(other in region for other in _ahead(forward, load, end))]


def is_global_load(micro: Micro) -> bool:
    """Whether a micro-operation may load from global memory."""
    load = micro.group == Group.MEMORY and micro.op == Memory.LOAD
    return load and micro.space in (Space.GLOBAL, Space.GENERIC)


def _forward(code: Code) -> list[tuple[int, ...]]:
    """Where control can go from every micro-operation without going back."""
    return [
        tuple(target for target in targets if index < target < len(code.list))
        for index, targets in enumerate(code.successors())
    ]


def _ahead(forward: Sequence[tuple[int, ...]], start: int, within: int) -> Iterator[int]:
    """The micro-operations less than ``within`` ahead of one, the nearest first."""
    seen, here = {start}, {start}
    for _ in range(1, within):
        here = {target for index in here for target in forward[index]} - seen
        seen |= here
        yield from here


def _needed(code: Code, forward: Sequence[tuple[int, ...]], load: int, within: int) -> bool:
    """Whether a micro-operation less than ``within`` ahead waits for the result of a load."""
    written = set(code.list[load].registers_written())
    ahead = (code.list[index] for index in _ahead(forward, load, within))
    return any(not written.isdisjoint((*micro.registers_read(), *micro.registers_written())) for micro in ahead)


def _loops(code: Code) -> list[frozenset[int]]:
    """The loops around every micro-operation: by the branches that go back, and enclose it."""
    around: list[set[int]] = [set() for _ in code.list]
    for index, targets in enumerate(code.successors()):
        for target in targets:
            for inside in range(target, index + 1):
                around[inside].add(index)
    return [frozenset(loops) for loops in around]
