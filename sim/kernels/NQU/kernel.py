"""NQU: GPGPU-Sim's N queens solver, CTAs of 96 threads with 15,744 bytes of scratchpad, a partial placement per thread.

The host places the first rows; by symmetry, the queen of the first row is on the left half of a board of even width. As
in GPGPU-Sim there are 256 CTAs, and only the first have work. GPGPU-Sim's board is not known to us: ours in small is of
12 columns, and the host places four queens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "solutions of the N queens puzzle"
SUITE = "GPGPU-Sim"
PTX = "nqu.ptx"

BLOCK = 96
COLUMNS_PLACED_CTAS = {"tiny": (8, 4, 3), "small": (12, 4, 256), "reference": (7, 3, 8)}
SIZES = tuple(COLUMNS_PLACED_CTAS)


def setup(size: str, seed: int) -> Data:
    """Columns that are attacked in the next row: straight, and by the diagonals to the left and right; in any order."""
    columns, placed, ctas = COLUMNS_PLACED_CTAS[size]
    attacks = np.zeros((1, 3), np.uint32)
    for row in range(placed):
        attacks = _place(attacks, range(columns if row else columns // 2), columns)[0]
    order = np.random.default_rng(seed).permutation(len(attacks))
    return {"attacks": attacks[order], "columns": columns, "rows": columns - placed, "ctas": ctas}


def _place(attacks: np.ndarray, queens: range, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Attacks after a further row, in all ways, and where each came from."""
    board = np.uint32((1 << columns) - 1)
    bits = np.uint32(1) << np.array(queens, np.uint32)
    origin, queen = np.nonzero(np.bitwise_or.reduce(attacks, axis=1)[:, None] & bits == 0)
    straight, left, right = (attacks[origin] | bits[queen, None]).T
    return np.stack([straight, left << 1 & board, right >> 1], axis=-1), origin


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    solutions = gpu.empty(data["ctas"], np.uint32)
    starts = [gpu.to_device(attacked) for attacked in data["attacks"].T.copy()]
    sizes = [np.int32(value) for value in (len(data["attacks"]), data["columns"], data["rows"])]
    module.launch("solve_nqueen", grid=(data["ctas"],), block=(BLOCK,), args=[*starts, *sizes, solutions])
    return {"solutions": gpu.from_device(solutions)}


def reference(data: Data) -> Outputs:
    """Row by row, for all placements at once."""
    attacks, start = data["attacks"], np.arange(len(data["attacks"]))
    for _ in range(data["rows"]):
        attacks, origin = _place(attacks, range(data["columns"]), data["columns"])
        start = start[origin]
    return {"solutions": np.bincount(start // BLOCK, minlength=data["ctas"]).astype(np.uint32)}
