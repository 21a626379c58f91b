"""dwtHaar1D: the SDK's Haar wavelet decomposition.

small and full have the SDK's 2^18 elements: 256 CTAs of 512 threads, then one of 128. Scratchpad is two floats per
thread, and a sixteenth more against bank conflicts. No step can be fused, so results are compared exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Haar wavelet decomposition of a signal"
SUITE = "CUDA SDK"
PTX = "dwthaar1d.ptx"

LEVELS_THREADS = {"tiny": (9, 64), "small": (18, 512), "full": (18, 512)}  # threads of a CTA, at most
PADDED = 16  # elements to one more
INVERSE_SQRT_2 = np.float32(0.5**0.5)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    levels, threads = LEVELS_THREADS[size]
    return {"signal": random.uniform(-1, 1, 2**levels).astype(np.float32), "threads": threads}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    """A launch takes as many levels as a CTA's threads allow, the next one those of the approximations."""
    size = data["signal"].size
    signal, output = gpu.to_device(data["signal"]), gpu.empty(size, np.float32)
    while size > 1:
        threads = min(data["threads"], size // 2)
        ctas = size // (2 * threads)
        approximation = gpu.empty(ctas, np.float32)
        shared_bytes = 4 * (2 * threads + 2 * threads // PADDED)
        args = [signal, output, approximation, np.int32(threads.bit_length())]
        module.launch("dwtHaar1D", grid=(ctas,), block=(threads,), args=args, shared_bytes=shared_bytes)
        signal, size = approximation, ctas
    decomposition = gpu.from_device(output)
    decomposition[:1] = gpu.from_device(signal)
    return {"decomposition": decomposition}


def reference(data: Data) -> Outputs:
    signal, parts = data["signal"], []
    while signal.size > 1:
        left, right = signal[::2], signal[1::2]
        parts.append((left - right) * INVERSE_SQRT_2)
        signal = (left + right) * INVERSE_SQRT_2
    return {"decomposition": np.concatenate([signal, *reversed(parts)])}
