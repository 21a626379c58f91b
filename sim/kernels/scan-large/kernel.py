"""scan-large: the SDK's later scan, of arrays that are longer than a CTA: 256 threads (tiny: 32), four elements each.

full has the SDK's 13 x 2^19 elements, in the longest arrays that it scans, of 2^18. Sums are taken modulo 2^32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "exclusive scans of long arrays"
SUITE = "CUDA SDK"
PTX = "scan.ptx"

ARRAYS_ELEMENTS_BLOCK = {"tiny": (3, 1 << 10, 32), "small": (7, 1 << 16, 256), "full": (26, 1 << 18, 256)}
PER_THREAD = 4


def setup(size: str, seed: int) -> Data:
    arrays, elements, block = ARRAYS_ELEMENTS_BLOCK[size]
    values = np.random.default_rng(seed).integers(0, 1 << 32, (arrays, elements), np.uint32)
    return {"arrays": values, "block": block}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    arrays, elements = data["arrays"].shape
    block, part = data["block"], PER_THREAD * data["block"]
    parts = arrays * elements // part
    source, target = gpu.to_device(data["arrays"]), gpu.empty((arrays, elements), np.uint32)
    before = gpu.empty(parts, np.uint32)
    args = [target, source, np.uint32(part)]
    module.launch("scanExclusiveShared", grid=(parts,), block=(block,), args=args)
    args = [before, target, source, *(np.uint32(value) for value in (parts, elements // part, part))]
    module.launch("scanExclusiveShared2", grid=(-(-parts // block),), block=(block,), args=args)
    module.launch("uniformUpdate", grid=(parts,), block=(block,), args=[target, before])
    return {"sums": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    sums = np.zeros_like(data["arrays"])
    sums[:, 1:] = np.cumsum(data["arrays"][:, :-1], axis=1, dtype=np.uint32)
    return {"sums": sums}
