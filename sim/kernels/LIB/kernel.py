"""LIB: GPGPU-Sim's LIBOR market model, CTAs of 192 threads (Jatala table 2).

Each thread has a path, and 14 KB of local memory.

full has the original's 80 rates, 40 steps, 15 swaptions and 96,000 paths; a warp takes so long over its path that it
needs a launch.no_progress above the default. steady has the first 3 steps of the first 23,040 paths (120 CTAs).
Volatilities and swap rates vary about the original's. All paths have the same shocks, there and here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Greeks of swaptions in the LIBOR market model"
SUITE = "GPGPU-Sim"
PTX = "lib.ptx"
REGISTERS = {"Pathcalc_Portfolio_KernelGPU": 36}  # Jatala table 2
REASON = "float32, __expf and __fdividef (2^-21), compounded over the steps, against float64"
TOLERANCE = {
    "value": Close(rtol=2e-5, atol=3e-4, reason=f"{REASON}; 15 differences of numbers near 1, times 100"),
    "sensitivity": Close(rtol=2e-5, reason=REASON),
}

BLOCK = 192
RATE, SHOCK, INTERVAL, NOTIONAL = np.float32(0.05), np.float32(0.3), np.float32(0.25), 100
RATES_STEPS = {"tiny": (6, 3), "small": (24, 12), "full": (80, 40), "steady": (80, 40)}
PATHS_CTAS = {"tiny": (200, 1), "small": (4_000, 21), "full": (96_000, 500), "steady": (96_000, 500)}
COMPUTED_SIMULATED = {"steady": (23_040, 3)}  # paths and steps, where not all of them are
SIZES = tuple(RATES_STEPS)
MATURITIES = (0.1, 0.2, 0.5, 0.7, 1.0)  # of the rates that are left; each with three swap rates


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (rates, steps), (paths, ctas) = RATES_STEPS[size], PATHS_CTAS[size]
    maturity = np.ceil(np.repeat(MATURITIES, 3) * (rates - steps)).astype(np.int32)
    computed, simulated = COMPUTED_SIMULATED.get(size, (paths, steps))
    return {
        "rates": rates,
        "steps": steps,
        "paths": paths,
        "ctas": ctas,
        "computed": computed,
        "simulated": simulated,
        "maturity": maturity,
        "swap_rate": (np.tile([0.045, 0.05, 0.055], 5) + random.uniform(-0.004, 0.004, 15)).astype(np.float32),
        "volatility": random.uniform(0.15, 0.25, rates).astype(np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    for name in ("maturity", "swap_rate", "volatility"):
        module.set_symbol(name, data[name])
    for name in ("rates", "steps", "simulated"):
        module.set_symbol(name, np.array([data[name]], np.int32))
    module.set_symbol("swaptions", np.array([data["maturity"].size], np.int32))
    module.set_symbol("interval", np.array([INTERVAL]))
    value, sensitivity = (gpu.to_device(np.ones(data["paths"], np.float32)) for _ in range(2))
    args = [value, sensitivity, np.int32(data["computed"])]
    module.launch("Pathcalc_Portfolio_KernelGPU", grid=(data["ctas"],), block=(BLOCK,), args=args)
    return {"value": gpu.from_device(value), "sensitivity": gpu.from_device(sensitivity)}


def reference(data: Data) -> Outputs:
    """The derivative by a complex step rather than by an adjoint."""
    step = 1e-30
    value = _portfolio(data, step)
    outputs = {name: np.ones(data["paths"], np.float32) for name in ("value", "sensitivity")}
    outputs["value"][: data["computed"]] = value.real
    outputs["sensitivity"][: data["computed"]] = value.imag / step
    return outputs


def _portfolio(data: Data, step: float) -> complex:
    """The value on a path whose last rate has an imaginary part."""
    volatility, interval = data["volatility"].astype(np.float64), float(INTERVAL)
    rate = np.full(data["rates"], float(RATE), complex)
    rate[-1] += 1j * step
    for n in range(data["simulated"]):
        moving = rate[n + 1 :]
        sigma = volatility[: moving.size]
        drift = np.cumsum(interval * sigma * moving / (1 + interval * moving))
        moving *= np.exp(interval * sigma * drift + sigma * (interval**0.5 * SHOCK - interval * sigma / 2))
    bond = 1 / np.cumprod(1 + interval * rate[data["steps"] :])
    annuity = np.cumsum(interval * bond)
    due = data["maturity"] - 1
    swaps = bond[due] + data["swap_rate"] * annuity[due] - 1
    losses = -NOTIONAL * swaps[swaps.real < 0].sum()
    return complex(losses / np.prod(1 + interval * rate[: data["steps"]]))
