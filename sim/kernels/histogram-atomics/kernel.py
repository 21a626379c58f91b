"""histogram-atomics: an atomic in global memory per byte, as in Sanders and Kandrot, "CUDA by Example", chapter 9.

The book has 100 MB of random bytes (here full) and CTAs of 256 threads, two per SM. Here full has more: a launch in
which no warp ends for millions of cycles counts as stuck. The book's bytes are uniform; here each is the AND of three
random ones, a third of them 0, so that 11 lanes of a warp want the same bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "histogram of bytes, 256 bins, global atomics"
SUITE = "CUDA by Example"
PTX = "histogram_atomics.ptx"

BLOCK, BINS = 256, 256
BYTES = {"tiny": 5_003, "small": 2_000_003, "full": 100 << 20, "reference": 60_003}
SIZES = tuple(BYTES)
CTAS = {"tiny": 3, "small": 60, "full": 4096, "reference": 60}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed).integers(0, 256, (3, BYTES[size]), np.uint8)
    return {"data": np.bitwise_and.reduce(random), "ctas": CTAS[size]}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    values, histogram = gpu.to_device(data["data"]), gpu.to_device(np.zeros(BINS, np.uint32))
    args = [histogram, values, np.uint32(data["data"].size)]
    module.launch("histogram_atomics", grid=(data["ctas"],), block=(BLOCK,), args=args)
    return {"histogram": gpu.from_device(histogram)}


def reference(data: Data) -> Outputs:
    return {"histogram": np.bincount(data["data"], minlength=BINS).astype(np.uint32)}
