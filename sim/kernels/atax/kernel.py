"""atax: PolyBench's y = A^T (A x), two kernels in CTAs of 256 threads; full is PolyBench's 4096 x 4096.

steady adds up the first 512 of the 4096 terms of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Extents, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "y = A^T (A x), by rows and then by columns"
SUITE = "PolyBench"
PTX = "atax.ptx"
REASON = "float32 sums of up to 4096 positive terms against float64"
TOLERANCE = {"tmp": Close(rtol=1e-4, reason=REASON), "y": Close(rtol=1e-4, reason=REASON)}

BLOCK = 256
ROWS_COLUMNS = {
    "tiny": (264, 36),
    "small": (4096, 512),
    "full": (4096, 4096),
    "steady": (4096, 4096),
    "reference": (1024, 24),
}
STEPS = {"steady": 512}  # of the loops, where they do not take all rows or columns
SIZES = tuple(ROWS_COLUMNS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns = ROWS_COLUMNS[size]
    a, x = random.random((rows, columns), np.float32), random.random(columns, np.float32)
    return {"a": a, "x": x, "steps": STEPS.get(size)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["a"].shape
    a, x = gpu.to_device(data["a"]), gpu.to_device(data["x"])
    tmp, y = gpu.to_device(np.zeros(rows, np.float32)), gpu.to_device(np.zeros(columns, np.float32))
    by_rows, by_columns = (Extents(grid=(-(-n // BLOCK),), block=(BLOCK,)) for n in (rows, columns))
    sizes = [np.int32(rows), np.int32(columns)]
    if data["steps"]:
        steps = np.int32(data["steps"])
        module.launch("atax_1_part", **by_rows, args=[*sizes, steps, a, x, tmp])
        module.launch("atax_2", **by_columns, args=[steps, sizes[1], a, y, tmp])
    else:
        module.launch("atax_1", **by_rows, args=[*sizes, a, x, tmp])
        module.launch("atax_2", **by_columns, args=[*sizes, a, y, tmp])
    return {"tmp": gpu.from_device(tmp), "y": gpu.from_device(y)}


def reference(data: Data) -> Outputs:
    a = data["a"].astype(np.float64)
    part = slice(data["steps"])
    tmp = a[:, part] @ data["x"][part]
    return {"tmp": tmp.astype(np.float32), "y": (tmp[part] @ a[part]).astype(np.float32)}
