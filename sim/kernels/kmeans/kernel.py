"""kmeans: Rodinia's k-means clustering, CTAs of 256 threads, five clusters; full has its 494,020 points of 34 features.

Features are whole numbers and centres are rounded to eighths, so that every distance is exact in float32 and the
memberships can be compared exactly. Rodinia iterates until few points move; ours makes a number of rounds.
steady makes one for the first 56,320 of the points, five of the grid's 44 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "k-means clustering, features by columns"
SUITE = "Rodinia"
PTX = "kmeans.ptx"

BLOCK = 256
CLUSTERS = 5
SPREAD = 16  # of the features: whole numbers below it
POINTS_FEATURES_ROUNDS = {
    "tiny": (300, 5, 2),
    "small": (30_720, 34, 2),
    "full": (494_020, 34, 20),
    "steady": (494_020, 34, 1),
    "reference": (2048, 24, 1),
}
SIZES = tuple(POINTS_FEATURES_ROUNDS)
SAMPLE = {"steady": 56_320}  # of the points, where not all are clustered


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    points, features, rounds = POINTS_FEATURES_ROUNDS[size]
    return {
        "features": random.integers(0, SPREAD, (points, features)).astype(np.float32),
        "rounds": rounds,
        "sample": SAMPLE.get(size, points),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    points, features = data["features"].shape
    rows, columns = gpu.to_device(data["features"]), gpu.to_device(np.zeros((features, points), np.float32))
    membership = gpu.empty(points, np.int32)
    side = int(np.ceil(np.sqrt(-(-points // BLOCK))))  # of the grid
    ctas = -(-data["sample"] // BLOCK)
    sizes = np.int32(points), np.int32(features)
    module.launch("invert_mapping", grid=(ctas,), block=(BLOCK,), args=[rows, columns, *sizes])

    def assign(centres: np.ndarray) -> np.ndarray:
        module.set_symbol("centres", centres)
        args = [columns, np.int32(features), np.int32(points), np.int32(CLUSTERS), membership]
        module.launch("kmeans_point", grid=(side, -(-ctas // side)), block=(BLOCK,), args=args)
        return gpu.from_device(membership)[: data["sample"]]

    return {"columns": gpu.from_device(columns), **_cluster(data, assign)}


def reference(data: Data) -> Outputs:
    features = data["features"][: data["sample"]]
    columns = np.zeros(data["features"].T.shape, np.float32)
    columns[:, : len(features)] = features.T

    def assign(centres: np.ndarray) -> np.ndarray:
        distances = [((features - centre) ** 2).sum(axis=1) for centre in centres.astype(np.float64)]
        return np.argmin(distances, axis=0).astype(np.int32)

    return {"columns": columns, **_cluster(data, assign)}


def _cluster(data: Data, assign: Callable[[np.ndarray], np.ndarray]) -> Outputs:
    """The host's part: the first centres are points; after each assignment they move to the mean of their points."""
    features = data["features"][: data["sample"]]
    centres = features[:CLUSTERS]
    memberships = []
    for _ in range(data["rounds"]):
        memberships.append(assign(centres))
        means = [features[memberships[-1] == i].mean(axis=0, dtype=np.float64) for i in range(CLUSTERS)]
        centres = (np.round(np.multiply(means, 8)) / 8).astype(np.float32)
    return {"membership": np.array(memberships), "centres": centres}
