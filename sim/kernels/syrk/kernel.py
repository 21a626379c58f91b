"""syrk: PolyBench's symmetric rank-k update, CTAs of 32 x 8 threads; full is PolyBench's 1024 x 1024.

steady has its dimensions, but 25 x 3 CTAs, 5 for each SM of a GTX 480, and 384 of the 1024 terms of every sum: enough
for the warps to drift apart, on which the hits depend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "C = alpha A A^T + beta C, one element per thread"
SUITE = "PolyBench"
PTX = "syrk.ptx"
TOLERANCE = {"c": Close(rtol=3e-5, reason="float32 sums of up to 1024 positive terms against float64")}

BLOCK = (32, 8)
WIDTH_DEPTH = {
    "tiny": (44, 5),
    "small": (256, 128),
    "full": (1024, 1024),
    "steady": (1024, 1024),
    "reference": (160, 12),
}
SIZES = tuple(WIDTH_DEPTH)
GRID_STEPS = {"steady": ((25, 3), 384)}  # CTAs and terms of the sums, where not all of C is computed


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
        "c": random.random((n, n), np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n, m = data["a"].shape
    a, c = gpu.to_device(data["a"]), gpu.to_device(data["c"])
    name, steps = ("syrk", []) if data["steps"] == m else ("syrk_part", [np.int32(data["steps"])])
    args = [np.int32(n), np.int32(m), *steps, data["alpha"], data["beta"], a, c]
    module.launch(name, grid=data["grid"], block=BLOCK, args=args)
    return {"c": gpu.from_device(c)}


def reference(data: Data) -> Outputs:
    a, c = (data[name].astype(np.float64) for name in "ac")
    a = a[:, : data["steps"]]
    columns, rows = np.multiply(data["grid"], BLOCK)
    part = np.s_[:rows, :columns]
    c[part] = data["alpha"] * (a[:rows] @ a[:columns].T) + data["beta"] * c[part]
    return {"c": c.astype(np.float32)}
