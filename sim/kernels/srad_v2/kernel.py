"""srad_v2: Rodinia's speckle-reducing anisotropic diffusion, two kernels per step in CTAs of 16 x 16 threads.

The papers on sharing call them SRAD 1 and 2. Before each step the host takes the speckle's strength from a corner of
the image. full has Rodinia's 2048 x 2048, two steps and corner of 128 x 128. steady computes its first 12 rows of CTAs,
and for want of the coefficients below them 11 in the second kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Extents, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "speckle-reducing anisotropic diffusion of an image"
SUITE = "Rodinia"
PTX = "srad_v2.ptx"
REASON = "float32 with fused multiply-add against float64; in a coefficient, errors of q squared grow eleven times"
TOLERANCE = {name: Close(rtol=2e-5, atol=2e-5, reason=REASON) for name in ("image", "coefficient")}

BLOCK = 16
CORNER = 128
LAMBDA = np.float32(0.5)  # size of a step
ROWS_COLUMNS_STEPS = {"tiny": (48, 64, 2), "small": (512, 512, 2), "full": (2048, 2048, 2), "steady": (2048, 2048, 1)}
SIZES = tuple(ROWS_COLUMNS_STEPS)
CTA_ROWS = {"steady": (12, 11)}  # of the two kernels, where not all of them are launched


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns, steps = ROWS_COLUMNS_STEPS[size]
    return {
        "image": np.exp(random.random((rows, columns), np.float32)),
        "steps": steps,
        "cta_rows": CTA_ROWS.get(size, (rows // BLOCK, rows // BLOCK)),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["image"].shape
    image, coefficient = gpu.to_device(data["image"]), gpu.to_device(np.zeros((rows, columns), np.float32))
    slopes = [gpu.empty((rows, columns), np.float32) for _ in range(4)]
    args = [*slopes, image, coefficient, np.int32(columns), np.int32(rows)]
    first, second = (Extents(grid=(columns // BLOCK, n), block=(BLOCK, BLOCK)) for n in data["cta_rows"])
    for _ in range(data["steps"]):
        module.launch("srad_cuda_1", **first, args=[*args, _speckle(gpu.from_device(image))])
        module.launch("srad_cuda_2", **second, args=[*args, LAMBDA])
    return {"image": gpu.from_device(image), "coefficient": gpu.from_device(coefficient)}


def reference(data: Data) -> Outputs:
    image, coefficient = data["image"].astype(np.float64), np.zeros(data["image"].shape)
    first, second = (BLOCK * n for n in data["cta_rows"])
    for _ in range(data["steps"]):
        around = np.pad(image, 1, mode="edge")
        neighbours = around[:-2, 1:-1], around[2:, 1:-1], around[1:-1, :-2], around[1:-1, 2:]
        north, south, west, east = (neighbour - image for neighbour in neighbours)
        gradient_squared = (north**2 + south**2 + west**2 + east**2) / image**2
        laplacian = (north + south + west + east) / image
        q_squared = (gradient_squared / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
        q0_squared = _speckle(image).astype(np.float64)
        c = np.clip(1 / (1 + (q_squared - q0_squared) / (q0_squared * (1 + q0_squared))), 0, 1)
        coefficient[:first] = c[:first]
        beyond = np.pad(c, ((0, 1), (0, 1)), mode="edge")
        divergence = c * north + beyond[1:, :-1] * south + c * west + beyond[:-1, 1:] * east
        image[:second] += (LAMBDA / 4 * divergence)[:second]
    return {"image": image.astype(np.float32), "coefficient": coefficient.astype(np.float32)}


def _speckle(image: np.ndarray) -> np.float32:
    """Variance by squared mean of the corner."""
    corner = image[:CORNER, :CORNER].astype(np.float64)
    return np.float32(corner.var() / corner.mean() ** 2)
