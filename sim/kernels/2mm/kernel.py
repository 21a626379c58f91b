"""2mm: PolyBench's two matrix products in a row, CTAs of 32 x 8 threads; full is PolyBench's 2048 in each direction.

steady computes the first 32 rows of both products, with the first 128 of the 2048 terms of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module
    from lockstep.sim.device.buffers import Buffer

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
    "steady": (2048, 2048, 2048, 2048),
    "reference": (64, 64, 64, 64),
}
SIZES = tuple(I_J_K_L)
ROWS_STEPS = {"steady": (32, 128)}  # of the products and of the sums, where not all of them are computed


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    i, j, k, l = I_J_K_L[size]
    shapes = {"a": (i, k), "b": (k, j), "d": (j, l)}
    rows, steps = ROWS_STEPS.get(size, (i, None))
    matrices = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    return {**matrices, "rows": rows, "steps": steps}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    def multiply(left: Buffer, right: Buffer) -> Buffer:
        (rows, depth), columns = left.shape, right.shape[1]
        product = gpu.to_device(np.zeros((rows, columns), np.float32))
        grid = (-(-columns // BLOCK[0]), -(-data["rows"] // BLOCK[1]))
        sizes = [np.int32(rows), np.int32(columns), np.int32(depth)]
        name, steps = ("multiply_part", [np.int32(data["steps"])]) if data["steps"] else ("multiply", [])
        module.launch(name, grid=grid, block=BLOCK, args=[*sizes, *steps, left, right, product])
        return product

    a, b, d = (gpu.to_device(data[name]) for name in "abd")
    c = multiply(a, b)
    e = multiply(c, d)
    return {"c": gpu.from_device(c), "e": gpu.from_device(e)}


def reference(data: Data) -> Outputs:
    def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        product = np.zeros((len(left), right.shape[1]))
        product[: data["rows"]] = left[: data["rows"], : data["steps"]] @ right[: data["steps"]]
        return product

    a, b, d = (data[name].astype(np.float64) for name in "abd")
    c = multiply(a, b)
    return {"c": c.astype(np.float32), "e": multiply(c, d).astype(np.float32)}
