"""The host's part of the transposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

SHAPES = {
    "tiny": (44, 75),
    "small": (1024, 1024),
    "full": (1024, 1024),
    "steady": (2048, 2048),
    "4096": (4096, 4096),
}
"""Height and width by size, of the transposes in tiles of 32 x 32."""


@dataclass(frozen=True)
class Transpose:
    """A kernel whose CTAs of ``tile`` x ``rows`` threads transpose a tile each.

    ``shapes``: height and width of the input by size. ``down``: CTAs that follow each other are below each other.
    """

    function: str
    shapes: Mapping[str, tuple[int, int]]
    tile: int = 32
    rows: int = 8
    down: bool = False

    def setup(self, size: str, seed: int) -> Data:
        return {"input": np.random.default_rng(seed).random(self.shapes[size], np.float32)}

    def run(self, gpu: Gpu, module: Module, data: Data) -> Outputs:
        height, width = data["input"].shape
        source, target = gpu.to_device(data["input"]), gpu.empty((width, height), np.float32)
        grid = [-(-extent // self.tile) for extent in ((height, width) if self.down else (width, height))]
        args = [source, target, np.int32(width), np.int32(height)]
        module.launch(self.function, grid=grid, block=(self.tile, self.rows), args=args)
        return {"output": gpu.from_device(target)}

    def reference(self, data: Data) -> Outputs:
        return {"output": data["input"].T.copy()}
