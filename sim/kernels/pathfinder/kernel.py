"""pathfinder: Rodinia's dynamic programming over a grid, CTAs of 256 threads, 20 rows per launch.

full has Rodinia's 100,000 columns and 100 rows: 463 CTAs, of which 216 threads each have a result in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "cheapest way through a grid, row by row"
SUITE = "Rodinia"
PTX = "dynproc.ptx"

BLOCK = 256
COSTS = 10  # of a cell: whole numbers below it
ROWS_COLUMNS_PYRAMID = {"tiny": (6, 500, 3), "small": (41, 100_000, 20), "full": (100, 100_000, 20)}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns, pyramid = ROWS_COLUMNS_PYRAMID[size]
    return {"wall": random.integers(0, COSTS, (rows, columns), np.int32), "pyramid": pyramid}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    (rows, columns), pyramid = data["wall"].shape, data["pyramid"]
    wall, source, target = gpu.to_device(data["wall"]), gpu.to_device(data["wall"][0]), gpu.empty(columns, np.int32)
    ctas = -(-columns // (BLOCK - 2 * pyramid))
    for row in range(1, rows, pyramid):
        steps = np.int32(min(pyramid, rows - row))
        args = [steps, wall, source, target, np.int32(columns), np.int32(row), np.int32(pyramid)]
        module.launch("dynproc_kernel", grid=(ctas,), block=(BLOCK,), args=args)
        source, target = target, source
    return {"costs": gpu.from_device(source)}


def reference(data: Data) -> Outputs:
    costs, *rows = data["wall"]
    for row in rows:
        around = np.pad(costs, 1, mode="edge")
        costs = np.minimum(np.minimum(around[:-2], costs), around[2:]) + row
    return {"costs": costs}
