"""syr2k: PolyBench's symmetric rank-2k update, CTAs of 32 x 8 threads; full is PolyBench's 2048 x 2048.

steady has its dimensions, but 15 x 3 CTAs, 3 for each SM of a GTX 480, and 192 of the 2048 terms of every sum: enough
for the warps to drift apart, on which the hits depend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "C = alpha A B^T + alpha B A^T + beta C, one element per thread"
SUITE = "PolyBench"
PTX = "syr2k.ptx"
TOLERANCE = {"c": Close(rtol=1e-4, reason="float32 sums of up to 4096 positive terms against float64")}

BLOCK = (32, 8)
WIDTH_DEPTH = {"tiny": (44, 4), "small": (256, 96), "full": (2048, 2048), "steady": (2048, 2048)}
SIZES = tuple(WIDTH_DEPTH)
GRID_STEPS = {"steady": ((15, 3), 192)}  # CTAs and terms of the sums, where not all of C is computed


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n, m = WIDTH_DEPTH[size]
    grid, steps = GRID_STEPS.get(size, ((-(-n // BLOCK[0]), -(-n // BLOCK[1])), m))
    return {
        "grid": grid,
        "steps": steps,
        "alpha": np.float32(1.5),
        "beta": np.float32(1.25),
        "a": random.random((n, m), np.float32),
        "b": random.random((n, m), np.float32),
        "c": random.random((n, n), np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n, m = data["a"].shape
    a, b, c = (gpu.to_device(data[name]) for name in "abc")
    args = [np.int32(n), np.int32(m), np.int32(data["steps"]), data["alpha"], data["beta"], a, b, c]
    module.launch("syr2k", grid=data["grid"], block=BLOCK, args=args)
    return {"c": gpu.from_device(c)}


def reference(data: Data) -> Outputs:
    a, b, c = (data[name].astype(np.float64) for name in "abc")
    a, b = a[:, : data["steps"]], b[:, : data["steps"]]
    columns, rows = np.multiply(data["grid"], BLOCK)
    part = np.s_[:rows, :columns]
    sums = a[:rows] @ b[:columns].T + b[:rows] @ a[:columns].T
    c[part] = data["alpha"] * sums + data["beta"] * c[part]
    return {"c": c.astype(np.float32)}
