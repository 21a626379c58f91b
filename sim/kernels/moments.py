"""The host's part of PolyBench's correlation and covariance matrices of the columns of a matrix.

CTAs have 256 threads, those that change the whole matrix 32 x 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

BLOCK = 256
TILE = (32, 8)
ROWS_COLUMNS = {"tiny": (7, 35), "small": (16, 1024), "full": (2048, 2048), "steady": (256, 2048)}
REACH = {"steady": 4}  # from the diagonal, where not the whole matrix is computed


@dataclass(frozen=True)
class Moments:
    """The kernels ``PREFIX_mean`` and so on: a vector for each of ``vectors``, then the matrix."""

    prefix: str
    vectors: tuple[str, ...]
    matrix: str

    def setup(self, size: str, seed: int) -> Data:
        """Columns that share a component, so that they correlate."""
        random = np.random.default_rng(seed)
        rows, columns = ROWS_COLUMNS[size]
        common = np.outer(random.random(rows), random.random(columns))
        values = random.random((rows, columns), np.float32) + common.astype(np.float32)
        return {"data": values, "reach": REACH.get(size, columns)}

    def run(self, gpu: Gpu, module: Module, data: Data) -> Outputs:
        rows, columns = data["data"].shape
        values = gpu.to_device(np.pad(data["data"], ((1, 0), (1, 0)), constant_values=np.nan))
        vectors = [gpu.empty(columns + 1, np.float32) for _ in self.vectors]
        matrix = gpu.to_device(np.zeros((columns + 1, columns + 1), np.float32))
        sizes = [np.int32(rows), np.int32(columns)]

        def each_column(name: str, *args: object) -> None:
            module.launch(f"{self.prefix}_{name}", grid=-(-columns // BLOCK), block=BLOCK, args=[*sizes, *args, values])

        for count, name in enumerate(self.vectors, 1):
            each_column(name, *vectors[:count])
        tiles = (-(-columns // TILE[0]), -(-rows // TILE[1]))
        module.launch(f"{self.prefix}_reduce", grid=tiles, block=TILE, args=[*sizes, *vectors, values])
        each_column("matrix", np.int32(data["reach"]), matrix)
        found = {name: gpu.from_device(vector)[1:] for name, vector in zip(self.vectors, vectors, strict=True)}
        return {**found, self.matrix: gpu.from_device(matrix)[1:, 1:]}


def band(matrix: np.ndarray, reach: int) -> np.ndarray:
    """The part of a matrix that is computed: up to ``reach`` from the diagonal."""
    return np.triu(np.tril(matrix, reach), -reach)
