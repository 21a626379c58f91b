"""mvt: PolyBench's matrix times vector, plain and transposed, in CTAs of 256 threads; full is its 4096 x 4096.

steady adds the first 512 of the 4096 terms of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "x1 += A y1 by rows, x2 += A^T y2 by columns"
SUITE = "PolyBench"
PTX = "mvt.ptx"
REASON = "float32 sums of up to 4096 positive terms against float64"
TOLERANCE = {"x1": Close(rtol=1e-4, reason=REASON), "x2": Close(rtol=1e-4, reason=REASON)}

BLOCK = 256
WIDTH = {"tiny": 66, "small": 2048, "full": 4096, "steady": 4096, "reference": 160}
STEPS = {"steady": 512}  # of the loops, where they do not take the whole width
SIZES = tuple(WIDTH)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n = WIDTH[size]
    vectors = {name: random.random(n, np.float32) for name in ("x1", "x2", "y1", "y2")}
    return {"a": random.random((n, n), np.float32), **vectors, "steps": STEPS.get(size)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n = len(data["a"])
    a, x1, x2, y1, y2 = (gpu.to_device(data[name]) for name in ("a", "x1", "x2", "y1", "y2"))
    part, steps = ("_part", [np.int32(data["steps"])]) if data["steps"] else ("", [])
    for kernel, x, y in (("mvt_1", x1, y1), ("mvt_2", x2, y2)):
        module.launch(kernel + part, grid=(-(-n // BLOCK),), block=(BLOCK,), args=[np.int32(n), *steps, a, x, y])
    return {"x1": gpu.from_device(x1), "x2": gpu.from_device(x2)}


def reference(data: Data) -> Outputs:
    a = data["a"].astype(np.float64)
    part = slice(data["steps"])
    x1, x2 = data["x1"] + a[:, part] @ data["y1"][part], data["x2"] + data["y2"][part] @ a[part]
    return {"x1": x1.astype(np.float32), "x2": x2.astype(np.float32)}
