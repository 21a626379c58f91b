"""NN: GPGPU-Sim's digit recogniser, a launch per layer: CTAs of 13 x 13, 5 x 5 (Jatala table 3), 1 and 1 threads.

full has the original's 28 images of 29 x 29 pixels; steady computes the first 8. tiny computes the first maps and
neurons of each layer alone, which is too few for the next: the rest is 1. Images and weights are random, small
enough for the activation to matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "neural network that recognises digits"
SUITE = "GPGPU-Sim"
PTX = "nn.ptx"
REGISTERS = {"executeSecondLayer": 24}  # Jatala table 3
REASON = "float32 sums of up to 1251 terms of mixed sign and tanhf against float64"
LAYERS = ("first", "second", "third", "fourth")
TOLERANCE = {layer: Close(atol=1e-5, reason=REASON) for layer in LAYERS}

IMAGE = 29
MAPS = (6, 50, 100, 10)  # of each layer, of SIDES x SIDES neurons
SIDES = (13, 5, 1, 1)
FUNCTIONS = ("executeFirstLayer", "executeSecondLayer", "executeThirdLayer", "executeFourthLayer")
IMAGES = {"tiny": 1, "small": 2, "full": 28, "steady": 28}
SIZES = tuple(IMAGES)
COMPUTED = {"tiny": (1, 1, 2, 1, 2), "steady": (8, *MAPS)}  # images and maps, where not all of them are
STRIDE, WINDOW = 2, 5


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    images = IMAGES[size]
    weights = {}
    for layer, maps, inputs in zip(LAYERS, MAPS, (25, 6 * 25, 50 * 25, 100), strict=True):
        weights[layer] = random.standard_normal((maps, 1 + inputs), np.float32) / np.float32(inputs**0.5)
    # The second layer's weights lie as far apart as if each map had a bias of its own.
    weights["second"] = np.pad(weights["second"], ((0, 0), (0, 5)))
    return weights | {
        "images": random.random((images, IMAGE, IMAGE), np.float32),
        "computed": COMPUTED.get(size, (images, *MAPS)),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    images, (count, *parts) = len(data["images"]), data["computed"]
    neurons = gpu.to_device(data["images"])
    outputs = {}
    for layer, function, maps, computed, side in zip(LAYERS, FUNCTIONS, MAPS, parts, SIDES, strict=True):
        weights, result = gpu.to_device(data[layer]), gpu.to_device(np.ones((images, maps, side, side), np.float32))
        module.launch(function, grid=(computed, count), block=(side, side), args=[neurons, weights, result])
        outputs[layer] = gpu.from_device(result)
        neurons = result
    return outputs


def reference(data: Data) -> Outputs:
    images, (count, *parts) = len(data["images"]), data["computed"]
    outputs = {}
    neurons = data["images"][:, None].astype(np.float64)
    for layer, maps, computed, side in zip(LAYERS, MAPS, parts, SIDES, strict=True):
        weights = data[layer][:computed].astype(np.float64)
        if layer in ("first", "second"):
            windows = np.lib.stride_tricks.sliding_window_view(neurons, (WINDOW, WINDOW), axis=(2, 3))
            inputs = windows[:, :, ::STRIDE, ::STRIDE].transpose(0, 2, 3, 4, 5, 1)  # the maps side by side
        else:
            inputs = neurons
        inputs = inputs[:count].reshape(count, side * side, -1)
        sums = (inputs @ weights[:, 1 : 1 + inputs.shape[2]].T + weights[:, 0]).transpose(0, 2, 1)
        neurons = np.ones((images, maps, side, side))
        neurons[:count, :computed] = 1.7159 * np.tanh(0.66666667 * sums.reshape(-1, computed, side, side))
        outputs[layer] = neurons.astype(np.float32)
    return outputs
