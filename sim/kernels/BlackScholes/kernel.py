"""BlackScholes: the SDK's option pricing, 480 CTAs of 128 threads in a grid-stride loop; full is 4,000,000 options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "European option prices"
SUITE = "CUDA SDK"
PTX = "blackscholes.ptx"
_CLOSE = Close(rtol=1e-5, atol=5e-4, reason="float32 of strikes up to 100, __expf and __logf (2^-21), against float64")
TOLERANCE = {"call": _CLOSE, "put": _CLOSE}

BLOCK = 128
OPTIONS_CTAS = {"tiny": (1_500, 10), "small": (250_000, 480), "full": (4_000_000, 480), "reference": (40_000, 120)}
SIZES = tuple(OPTIONS_CTAS)
RISK_FREE, VOLATILITY = 0.02, 0.30


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n, ctas = OPTIONS_CTAS[size]
    return {
        "ctas": ctas,
        "price": random.uniform(5.0, 30.0, n).astype(np.float32),
        "strike": random.uniform(1.0, 100.0, n).astype(np.float32),
        "years": random.uniform(0.25, 10.0, n).astype(np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n = data["price"].size
    inputs = [gpu.to_device(data[name]) for name in ("price", "strike", "years")]
    call, put = gpu.empty(n, np.float32), gpu.empty(n, np.float32)
    args = [call, put, *inputs, np.int32(n)]
    module.launch("BlackScholesGPU", grid=(data["ctas"],), block=(BLOCK,), args=args)
    return {"call": gpu.from_device(call), "put": gpu.from_device(put)}


def _cumulative_normal(d: np.ndarray) -> np.ndarray:
    k = 1.0 / (1.0 + 0.2316419 * np.abs(d))
    series = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = np.exp(-0.5 * d * d) / np.sqrt(2 * np.pi) * series
    return np.where(d > 0, 1.0 - tail, tail)


def reference(data: Data) -> Outputs:
    s, x, t = (data[name].astype(np.float64) for name in ("price", "strike", "years"))
    root = np.sqrt(t)
    d1 = (np.log(s / x) + (RISK_FREE + 0.5 * VOLATILITY**2) * t) / (VOLATILITY * root)
    n1, n2 = _cumulative_normal(d1), _cumulative_normal(d1 - VOLATILITY * root)
    discounted = x * np.exp(-RISK_FREE * t)
    call, put = s * n1 - discounted * n2, discounted * (1.0 - n2) - s * (1.0 - n1)
    return {"call": call.astype(np.float32), "put": put.astype(np.float32)}
