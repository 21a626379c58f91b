"""3DFD: the SDK's stencil of order eight in three dimensions, CTAs of 16 x 16 threads that walk along z.

The size of the SDK's grid is not known to us; full has 480 x 480 x 100 points. Points and coefficients are whole
numbers, so that results are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "stencil of 25 points, tiled in planes"
SUITE = "CUDA SDK"
PTX = "stencil.ptx"

RADIUS, TILE = 4, 16
SHAPES = {"tiny": (32, 16, 3), "small": (128, 128, 24), "full": (480, 480, 100)}  # in x, y and z


def setup(size: str, seed: int) -> Data:
    """With points around, whose values are given."""
    random = np.random.default_rng(seed)
    shape = [extent + 2 * RADIUS for extent in SHAPES[size][::-1]]
    return {
        "grid": random.integers(0, 64, shape).astype(np.float32),
        "coefficients": random.integers(-8, 9, RADIUS + 1).astype(np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    module.set_symbol("coefficients", data["coefficients"])
    _, rows, pitch = data["grid"].shape
    nz, ny, nx = (extent - 2 * RADIUS for extent in data["grid"].shape)
    source, target = gpu.to_device(data["grid"]), gpu.to_device(np.zeros_like(data["grid"]))
    begin = 4 * RADIUS * ((rows + 1) * pitch + 1)
    args = [target + begin, source + begin, *(np.int32(value) for value in (pitch, rows * pitch, nz))]
    module.launch("stencil_3D_16x16_order8", grid=(nx // TILE, ny // TILE), block=(TILE, TILE), args=args)
    return {"grid": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    inner = slice(RADIUS, -RADIUS)
    grid, result = data["grid"].astype(np.int64), np.zeros_like(data["grid"])
    center, *others = data["coefficients"].astype(np.int64)
    total = center * grid[inner, inner, inner]
    for distance, coefficient in enumerate(others, 1):
        for axis in range(3):
            for way in (distance, -distance):
                total += coefficient * np.roll(grid, way, axis)[inner, inner, inner]
    result[inner, inner, inner] = total
    return {"grid": result}
