"""The host's part of PolyBench's symmetric rank-k and rank-2k updates, with CTAs of 32 x 8 threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lockstep.sim.kernels import Data, Outputs

BLOCK = (32, 8)


@dataclass(frozen=True)
class RankUpdate:
    """C = alpha (A B^T + B A^T) + beta C, or with ``factors`` "a" alone C = alpha A A^T + beta C.

    ``shapes``: height and width of the factors by size. ``parts``: CTAs, and terms of the sums, of the sizes that do
    not compute all of C.
    """

    factors: str
    shapes: Mapping[str, tuple[int, int]]
    parts: Mapping[str, tuple[tuple[int, int], int]]

    def setup(self, size: str, seed: int) -> Data:
        random = np.random.default_rng(seed)
        n, m = self.shapes[size]
        grid, steps = self.parts.get(size, ((-(-n // BLOCK[0]), -(-n // BLOCK[1])), m))
        return {
            "grid": grid,
            "steps": steps,
            "alpha": np.float32(1.5),
            "beta": np.float32(1.25),
            **{name: random.random((n, m), np.float32) for name in self.factors},
            "c": random.random((n, n), np.float32),
        }

    def reference(self, data: Data) -> Outputs:
        a, b = (data[name].astype(np.float64)[:, : data["steps"]] for name in (self.factors[0], self.factors[-1]))
        c = data["c"].astype(np.float64)
        columns, rows = np.multiply(data["grid"], BLOCK)
        sums = a[:rows] @ b[:columns].T
        if len(self.factors) > 1:
            sums += b[:rows] @ a[:columns].T
        part = np.s_[:rows, :columns]
        c[part] = data["alpha"] * sums + data["beta"] * c[part]
        return {"c": c.astype(np.float32)}
