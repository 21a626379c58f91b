"""MonteCarlo: the SDK's European options by Monte Carlo, a CTA of 256 threads per option.

full has the SDK's 256 options and 262,144 samples; steady takes the first 65,536 of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "European option prices by Monte Carlo"
SUITE = "CUDA SDK"
PTX = "montecarlo.ptx"
REASON = "__expf (2^-21) of prices up to 100, and float32 sums of up to 1024 terms, against float64"
TOLERANCE = {"sums": Close(rtol=5e-6, atol=1e-3, reason=REASON)}

BLOCK = 256
OPTIONS_SAMPLES = {
    "tiny": (2, 600),
    "small": (64, 16_384),
    "full": (256, 262_144),
    "steady": (256, 262_144),
    "reference": (15, 1024),
}
SIZES = tuple(OPTIONS_SAMPLES)
PATHS = {"steady": 65_536}  # samples that are taken, where not all of them are
RISK_FREE, VOLATILITY = 0.06, 0.10
OPTION = np.dtype([(name, np.float32) for name in ("price", "strike", "drift", "deviation")])


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    count, samples = OPTIONS_SAMPLES[size]
    years = random.uniform(1.0, 5.0, count)
    options = np.empty(count, OPTION)
    options["price"] = random.uniform(5.0, 50.0, count)
    options["strike"] = options["price"] * random.uniform(0.5, 1.5, count)
    options["drift"] = (RISK_FREE - VOLATILITY**2 / 2) * years
    options["deviation"] = VOLATILITY * np.sqrt(years)
    return {
        "options": options,
        "samples": random.standard_normal(samples, np.float32),
        "paths": PATHS.get(size, samples),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    count = data["options"].size
    module.set_symbol("options", data["options"])
    sums = gpu.empty((count, 2), np.float32)
    args = [sums, gpu.to_device(data["samples"]), np.int32(data["paths"])]
    module.launch("MonteCarloOneBlockPerOption", grid=(count,), block=(BLOCK,), args=args)
    return {"sums": gpu.from_device(sums)}


def reference(data: Data) -> Outputs:
    samples = data["samples"][: data["paths"]].astype(np.float64)
    sums = np.empty((data["options"].size, 2))
    for row, (price, strike, drift, deviation) in zip(sums, data["options"].tolist(), strict=True):
        payoff = np.maximum(price * np.exp(drift + deviation * samples) - strike, 0)
        row[:] = payoff.sum(), (payoff**2).sum()
    return {"sums": sums.astype(np.float32)}
