"""transpose-columns: transpose without scratchpad that reads column by column, CTAs of 32 x 8 threads.

Kloosterman's case study describes it so and cites M. Harris, "An efficient matrix transpose in CUDA C/C++", which has
the shape: 32 x 32 elements per CTA, and 1024 x 1024 in all (here small and full). Each lane reads another line, and all
warps of a CTA read the same 32 lines, which WarpPool can merge. In transpose-naive it is the writes that stride through
memory. steady is 2048 x 2048, all of it, since a part of the CTAs finds more in the L1 than all do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "matrix transpose, strided reads"
SUITE = "Kloosterman case study"
PTX = "transpose_columns.ptx"

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
    grid = (-(-height // TILE), -(-width // TILE))
    args = [source, target, np.int32(width), np.int32(height)]
    module.launch("transpose_columns", grid=grid, block=(TILE, ROWS), args=args)
    return {"output": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    return {"output": data["input"].T.copy()}
