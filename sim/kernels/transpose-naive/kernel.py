"""transpose-naive: the SDK's transpose without scratchpad, CTAs of 16 x 16 threads; full and steady: 2048 x 2048."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "matrix transpose, strided writes"
SUITE = "CUDA SDK"
PTX = "transpose_naive.ptx"

TILE = 16
HEIGHT_WIDTH = {
    "tiny": (40, 72),
    "small": (800, 1024),
    "full": (2048, 2048),
    "steady": (2048, 2048),
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
    module.launch("transpose_naive", grid=grid, block=(TILE, TILE), args=args)
    return {"output": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    return {"output": data["input"].T.copy()}
