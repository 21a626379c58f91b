"""convolutionTexture: the SDK's convolution of rows and then of columns from textures, CTAs of 16 x 12 threads.

full has the SDK's 1536 x 1536 image. Pixels and coefficients are whole numbers, so that results are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "separable convolution with 17 coefficients, from textures"
SUITE = "CUDA SDK"
PTX = "convolution.ptx"

RADIUS = 8
BLOCK = (16, 12)
HEIGHT_WIDTH = {"tiny": (13, 30), "small": (384, 384), "full": (1536, 1536)}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    return {
        "image": random.integers(0, 16, HEIGHT_WIDTH[size]).astype(np.float32),
        "coefficients": random.integers(0, 16, 2 * RADIUS + 1).astype(np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    module.set_symbol("coefficients", data["coefficients"])
    height, width = data["image"].shape
    grid = (-(-width // BLOCK[0]), -(-height // BLOCK[1]))
    image, outputs = data["image"], {}
    for kind in ("rows", "columns"):
        target = gpu.empty((height, width), np.float32)
        args = [target, np.int32(width), np.int32(height), gpu.texture(image)]
        module.launch(f"convolution{kind.title()}Kernel", grid=grid, block=BLOCK, args=args)
        image = outputs[kind] = gpu.from_device(target)
    return outputs


def reference(data: Data) -> Outputs:
    rows = _convolved(data["image"].astype(np.int64), data["coefficients"])
    columns = _convolved(rows.T, data["coefficients"]).T
    return {"rows": rows.astype(np.float32), "columns": columns.astype(np.float32)}


def _convolved(image: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Along rows, with the nearest pixel outside."""
    width = image.shape[1]
    padded = np.pad(image, ((0, 0), (RADIUS, RADIUS)), mode="edge")
    total = np.zeros_like(image)
    for k, coefficient in enumerate(coefficients[::-1].astype(np.int64)):
        total += coefficient * padded[:, k : k + width]
    return total
