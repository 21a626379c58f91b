"""atax: PolyBench's y = A^T (A x), two kernels in CTAs of 256 threads; full is PolyBench's 4096 x 4096."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.gpu import Gpu, Module

TITLE = "y = A^T (A x), by rows and then by columns"
SUITE = "PolyBench"
PTX = "atax.ptx"
REASON = "float32 sums of up to 4096 positive terms against float64"
TOLERANCE = {"tmp": Close(rtol=1e-4, reason=REASON), "y": Close(rtol=1e-4, reason=REASON)}

BLOCK = 256
ROWS_COLUMNS = {"tiny": (264, 36), "small": (4096, 512), "full": (4096, 4096), "reference": (1024, 24)}
SIZES = tuple(ROWS_COLUMNS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns = ROWS_COLUMNS[size]
    return {"a": random.random((rows, columns), np.float32), "x": random.random(columns, np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["a"].shape
    a, x = gpu.to_device(data["a"]), gpu.to_device(data["x"])
    tmp, y = gpu.to_device(np.zeros(rows, np.float32)), gpu.to_device(np.zeros(columns, np.float32))
    sizes = [np.int32(rows), np.int32(columns)]
    module.launch("atax_1", grid=(-(-rows // BLOCK),), block=(BLOCK,), args=[*sizes, a, x, tmp])
    module.launch("atax_2", grid=(-(-columns // BLOCK),), block=(BLOCK,), args=[*sizes, a, y, tmp])
    return {"tmp": gpu.from_device(tmp), "y": gpu.from_device(y)}


def reference(data: Data) -> Outputs:
    a = data["a"].astype(np.float64)
    tmp = a @ data["x"]
    return {"tmp": tmp.astype(np.float32), "y": (tmp @ a).astype(np.float32)}
