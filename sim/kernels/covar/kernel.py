"""covar: PolyBench's covariance matrix, three kernels; full is PolyBench's 2048 x 2048.

steady takes the first 256 rows, and of the matrix a band of 4 elements beside the diagonal.

CTAs have 256 threads, those of covar_reduce 32 x 8. PolyBench divides the mean by a constant in place of the number of
rows; ours divides by the number of rows. As in PolyBench, the sums of products are not divided.
"""

from __future__ import annotations

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs
from lockstep.sim.kernels.moments import ROWS_COLUMNS, Moments, band

TITLE = "covariance matrix of the columns, one row per thread"
SUITE = "PolyBench"
PTX = "covar.ptx"
TOLERANCE = {
    "mean": Close(rtol=1e-4, reason="float32 sums of up to 2048 positive terms against float64"),
    "covariance": Close(rtol=1e-4, atol=1e-3, reason="float32 sums of up to 2048 terms of mixed sign against float64"),
}

SIZES = tuple(ROWS_COLUMNS)
MOMENTS = Moments("covar", ("mean",), "covariance")
setup, run = MOMENTS.setup, MOMENTS.run


def reference(data: Data) -> Outputs:
    values = data["data"].astype(np.float64)
    mean = values.mean(axis=0)
    centred = values - mean
    outputs = {"mean": mean, "covariance": band(centred.T @ centred, data["reach"])}
    return {name: array.astype(np.float32) for name, array in outputs.items()}
