"""dwt2d: Rodinia's wavelet transform, 5/3 in integers, CTAs of 192, 128 or 64 threads, a launch per colour and level.

Before, CTAs of 256 threads split the image into its colours. full has Rodinia's 1024 x 1024 pixels and three levels, at
most 90 CTAs at a time. Rodinia's other transform, 9/7 in float32, is left out. Averages of all levels but the last go
to a buffer of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "wavelet transform of an image, 5/3 in integers"
SUITE = "Rodinia"
PTX = "dwt2d.ptx"

SPLIT_BLOCK = 256
STRIPS = ((960, 192), (480, 128), (0, 64))  # an image's least width, and its strips' width
WINDOW = 8  # rows at a time
HEIGHT_WIDTH_LEVELS = {"tiny": (19, 71, 2), "small": (512, 1024, 2), "full": (1024, 1024, 3), "reference": (64, 192, 1)}
SIZES = tuple(HEIGHT_WIDTH_LEVELS)
CTAS_DOWN = {"tiny": 2}  # at most, where it is not 15
COLOURS = ("red", "green", "blue")


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    height, width, levels = HEIGHT_WIDTH_LEVELS[size]
    y, x = np.mgrid[:height, :width]
    waves = np.stack([np.sin(x * random.random() / 9 + y * random.random() / 9) for _ in COLOURS], axis=2)
    image = (100 * waves + 127 + random.uniform(-27, 27, waves.shape)).astype(np.uint8)
    return {"image": image, "levels": levels, "ctas_down": CTAS_DOWN.get(size, 15)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    pixels, shape = data["image"][:, :, 0].size, data["image"].shape[:2]
    colours = [gpu.empty(shape, np.int32) for _ in COLOURS]
    args = [gpu.to_device(data["image"]), *colours, np.int32(pixels)]
    module.launch("split_components", grid=(-(-pixels // SPLIT_BLOCK),), block=(SPLIT_BLOCK,), args=args)
    outputs = {}
    for name, image in zip(COLOURS, colours, strict=True):
        bands = gpu.empty(shape, np.int32)
        (height, width), pitch = shape, shape[1]
        for level in range(data["levels"]):
            last = level == data["levels"] - 1
            low_shape = -(-height // 2), -(-width // 2)
            low, low_pitch = (bands, shape[1]) if last else (gpu.empty(low_shape, np.int32), low_shape[1])
            strip = next(strip for least, strip in STRIPS if width >= least)
            windows = -(-height // (data["ctas_down"] * WINDOW))
            grid = -(-width // strip), -(-height // (WINDOW * windows))
            sizes = [np.int32(value) for value in (pitch, width, height)]
            args = [image, *sizes, low, np.int32(low_pitch), bands, np.int32(shape[1]), np.int32(windows)]
            module.launch(f"fdwt53_{strip}", grid=grid, block=(strip,), args=args)
            image, pitch, (height, width) = low, low_pitch, low_shape
        outputs[name] = gpu.from_device(bands)
    return outputs


def reference(data: Data) -> Outputs:
    outputs = {}
    for name, colour in zip(COLOURS, np.moveaxis(data["image"], 2, 0), strict=True):
        bands = colour.astype(np.int32) - 128
        height, width = bands.shape
        for _ in range(data["levels"]):
            bands[:height, :width] = _lift(_lift(bands[:height, :width].T).T)
            height, width = -(-height // 2), -(-width // 2)
        outputs[name] = bands
    return outputs


def _lift(rows: np.ndarray) -> np.ndarray:
    """Averages of neighbouring rows, then what they leave out; mirrored at the edges."""
    padded = np.pad(rows, ((2, 2), (0, 0)), mode="reflect")
    even, odd = padded[::2], padded[1::2]
    details = odd[: len(even) - 1] - (even[:-1] + even[1:] >> 1)
    averages = even[1:-1] + (details[:-1] + details[1:] + 2 >> 2)
    return np.concatenate([averages, details[1:]])[: len(rows)]
