"""histogram: the SDK's histogram256, six warps per CTA with a sub-histogram each, scratchpad atomics, then a merge.

full has the SDK's 240 CTAs and 64 MB of random bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.gpu import Gpu, Module

TITLE = "histogram of bytes, 256 bins, scratchpad atomics"
SUITE = "CUDA SDK"
PTX = "histogram.ptx"

BLOCK, MERGE_BLOCK, BINS = 192, 256, 256
WORDS_CTAS = {"tiny": (1_501, 2), "small": (400_000, 60), "full": (1 << 24, 240)}  # of four bytes each


def setup(size: str, seed: int) -> Data:
    words, ctas = WORDS_CTAS[size]
    return {"data": np.random.default_rng(seed).integers(0, 256, 4 * words, np.uint8), "ctas": ctas}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    ctas, values = data["ctas"], gpu.to_device(data["data"])
    partial, histogram = gpu.empty((ctas, BINS), np.uint32), gpu.empty(BINS, np.uint32)
    words = np.uint32(data["data"].size // 4)
    module.launch("histogram256", grid=(ctas,), block=(BLOCK,), args=[partial, values, words])
    args = [histogram, partial, np.uint32(ctas)]
    module.launch("merge_histogram256", grid=(BINS,), block=(MERGE_BLOCK,), args=args)
    return {"histogram": gpu.from_device(histogram)}


def reference(data: Data) -> Outputs:
    return {"histogram": np.bincount(data["data"], minlength=BINS).astype(np.uint32)}
