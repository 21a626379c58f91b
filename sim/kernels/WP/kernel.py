"""WP: the cloud physics of a weather forecast, in CTAs of 8 x 8 columns of air, after the WSM5 scheme of WRF.

small and full have 72 CTAs, as the suite's paper gives them; levels, steps and the state of the air are ours. Of WSM5's
processes this has all but a few (rain that freezes, snow that melts when it collects cloud); snow melts by a simpler
law. Like WSM5's, a thread needs many registers, and has arrays over the levels in local memory.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "cloud physics of a weather forecast"
SUITE = "GPGPU-Sim"
PTX = "wsm5.ptx"
_REASON = "float32 against float64: rates follow the difference to saturation, in which most digits cancel"
TOLERANCE = {
    "temperature": Close(rtol=1e-6, reason="float32 against float64"),
    "water": Close(rtol=1e-4, atol=3e-8, reason=_REASON),
    "fallen": Close(rtol=1e-4, reason="float32 sums against float64"),
}

WATER = ("snow", "rain", "ice", "cloud", "vapour")
STATE = (*WATER, "temperature")
AIR = ("density", "pressure", "thickness")
BLOCK = 8
WIDTH_HEIGHT_LEVELS_STEPS = {"tiny": (13, 10, 9, 2), "small": (72, 64, 28, 1), "full": (72, 64, 35, 6)}
SECONDS = np.float32(60)  # of a step
CP, RV, RD, GRAVITY = 1004.5, 461.6, 287.04, 9.81
LV, LF, LS, T0 = 2.5e6, 3.5e5, 2.85e6, 273.15
LEAST = 1e-9
RAIN_POWER, SNOW_POWER = 0.8, 0.41
RAIN_FACTOR, SNOW_FACTOR = 841.9, 11.72  # of a drop's speed: factor * diameter ** power
N0_RAIN, N0_SNOW = 8e6, 2e6

_RAIN, _SNOW = (math.gamma(4 + power) for power in (RAIN_POWER, SNOW_POWER))
CONSTANTS = {
    "rain_slope": (math.pi * 1000 * N0_RAIN) ** 0.25,
    "snow_slope": (math.pi * 100 * N0_SNOW) ** 0.25,
    "rain_speed": RAIN_FACTOR * _RAIN / 6,
    "snow_speed": SNOW_FACTOR * _SNOW / 6,
    "rain_collects": math.pi * N0_RAIN * RAIN_FACTOR * math.gamma(3 + RAIN_POWER) / 4,
    "snow_collects": math.pi * N0_SNOW * SNOW_FACTOR * math.gamma(3 + SNOW_POWER) / 4,
    "snow_collects_ice": math.pi * N0_SNOW * SNOW_FACTOR * math.gamma(3 + SNOW_POWER) / 4,
    "rain_grows": [2 * math.pi * N0_RAIN * 0.78,
                   2 * math.pi * N0_RAIN * 0.31 * math.sqrt(RAIN_FACTOR) * math.gamma((5 + RAIN_POWER) / 2)],
    "snow_grows": [4 * N0_SNOW * 0.65,
                   4 * N0_SNOW * 0.44 * math.sqrt(SNOW_FACTOR) * math.gamma((5 + SNOW_POWER) / 2)],
}  # fmt: skip


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    width, height, levels, steps = WIDTH_HEIGHT_LEVELS_STEPS[size]
    shape = levels, height, width
    thickness = 14_000 / levels * random.uniform(0.95, 1.05, shape)
    middle = np.cumsum(thickness, axis=0) - thickness / 2
    ground = random.uniform(264, 298, (height, width))
    temperature = ground - 0.0062 * middle + random.uniform(-0.2, 0.2, shape)
    pressure = 1e5 * np.exp(-GRAVITY * middle / (RD * 255))
    data = {
        "temperature": temperature,
        "vapour": _saturated(temperature, pressure, False) * random.uniform(0.5, 1.04, shape),
        "cloud": 1.5e-3 * _patches(random, shape) * (temperature > T0 - 30),
        "ice": 3e-4 * _patches(random, shape) * (temperature < T0),
        "rain": 1.5e-3 * _patches(random, shape) * (temperature > T0 - 5),
        "snow": 1e-3 * _patches(random, shape) * (temperature < T0 + 3),
        "density": pressure / (RD * temperature),
        "pressure": pressure,
        "thickness": thickness,
    }
    return {name: values.astype(np.float32) for name, values in data.items()} | {"steps": steps}


def _patches(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Zero in half of the columns, and in some levels of the others."""
    return random.random(shape) * (random.random(shape) < 0.8) * (random.random(shape[1:]) < 0.5)


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    for name, value in CONSTANTS.items():
        module.set_symbol(name, np.array(value, np.float32))
    levels, height, width = data["temperature"].shape
    state, air = (gpu.to_device(np.stack([data[name] for name in names])) for names in (STATE, AIR))
    fallen = gpu.to_device(np.zeros((2, height, width), np.float32))
    args = [np.int32(width), np.int32(height), np.int32(levels), SECONDS, state, air, fallen]
    grid = -(-width // BLOCK), -(-height // BLOCK)
    for _ in range(data["steps"]):
        module.launch("wsm5", grid=grid, block=(BLOCK, BLOCK), args=args)
    found = gpu.from_device(state)
    return {"water": found[:-1], "temperature": found[-1], "fallen": gpu.from_device(fallen)}


def reference(data: Data) -> Outputs:
    state = {name: data[name].astype(np.float64) for name in STATE}
    density, pressure, thickness = (data[name].astype(np.float64) for name in AIR)
    fallen = np.zeros((2, *density.shape[1:]))
    for _ in range(data["steps"]):
        _fall(state, density, thickness, fallen)
        _change(state, density, pressure)
    water = np.stack([state[name] for name in WATER])
    outputs = {"water": water, "temperature": state["temperature"], "fallen": fallen}
    return {name: values.astype(np.float32) for name, values in outputs.items()}


def _saturated(temperature: np.ndarray, pressure: np.ndarray, ice: np.ndarray | bool) -> np.ndarray:
    ratio = 273.16 / temperature
    exponent = np.where(ice, 0.5633 * np.log(ratio) + 23.1661 * (1 - ratio),
                        5.0780 * np.log(ratio) + 24.9051 * (1 - ratio))  # fmt: skip
    vapour = 610.78 * np.exp(exponent)
    return np.asarray(0.6218 * vapour / (pressure - vapour))


def _slopes(state: dict[str, np.ndarray], density: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rain and of snow, and how many more flakes there are than at the melting point."""
    more = np.clip(np.exp(0.12 * (T0 - state["temperature"])), 1, 1e5)
    rain, snow = (np.maximum(state[name] * density, LEAST) ** 0.25 for name in ("rain", "snow"))
    return rain / CONSTANTS["rain_slope"], snow / (CONSTANTS["snow_slope"] * more**0.25), more


def _fall(state: dict[str, np.ndarray], density: np.ndarray, thickness: np.ndarray, fallen: np.ndarray) -> None:
    rain_slope, snow_slope, _ = _slopes(state, density)
    speeds = CONSTANTS["snow_speed"] * snow_slope**SNOW_POWER, CONSTANTS["rain_speed"] * rain_slope**RAIN_POWER
    both = np.stack([state["snow"], state["rain"]])
    rates = np.stack(speeds) * np.sqrt(1.28 / density) / thickness * (both > LEAST)
    steps = np.floor(rates.max(axis=(0, 1)) * float(SECONDS)).astype(int) + 1
    mass, temperature = density * thickness, state["temperature"]
    for step in range(steps.max()):
        moving = step < steps
        seconds = float(SECONDS) / steps * moving
        out = rates * seconds * both * mass
        into = np.concatenate([out[:, 1:], np.zeros_like(out[:, :1])], axis=1)
        both = both + (into - out) / mass
        melts = np.minimum(2e-3 * np.maximum(temperature - T0, 0) * seconds * np.sqrt(np.maximum(both[0], 0)), both[0])
        melts = np.where(temperature > T0, melts, 0)
        both += np.stack([-melts, melts])
        temperature = temperature - LF / CP * melts
        fallen += out[:, 0]
    state |= {"snow": both[0], "rain": both[1], "temperature": temperature}


def _change(state: dict[str, np.ndarray], density: np.ndarray, pressure: np.ndarray) -> None:
    qs, qr, qi, qc, q, t = (state[name] for name in STATE)
    dt, zero = float(SECONDS), np.zeros_like(t)
    frosty, raining, snowing = t < T0, qr > LEAST, qs > LEAST
    water, ice = _saturated(t, pressure, False), _saturated(t, pressure, frosty)
    r, s, more = _slopes(state, density)
    thin = np.sqrt(1.28 / density)
    viscosity = 1.496e-6 * t**1.5 / (t + 120) / density
    diffusion = 8.794e-5 * t**1.81 / pressure
    wind = np.cbrt(viscosity / diffusion) / np.sqrt(viscosity) * np.sqrt(thin)

    def resistance(latent: float, ratio: np.ndarray) -> np.ndarray:
        conduction = 1414 * viscosity * density
        return np.asarray(density * latent**2 / (conduction * RV * t**2) + 1 / (ratio * diffusion))

    def growth(name: str, slope: np.ndarray, power: float) -> np.ndarray:
        still, ventilated = CONSTANTS[name]
        return np.asarray(still * slope**2 + ventilated * wind * slope ** ((5 + power) / 2))

    def bounded(rate: np.ndarray, supply: np.ndarray, excess: np.ndarray, where: np.ndarray) -> np.ndarray:
        """No more than there is of what shrinks, and no more than half of the vapour's excess."""
        limited = np.where(excess < 0, np.maximum(rate, -supply / dt), np.minimum(rate, excess / dt / 2))
        return np.where(where, limited, 0)

    def collected(name: str, what: np.ndarray, slope: np.ndarray, power: float, where: np.ndarray) -> np.ndarray:
        return np.where(where, np.minimum(CONSTANTS[name] * slope ** (3 + power) * what * thin, what / dt), 0)

    forms = np.where(qc > 5e-4, np.minimum(1.72 * qc ** (7 / 3), qc / dt), 0)
    swept = collected("rain_collects", qc, r, RAIN_POWER, raining)
    rimes = collected("snow_collects", more * qc, s, SNOW_POWER, snowing)
    rimes = np.minimum(rimes, qc / dt)
    rate = (q / water - 1) * growth("rain_grows", r, RAIN_POWER) / resistance(LV, water)
    onto_rain = bounded(rate, qr, q - water, raining)

    supersaturation = (q / ice - 1) / resistance(LS, ice)
    crystals = np.clip(5.38e7 * (density * qi) ** 0.75, 1e3, 1e6)
    diameter = np.minimum(11.9 * np.sqrt(density * qi / crystals), 5e-4)
    icy = frosty & (qi > LEAST)
    nuclei = 1e3 * np.exp(0.1 * np.minimum(T0 - t, 60))
    starts = np.minimum(np.maximum(4.92e-11 * nuclei**1.33 / density - qi, 0), (q - ice) / 2) / dt
    starts = np.where(frosty & (q > ice), starts, 0)
    onto_ice = bounded(4 * diameter * crystals * supersaturation, qi, q - ice, icy)
    onto_snow = bounded(more * growth("snow_grows", s, SNOW_POWER) * supersaturation, qs, q - ice, frosty & snowing)
    clumps = np.where(icy, np.maximum(qi - 8.125e-5 / density, 0) / dt, 0)
    caught = np.exp(-0.07 * (T0 - t)) * more * qi
    gathers = np.minimum(collected("snow_collects_ice", caught, s, SNOW_POWER, icy & snowing), qi / dt)

    def share(available: np.ndarray, used: np.ndarray) -> np.ndarray:
        return np.where(used > available, available / np.where(used > 0, used, 1), 1)

    of_cloud = share(qc, (forms + swept + rimes) * dt)
    forms, swept, rimes = forms * of_cloud, swept * of_cloud, rimes * of_cloud
    gains, losses = np.maximum(onto_ice, zero), np.minimum(onto_ice, zero)
    of_ice = share(qi + (starts + gains) * dt, (clumps + gathers - losses) * dt)
    clumps, gathers, onto_ice = clumps * of_ice, gathers * of_ice, gains + losses * of_ice

    frozen = np.where(frosty, rimes, 0)
    deposited = starts + onto_ice + onto_snow
    q = q - (onto_rain + deposited) * dt
    qc = qc - (forms + swept + rimes) * dt
    qi = qi + (starts + onto_ice - clumps - gathers) * dt
    qr = qr + (forms + swept + onto_rain + rimes - frozen) * dt
    qs = qs + (onto_snow + clumps + gathers + frozen) * dt
    t = t + (LV * onto_rain + LS * deposited + LF * frozen) / CP * dt

    freezes = np.where(t > T0, -qi, np.where(t < T0 - 40, qc, 0))
    qi, qc, t = qi + freezes, qc - freezes, t + LF / CP * freezes
    ratio = _saturated(t, pressure, False)
    condenses = np.maximum((q - ratio) / (1 + LV**2 / (CP * RV) * ratio / t**2), -qc)
    values = qs, qr, qi, qc + condenses, q - condenses, t + LV / CP * condenses
    state |= {name: np.maximum(value, 0) for name, value in zip(STATE, values, strict=True)}
