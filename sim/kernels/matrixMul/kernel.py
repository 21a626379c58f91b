"""matrixMul: the SDK's tiled product of matrices, 16 x 16 threads per CTA.

full has the 1500 CTAs of Chen table 4-3, 50 x 30 tiles; how long its sums are is not told, ours are the SDK's 320.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "tiled product of matrices"
SUITE = "CUDA SDK"
PTX = "matrixmul.ptx"
REGISTERS = {"matrixMul": 25}  # the least that leaves Chen table 4-3's 4 CTAs per SM
TOLERANCE = {"c": Close(rtol=5e-6, reason="float32 sums of up to 320 positive products against float64")}

BLOCK = 16
ROWS_INNER_COLUMNS = {
    "tiny": (32, 32, 48),
    "small": (160, 160, 240),
    "full": (800, 320, 480),
    "reference": (64, 64, 96),
}
SIZES = tuple(ROWS_INNER_COLUMNS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, inner, columns = ROWS_INNER_COLUMNS[size]
    return {"a": random.random((rows, inner), np.float32), "b": random.random((inner, columns), np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    (rows, inner), columns = data["a"].shape, data["b"].shape[1]
    c = gpu.empty((rows, columns), np.float32)
    args = [c, gpu.to_device(data["a"]), gpu.to_device(data["b"]), np.int32(inner), np.int32(columns)]
    module.launch("matrixMul", grid=(columns // BLOCK, rows // BLOCK), block=(BLOCK, BLOCK), args=args)
    return {"c": gpu.from_device(c)}


def reference(data: Data) -> Outputs:
    return {"c": (data["a"].astype(np.float64) @ data["b"].astype(np.float64)).astype(np.float32)}
