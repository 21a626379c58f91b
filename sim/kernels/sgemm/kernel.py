"""sgemm: Parboil's mysgemmNT, 128 threads per CTA, 128 x 16 results with register blocking and a 512-byte tile.

As in Parboil the rows must be a multiple of 128, the columns of 16 and the depth of 8; full is Parboil's medium input.
steady has its matrices, and sums up the first 96 of the 992 products of each result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "tiled matrix product with register blocking"
SUITE = "Parboil"
PTX = "sgemm.ptx"
REGISTERS = {"sgemm_nt": 48}  # Jatala table 2
TOLERANCE = {"c": Close(rtol=1e-5, reason="float32 sums of up to 992 positive terms against float64")}

BLOCK = (16, 8)
TILE_M, TILE_N = 128, 16
ROWS_COLUMNS_DEPTH = {
    "tiny": (128, 32, 16),
    "small": (256, 384, 128),
    "full": (1024, 1056, 992),
    "reference": (256, 384, 32),
    "steady": (1024, 1056, 992),
}
SUMMED = {"steady": 96}  # of the depth, where not all of it is
SIZES = tuple(ROWS_COLUMNS_DEPTH)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    m, n, k = ROWS_COLUMNS_DEPTH[size]
    return {  # column-major, hence the transposed shapes
        "alpha": np.float32(1.0),
        "beta": np.float32(0.5),
        "a": random.random((k, m), np.float32),
        "b": random.random((k, n), np.float32),
        "c": random.random((n, m), np.float32),
        "summed": SUMMED.get(size, k),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    m = data["a"].shape[1]
    n = data["b"].shape[1]
    a, b, c = (gpu.to_device(data[name]) for name in "abc")
    args = [a, np.int32(m), b, np.int32(n), c, np.int32(m), np.int32(data["summed"]), data["alpha"], data["beta"]]
    module.launch("sgemm_nt", grid=(m // TILE_M, n // TILE_N), block=BLOCK, args=args)
    return {"c": gpu.from_device(c)}


def reference(data: Data) -> Outputs:
    a, b, c = (data[name].astype(np.float64) for name in "abc")
    a, b = a[: data["summed"]], b[: data["summed"]]
    return {"c": (data["beta"] * c + data["alpha"] * (b.T @ a)).astype(np.float32)}
