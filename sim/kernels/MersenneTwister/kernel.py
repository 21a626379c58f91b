"""MersenneTwister: the SDK's 4,096 small twisters in 32 CTAs of 128 threads, and their numbers made normal.

full has the SDK's 24 million numbers, 5,860 per twister. The parameters of the SDK's twisters come from a file of their
authors; ours are random, so that nothing is known about their periods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "random numbers by Mersenne twisters, uniform and normal"
SUITE = "CUDA SDK"
PTX = "mersenne.ptx"
REASON = "sine and cosine to 2^-21, times radii of up to 7, and float32 logarithms against float64"
TOLERANCE = {"normal": Close(rtol=1e-5, atol=1e-5, reason=REASON)}

CTAS_BLOCK_COUNT = {"tiny": (2, 40, 24), "small": (32, 128, 100), "full": (32, 128, 5860)}
WORDS, MIDDLE = 19, 9
PARAMETERS = "matrix", "mask_b", "mask_c", "seed"
TWISTER = np.dtype([(name, np.uint32) for name in PARAMETERS])


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    ctas, block, count = CTAS_BLOCK_COUNT[size]
    twisters = random.integers(0, 1 << 32, (ctas * block, len(PARAMETERS)), np.uint32)
    return {"twisters": twisters.view(TWISTER)[:, 0], "block": block, "count": count}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    twisters, count = data["twisters"], data["count"]
    grid, block = (twisters.size // data["block"],), (data["block"],)
    numbers = gpu.empty((count, twisters.size), np.float32)
    args = [numbers, gpu.to_device(twisters), np.int32(count)]
    module.launch("RandomGPU", grid=grid, block=block, args=args)
    uniform = gpu.from_device(numbers)
    module.launch("BoxMullerGPU", grid=grid, block=block, args=[numbers, np.int32(count)])
    return {"uniform": uniform, "normal": gpu.from_device(numbers)}


def reference(data: Data) -> Outputs:
    uniform = (_words(data["twisters"], data["count"]).astype(np.float32) + np.float32(1)) / np.float32(2**32)
    first, second = uniform.reshape(-1, 2, data["twisters"].size).astype(np.float64).swapaxes(0, 1)
    radius, angle = np.sqrt(-2 * np.log(first)), 2 * np.pi * second
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return {"uniform": uniform, "normal": normal.reshape(uniform.shape).astype(np.float32)}


def _words(twisters: np.ndarray, count: int) -> np.ndarray:
    """Numbers before they are scaled, by twister in the columns."""
    state = [twisters["seed"]]
    for i in range(1, WORDS):
        state.append(np.uint32(1812433253) * (state[-1] ^ state[-1] >> 30) + np.uint32(i))
    for i in range(count):
        word = (state[i] & np.uint32(0xFFFFFFFE)) | (state[i + 1] & np.uint32(1))
        state.append(state[i + MIDDLE] ^ word >> 1 ^ np.where(word & 1, twisters["matrix"], np.uint32(0)))
    words = np.array(state[WORDS:])
    words ^= words >> 12
    words ^= words << 7 & twisters["mask_b"]
    words ^= words << 15 & twisters["mask_c"]
    return words ^ words >> 18
