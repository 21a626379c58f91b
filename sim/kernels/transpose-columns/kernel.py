"""transpose-columns: transpose without scratchpad that reads column by column, CTAs of 16 x 16 threads.

The SDK's (transpose-naive) writes column by column; KL's case study has the reads so, which WarpPool can merge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.gpu import Gpu, Module

TITLE = "matrix transpose, strided reads"
SUITE = "KL case study"
PTX = "transpose_columns.ptx"

TILE = 16
HEIGHT_WIDTH = {"tiny": (40, 72), "small": (800, 1024), "full": (2048, 2048)}


def setup(size: str, seed: int) -> Data:
    return {"input": np.random.default_rng(seed).random(HEIGHT_WIDTH[size], np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["input"].shape
    source, target = gpu.to_device(data["input"]), gpu.empty((width, height), np.float32)
    grid = (-(-height // TILE), -(-width // TILE))
    args = [source, target, np.int32(width), np.int32(height)]
    module.launch("transpose_columns", grid=grid, block=(TILE, TILE), args=args)
    return {"output": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    return {"output": data["input"].T.copy()}
