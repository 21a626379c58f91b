"""tpacf: Parboil's two-point angular correlation, CTAs of 256 threads (tiny: 32) with 13,312 bytes of scratchpad.

full has Parboil's small input, 487 points in each of 101 sets, in 201 CTAs. Angles are from one minute to 10,000 in 20
bins, five of which are a factor of ten. Ours are points on a part of the sphere, those observed in clusters.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "histograms of the angles between points on a sphere"
SUITE = "Parboil"
PTX = "tpacf.ptx"

BINS, BINS_PER_DECADE = 20, 5
LEAST = 1 / 60  # degrees
POINTS_SETS_BLOCK = {"tiny": (36, 1, 32), "small": (200, 20, 256), "full": (487, 100, 256)}
CLUSTER = 8  # points


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    points, sets, block = POINTS_SETS_BLOCK[size]
    places = random.uniform(-0.5, 0.5, (sets + 1, points, 3)) + np.array([1, 0, 0])
    places[0] = places[0, np.arange(points) // CLUSTER] + random.normal(0, 0.01, (points, 3))
    places /= np.linalg.norm(places, axis=2, keepdims=True)
    angles = LEAST * 10 ** (np.arange(BINS + 1) / BINS_PER_DECADE)
    bounds = np.cos(np.radians(angles)).astype(np.float32)
    return {"places": places.astype(np.float32), "bounds": bounds, "block": block}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    sets, points, _ = data["places"].shape
    ctas = 2 * sets - 1
    module.set_symbol("bounds", data["bounds"])
    histograms = gpu.empty((ctas, BINS), np.uint32)
    coordinates = [gpu.to_device(data["places"][:, :, axis].copy()) for axis in range(3)]
    args = [histograms, *coordinates, np.int32(sets - 1), np.int32(points)]
    module.launch("gen_hists", grid=(ctas,), block=(data["block"],), args=args)
    return {"histograms": gpu.from_device(histograms)}


def reference(data: Data) -> Outputs:
    observed, *others = data["places"]
    once = np.triu_indices(len(observed), 1)
    within = (_cosines(each, each)[once] for each in data["places"])
    across = (_cosines(observed, each).ravel() for each in others)
    return {"histograms": np.array([_histogram(each, data["bounds"]) for each in chain(within, across)], np.uint32)}


def _cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the angles of all pairs, rounded as the kernel rounds them."""
    (x, y, z), (u, v, w) = (points.T.astype(np.float64) for points in (first, second))
    cosines = np.outer(x, u).astype(np.float32)
    for coordinates in ((y, v), (z, w)):
        cosines = (np.outer(*coordinates) + cosines).astype(np.float32)
    return cosines


def _histogram(cosines: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The bin of a cosine begins with the last bound above it."""
    return np.bincount(np.searchsorted(-bounds, -cosines), minlength=len(bounds) + 1)[1 : len(bounds)]
