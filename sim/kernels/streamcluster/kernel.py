"""streamcluster: Rodinia's gain of a further centre, CTAs of 512 threads; full has its 65,536 points in 256 dimensions.

Each launch tries one more point as a centre; the host sums up the savings and opens the centre if it pays. Coordinates
are whole numbers and weights are 1, so every cost is exact in float32 and decisions can be compared exactly. Rodinia
tries points until the solution settles; ours tries a number of them. steady tries one, by the first 64 dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "online clustering: gain of a further centre"
SUITE = "Rodinia"
PTX = "streamcluster.ptx"

BLOCK = 512
MAX_GRID = 65_535  # CTAs in a row of the grid
SPREAD = 16  # of the coordinates: whole numbers below it
POINT = np.dtype(
    [("weight", np.float32), ("coordinates", np.uint64), ("centre", np.int64), ("cost", np.float32)], align=True
)
POINTS_DIMENSIONS_TRIES = {
    "tiny": (700, 5, 3),
    "small": (30_720, 64, 3),
    "full": (65_536, 256, 100),
    "steady": (65_536, 64, 1),
}
SIZES = tuple(POINTS_DIMENSIONS_TRIES)

# What a new centre at a point saves: by point and centre, and which points would go over to it.
Costs = tuple[np.ndarray, np.ndarray]


def setup(size: str, seed: int) -> Data:
    """Points around a few places, so that some of the centres tried pay."""
    random = np.random.default_rng(seed)
    points, dimensions, tries = POINTS_DIMENSIONS_TRIES[size]
    places = random.integers(2, SPREAD - 2, (4, dimensions))
    offsets = random.integers(-2, 2, (points, dimensions))
    return {
        "coordinates": (places[random.integers(0, len(places), points)] + offsets).astype(np.float32),
        "candidates": 1 + random.permutation(points - 1)[:tries],  # the first centre is point 0
        "opening": points * dimensions / 2,  # cost of a centre
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    points, dimensions = data["coordinates"].shape
    coordinates = gpu.to_device(data["coordinates"].T)
    ctas = -(-points // BLOCK)
    grid = (min(ctas, MAX_GRID), -(-ctas // MAX_GRID))

    def evaluate(candidate: int, records: np.ndarray, numbers: np.ndarray, centres: int) -> Costs:
        lower = gpu.to_device(np.zeros((points, centres + 1), np.float32))
        switches = gpu.to_device(np.zeros(points, bool))
        p, number = gpu.to_device(records), gpu.to_device(numbers)
        sizes = np.int32(points), np.int32(dimensions)
        table = np.int32(centres), np.int32(centres + 1)
        args = [*sizes, np.int64(candidate), p, *table, coordinates, lower, number, switches]
        module.launch("compute_cost", grid=grid, block=(BLOCK,), args=args)
        result = gpu.from_device(lower), gpu.from_device(switches)
        for buffer in (lower, switches, p, number):
            gpu.free(buffer)
        return result

    return _cluster(data, evaluate)


def reference(data: Data) -> Outputs:
    def evaluate(candidate: int, records: np.ndarray, numbers: np.ndarray, centres: int) -> Costs:
        cost = _distances(data, candidate) * records["weight"]
        switches = cost < records["cost"]
        lower = np.zeros((len(records), centres + 1), np.float32)
        column = np.where(switches, centres, numbers[records["centre"]])
        lower[np.arange(len(records)), column] = np.where(switches, cost - records["cost"], records["cost"] - cost)
        return lower, switches

    return _cluster(data, evaluate)


def _distances(data: Data, point: int) -> np.ndarray:
    return np.asarray(((data["coordinates"] - data["coordinates"][point]) ** 2).sum(axis=1))


def _cluster(data: Data, evaluate: Callable[[int, np.ndarray, np.ndarray, int], Costs]) -> Outputs:
    """The host's part: opens the new centre if it pays, and closes those that no longer do; their points go over."""
    points = len(data["coordinates"])
    records = np.zeros(points, POINT)
    records["weight"] = 1
    records["cost"] = _distances(data, 0)
    gains, switches = [], []
    for candidate in data["candidates"]:
        centres = np.unique(records["centre"])
        numbers = np.zeros(points, np.int32)
        numbers[centres] = np.arange(len(centres))
        lower, goes = evaluate(int(candidate), records, numbers, len(centres))
        savings = lower.sum(axis=0, dtype=np.float64)
        worth = data["opening"] + savings[:-1]  # of closing a centre, of which the points that stay pay more
        closes = worth > 0
        gains.append(-savings[-1] - data["opening"] + worth[closes].sum())
        switches.append(goes)
        if gains[-1] > 0:
            over = goes | closes[numbers[records["centre"]]]
            records["centre"][over] = candidate
            records["cost"][over] = _distances(data, candidate)[over]
    return {
        "gains": np.array(gains),
        "switches": np.array(switches),
        "centre": records["centre"].copy(),
        "cost": records["cost"].copy(),
    }
