"""reduction: sum of n integers as in the SDK's reduction sample, its default type, at most 64 CTAs of 256 threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "sum of integers: grid-stride loop, scratchpad tree, two launches"
SUITE = "CUDA SDK"
PTX = "reduction.ptx"

BLOCK = 256
MAX_CTAS = 64
ELEMENTS = {"tiny": 5_001, "small": 3_000_001, "full": 1 << 24}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    return {"input": random.integers(-(1 << 30), 1 << 30, ELEMENTS[size], np.int32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n = data["input"].size
    ctas = min(MAX_CTAS, -(-n // (2 * BLOCK)))
    values, partial, total = gpu.to_device(data["input"]), gpu.empty(ctas, np.int32), gpu.empty(1, np.int32)
    module.launch("reduce", grid=(ctas,), block=(BLOCK,), args=[values, partial, np.uint32(n)])
    module.launch("reduce", grid=(1,), block=(BLOCK,), args=[partial, total, np.uint32(ctas)])
    return {"partial": gpu.from_device(partial), "total": gpu.from_device(total)}


def reference(data: Data) -> Outputs:
    values = data["input"]
    ctas = min(MAX_CTAS, -(-values.size // (2 * BLOCK)))
    chunk = 2 * BLOCK * ctas
    padded = np.zeros(-(-values.size // chunk) * chunk, np.int64)
    padded[: values.size] = values
    partial = padded.reshape(-1, ctas, 2 * BLOCK).sum(axis=(0, 2))
    return {"partial": partial.astype(np.int32), "total": partial.sum(keepdims=True).astype(np.int32)}
