"""nearest-neighbour: Rodinia's nn, the distances from a place to all records, CTAs of 256 threads; the host finds ten.

full has as many records as Rodinia's list of hurricanes, 42,764, whose 168 CTAs are done at once; small has more. Ours
are random, at whole eighths of a degree, so that squares are exact in float32 and distances can be compared exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "distances from a place to all records"
SUITE = "Rodinia"
PTX = "euclid.ptx"

BLOCK = 256
NEAREST = 10
LATITUDE, LONGITUDE = (7, 63), (0, 358)  # of the records, in degrees
PLACE = np.array([30, 90], np.float32)
RECORDS = {"tiny": 300, "small": 500_000, "full": 42_764}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    eighths = [random.integers(8 * least, 8 * most, RECORDS[size]) for least, most in (LATITUDE, LONGITUDE)]
    return {"records": (np.stack(eighths, axis=1) / 8).astype(np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    count = len(data["records"])
    distances = gpu.empty(count, np.float32)
    args = [gpu.to_device(data["records"]), distances, np.int32(count), *PLACE]
    module.launch("euclid", grid=(-(-count // BLOCK),), block=(BLOCK,), args=args)
    return _find(gpu.from_device(distances))


def reference(data: Data) -> Outputs:
    return _find(np.sqrt(((PLACE - data["records"]) ** 2).sum(axis=1)))


def _find(distances: np.ndarray) -> Outputs:
    return {"distances": distances, "nearest": np.argsort(distances, kind="stable")[:NEAREST]}
