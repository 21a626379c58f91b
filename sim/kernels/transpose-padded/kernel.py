"""transpose-padded: transpose-tiled with a 33rd column in its tile, without bank conflicts.

It is the fastest version of Kloosterman's case study. Sizes are those of transpose-tiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "matrix transpose through the scratchpad, padded against bank conflicts"
SUITE = "Kloosterman case study"
PTX = "transpose_padded.ptx"

TILE, ROWS = 32, 8
HEIGHT_WIDTH = {
    "tiny": (44, 75),
    "small": (1024, 1024),
    "full": (1024, 1024),
    "steady": (2048, 2048),
    "4096": (4096, 4096),
    "reference": (320, 512),
}
SIZES = tuple(HEIGHT_WIDTH)


def setup(size: str, seed: int) -> Data:
    return {"input": np.random.default_rng(seed).random(HEIGHT_WIDTH[size], np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["input"].shape
    source, target = gpu.to_device(data["input"]), gpu.empty((width, height), np.float32)
    grid = (-(-width // TILE), -(-height // TILE))
    args = [source, target, np.int32(width), np.int32(height)]
    module.launch("transpose_padded", grid=grid, block=(TILE, ROWS), args=args)
    return {"output": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    return {"output": data["input"].T.copy()}
