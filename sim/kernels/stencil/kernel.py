"""stencil: Parboil's block2D_hybrid_coarsen_x, 512 threads per CTA with two elements of each plane.

The CTA has 32 x 16 threads: Jatala's number; Parboil's own has 32 x 4. full is Parboil's default input, 512 x 512 x 64
and 100 iterations. steady does one iteration, with the first 32 planes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "stencil of seven points, tiled in planes"
SUITE = "Parboil"
PTX = "stencil.ptx"
REGISTERS = {"block2D_hybrid_coarsen_x": 28}  # Jatala table 2
TOLERANCE = {"grid": Close(rtol=1e-6, atol=1e-7, reason="float32 sums of seven against float64")}

BLOCK_X, BLOCK_Y = 32, 16
C0, C1 = np.float32(1 / 6), np.float32(1 / 36)
# Of the grid: x, y, z; iterations; planes that take part.
SHAPE_ITERATIONS_PLANES = {
    "tiny": ((70, 12, 4), 2, 4),
    "small": ((128, 128, 32), 4, 32),
    "full": ((512, 512, 64), 100, 64),
    "steady": ((512, 512, 64), 1, 32),
    "reference": ((128, 32, 4), 2, 4),
}
SIZES = tuple(SHAPE_ITERATIONS_PLANES)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    shape, iterations, planes = SHAPE_ITERATIONS_PLANES[size]
    return {"grid": random.random(shape[::-1], np.float32), "iterations": iterations, "planes": planes}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    _, ny, nx = data["grid"].shape
    source, target = gpu.to_device(data["grid"]), gpu.to_device(data["grid"])
    grid, block = (-(-nx // (2 * BLOCK_X)), -(-ny // BLOCK_Y)), (BLOCK_X, BLOCK_Y)
    sizes = [np.int32(value) for value in (nx, ny, data["planes"])]
    for _ in range(data["iterations"]):
        module.launch("block2D_hybrid_coarsen_x", grid=grid, block=block, args=[C0, C1, source, target, *sizes])
        source, target = target, source
    return {"grid": gpu.from_device(source)}


def reference(data: Data) -> Outputs:
    grid = data["grid"].astype(np.float64)
    part = grid[: data["planes"]]
    for _ in range(data["iterations"]):
        inner = part[1:-1, 1:-1, 1:-1]
        neighbours = (
            part[2:, 1:-1, 1:-1] + part[:-2, 1:-1, 1:-1]
            + part[1:-1, 2:, 1:-1] + part[1:-1, :-2, 1:-1]
            + part[1:-1, 1:-1, 2:] + part[1:-1, 1:-1, :-2]
        )  # fmt: skip
        inner[...] = C1 * neighbours - C0 * inner
    return {"grid": grid.astype(np.float32)}
