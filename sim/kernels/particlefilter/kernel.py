"""particlefilter: Rodinia's particle filter in float32, CTAs of 512 threads, five launches per frame of a video.

full has Rodinia's video of 128 x 128 x 10, but 10,000 particles: its 1000 fill two CTAs. tiny has CTAs of 64 threads.
steady is the first of full's launches, the likelihoods of the first frame.
The kernels are written so that every result is exact (see the CUDA C): a search through sums shows the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "particle filter: likelihood, sum, normalise, cumulate, resample"
SUITE = "Rodinia"
PTX = "particlefilter.ptx"

RADIUS = 5  # of the disk
BACKGROUND, DISK = 100, 228  # grey values
WIDTH_FRAMES = {"tiny": (32, 2), "small": (128, 2), "full": (128, 10), "steady": (128, 10)}
PARTICLES_BLOCK = {"tiny": (72, 64), "small": (5120, 512), "full": (10_000, 512), "steady": (10_000, 512)}
SIZES = tuple(WIDTH_FRAMES)
FLOAT = np.float32


def setup(size: str, seed: int) -> Data:
    """A disk that moves by one row and two columns per frame, with noise; frames lie side by side in memory."""
    random = np.random.default_rng(seed)
    (width, frames), (particles, block) = WIDTH_FRAMES[size], PARTICLES_BLOCK[size]
    offsets = np.arange(1 - RADIUS, RADIUS)
    column, row = (axis.ravel() for axis in np.meshgrid(offsets, offsets))
    inside = column**2 + row**2 < RADIUS**2
    disk = np.stack([column[inside], row[inside]], axis=1).astype(np.int32)
    video = np.full((width, width, frames), float(BACKGROUND))
    for frame in range(frames):
        video[width // 2 + frame + disk[:, 1], width // 2 - 2 * frame + disk[:, 0], frame] = DISK
    video += 5 * random.standard_normal(video.shape)
    return {
        "video": np.clip(video, 0, 255).astype(np.uint8),
        "disk": disk,
        "seed": random.integers(0, 2**31 - 1, particles, np.uint32),
        "block": block,
        "one_launch": size == "steady",
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    (width, _, frames), particles, ones = data["video"].shape, data["seed"].size, len(data["disk"])
    count, ctas = np.int32(particles), -(-particles // data["block"])
    centre = np.full(particles, width // 2, FLOAT)
    video, disk, seed = (gpu.to_device(data[name]) for name in ("video", "disk", "seed"))
    old_x, old_y = gpu.to_device(centre), gpu.to_device(centre)
    x, y, likelihoods, weights, distribution = (gpu.empty(particles, FLOAT) for _ in range(5))
    pixels = gpu.empty((particles, ones), np.int32)
    partial_sums, start = gpu.empty(ctas, FLOAT), gpu.empty(1, FLOAT)
    outputs = {"pixels": pixels, "likelihoods": likelihoods, "weights": weights, "x": x, "y": y, "seed": seed}
    for frame in range(frames):
        sizes = [count, *(np.int32(size) for size in (ones, data["video"].size, frame, width, frames))]
        buffers = [x, y, old_x, old_y, pixels, disk, likelihoods, video, weights, seed, partial_sums]
        arguments = {
            "likelihood": [*buffers, *sizes],
            "sum": [partial_sums, np.int32(ctas)],
            "normalize_weights": [weights, partial_sums, count],
            "cumulate": [distribution, weights, start, seed, count],
            "find_index": [x, y, distribution, start, old_x, old_y, count],
        }
        for kernel, args in arguments.items():
            alone = kernel in ("sum", "cumulate")
            module.launch(kernel, grid=(1 if alone else ctas,), block=(data["block"],), args=args)
            if data["one_launch"]:
                return {name: gpu.from_device(buffer) for name, buffer in outputs.items()}
    outputs |= {"distribution": distribution, "x": old_x, "y": old_y}
    return {name: gpu.from_device(buffer) for name, buffer in outputs.items()}


def reference(data: Data) -> Outputs:
    """In float32 and in the order of the kernels, so that results are equal."""
    video, disk, seed = data["video"], data["disk"], data["seed"].copy()
    width, _, frames = video.shape
    particles = seed.size
    x = y = np.full(particles, width // 2, FLOAT)
    for frame in range(frames):
        x = x + FLOAT(1) + FLOAT(5) * _noise(seed)
        y = y - FLOAT(2) + FLOAT(2) * _noise(seed)
        row, column = (_round(axis)[:, None] + disk[:, k] for axis, k in ((x, 1), (y, 0)))
        pixels = np.abs((row * width + column) * frames + frame)
        pixels[pixels >= video.size] = 0
        grey = video.ravel()[pixels].astype(np.int32)
        terms = ((grey - BACKGROUND) ** 2 - (grey - DISK) ** 2).astype(FLOAT) / FLOAT(50)
        likelihoods = np.add.accumulate(terms, axis=1)[:, -1] / FLOAT(len(disk))
        weights = FLOAT(1) / FLOAT(particles) * np.exp2(np.rint(likelihoods / FLOAT(32)))
        outputs = {"pixels": pixels, "likelihoods": likelihoods, "weights": weights, "x": x, "y": y, "seed": seed}
        if data["one_launch"]:
            return outputs
        weights /= _total(weights, data["block"])
        distribution = np.add.accumulate(weights)
        draw = FLOAT(_draw(seed[:1])[0]) / FLOAT(2**31)
        teeth = FLOAT(1) / FLOAT(particles) * draw + np.arange(particles, dtype=FLOAT) / FLOAT(particles)
        index = np.minimum(np.searchsorted(distribution, teeth), particles - 1)
        x, y = x[index], y[index]
    return outputs | {"weights": weights, "distribution": distribution, "x": x, "y": y}


def _draw(seed: np.ndarray) -> np.ndarray:
    seed[:] = (seed.astype(np.uint64) * 1103515245 + 12345) % 2**32 % (2**31 - 1)
    return seed


def _noise(seed: np.ndarray) -> np.ndarray:
    total = sum((_draw(seed) >> 23).astype(np.int32) for _ in range(4)) - 510
    return np.asarray(total).astype(FLOAT) * FLOAT(7 / 1024)


def _round(values: np.ndarray) -> np.ndarray:
    """To the nearest, halves away from zero, as ``roundf``."""
    return np.trunc(values + np.copysign(FLOAT(0.5), values)).astype(np.int32)


def _total(weights: np.ndarray, block: int) -> np.float32:
    """By a tree in each CTA, then one CTA after the other."""
    sums = np.zeros((-(-weights.size // block), block), FLOAT)
    sums.ravel()[: weights.size] = weights
    while sums.shape[1] > 1:
        left, right = np.split(sums, 2, axis=1)
        sums = left + right
    return FLOAT(np.add.accumulate(sums.ravel())[-1])
