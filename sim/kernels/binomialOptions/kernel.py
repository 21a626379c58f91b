"""binomialOptions: the SDK's European call options in a binomial tree, a CTA of 256 threads (tiny: 64) per option.

full has the SDK's 512 options and 2,048 steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "European option prices in a binomial tree"
SUITE = "CUDA SDK"
PTX = "binomial.ptx"
TOLERANCE = {"prices": Close(rtol=1e-4, atol=1e-4, reason="float32 over all steps of the tree against float64")}

OPTIONS_STEPS_BLOCK = {"tiny": (2, 96, 64), "small": (60, 512, 256), "full": (512, 2048, 256)}
RISK_FREE, VOLATILITY = 0.06, 0.10
OPTION = np.dtype([(name, np.float32) for name in ("price", "strike", "step", "up", "down")])
PADDING = 16  # values that an option has more than steps, as in the SDK


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    count, steps, block = OPTIONS_STEPS_BLOCK[size]
    years = random.uniform(0.25, 10.0, count)
    options = np.empty(count, OPTION)
    options["price"] = random.uniform(5.0, 30.0, count)
    options["strike"] = random.uniform(1.0, 100.0, count)
    interval = years / steps
    options["step"] = VOLATILITY * np.sqrt(interval)
    rise, fall = (np.exp(sign * VOLATILITY * np.sqrt(interval)) for sign in (1, -1))
    chance = (np.exp(RISK_FREE * interval) - fall) / (rise - fall)
    options["up"] = chance * np.exp(-RISK_FREE * interval)
    options["down"] = (1 - chance) * np.exp(-RISK_FREE * interval)
    return {"options": options, "steps": steps, "block": block}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    count, steps = data["options"].size, data["steps"]
    module.set_symbol("options", data["options"])
    prices, values = gpu.empty(count, np.float32), gpu.empty((count, steps + PADDING), np.float32)
    args = [prices, values, np.int32(steps), np.int32(steps + PADDING)]
    module.launch("binomialOptionsKernel", grid=(count,), block=(data["block"],), args=args)
    return {"prices": gpu.from_device(prices)}


def reference(data: Data) -> Outputs:
    price, strike, step, up, down = (data["options"][name].astype(np.float64)[:, None] for name in OPTION.names or ())
    rises = 2 * np.arange(data["steps"] + 1) - data["steps"]
    values = np.maximum(price * np.exp(step * rises) - strike, 0)
    for _ in range(data["steps"]):
        values = up * values[:, 1:] + down * values[:, :-1]
    return {"prices": values[:, 0].astype(np.float32)}
