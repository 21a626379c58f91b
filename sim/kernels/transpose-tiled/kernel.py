"""transpose-tiled: transpose through a 32 x 32 tile, CTAs of 32 x 8 threads.

The shape is that of M. Harris, "An efficient matrix transpose in CUDA C/C++", which Kloosterman's case study cites:
1024 x 1024 (small and full; steady is 2048 x 2048). The tile has no padding, so the lanes that read one of its columns
all meet in one bank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "matrix transpose through the scratchpad"
SUITE = "Kloosterman case study"
PTX = "transpose_tiled.ptx"

TILE, ROWS = 32, 8
HEIGHT_WIDTH = {
    "tiny": (44, 75),
    "small": (1024, 1024),
    "full": (1024, 1024),
    "steady": (2048, 2048),
    "4096": (4096, 4096),
}
SIZES = tuple(HEIGHT_WIDTH)


def setup(size: str, seed: int) -> Data:
    return {"input": np.random.default_rng(seed).random(HEIGHT_WIDTH[size], np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["input"].shape
    source, target = gpu.to_device(data["input"]), gpu.empty((width, height), np.float32)
    grid = (-(-width // TILE), -(-height // TILE))
    args = [source, target, np.int32(width), np.int32(height)]
    module.launch("transpose_tiled", grid=grid, block=(TILE, ROWS), args=args)
    return {"output": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    return {"output": data["input"].T.copy()}
