"""fft: Parboil's batched FFT of radix 2, a launch per step, CTAs of 128 threads for a signal of 256 points each.

Of such CTAs a core holds eight, as DYNCTA's paper says. How many signals Parboil's input has is not known to us. Ours
are noise, and sine and cosine are the fast ones of the special function units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Fourier transforms of many complex signals"
SUITE = "Parboil"
PTX = "fft.ptx"
_REASON = "float32 and __sincosf (2^-21) against float64, over eight steps"
TOLERANCE = {"spectra": Close(rtol=1e-5, atol=3e-5, reason=_REASON)}

SIGNALS_POINTS = {"tiny": (3, 64), "small": (1200, 256)}
SIZES = tuple(SIGNALS_POINTS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    signals, points = SIGNALS_POINTS[size]
    return {"signals": random.uniform(-1, 1, (signals, points, 2)).astype(np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    signals, points, _ = data["signals"].shape
    source, target = gpu.to_device(data["signals"]), gpu.empty(data["signals"].shape, np.float32)
    done = 1
    while done < points:
        args = [np.int32(done), source, target, np.int32(points)]
        module.launch("fft_step", grid=(signals,), block=(points // 2,), args=args)
        source, target = target, source
        done *= 2
    return {"spectra": gpu.from_device(source)}


def reference(data: Data) -> Outputs:
    signals = data["signals"].astype(np.float64).view(np.complex128)[..., 0]
    return {"spectra": np.fft.fft(signals)[..., None].view(np.float64).astype(np.float32)}
