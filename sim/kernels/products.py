"""The host's part of matrixMul, in single and double precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

BLOCK = 16
ROWS_INNER_COLUMNS = {
    "tiny": (32, 32, 48),
    "small": (160, 160, 240),
    "full": (800, 320, 480),
    "reference": (64, 64, 96),
}


@dataclass(frozen=True)
class Product:
    """The product of two matrices of ``dtype``, whose CTAs of 16 x 16 threads compute a tile each."""

    dtype: type[np.floating[Any]]

    def setup(self, size: str, seed: int) -> Data:
        random = np.random.default_rng(seed)
        rows, inner, columns = ROWS_INNER_COLUMNS[size]
        return {"a": random.random((rows, inner), self.dtype), "b": random.random((inner, columns), self.dtype)}

    def run(self, gpu: Gpu, module: Module, data: Data) -> Outputs:
        (rows, inner), columns = data["a"].shape, data["b"].shape[1]
        c = gpu.empty((rows, columns), self.dtype)
        args = [c, gpu.to_device(data["a"]), gpu.to_device(data["b"]), np.int32(inner), np.int32(columns)]
        module.launch("matrixMul", grid=(columns // BLOCK, rows // BLOCK), block=(BLOCK, BLOCK), args=args)
        return {"c": gpu.from_device(c)}

    def reference(self, data: Data) -> Outputs:
        return {"c": (data["a"].astype(np.float64) @ data["b"].astype(np.float64)).astype(self.dtype)}
