"""gemm: PolyBench's matrix product, CTAs of 32 x 8 threads, no scratchpad; full is PolyBench's 512 x 512 x 512.

steady computes the first 88 of its 512 rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "C = alpha A B + beta C, one element per thread"
SUITE = "PolyBench"
PTX = "gemm.ptx"
TOLERANCE = {"c": Close(rtol=1e-5, reason="float32 sums of up to 512 positive terms against float64")}

BLOCK = (32, 8)
ROWS_COLUMNS_DEPTH = {
    "tiny": (19, 40, 13),
    "small": (160, 160, 160),
    "full": (512, 512, 512),
    "steady": (88, 512, 512),
    "reference": (160, 160, 24),
}
SIZES = tuple(ROWS_COLUMNS_DEPTH)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    ni, nj, nk = ROWS_COLUMNS_DEPTH[size]
    return {
        "alpha": np.float32(1.5),
        "beta": np.float32(1.25),
        "a": random.random((ni, nk), np.float32),
        "b": random.random((nk, nj), np.float32),
        "c": random.random((ni, nj), np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    ni, nj = data["c"].shape
    nk = data["a"].shape[1]
    a, b, c = (gpu.to_device(data[name]) for name in "abc")
    sizes = [np.int32(ni), np.int32(nj), np.int32(nk)]
    grid = (-(-nj // BLOCK[0]), -(-ni // BLOCK[1]))
    module.launch("gemm", grid=grid, block=BLOCK, args=[*sizes, data["alpha"], data["beta"], a, b, c])
    return {"c": gpu.from_device(c)}


def reference(data: Data) -> Outputs:
    a, b, c = (data[name].astype(np.float64) for name in "abc")
    return {"c": (data["alpha"] * (a @ b) + data["beta"] * c).astype(np.float32)}
