"""fastWalshTransform: the SDK's fast Walsh-Hadamard transform, steps in global memory and then in the scratchpad.

CTAs of 256 threads do a step of radix 4 (fwtBatch2Kernel), CTAs of 512 with 8,192 bytes of scratchpad the last 11 steps
of radix 2 (fwtBatch1Kernel); both are smaller in tiny. full has the SDK's 2^23 elements. Elements are whole numbers, so
that results are exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Walsh-Hadamard transform of a signal"
SUITE = "CUDA SDK"
PTX = "fastwalsh.ptx"

LOGS = {"tiny": (9, 7), "small": (19, 11), "full": (23, 11)}  # of elements, and of those that fit into the scratchpad
BLOCK = 256


def setup(size: str, seed: int) -> Data:
    log, part = LOGS[size]
    signal = np.random.default_rng(seed).integers(-8, 9, 1 << log)
    return {"signal": signal.astype(np.float32), "part": part}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    elements, parts = data["signal"].size, 1
    source, target = gpu.to_device(data["signal"]), gpu.empty(elements, np.float32)
    while elements > 1 << data["part"]:
        block = min(BLOCK, elements // 4)
        args = [target, source, np.int32(elements // 4)]
        module.launch("fwtBatch2Kernel", grid=(elements // 4 // block, parts), block=(block,), args=args)
        source, elements, parts = target, elements // 4, parts * 4
    args = [target, source, np.int32(elements.bit_length() - 1)]
    module.launch("fwtBatch1Kernel", grid=(parts,), block=(elements // 4,), args=args)
    return {"spectrum": gpu.from_device(target)}


def reference(data: Data) -> Outputs:
    spectrum = data["signal"].astype(np.int64)
    stride = spectrum.size // 2
    while stride:
        left, right = spectrum.reshape(-1, 2, stride).swapaxes(0, 1)
        spectrum = np.stack([left + right, left - right], axis=1).ravel()
        stride //= 2
    return {"spectrum": spectrum.astype(np.float32)}
