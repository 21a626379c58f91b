"""myocyte: a heart muscle cell over time, in the manner of Rodinia's: a thread per cell, 32 in a CTA, in one launch.

Rodinia's cell has 91 equations after Shannon et al.; ours has the 19 of ten Tusscher and Panfilov, with steps of a
fixed length where Rodinia adapts them. full has 32 cells and 500 steps. Half of the cells get a stimulus, of 1 ms;
they differ in its strength, in two conductances, and in the phase in which they begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "currents and calcium of heart muscle cells over time"
SUITE = "Rodinia"
PTX = "myocyte.ptx"
_REASON = "float32 and expf, compounded over the steps, against float64"
TOLERANCE = {"volts": Close(atol=1e-2, reason=_REASON), "states": Close(rtol=1e-3, reason=_REASON)}

BLOCK = 32
CELLS = {"tiny": 41, "small": 960, "full": 32, "reference": 64}
SIZES = tuple(CELLS)
STEPS = {"tiny": 1, "small": 4, "full": 500, "reference": 1}
STEP = 0.004  # ms, well below the fastest gate's time
REST = {
    "v": -85.23, "ca": 0.000126, "ca_sr": 3.64, "ca_ss": 0.00036, "na": 8.604, "k": 136.89, "m": 0.00172, "h": 0.7444,
    "j": 0.7045, "xr1": 0.00621, "xr2": 0.4712, "xs": 0.0095, "r": 2.42e-8, "s": 0.999998, "d": 3.373e-5, "f": 0.7888,
    "f2": 0.9755, "f_cass": 0.9953, "r_bar": 0.9073,
}  # fmt: skip
"""States of a cell before its first stimulus, in order."""

# Fehlberg's pair of orders 7 and 8: where its stages are, what they take of the slopes before, and order 7's weights.
NODES = [0, 2 / 27, 1 / 9, 1 / 6, 5 / 12, 1 / 2, 5 / 6, 1 / 6, 2 / 3, 1 / 3, 1, 0, 1]
WEIGHTS = [
    [],
    [2 / 27],
    [1 / 36, 1 / 12],
    [1 / 24, 0, 1 / 8],
    [5 / 12, 0, -25 / 16, 25 / 16],
    [1 / 20, 0, 0, 1 / 4, 1 / 5],
    [-25 / 108, 0, 0, 125 / 108, -65 / 27, 125 / 54],
    [31 / 300, 0, 0, 0, 61 / 225, -2 / 9, 13 / 900],
    [2, 0, 0, -53 / 6, 704 / 45, -107 / 9, 67 / 90, 3],
    [-91 / 108, 0, 0, 23 / 108, -976 / 135, 311 / 54, -19 / 60, 17 / 6, -1 / 12],
    [2383 / 4100, 0, 0, -341 / 164, 4496 / 1025, -301 / 82, 2133 / 4100, 45 / 82, 45 / 164, 18 / 41],
    [3 / 205, 0, 0, 0, 0, -6 / 41, -3 / 205, -3 / 41, 3 / 41, 6 / 41, 0],
    [-1777 / 4100, 0, 0, -341 / 164, 4496 / 1025, -289 / 82, 2193 / 4100, 51 / 82, 33 / 164, 12 / 41, 0, 1],
]
ORDER_SEVEN = [41 / 840, 0, 0, 0, 0, 34 / 105, 9 / 35, 9 / 35, 9 / 280, 9 / 280, 41 / 840, 0, 0]


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    cells, steps = CELLS[size], STEPS[size]
    start = np.tile(np.array(list(REST.values()), np.float32), (cells, 1))
    start[:, 0] += np.where(random.random(cells) < 0.5, 0, random.uniform(0, 90, cells))
    start[:, 1:6] *= random.uniform(0.9, 1.1, (cells, 5))
    parameters = np.empty((cells, 4), np.float32)
    parameters[:, 0] = random.uniform(-60, -40, cells)
    parameters[:, 1] = np.where(random.random(cells) < 0.5, 0, 1)
    parameters[:, 2:] = random.uniform(0.5, 1.5, (cells, 2))
    return {"start": start, "cells": parameters, "steps": steps}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    (cells, count), steps, stages = data["start"].shape, data["steps"], len(NODES)
    weights = np.zeros((stages, stages), np.float32)
    for row, values in zip(weights, WEIGHTS, strict=True):
        row[: len(values)] = values
    for name, table in (("weight", weights), ("node", NODES), ("order_seven", ORDER_SEVEN)):
        module.set_symbol(name, np.asarray(table, np.float32))
    states = np.full((cells, steps + 1, count), np.nan, np.float32)
    states[:, 0] = data["start"]
    over_time, slopes = gpu.to_device(states), gpu.empty((cells, stages + 1, count), np.float32)
    sizes = [np.int32(cells), np.int32(steps), np.float32(STEP)]
    args = [over_time, slopes, gpu.to_device(data["cells"]), *sizes]
    module.launch("solver", grid=(-(-cells // BLOCK),), block=(BLOCK,), args=args)
    return _outputs(gpu.from_device(over_time))


def reference(data: Data) -> Outputs:
    step = float(np.float32(STEP))
    states = [data["start"].astype(np.float64).T]
    cells = data["cells"].astype(np.float64).T
    for number in range(data["steps"]):
        slopes: list[np.ndarray] = []
        for node, weights in zip(NODES, WEIGHTS, strict=True):
            inner = states[-1] + step * sum(weight * slope for weight, slope in zip(weights, slopes, strict=True))
            slopes.append(equations(inner, (number + node) * step, cells))
        change = sum(weight * slope for weight, slope in zip(ORDER_SEVEN, slopes, strict=True))
        states.append(states[-1] + step * change)
    return _outputs(np.array(states).transpose(2, 0, 1).astype(np.float32))


def _outputs(states: np.ndarray) -> Outputs:
    return {"volts": states[:, :, 0], "states": states[:, :, 1:]}


def equations(states: np.ndarray, time: float, cells: np.ndarray) -> np.ndarray:
    """The equations in the order of :data:`REST`, with the names of their paper."""
    v, ca, ca_sr, ca_ss, na, k, m, h, j, xr1, xr2, xs, r, s, d, f, f2, f_cass, r_bar = states
    stimulus, duration, more_calcium, more_potassium = cells
    exp, log = np.exp, np.log
    frt = 96485.3415 / (8314.472 * 310)
    e_k, e_na, e_ca = log(5.4 / k) / frt, log(140 / na) / frt, log(2 / ca) / (2 * frt)
    e_ks = log((5.4 + 0.03 * 140) / (k + 0.03 * na)) / frt

    alpha_k1 = 0.1 / (1 + exp(0.06 * (v - e_k - 200)))
    beta_k1 = (3 * exp(0.0002 * (v - e_k + 100)) + exp(0.1 * (v - e_k - 10))) / (1 + exp(-0.5 * (v - e_k)))
    i_k1 = 5.405 * alpha_k1 / (alpha_k1 + beta_k1) * (v - e_k)
    i_na = 14.838 * m**3 * h * j * (v - e_na)
    i_to, i_kr = 0.294 * r * s * (v - e_k), 0.153 * xr1 * xr2 * (v - e_k)
    i_ks = more_potassium * 0.392 * xs**2 * (v - e_ks)
    x = 2 * (v - 15) * frt
    gates = d * f * f2 * f_cass
    i_cal = more_calcium * 3.98e-5 * gates * 2 * 96485.3415 * x * (0.25 * exp(x) * ca_ss - 2) / (exp(x) - 1)
    fall = exp((0.35 - 1) * v * frt)
    ions = exp(0.35 * v * frt) * na**3 * 2 - fall * 140**3 * ca * 2.5
    i_naca = 1000 * ions / ((87.5**3 + 140**3) * (1.38 + 2) * (1 + 0.1 * fall))
    i_nak = 2.724 * 5.4 * na / ((5.4 + 1) * (na + 40) * (1 + 0.1245 * exp(-0.1 * v * frt) + 0.0353 * exp(-v * frt)))
    i_pca, i_pk = 0.1238 * ca / (0.0005 + ca), 0.0146 * (v - e_k) / (1 + exp((25 - v) / 5.98))
    i_bna, i_bca = 0.00029 * (v - e_na), 0.000592 * (v - e_ca)
    i_stim = np.where(time < duration, stimulus, 0)

    k_casr = 2.5 - (2.5 - 1) / (1 + (1.5 / ca_sr) ** 2)
    k1, k2 = 0.15 / k_casr, 0.045 * k_casr
    i_rel = 0.102 * k1 * ca_ss**2 * r_bar / (0.06 + k1 * ca_ss**2) * (ca_sr - ca_ss)
    i_up, i_leak, i_xfer = 0.006375 / (1 + (0.00025 / ca) ** 2), 0.00036 * (ca_sr - ca), 0.0038 * (ca_ss - ca)
    v_c, v_sr, v_ss = 0.016404, 0.001094, 0.00005468
    charge = 0.185 / (v_c * 96485.3415)
    into_sr = i_up - i_rel - i_leak
    into_ss = -i_cal * charge / 2 * v_c / v_ss + i_rel * v_sr / v_ss - i_xfer * v_c / v_ss
    into_c = -(i_bca + i_pca - 2 * i_naca) * charge / 2 + (i_leak - i_up) * v_sr / v_c + i_xfer

    above = v >= -40
    alpha_h = np.where(above, 0, 0.057 * exp(-(v + 80) / 6.8))
    beta_h = np.where(
        above, 0.77 / (0.13 * (1 + exp(-(v + 10.66) / 11.1))), 2.7 * exp(0.079 * v) + 3.1e5 * exp(0.3485 * v)
    )
    rise = (-2.5428e4 * exp(0.2444 * v) - 6.948e-6 * exp(-0.04391 * v)) * (v + 37.78) / (1 + exp(0.311 * (v + 79.23)))
    alpha_j = np.where(above, 0, rise)
    beta_j = np.where(
        above,
        0.6 * exp(0.057 * v) / (1 + exp(-0.1 * (v + 32))),
        0.02424 * exp(-0.01052 * v) / (1 + exp(-0.1378 * (v + 40.14))),
    )
    h_end = 1 / (1 + exp((v + 71.55) / 7.43)) ** 2
    share = 1 / (1 + (ca_ss / 0.05) ** 2)
    ends_and_times = {
        "m": (
            1 / (1 + exp((-56.86 - v) / 9.03)) ** 2,
            (0.1 / (1 + exp((v + 35) / 5)) + 0.1 / (1 + exp((v - 50) / 200))) / (1 + exp((-60 - v) / 5)),
        ),
        "h": (h_end, 1 / (alpha_h + beta_h)),
        "j": (h_end, 1 / (alpha_j + beta_j)),
        "xr1": (1 / (1 + exp((-26 - v) / 7)), 2700 / ((1 + exp((-45 - v) / 10)) * (1 + exp((v + 30) / 11.5)))),
        "xr2": (1 / (1 + exp((v + 88) / 24)), 3.36 / ((1 + exp((-60 - v) / 20)) * (1 + exp((v - 60) / 20)))),
        "xs": (1 / (1 + exp((-5 - v) / 14)), 1400 / ((1 + exp((5 - v) / 6)) ** 0.5 * (1 + exp((v - 35) / 15))) + 80),
        "r": (1 / (1 + exp((20 - v) / 6)), 9.5 * exp(-((v + 40) ** 2) / 1800) + 0.8),
        "s": (1 / (1 + exp((v + 20) / 5)), 85 * exp(-((v + 45) ** 2) / 320) + 5 / (1 + exp((v - 20) / 5)) + 3),
        "d": (
            1 / (1 + exp((-8 - v) / 7.5)),
            (1.4 / (1 + exp((-35 - v) / 13)) + 0.25) * 1.4 / (1 + exp((v + 5) / 5)) + 1 / (1 + exp((50 - v) / 20)),
        ),
        "f": (
            1 / (1 + exp((v + 20) / 7)),
            1102.5 * exp(-((v + 27) ** 2) / 225) + 200 / (1 + exp((13 - v) / 10)) + 180 / (1 + exp((v + 30) / 10)) + 20,
        ),
        "f2": (
            0.67 / (1 + exp((v + 35) / 7)) + 0.33,
            600 * exp(-((v + 25) ** 2) / 170) + 31 / (1 + exp((25 - v) / 10)) + 16 / (1 + exp((v + 30) / 10)),
        ),
        "f_cass": (0.6 * share + 0.4, 80 * share + 2),
    }
    gate = dict(zip(REST, states, strict=True))
    slopes = {
        "v": -(i_na + i_cal + i_to + i_kr + i_ks + i_k1 + i_naca + i_nak + i_pca + i_pk + i_bna + i_bca + i_stim),
        "ca": into_c / (1 + 0.2 * 0.001 / (ca + 0.001) ** 2),
        "ca_sr": into_sr / (1 + 10 * 0.3 / (ca_sr + 0.3) ** 2),
        "ca_ss": into_ss / (1 + 0.4 * 0.00025 / (ca_ss + 0.00025) ** 2),
        "na": -(i_na + i_bna + 3 * i_nak + 3 * i_naca) * charge,
        "k": -(i_stim + i_k1 + i_to + i_kr + i_ks + i_pk - 2 * i_nak) * charge,
        **{name: (end - gate[name]) / time for name, (end, time) in ends_and_times.items()},
        "r_bar": 0.005 * (1 - r_bar) - k2 * ca_ss * r_bar,
    }
    return np.array([slopes[name] for name in REST])
