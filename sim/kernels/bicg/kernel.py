"""bicg: PolyBench's products of biconjugate gradients, two kernels in CTAs of 256 threads; full is its 4096 x 4096.

steady adds up the first 512 of the 4096 terms of every sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "s = A^T r by columns, q = A p by rows"
SUITE = "PolyBench"
PTX = "bicg.ptx"
REASON = "float32 sums of up to 4096 positive terms against float64"
TOLERANCE = {"s": Close(rtol=1e-4, reason=REASON), "q": Close(rtol=1e-4, reason=REASON)}

BLOCK = 256
ROWS_COLUMNS = {"tiny": (264, 36), "small": (4096, 512), "full": (4096, 4096), "steady": (4096, 4096)}
SIZES = tuple(ROWS_COLUMNS)
STEPS = {"steady": 512}  # of the loops, where they do not take all rows or columns


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns = ROWS_COLUMNS[size]
    return {
        "a": random.random((rows, columns), np.float32),
        "r": random.random(rows, np.float32),
        "p": random.random(columns, np.float32),
        "steps": STEPS.get(size, max(rows, columns)),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["a"].shape
    a, r, p = (gpu.to_device(data[name]) for name in "arp")
    s, q = gpu.empty(columns, np.float32), gpu.empty(rows, np.float32)
    down, along = (np.int32(min(n, data["steps"])) for n in (rows, columns))
    args = [down, np.int32(columns), a, r, s]
    module.launch("bicg_1", grid=(-(-columns // BLOCK),), block=(BLOCK,), args=args)
    args = [np.int32(rows), np.int32(columns), along, a, p, q]
    module.launch("bicg_2", grid=(-(-rows // BLOCK),), block=(BLOCK,), args=args)
    return {"s": gpu.from_device(s), "q": gpu.from_device(q)}


def reference(data: Data) -> Outputs:
    a = data["a"].astype(np.float64)
    part = slice(data["steps"])
    s, q = data["r"][part] @ a[part], a[:, part] @ data["p"][part]
    return {"s": s.astype(np.float32), "q": q.astype(np.float32)}
