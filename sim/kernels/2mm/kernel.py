"""2mm: PolyBench's two matrix products in a row, CTAs of 32 x 8 threads; full is PolyBench's 2048 in each direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.buffers import Buffer
    from lockstep.sim.gpu import Gpu, Module

TITLE = "E = (A B) D, one element per thread"
SUITE = "PolyBench"
PTX = "2mm.ptx"
REASON = "float32 sums of up to 2048 positive terms against float64"
TOLERANCE = {"c": Close(rtol=1e-4, reason=REASON), "e": Close(rtol=1e-4, reason=REASON)}

BLOCK = (32, 8)
I_J_K_L = {
    "tiny": (35, 34, 5, 9),
    "small": (160, 160, 160, 160),
    "full": (2048, 2048, 2048, 2048),
    "reference": (64, 64, 64, 64),
}
SIZES = tuple(I_J_K_L)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    i, j, k, l = I_J_K_L[size]
    shapes = {"a": (i, k), "b": (k, j), "d": (j, l)}
    return {name: random.random(shape, np.float32) for name, shape in shapes.items()}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    def multiply(left: Buffer, right: Buffer) -> Buffer:
        (rows, depth), columns = left.shape, right.shape[1]
        product = gpu.to_device(np.zeros((rows, columns), np.float32))
        grid = (-(-columns // BLOCK[0]), -(-rows // BLOCK[1]))
        sizes = [np.int32(rows), np.int32(columns), np.int32(depth)]
        module.launch("multiply", grid=grid, block=BLOCK, args=[*sizes, left, right, product])
        return product

    a, b, d = (gpu.to_device(data[name]) for name in "abd")
    c = multiply(a, b)
    e = multiply(c, d)
    return {"c": gpu.from_device(c), "e": gpu.from_device(e)}


def reference(data: Data) -> Outputs:
    c = data["a"].astype(np.float64) @ data["b"]
    return {"c": c.astype(np.float32), "e": (c @ data["d"]).astype(np.float32)}
