"""bfs: Rodinia's breadth-first search, two kernels per level, until a flag says that no node was reached.

The papers' CTAs have 256 threads. The graph is made as Rodinia's generator does: 2 to 4 edges from each node to random
nodes, each in both directions. full has Rodinia's one million nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "breadth-first search, level by level"
SUITE = "Rodinia"
PTX = "bfs.ptx"
REGISTERS = {"expand": 20}  # Jatala table 3

BLOCK = 256
NODES = {"tiny": 300, "small": 32_768, "full": 1_000_000, "reference": 2048}
SIZES = tuple(NODES)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n = NODES[size]
    initial = random.integers(2, 5, n)
    source = np.repeat(np.arange(n), initial)
    target = random.integers(0, n, source.size)
    both = np.concatenate([source, target]), np.concatenate([target, source])
    degree = np.bincount(both[0], minlength=n)
    nodes = np.stack([np.cumsum(degree) - degree, degree], axis=1).astype(np.int32)
    edges = both[1][np.argsort(both[0], kind="stable")].astype(np.int32)
    return {"nodes": nodes, "edges": edges, "source": 0}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n = len(data["nodes"])
    start = np.arange(n) == data["source"]
    nodes, edges = gpu.to_device(data["nodes"]), gpu.to_device(data["edges"])
    frontier, visited = gpu.to_device(start), gpu.to_device(start)
    updated = gpu.to_device(np.zeros(n, bool))
    cost = gpu.to_device(np.where(start, 0, -1).astype(np.int32))
    grid, block, count = (-(-n // BLOCK),), (BLOCK,), np.int32(n)
    reached = True
    while reached:
        more = gpu.to_device(np.zeros(1, bool))
        module.launch("expand", grid=grid, block=block, args=[nodes, edges, frontier, updated, visited, cost, count])
        module.launch("advance", grid=grid, block=block, args=[frontier, updated, visited, more, count])
        reached = bool(gpu.from_device(more)[0])
    return {"cost": gpu.from_device(cost)}


def reference(data: Data) -> Outputs:
    nodes, edges = data["nodes"], data["edges"]
    owner = np.repeat(np.arange(len(nodes)), nodes[:, 1])
    cost = np.full(len(nodes), -1, np.int32)
    cost[data["source"]] = level = 0
    while (reached := edges[(cost[owner] == level) & (cost[edges] < 0)]).size:
        level += 1
        cost[reached] = level
    return {"cost": cost}
