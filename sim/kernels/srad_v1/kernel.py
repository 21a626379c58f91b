"""srad_v1: Rodinia's speckle-reducing anisotropic diffusion in its first version, six kernels, CTAs of 512 threads.

Before each step, the strength of the speckle comes from sums over the whole image. full has Rodinia's 458 x 502 pixels
and 100 steps, small one of them; the image is synthetic. Rodinia's host also sets the place of the sums back to zero
where it needn't.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "speckle-reducing anisotropic diffusion of an image, its statistics included"
SUITE = "Rodinia"
PTX = "srad_v1.ptx"
_REASON = "float32 with fused multiply-add against float64; in a coefficient, errors of q squared grow"
TOLERANCE = {
    "image": Close(rtol=2e-5, atol=2e-3, reason="255 times the error of a logarithm's argument in float32"),
    "coefficient": Close(rtol=1e-4, atol=1e-4, reason=_REASON),
    "sums": Close(rtol=1e-5, reason="float32 sums of pairs against float64"),
}

THREADS = 512
LAMBDA = np.float32(0.5)  # size of a step
ROWS_COLUMNS_STEPS = {"tiny": (46, 50, 2), "small": (502, 458, 1), "full": (502, 458, 100), "reference": (96, 96, 1)}
SIZES = tuple(ROWS_COLUMNS_STEPS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns, steps = ROWS_COLUMNS_STEPS[size]
    return {"image": random.uniform(0, 255, (columns, rows)).astype(np.float32), "steps": steps}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    columns, rows = data["image"].shape
    image = gpu.to_device(data["image"])
    sums, squares, coefficient = (gpu.empty(data["image"].shape, np.float32) for _ in range(3))
    slopes = [gpu.empty(data["image"].shape, np.float32) for _ in range(4)]
    before, after = ([gpu.to_device(table) for table in tables] for tables in _neighbours(rows, columns))
    (north, west), (south, east) = before, after
    pixels = columns * rows

    def launch(name: str, *args: object, count: int = pixels) -> None:
        module.launch(name, grid=(-(-count // THREADS),), block=(THREADS,), args=list(args))

    launch("extract", np.int32(pixels), image)
    totals = []
    for _ in range(data["steps"]):
        launch("prepare", np.int32(pixels), image, sums, squares)
        values, stride = pixels, 1
        while values > 1:
            launch("reduce", np.int32(values), np.int32(stride), sums, squares, count=values)
            values, stride = -(-values // THREADS), stride * THREADS
        totals.append([gpu.from_device(total).ravel()[0] for total in (sums, squares)])
        q0_squared = np.float32(_speckle(totals[-1][0], totals[-1][1], pixels))
        sizes = np.int32(rows), np.int32(pixels)
        launch("srad", *sizes, north, south, west, east, *slopes, q0_squared, coefficient, image)
        launch("srad2", LAMBDA, *sizes, south, east, *slopes, coefficient, image)
    launch("compress", np.int32(pixels), image)
    return {
        "image": gpu.from_device(image),
        "coefficient": gpu.from_device(coefficient),
        "sums": np.array(totals, np.float32),
    }


def _neighbours(rows: int, columns: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of each row and of each column the one before, and the one after."""
    lines = [np.arange(count, dtype=np.int32) for count in (rows, columns)]
    return [np.maximum(line - 1, 0) for line in lines], [np.minimum(line + 1, line[-1]) for line in lines]


def _speckle(total: float, squares: float, pixels: int) -> float:
    """Variance by squared mean."""
    return float(squares) * pixels / float(total) ** 2 - 1


def reference(data: Data) -> Outputs:
    image = np.exp(data["image"].astype(np.float64) / 255)
    coefficient, sums = np.zeros(image.shape), []
    for _ in range(data["steps"]):
        sums.append([image.sum(), (image**2).sum()])
        q0_squared = image.var() / image.mean() ** 2
        around = np.pad(image, 1, mode="edge")
        slopes = np.stack([around[1:-1, :-2], around[1:-1, 2:], around[:-2, 1:-1], around[2:, 1:-1]]) - image
        laplacian = slopes.sum(axis=0) / image
        q_squared = ((slopes**2).sum(axis=0) / image**2 / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
        coefficient = np.clip(1 / (1 + (q_squared - q0_squared) / (q0_squared * (1 + q0_squared))), 0, 1)
        beyond = np.pad(coefficient, ((0, 1), (0, 1)), mode="edge")
        flows = np.stack([coefficient, beyond[:-1, 1:], coefficient, beyond[1:, :-1]]) * slopes
        image = image + LAMBDA / 4 * flows.sum(axis=0)
    outputs = {"image": 255 * np.log(image), "coefficient": coefficient, "sums": np.array(sums)}
    return {name: values.astype(np.float32) for name, values in outputs.items()}
