"""lud: Rodinia's LU decomposition in blocks of 16 x 16, three launches per block of the diagonal.

small is Rodinia's 256 x 256. full is 2048 x 2048; steady does the first block of its diagonal, which is large
enough to do without pivoting, as the original does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "LU decomposition in blocks: diagonal, perimeter, internal"
SUITE = "Rodinia"
PTX = "lud.ptx"
REGISTERS = {"lud_perimeter": 36}  # Jatala table 3
TOLERANCE = {"matrix": Close(rtol=1e-5, atol=3e-6, reason="float32 with fused multiply-add against float64")}

BLOCK = 16
WIDTH_STEPS = {"tiny": (48, 3), "small": (256, 16), "full": (2048, 128), "steady": (2048, 1)}
SIZES = tuple(WIDTH_STEPS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    width, steps = WIDTH_STEPS[size]
    matrix = random.uniform(-1, 1, (width, width)) + 2 * np.sqrt(width) * np.eye(width)
    return {"matrix": matrix.astype(np.float32), "steps": steps}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    width = len(data["matrix"])
    matrix = gpu.to_device(data["matrix"])
    for step in range(data["steps"]):
        left = width // BLOCK - step - 1  # blocks beside the one on the diagonal, and below it
        args = [matrix, np.int32(width), np.int32(BLOCK * step)]
        module.launch("lud_diagonal", grid=(1,), block=(BLOCK,), args=args)
        if left:
            module.launch("lud_perimeter", grid=(left,), block=(2 * BLOCK,), args=args)
            module.launch("lud_internal", grid=(left, left), block=(BLOCK, BLOCK), args=args)
    return {"matrix": gpu.from_device(matrix)}


def reference(data: Data) -> Outputs:
    """By columns within a block's rows and columns, then the rest at once."""
    matrix = data["matrix"].astype(np.float64)
    for first in range(0, BLOCK * data["steps"], BLOCK):
        end = first + BLOCK
        for i in range(first, end):
            matrix[i + 1 :, i] /= matrix[i, i]
            matrix[i + 1 :, i + 1 : end] -= np.outer(matrix[i + 1 :, i], matrix[i, i + 1 : end])
            matrix[i + 1 : end, end:] -= np.outer(matrix[i + 1 : end, i], matrix[i, end:])
        matrix[end:, end:] -= matrix[end:, first:end] @ matrix[first:end, end:]
    return {"matrix": matrix.astype(np.float32)}
