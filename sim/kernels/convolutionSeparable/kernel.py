"""convolutionSeparable: the SDK's convolution of rows, CTAs of 16 x 4 threads, and then of columns, CTAs of 16 x 8.

full has the SDK's 3072 x 3072 image. steady convolves the columns of its first 12 rows of CTAs, and the rows that they
need. Pixels and coefficients are whole numbers, as the SDK draws them, so results are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "separable convolution with 17 coefficients: rows, then columns"
SUITE = "CUDA SDK"
PTX = "convolution.ptx"

RADIUS = 8
TILES = 8  # of results per CTA
ROWS_BLOCK, COLUMNS_BLOCK = (16, 4), (16, 8)
ROWS_TILE, COLUMNS_TILE = (TILES * 16, 4), (16, TILES * 8)  # results of a CTA in x and y
WIDTH_HEIGHT = {"tiny": (128, 64), "small": (512, 512), "full": (3072, 3072), "steady": (3072, 3072)}
CTA_ROWS = {"steady": (194, 12)}  # of the two kernels, where not all of them are launched
SIZES = tuple(WIDTH_HEIGHT)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    width, height = WIDTH_HEIGHT[size]
    return {
        "image": random.integers(0, 16, (height, width)).astype(np.float32),
        "coefficients": random.integers(0, 16, 2 * RADIUS + 1).astype(np.float32),
        "cta_rows": CTA_ROWS.get(size, (height // ROWS_TILE[1], height // COLUMNS_TILE[1])),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["image"].shape
    module.set_symbol("coefficients", data["coefficients"])
    image = gpu.to_device(data["image"])
    rows, columns = (gpu.to_device(np.zeros((height, width), np.float32)) for _ in range(2))
    sizes = [np.int32(value) for value in (width, height, width)]
    launches = (
        ("convolutionRowsKernel", ROWS_TILE, ROWS_BLOCK, rows, image),
        ("convolutionColumnsKernel", COLUMNS_TILE, COLUMNS_BLOCK, columns, rows),
    )
    for (name, tile, block, target, source), cta_rows in zip(launches, data["cta_rows"], strict=True):
        module.launch(name, grid=(width // tile[0], cta_rows), block=block, args=[target, source, *sizes])
    return {"rows": gpu.from_device(rows), "columns": gpu.from_device(columns)}


def reference(data: Data) -> Outputs:
    image, (first, second) = data["image"].astype(np.int64), data["cta_rows"]
    rows, columns = np.zeros_like(image), np.zeros_like(image)
    rows[: first * ROWS_TILE[1]] = _convolve(image, data["coefficients"])[: first * ROWS_TILE[1]]
    columns[: second * COLUMNS_TILE[1]] = _convolve(rows.T, data["coefficients"]).T[: second * COLUMNS_TILE[1]]
    return {"rows": rows.astype(np.float32), "columns": columns.astype(np.float32)}


def _convolve(image: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Along rows, with zeros around."""
    width = image.shape[1]
    padded = np.pad(image, ((0, 0), (RADIUS, RADIUS)))
    total = np.zeros_like(image)
    for k, coefficient in enumerate(coefficients[::-1].astype(np.int64)):
        total += coefficient * padded[:, k : k + width]
    return total
