"""histogram: the SDK's histogram256, six warps per CTA with a sub-histogram each, scratchpad atomics, then a merge.

full has the SDK's 240 CTAs and 64 MB of random bytes. The merge has 256 threads per CTA, but 32 for tiny.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "histogram of bytes, 256 bins, scratchpad atomics"
SUITE = "CUDA SDK"
PTX = "histogram.ptx"

BLOCK, BINS = 192, 256
WORDS = {"tiny": 801, "small": 400_000, "full": 1 << 24, "reference": 30_000}  # of four bytes each
SIZES = tuple(WORDS)
CTAS = {"tiny": 2, "small": 60, "full": 240, "reference": 60}
MERGE_BLOCK = {"tiny": 32, "small": 256, "full": 256, "reference": 256}


def setup(size: str, seed: int) -> Data:
    values = np.random.default_rng(seed).integers(0, 256, 4 * WORDS[size], np.uint8)
    return {"data": values, "ctas": CTAS[size], "merge_block": MERGE_BLOCK[size]}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    ctas, values = data["ctas"], gpu.to_device(data["data"])
    partial, histogram = gpu.empty((ctas, BINS), np.uint32), gpu.empty(BINS, np.uint32)
    words = np.uint32(data["data"].size // 4)
    module.launch("histogram256", grid=(ctas,), block=(BLOCK,), args=[partial, values, words])
    args = [histogram, partial, np.uint32(ctas)]
    module.launch("merge_histogram256", grid=(BINS,), block=(data["merge_block"],), args=args)
    return {"histogram": gpu.from_device(histogram)}


def reference(data: Data) -> Outputs:
    return {"histogram": np.bincount(data["data"], minlength=BINS).astype(np.uint32)}
