"""dct8x8: the SDK's first discrete cosine transform of an image and its inverse, CTAs of 8 x 8 threads.

full has the SDK's 512 x 512 pixels. The inverse gets coefficients of its own, not those of the first kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "discrete cosine transform of blocks of 8 x 8 pixels, and its inverse"
SUITE = "CUDA SDK"
PTX = "dct8x8.ptx"
_TOLERANCE = Close(rtol=1e-5, atol=1e-3, reason="float32 sums of 64 terms of up to 128 against float64")
TOLERANCE = {"coefficients": _TOLERANCE, "image": _TOLERANCE}

BLOCK = 8
HEIGHT_WIDTH = {"tiny": (16, 24), "small": (256, 256), "full": (512, 512)}


def setup(size: str, seed: int) -> Data:
    """An image, and the coefficients that the inverse gets, in steps of 16 as after quantization."""
    random = np.random.default_rng(seed)
    height, width = HEIGHT_WIDTH[size]
    return {
        "image": random.integers(-128, 128, (height, width)).astype(np.float32),
        "quantized": 16 * random.integers(-16, 17, (height, width)).astype(np.float32),
    }


def _basis() -> np.ndarray:
    """Rows are places, columns frequencies."""
    place, frequency = np.ogrid[:BLOCK, :BLOCK]
    waves = np.cos((2 * place + 1) * frequency * np.pi / (2 * BLOCK))
    return waves * np.where(frequency == 0, np.sqrt(1 / BLOCK), np.sqrt(2 / BLOCK))


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    height, width = data["image"].shape
    module.set_symbol("basis", _basis().astype(np.float32))
    coefficients, image = (gpu.empty((height, width), np.float32) for _ in range(2))
    launches = ("CUDAkernel1DCT", coefficients, "image"), ("CUDAkernel1IDCT", image, "quantized")
    for name, target, source in launches:
        args = [target, np.int32(width), gpu.texture(data[source])]
        module.launch(name, grid=(width // BLOCK, height // BLOCK), block=(BLOCK, BLOCK), args=args)
    return {"coefficients": gpu.from_device(coefficients), "image": gpu.from_device(image)}


def reference(data: Data) -> Outputs:
    basis = _basis()
    return {
        "coefficients": _transformed(data["image"], basis.T),
        "image": _transformed(data["quantized"], basis),
    }


def _transformed(image: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """M A M^T for each block A."""
    blocks = image.astype(np.float64).reshape(len(image) // BLOCK, BLOCK, -1, BLOCK).swapaxes(1, 2)
    return (matrix @ blocks @ matrix.T).swapaxes(1, 2).reshape(image.shape).astype(np.float32)
