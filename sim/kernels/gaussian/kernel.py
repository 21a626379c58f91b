"""gaussian: Rodinia's Gaussian elimination, per column Fan1 in CTAs of 512 threads and Fan2 in CTAs of 4 x 4.

full has Rodinia's largest matrix, 1024 x 1024; steady eliminates its first three columns. The diagonal is large
enough to do without pivoting, as the original does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Extents, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Gaussian elimination, two launches per column"
SUITE = "Rodinia"
PTX = "gaussian.ptx"
REGISTERS = {"Fan1": 12}  # Jatala table 3
_REASON = "float32 with fused multiply-add against float64; what is eliminated is near 0"
TOLERANCE = {name: Close(rtol=1e-5, atol=3e-6, reason=_REASON) for name in ("multipliers", "matrix", "right")}

ROWS_BLOCK, ELEMENTS_BLOCK = 512, 4  # threads of Fan1; of Fan2 in each direction
WIDTH_STEPS = {"tiny": (10, 9), "small": (64, 63), "full": (1024, 1023), "steady": (1024, 3)}
SIZES = tuple(WIDTH_STEPS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    width, steps = WIDTH_STEPS[size]
    matrix = random.uniform(-1, 1, (width, width)) + 2 * np.sqrt(width) * np.eye(width)
    return {
        "matrix": matrix.astype(np.float32),
        "right": random.uniform(-1, 1, width).astype(np.float32),
        "steps": steps,
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    width = data["right"].size
    multipliers = gpu.to_device(np.zeros((width, width), np.float32))
    matrix, right = gpu.to_device(data["matrix"]), gpu.to_device(data["right"])
    rows, elements = (-(-width // block) for block in (ROWS_BLOCK, ELEMENTS_BLOCK))
    square = Extents(grid=(elements, elements), block=(ELEMENTS_BLOCK, ELEMENTS_BLOCK))
    for step in range(data["steps"]):
        column = np.int32(width), np.int32(step)
        module.launch("Fan1", grid=(rows,), block=(ROWS_BLOCK,), args=[multipliers, matrix, *column])
        module.launch("Fan2", **square, args=[multipliers, matrix, right, *column])
    return {
        "multipliers": gpu.from_device(multipliers)[:, :-1],  # the last column has nothing below its diagonal
        "matrix": gpu.from_device(matrix),
        "right": gpu.from_device(right),
    }


def reference(data: Data) -> Outputs:
    matrix, right = data["matrix"].astype(np.float64), data["right"].astype(np.float64)
    multipliers = np.zeros_like(matrix)
    for step in range(data["steps"]):
        factor = multipliers[step + 1 :, step] = matrix[step + 1 :, step] / matrix[step, step]
        matrix[step + 1 :, step:] -= np.outer(factor, matrix[step, step:])
        right[step + 1 :] -= factor * right[step]
    return {
        "multipliers": multipliers[:, :-1].astype(np.float32),
        "matrix": matrix.astype(np.float32),
        "right": right.astype(np.float32),
    }
