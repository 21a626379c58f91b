"""corr: PolyBench's correlation matrix, four kernels; full is PolyBench's 2048 x 2048.

steady takes the first 256 rows, and of the matrix a band of 4 elements beside the diagonal.

CTAs have 256 threads, those of corr_reduce 32 x 8. PolyBench divides by a constant in place of the number of rows; ours
divides by the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "correlation matrix of the columns, one row per thread"
SUITE = "PolyBench"
PTX = "corr.ptx"
TOLERANCE = {
    "mean": Close(rtol=1e-4, reason="float32 sums of up to 2048 positive terms against float64"),
    "deviation": Close(rtol=1e-4, reason="float32 sums of up to 2048 positive terms against float64"),
    "correlation": Close(atol=1e-4, reason="float32 sums of mixed sign, 1 in size, against float64"),
}

BLOCK = 256
TILE = (32, 8)
ROWS_COLUMNS = {"tiny": (7, 35), "small": (16, 1024), "full": (2048, 2048), "steady": (256, 2048)}
SIZES = tuple(ROWS_COLUMNS)
REACH = {"steady": 4}  # from the diagonal, where not the whole matrix is computed


def setup(size: str, seed: int) -> Data:
    """Columns that share a component, so that they correlate."""
    random = np.random.default_rng(seed)
    rows, columns = ROWS_COLUMNS[size]
    common = np.outer(random.random(rows), random.random(columns))
    values = random.random((rows, columns), np.float32) + common.astype(np.float32)
    return {"data": values, "reach": REACH.get(size, columns)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["data"].shape
    values = gpu.to_device(np.pad(data["data"], ((1, 0), (1, 0)), constant_values=np.nan))
    mean, deviation = gpu.empty(columns + 1, np.float32), gpu.empty(columns + 1, np.float32)
    correlation = gpu.to_device(np.zeros((columns + 1, columns + 1), np.float32))
    sizes = [np.int32(rows), np.int32(columns)]
    vector = {"grid": (-(-columns // BLOCK),), "block": (BLOCK,)}
    tiles = {"grid": (-(-columns // TILE[0]), -(-rows // TILE[1])), "block": TILE}
    module.launch("corr_mean", **vector, args=[*sizes, mean, values])
    module.launch("corr_deviation", **vector, args=[*sizes, mean, deviation, values])
    module.launch("corr_reduce", **tiles, args=[*sizes, mean, deviation, values])
    module.launch("corr_matrix", **vector, args=[*sizes, np.int32(data["reach"]), correlation, values])
    matrix = gpu.from_device(correlation)[1:, 1:]
    matrix[-1, -1] = 1
    return {"mean": gpu.from_device(mean)[1:], "deviation": gpu.from_device(deviation)[1:], "correlation": matrix}


def reference(data: Data) -> Outputs:
    values = data["data"].astype(np.float64)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    scaled = (values - mean) / (np.sqrt(len(values)) * deviation)
    outputs = {"mean": mean, "deviation": deviation, "correlation": _band(scaled.T @ scaled, data["reach"])}
    return {name: array.astype(np.float32) for name, array in outputs.items()}


def _band(matrix: np.ndarray, reach: int) -> np.ndarray:
    return np.triu(np.tril(matrix, reach), -reach)
