"""backprop-layerforward: Rodinia's bpnn_layerforward, 16 x 16 threads per CTA, 16 hidden units; full: 65,536 inputs.

Index 0 of every layer is the bias, so the arrays have one element more than the layer has units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "neural network, forward pass of one layer"
SUITE = "Rodinia"
PTX = "layerforward.ptx"
REGISTERS = {"layerforward": 12}  # Jatala table 3

HEIGHT = HIDDEN = 16
INPUTS = {"tiny": 80, "small": 16_384, "full": 65_536, "reference": 4096}
SIZES = tuple(INPUTS)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    n = INPUTS[size]
    return {"input": random.random(n + 1, np.float32), "weights": random.random((n + 1, HIDDEN + 1), np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    ctas = (data["input"].size - 1) // HEIGHT
    values, weights = gpu.to_device(data["input"]), gpu.to_device(data["weights"])
    sums = gpu.empty((ctas, HIDDEN), np.float32)
    args = [values, weights, sums, np.int32(HIDDEN)]
    module.launch("layerforward", grid=(1, ctas), block=(HIDDEN, HEIGHT), args=args)
    return {"weights": gpu.from_device(weights), "partial_sums": gpu.from_device(sums)}


def reference(data: Data) -> Outputs:
    """The same tree of float32 additions: results are equal to the bit."""
    weights = data["weights"].copy()
    tree = (weights[1:, 1:] * data["input"][1:, None]).reshape(-1, HEIGHT, HIDDEN)
    step = 2
    while step <= HEIGHT:
        tree[:, ::step] += tree[:, step // 2 :: step]
        step *= 2
    weights[1:, 1:] = tree.reshape(-1, HIDDEN)
    return {"weights": weights, "partial_sums": tree[:, 0].copy()}
