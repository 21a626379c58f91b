"""saxpy: the smallest streaming kernel, 256 threads per CTA, one element per thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "y = a x + y"
SUITE = "BLAS"
PTX = "saxpy.ptx"
TOLERANCE = {"y": Close(rtol=1e-6, atol=1e-7, reason="the GPU fuses multiply and add, NumPy rounds in between")}

BLOCK = 256
ELEMENTS = {"tiny": 5_000, "small": 1_000_000, "full": 1 << 23, "reference": 300_000}
SIZES = tuple(ELEMENTS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n = ELEMENTS[size]
    return {"a": np.float32(2.5), "x": random.random(n, np.float32), "y": random.random(n, np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n = data["x"].size
    x, y = gpu.to_device(data["x"]), gpu.to_device(data["y"])
    module.launch("saxpy", grid=(-(-n // BLOCK),), block=(BLOCK,), args=[x, y, data["a"], np.int32(n)])
    return {"y": gpu.from_device(y)}


def reference(data: Data) -> Outputs:
    return {"y": data["a"] * data["x"] + data["y"]}
