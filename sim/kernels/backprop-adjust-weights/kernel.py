"""backprop-adjust-weights: Rodinia's bpnn_adjust_weights, 16 x 16 threads per CTA; full: 65,536 inputs.

Index 0 of every layer is the bias, so the arrays have one element more than the layer has units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "neural network, weight update of one layer"
SUITE = "Rodinia"
PTX = "adjust_weights.ptx"
REGISTERS = {"adjust_weights": 24}  # Jatala table 2
_CLOSE = Close(rtol=1e-6, atol=1e-7, reason="fused multiply-add")
TOLERANCE = {"weights": _CLOSE, "old_change": _CLOSE}

HEIGHT = HIDDEN = 16
INPUTS = {"tiny": 80, "small": 16_384, "full": 65_536}
RATE = 0.3  # learning rate and momentum alike


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n = INPUTS[size]
    return {
        "delta": random.random(HIDDEN + 1, np.float32),
        "layer": random.random(n + 1, np.float32),
        "weights": random.random((n + 1, HIDDEN + 1), np.float32),
        "old_change": random.random((n + 1, HIDDEN + 1), np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    ctas = (data["layer"].size - 1) // HEIGHT
    delta, layer, weights, old = (gpu.to_device(data[name]) for name in ("delta", "layer", "weights", "old_change"))
    args = [delta, np.int32(HIDDEN), layer, weights, old]
    module.launch("adjust_weights", grid=(1, ctas), block=(HIDDEN, HEIGHT), args=args)
    return {"weights": gpu.from_device(weights), "old_change": gpu.from_device(old)}


def reference(data: Data) -> Outputs:
    layer = data["layer"].astype(np.float64)
    layer[0] = 1.0  # the bias
    weights, change = data["weights"].astype(np.float64), data["old_change"].astype(np.float64)
    change[:, 1:] = RATE * np.outer(layer, data["delta"][1:]) + RATE * change[:, 1:]
    weights[:, 1:] += change[:, 1:]
    return {"weights": weights.astype(np.float32), "old_change": change.astype(np.float32)}
