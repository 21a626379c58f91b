"""nw: Rodinia's Needleman-Wunsch alignment, CTAs of 16 threads, a launch per antidiagonal of blocks of 16 x 16 scores.

full is Rodinia's input: two sequences of 2,048 letters, each one of ten, and a penalty of 10 for a gap. Rodinia looks
similarities up in BLOSUM62; ours are drawn from the same range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "alignment of two sequences, block by block along antidiagonals"
SUITE = "Rodinia"
PTX = "needle.ptx"

BLOCK = 16
PENALTY = 10
LETTERS = 10
LOWEST, HIGHEST = -4, 11  # of BLOSUM62
LENGTH = {"tiny": 48, "small": 512, "full": 2048}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    length = LENGTH[size]
    scores = random.integers(LOWEST, HIGHEST + 1, (LETTERS, LETTERS))
    rows, columns = (random.integers(0, LETTERS, length) for _ in range(2))
    similarity = np.zeros((length + 1, length + 1), np.int32)
    similarity[1:, 1:] = scores[rows[:, None], columns]
    return {"similarity": similarity}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    columns = len(data["similarity"])
    similarity, matrix = gpu.to_device(data["similarity"]), gpu.to_device(_gaps(columns))
    blocks = (columns - 1) // BLOCK
    for name, counts in (
        ("needle_cuda_shared_1", range(1, blocks + 1)),
        ("needle_cuda_shared_2", range(blocks - 1, 0, -1)),
    ):
        for count in counts:
            sizes = [np.int32(value) for value in (columns, PENALTY, count, blocks)]
            module.launch(name, grid=(count,), block=(BLOCK,), args=[similarity, matrix, *sizes])
    return {"scores": gpu.from_device(matrix)}


def _gaps(columns: int) -> np.ndarray:
    """The matrix before the first launch: gaps alone in its first row and column."""
    matrix = np.zeros((columns, columns), np.int32)
    matrix[0] = matrix[:, 0] = -PENALTY * np.arange(columns)
    return matrix


def reference(data: Data) -> Outputs:
    """Row by row: the best of a match and of a gap above, and then, as a running maximum, of gaps at the left."""
    similarity = data["similarity"]
    columns = len(similarity)
    matrix, slope = _gaps(columns), PENALTY * np.arange(columns, dtype=np.int32)
    for i in range(1, columns):
        best = matrix[i].copy()
        best[1:] = np.maximum(matrix[i - 1, :-1] + similarity[i, 1:], matrix[i - 1, 1:] - PENALTY)
        matrix[i] = np.maximum.accumulate(best + slope) - slope
    return {"scores": matrix}
