"""hotspot: Rodinia's thermal stencil, 256 threads per CTA, two time steps per launch in a tile of 16 x 16.

The chip's constants are Rodinia's. Its literals of type double are float here, as the papers' register counts imply.
full is Rodinia's 512 x 512 grid with 60 time steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "thermal stencil, tiled with a pyramid of two steps"
SUITE = "Rodinia"
PTX = "hotspot.ptx"
REGISTERS = {"calculate_temp": 36}  # Jatala table 2
TOLERANCE = {"temperature": Close(rtol=1e-5, reason="float32 time steps with fused multiply-add against float64")}

BLOCK = 16
PYRAMID = 2  # time steps per launch
ROWS_COLUMNS_STEPS = {"tiny": (20, 27, 3), "small": (128, 128, 6), "full": (512, 512, 60)}
AMBIENT = 80.0


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    rows, columns, steps = ROWS_COLUMNS_STEPS[size]
    thickness, height, width = 0.0005, 0.016, 0.016  # of the chip, in metres
    specific_heat, conductivity, max_slope = 1.75e6, 100.0, 3.0e6 / (0.5 * 0.0005 * 1.75e6)
    cell_height, cell_width = height / rows, width / columns
    constants = (
        0.5 * specific_heat * thickness * cell_width * cell_height,  # capacitance
        cell_width / (2.0 * conductivity * thickness * cell_height),  # resistance in x ...
        cell_height / (2.0 * conductivity * thickness * cell_width),  # ... in y
        thickness / (conductivity * cell_height * cell_width),  # ... and to the heat sink
        0.001 / max_slope,  # seconds
    )
    return {
        "steps": steps,
        "constants": np.array(constants, np.float32),
        "temperature": (323.0 + 20.0 * random.random((rows, columns))).astype(np.float32),
        "power": (0.01 * random.random((rows, columns)) ** 4).astype(np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["temperature"].shape
    power, source = gpu.to_device(data["power"]), gpu.to_device(data["temperature"])
    target = gpu.empty((rows, columns), np.float32)
    tile = BLOCK - 2 * PYRAMID
    grid = (-(-columns // tile), -(-rows // tile))
    for step in range(0, data["steps"], PYRAMID):
        steps = min(PYRAMID, data["steps"] - step)
        sizes = [np.int32(value) for value in (columns, rows, PYRAMID, PYRAMID)]
        args = [np.int32(steps), power, source, target, *sizes, *data["constants"]]
        module.launch("calculate_temp", grid=grid, block=(BLOCK, BLOCK), args=args)
        source, target = target, source
    return {"temperature": gpu.from_device(source)}


def reference(data: Data) -> Outputs:
    capacitance, rx, ry, rz, time_step = data["constants"].astype(np.float64)
    temperature, power = data["temperature"].astype(np.float64), data["power"].astype(np.float64)
    for _ in range(data["steps"]):
        around = np.pad(temperature, 1, mode="edge")
        vertical = around[2:, 1:-1] + around[:-2, 1:-1] - 2 * temperature
        horizontal = around[1:-1, 2:] + around[1:-1, :-2] - 2 * temperature
        flow = power + vertical / ry + horizontal / rx + (AMBIENT - temperature) / rz
        temperature = temperature + time_step / capacitance * flow
    return {"temperature": temperature.astype(np.float32)}
