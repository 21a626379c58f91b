"""The host's part of breadth-first search by one CTA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.device.gpu import Gpu
    from lockstep.sim.device.module import Module
    from lockstep.sim.device.run import Run

__all__ = ["graph", "reference", "run", "search", "setup_of"]

THREADS = 512
GRAPH = np.dtype(
    [(name, np.uint64) for name in ("first", "target", "cost", "frontier", "found")] + [("vertices", np.int32)],
    align=True,
)


def graph(vertices: int, degree: float, seed: int) -> Data:
    """Undirected edges between random vertices, ``degree`` for each vertex on average."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, vertices, (int(vertices * degree / 2), 2))
    ends = np.concatenate([pairs, pairs[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first = np.searchsorted(ends[:, 0], np.arange(vertices + 1))
    source = int(np.argmax(np.diff(first)))  # where most edges begin
    return {"first": first.astype(np.int32), "target": ends[:, 1].astype(np.int32), "source": source}


def setup_of(sizes: Mapping[str, tuple[int, float]]) -> Callable[[str, int], Data]:
    """``setup`` of a ``kernel.py``."""
    return lambda size, seed: graph(*sizes[size], seed)


def search(gpu: Gpu, module: Module, data: Data, barriers: bool) -> tuple[np.ndarray, list[Run]]:
    """Edges from the source to each vertex, and the launches."""
    vertices = len(data["first"]) - 1
    start = np.zeros(vertices, np.int32)
    start[data["source"]] = 1
    buffers = [gpu.to_device(each) for each in (data["first"], data["target"], start - 1, start, 0 * start)]
    record = np.array([(*(buffer.address for buffer in buffers), vertices)], GRAPH)[0]
    if barriers:
        runs = [module.launch("bfs_barriers", grid=(1,), block=(THREADS,), args=[record])]
    else:
        any_found, runs = gpu.to_device(np.ones(1, np.int32)), []
        while gpu.from_device(any_found)[0]:
            args = [record, np.int32(len(runs) + 1), any_found]
            runs.append(module.launch("bfs_level", grid=(1,), block=(THREADS,), args=args))
    return gpu.from_device(buffers[2]), runs


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    return {name: search(gpu, module, data, name == "barriers")[0] for name in ("barriers", "launches")}


def reference(data: Data) -> Outputs:
    first, target = data["first"], data["target"]
    cost = np.full(len(first) - 1, -1, np.int32)
    level, frontier = 0, [data["source"]]
    cost[frontier] = 0
    while frontier:
        level += 1
        near = {int(target[edge]) for vertex in frontier for edge in range(first[vertex], first[vertex + 1])}
        frontier = [vertex for vertex in near if cost[vertex] < 0]
        cost[frontier] = level
    return {"barriers": cost, "launches": cost.copy()}
