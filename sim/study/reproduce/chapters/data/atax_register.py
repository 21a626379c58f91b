"""atax's first function with its sums in registers, as a compiler makes it that knows that arrays do not overlap.

PolyBench's 4096 x 4096, and the first 512 of the 4096 terms of every sum: as atax at size steady.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "y = A x by rows, with sums in registers"
SUITE = "PolyBench"
PTX = "atax_register.cu"
SIZES = ("steady",)
TOLERANCE = {"tmp": Close(rtol=1e-4, reason="float32 sums of 512 positive terms against float64")}

BLOCK, WIDTH, STEPS = 256, 4096, 512


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    return {"a": random.random((WIDTH, WIDTH), np.float32), "x": random.random(WIDTH, np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    a, x, tmp = gpu.to_device(data["a"]), gpu.to_device(data["x"]), gpu.to_device(np.zeros(WIDTH, np.float32))
    sizes = [np.int32(WIDTH), np.int32(WIDTH), np.int32(STEPS)]
    module.launch("atax_1_register", grid=(WIDTH // BLOCK,), block=(BLOCK,), args=[*sizes, a, x, tmp])
    return {"tmp": gpu.from_device(tmp)}


def reference(data: Data) -> Outputs:
    return {"tmp": (data["a"].astype(np.float64)[:, :STEPS] @ data["x"][:STEPS]).astype(np.float32)}
