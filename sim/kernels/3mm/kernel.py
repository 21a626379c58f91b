"""3mm: PolyBench's three matrix products, CTAs of 32 x 8 threads; full is PolyBench's 512 in each direction.

steady computes the first 120 rows of each product, with the first 120 of the 512 terms of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module
    from lockstep.sim.device.buffers import Buffer

TITLE = "G = (A B) (C D), one element per thread"
SUITE = "PolyBench"
PTX = "3mm.ptx"
REASON = "float32 sums of up to 512 positive terms against float64"
TOLERANCE = {name: Close(rtol=3e-5, reason=REASON) for name in "efg"}

BLOCK = (32, 8)
I_J_K_L_M = {"tiny": (27, 34, 5, 9, 3), "small": (160,) * 5, "full": (512,) * 5, "steady": (512,) * 5}
SIZES = tuple(I_J_K_L_M)
ROWS_STEPS = {"steady": (120, 120)}  # of the products and of the sums, where not all of them are computed


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    i, j, k, l, m = I_J_K_L_M[size]
    shapes = {"a": (i, k), "b": (k, j), "c": (j, m), "d": (m, l)}
    rows, steps = ROWS_STEPS.get(size, (max(i, j), max(j, k, m)))
    matrices = {name: random.random(shape, np.float32) for name, shape in shapes.items()}
    return {**matrices, "rows": rows, "steps": steps}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    def multiply(left: Buffer, right: Buffer) -> Buffer:
        (rows, depth), columns = left.shape, right.shape[1]
        product = gpu.to_device(np.zeros((rows, columns), np.float32))
        grid = (-(-columns // BLOCK[0]), -(-min(rows, data["rows"]) // BLOCK[1]))
        sizes = [np.int32(size) for size in (rows, columns, depth, min(depth, data["steps"]))]
        module.launch("multiply", grid=grid, block=BLOCK, args=[*sizes, left, right, product])
        return product

    a, b, c, d = (gpu.to_device(data[name]) for name in "abcd")
    e, f = multiply(a, b), multiply(c, d)
    g = multiply(e, f)
    return {"e": gpu.from_device(e), "f": gpu.from_device(f), "g": gpu.from_device(g)}


def reference(data: Data) -> Outputs:
    def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        product = np.zeros((len(left), right.shape[1]))
        product[: data["rows"]] = left[: data["rows"], : data["steps"]] @ right[: data["steps"]]
        return product

    a, b, c, d = (data[name].astype(np.float64) for name in "abcd")
    e, f = multiply(a, b), multiply(c, d)
    return {"e": e.astype(np.float32), "f": f.astype(np.float32), "g": multiply(e, f).astype(np.float32)}
