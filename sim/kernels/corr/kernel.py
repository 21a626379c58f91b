"""corr: PolyBench's correlation matrix, four kernels; full is PolyBench's 2048 x 2048.

steady takes the first 256 rows, and of the matrix a band of 4 elements beside the diagonal.

CTAs have 256 threads, those of corr_reduce 32 x 8. PolyBench divides by a constant in place of the number of rows; ours
divides by the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs
from lockstep.sim.kernels.moments import ROWS_COLUMNS, Moments, band

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

SIZES = tuple(ROWS_COLUMNS)
MOMENTS = Moments("corr", ("mean", "deviation"), "correlation")
setup = MOMENTS.setup


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    outputs = MOMENTS.run(gpu, module, data)
    outputs["correlation"][-1, -1] = 1
    return outputs


def reference(data: Data) -> Outputs:
    values = data["data"].astype(np.float64)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    scaled = (values - mean) / (np.sqrt(len(values)) * deviation)
    outputs = {"mean": mean, "deviation": deviation, "correlation": band(scaled.T @ scaled, data["reach"])}
    return {name: array.astype(np.float32) for name, array in outputs.items()}
