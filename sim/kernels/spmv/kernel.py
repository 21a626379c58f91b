"""spmv: Parboil's sparse matrix-vector product in JDS with constant memory, 192 threads per CTA.

Parboil's inputs are finite-element matrices. Ours is one, too: nodes of a square mesh, each coupled at random with its
3 x 3, 5 x 5 or 7 x 7 neighbours. full has the size of Parboil's large input (146,689 rows, 25 entries each on average).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim.gpu import Gpu, Module

TITLE = "sparse matrix times vector, jagged diagonals"
SUITE = "Parboil"
PTX = "spmv.ptx"
TOLERANCE = {"result": Close(rtol=1e-4, atol=1e-5, reason="float32 sums of mixed sign against float64")}

BLOCK = 192
WARP = 32
WIDTH = {"tiny": 27, "small": 250, "full": 383, "reference": 100}  # of the mesh in nodes
SIZES = tuple(WIDTH)
SIDES, SHARES = (3, 5, 7), (0.3, 0.5, 0.2)  # of the neighbourhoods, and of the nodes


def setup(size: str, seed: int) -> Data:
    """The matrix in JDS: diagonals padded with zeros to whole warps, rows sorted by length."""
    random = np.random.default_rng(seed)
    width = WIDTH[size]
    rows = width * width
    sides = random.choice(SIDES, rows, p=SHARES)
    permutation = np.argsort(-sides, kind="stable").astype(np.int32)
    sides = sides[permutation]
    lengths = (sides * sides).astype(np.int32)
    warp_diagonals = np.repeat(lengths[::WARP], WARP)[:rows]  # the longest row of a warp is its first
    widths = np.array([np.count_nonzero(warp_diagonals > k) for k in range(lengths[0])], np.int32)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int32)
    row = np.concatenate([np.arange(width) for width in widths])
    k = np.repeat(np.arange(widths.size), widths)
    used = k < lengths[row]
    side = sides[row]
    columns = (permutation[row] + (k // side - side // 2) * width + k % side - side // 2) % rows
    return {
        "values": np.where(used, random.standard_normal(row.size), 0).astype(np.float32),
        "columns": np.where(used, columns, 0).astype(np.int32),
        "permutation": permutation,
        "diagonal_start": starts,
        "warp_diagonals": lengths[::WARP].copy(),
        "vector": random.random(rows, np.float32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows = data["vector"].size
    for symbol in ("diagonal_start", "warp_diagonals"):
        module.set_symbol(symbol, data[symbol])
    inputs = [gpu.to_device(data[name]) for name in ("values", "columns", "permutation", "vector")]
    result = gpu.empty(rows, np.float32)
    module.launch("spmv_jds", grid=(-(-rows // BLOCK),), block=(BLOCK,), args=[result, *inputs, np.int32(rows)])
    return {"result": gpu.from_device(result)}


def reference(data: Data) -> Outputs:
    products = data["values"].astype(np.float64) * data["vector"][data["columns"]]
    sums = np.zeros(data["vector"].size)
    ends = [*data["diagonal_start"][1:], products.size]
    for start, end in zip(data["diagonal_start"], ends, strict=True):
        sums[: end - start] += products[start:end]
    result = np.empty_like(data["vector"])
    result[data["permutation"]] = sums
    return {"result": result}
