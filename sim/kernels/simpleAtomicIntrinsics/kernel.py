"""simpleAtomicIntrinsics: the SDK's atomic operations, all of them by every thread, CTAs of 256 threads.

full has the SDK's 64 CTAs, small 1024, tiny one of 40 threads. Exchange and compare-and-swap leave the number of any
thread behind, by the order in which these come; in the results it is 1 if that is one that may be there.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, xor
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "eleven atomic operations on a word each"
SUITE = "CUDA SDK"
PTX = "atomics.ptx"

CTAS_BLOCK = {"tiny": (1, 40), "small": (1024, 256), "full": (64, 256)}
BY_ORDER = 2, 7  # exchange, compare-and-swap
INCREMENTED_TO, DECREMENTED_FROM = 17, 137


def setup(size: str, seed: int) -> Data:
    words = np.random.default_rng(seed).integers(0, 16, 11).astype(np.int32)
    words[[8, 10]] |= 0x40
    ctas, block = CTAS_BLOCK[size]
    return {"words": words, "ctas": ctas, "block": block}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    buffer = gpu.to_device(data["words"])
    module.launch("testKernel", grid=(data["ctas"],), block=(data["block"],), args=[buffer])
    words = gpu.from_device(buffer)
    exchanged, swapped = (int(words[k]) for k in BY_ORDER)
    threads = data["ctas"] * data["block"]
    words[BY_ORDER[0]] = 0 <= exchanged < threads
    words[BY_ORDER[1]] = data["words"][BY_ORDER[1]] <= swapped < threads
    return {"words": words}


def reference(data: Data) -> Outputs:
    words, threads = data["words"].tolist(), range(data["ctas"] * data["block"])
    words[0] += 10 * len(threads)
    words[1] -= 10 * len(threads)
    words[3] = max(words[3], threads[-1])
    words[4] = min(words[4], 0)
    words[5] = (words[5] + len(threads)) % (INCREMENTED_TO + 1)
    words[6] = (words[6] - len(threads)) % (DECREMENTED_FROM + 1)
    words[8] = reduce(and_, (2 * thread + 7 for thread in threads), words[8])
    words[9] |= (1 << min(len(threads), 32)) - 1
    words[10] = reduce(xor, threads, words[10])
    for k in BY_ORDER:
        words[k] = 1
    return {"words": np.array(words, np.int64).astype(np.int32)}
