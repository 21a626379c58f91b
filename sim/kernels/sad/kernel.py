"""sad: Parboil's sums of absolute differences for the motion estimation of H.264, CTAs of 61, 128 and 32 threads.

Every 4 x 4 block of a frame is compared with 33 x 33 places (17 x 17 in tiny) of the frame before, which is a texture;
then the SADs of larger blocks are added up. full has the 176 x 144 pixels of Parboil's default input: 1,584 CTAs of 61
threads, of which a core holds eight, as DYNCTA's paper says. Parboil's frames are of a film; ours are smoothed noise
that moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "sums of absolute differences for motion estimation"
SUITE = "Parboil"
PTX = "sad.ptx"

BLOCK, MACROBLOCK = 4, 16  # pixels across
PLACES_PER_THREAD = 18
ALIGNED = 8  # places, of a row in the arrays
PIXELS_RANGE = {"tiny": ((16, 16), 8), "small": ((112, 128), 16), "full": ((144, 176), 16)}
"""Rows and columns, and how far the search goes to every side."""
MOTION = 3, -2  # in rows and columns
KINDS = {"4x4": (1, 1), "8x4": (1, 2), "4x8": (2, 1), "8x8": (2, 2), "16x8": (2, 4), "8x16": (4, 2), "16x16": (4, 4)}
"""Of blocks, across x down: how many 4 x 4 blocks they have down and across."""


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (rows, columns), reach = PIXELS_RANGE[size]
    noise = random.integers(0, 256, (rows + BLOCK, columns + BLOCK))
    smooth = np.lib.stride_tricks.sliding_window_view(noise, (BLOCK, BLOCK)).mean(axis=(2, 3))[:rows, :columns]
    current = np.roll(smooth, MOTION, axis=(0, 1)) + random.integers(-2, 3, (rows, columns))
    frames = {"reference": smooth, "current": current}
    pixels = {name: np.clip(np.rint(frame), 0, 255).astype(np.uint16) for name, frame in frames.items()}
    return {**pixels, "range": reach}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["current"].shape
    macroblocks = columns // MACROBLOCK, rows // MACROBLOCK
    current, reference = gpu.to_device(data["current"]), gpu.texture(data["reference"])
    count = macroblocks[0] * macroblocks[1]
    places = _side(data) ** 2
    pitch = -(-places // ALIGNED) * ALIGNED
    sads = {
        kind: gpu.to_device(np.zeros((count, 16 // (high * wide), pitch), np.uint16))
        for kind, (high, wide) in KINDS.items()
    }
    blocks, threads = (columns // BLOCK, rows // BLOCK), -(-places // PLACES_PER_THREAD)
    args = [sads["4x4"], np.int32(pitch), current, np.int32(columns), reference, np.int32(data["range"])]
    module.launch("sad_4x4", grid=blocks, block=(threads,), args=args)
    for name, block, kinds in (
        ("larger_sad_8", (32, 4), ("4x4", "8x4", "4x8", "8x8")),
        ("larger_sad_16", (32,), ("8x8", "16x8", "8x16", "16x16")),
    ):
        args = [np.int32(pitch), *(sads[kind] for kind in kinds)]
        module.launch(name, grid=macroblocks, block=block, args=args)
    return {kind: gpu.from_device(buffer)[:, :, :places] for kind, buffer in sads.items()}


def _side(data: Data) -> int:
    """Of the window, in places."""
    return 2 * data["range"] + 1


def reference(data: Data) -> Outputs:
    current = data["current"].astype(np.int32)
    rows, columns = current.shape
    frame = np.pad(data["reference"].astype(np.int32), data["range"], mode="edge")
    down, across = rows // MACROBLOCK, columns // MACROBLOCK
    tiled = down, MACROBLOCK // BLOCK, BLOCK, across, MACROBLOCK // BLOCK, BLOCK
    places = _side(data) ** 2
    smallest = np.empty((down, across, MACROBLOCK // BLOCK, MACROBLOCK // BLOCK, places), np.int32)
    for place in range(places):
        y, x = divmod(place, _side(data))
        difference = np.abs(frame[y : y + rows, x : x + columns] - current).reshape(tiled)
        smallest[..., place] = difference.sum(axis=(2, 5)).transpose(0, 2, 1, 3)
    outputs = {}
    for kind, (high, wide) in KINDS.items():
        parts = smallest.reshape(down * across, 4 // high, high, 4 // wide, wide, places)
        outputs[kind] = parts.sum(axis=(2, 4)).reshape(down * across, -1, places).astype(np.uint16)
    return outputs
