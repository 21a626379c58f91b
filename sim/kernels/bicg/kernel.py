"""bicg: PolyBench's products of biconjugate gradients, two kernels in CTAs of 256 threads; full is its 4096 x 4096."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.gpu import Gpu, Module

TITLE = "s = A^T r by columns, q = A p by rows"
SUITE = "PolyBench"
PTX = "bicg.ptx"
REASON = "float32 sums of up to 4096 positive terms against float64"
TOLERANCE = {"s": Close(rtol=1e-4, reason=REASON), "q": Close(rtol=1e-4, reason=REASON)}

BLOCK = 256
ROWS_COLUMNS = {"tiny": (264, 36), "small": (4096, 512), "full": (4096, 4096)}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns = ROWS_COLUMNS[size]
    return {
        "a": random.random((rows, columns), np.float32),
        "r": random.random(rows, np.float32),
        "p": random.random(columns, np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["a"].shape
    a, r, p = (gpu.to_device(data[name]) for name in "arp")
    s, q = gpu.empty(columns, np.float32), gpu.empty(rows, np.float32)
    sizes = [np.int32(rows), np.int32(columns)]
    module.launch("bicg_1", grid=(-(-columns // BLOCK),), block=(BLOCK,), args=[*sizes, a, r, s])
    module.launch("bicg_2", grid=(-(-rows // BLOCK),), block=(BLOCK,), args=[*sizes, a, p, q])
    return {"s": gpu.from_device(s), "q": gpu.from_device(q)}


def reference(data: Data) -> Outputs:
    a = data["a"].astype(np.float64)
    return {"s": (data["r"] @ a).astype(np.float32), "q": (a @ data["p"]).astype(np.float32)}
