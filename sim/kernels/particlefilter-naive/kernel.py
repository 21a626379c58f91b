"""particlefilter-naive: Rodinia's naive particle filter in float64, CTAs of 128 threads, a launch per frame of a video.

Only the resampling is the GPU's. full has Rodinia's 9 frames after the first, but 10,000 particles: its 1000 fill eight
CTAs. As the search is sequential, work grows with the square of the particles; small has two CTAs for each of 30 SMs.
The host's part is ours: no video, but what Rodinia's likelihood comes to, weights that fall steeply with the distance
between the pixels of the particle and of the object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "particle filter: resampling by a search from the beginning"
SUITE = "Rodinia"
PTX = "find_index.ptx"

BLOCK = 128
WIDTH = 128  # of the video; the object starts in the middle
STEEPNESS = 85  # of the log likelihood, per pixel: 9 of the disk's 69 are missed, each worth twice 128^2 / 50 / 69
PARTICLES_FRAMES = {"tiny": (140, 2), "small": (7680, 1), "full": (10_000, 9)}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    particles, frames = PARTICLES_FRAMES[size]
    return {"noise": random.standard_normal((frames, 2, particles)), "start": random.random(frames)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    particles = data["noise"].shape[2]
    new_x, new_y = (gpu.empty(particles, np.float64) for _ in range(2))

    def resample(*inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        args = [*(gpu.to_device(array) for array in inputs), new_x, new_y, np.int32(particles)]
        module.launch("find_index", grid=(-(-particles // BLOCK),), block=(BLOCK,), args=args)
        return gpu.from_device(new_x), gpu.from_device(new_y)

    return _filter(data, resample)


def reference(data: Data) -> Outputs:
    def resample(
        x: np.ndarray, y: np.ndarray, distribution: np.ndarray, teeth: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        index = np.minimum(np.searchsorted(distribution, teeth), x.size - 1)
        return x[index], y[index]

    return _filter(data, resample)


def _filter(data: Data, resample: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Outputs:
    """The host's part: moves the particles as the object moves, by one pixel and two back, and weighs them."""
    frames, _, particles = data["noise"].shape
    x = y = np.full(particles, WIDTH / 2)
    clouds = []
    for frame in range(frames):
        noise_x, noise_y = data["noise"][frame]
        x, y = x + 1 + 5 * noise_x, y - 2 + 2 * noise_y
        distance = np.hypot(np.rint(x) - WIDTH // 2 - frame - 1, np.rint(y) - WIDTH // 2 + 2 * (frame + 1))
        weights = np.exp(-STEEPNESS * (distance - distance.min()))
        teeth = (np.arange(particles) + data["start"][frame]) / particles
        x, y = resample(x, y, np.cumsum(weights / weights.sum()), teeth)
        clouds.append((x, y))
    all_x, all_y = np.array(clouds).swapaxes(0, 1)
    return {"x": all_x, "y": all_y}
