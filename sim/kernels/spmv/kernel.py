"""spmv: Parboil's sparse matrix-vector product in JDS with constant memory, 192 threads per CTA.

Parboil's inputs are finite-element matrices. full and steady have the structure of its large one, Dubcova3 (Dubcova,
Cerveny and Solin, group UTEP of the SuiteSparse Matrix Collection): cubic elements on a square mesh of 128 x 128. That
follows from its figures: 383^2 unknowns, 1907^2 entries less six that vanish, and the group's notes, by which those of
vertices and edges are the first 81,153. So rows have 49 entries (16,129 vertices), 28 (65,024 on edges) or 16 (65,536
inside), fewer beside the rim. Within each kind the unknowns are numbered here element by element, and the elements by
quadrants, as its authors' Hermes2D refines a mesh; the file's own order within a kind is not known to us. scattered is
steady with the unknowns of each kind in random order.

The other sizes are nodes of a square mesh, each coupled at random with its 3 x 3, 5 x 5 or 7 x 7 neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "sparse matrix times vector, jagged diagonals"
SUITE = "Parboil"
PTX = "spmv.ptx"
TOLERANCE = {"result": Close(rtol=1e-4, atol=1e-5, reason="float32 sums of mixed sign against float64")}

BLOCK = 192
WARP = 32
WIDTH = {"tiny": 27, "small": 250, "reference": 100}  # of the mesh in nodes
SIZES = ("tiny", "small", "full", "steady", "scattered", "reference")
SIDES, SHARES = (3, 5, 7), (0.3, 0.5, 0.2)  # of the neighbourhoods, and of the nodes

LEVELS = 7  # of refinement of the one element that is the whole square
DEGREE = 3  # unknowns per element and direction, with one of its two vertices
# The unknowns of an element by kind: at the vertices, on the edges and inside.
VERTICES = ((0, 0), (3, 0), (3, 3), (0, 3))
EDGES = ((1, 0), (2, 0), (3, 1), (3, 2), (2, 3), (1, 3), (0, 2), (0, 1))
INSIDE = ((1, 1), (2, 1), (1, 2), (2, 2))


def setup(size: str, seed: int) -> Data:
    """The matrix in JDS: diagonals padded with zeros to whole warps, rows sorted by length."""
    random = np.random.default_rng(seed)
    shuffle = random if size == "scattered" else None
    couplings, lengths = _mesh(WIDTH[size], random) if size in WIDTH else _finite_elements(shuffle)
    rows = lengths.size
    permutation = np.argsort(-lengths, kind="stable").astype(np.int32)
    lengths = lengths[permutation]
    warp_diagonals = np.repeat(lengths[::WARP], WARP)[:rows]  # the longest row of a warp is its first
    widths = np.array([np.count_nonzero(warp_diagonals > k) for k in range(lengths[0])], np.int32)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(np.int32)
    row = np.concatenate([np.arange(width) for width in widths])
    k = np.repeat(np.arange(widths.size), widths)
    used = k < lengths[row]
    return {
        "values": np.where(used, random.standard_normal(row.size), 0).astype(np.float32),
        "columns": np.where(used, couplings[permutation[row], k], 0).astype(np.int32),
        "permutation": permutation,
        "diagonal_start": starts,
        "warp_diagonals": lengths[::WARP].copy(),
        "vector": random.random(rows, np.float32),
    }


def _mesh(width: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The columns of every row's entries, and how many there are."""
    rows = width * width
    sides = random.choice(SIDES, rows, p=SHARES)[:, None]
    k = np.arange(max(SIDES) ** 2)
    columns = (np.arange(rows)[:, None] + (k // sides - sides // 2) * width + k % sides - sides // 2) % rows
    return columns, (sides[:, 0] ** 2).astype(np.int32)


def _finite_elements(shuffle: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray]:
    """The same for Dubcova3. Unknowns are coupled if an element has both, so a row's couplings are a rectangle."""
    width = DEGREE * 2**LEVELS + 1  # in unknowns, with those on the rim, whose values are given
    order = _unknowns(width, shuffle)
    rows = order.size
    number = np.full(width * width, rows)  # of every unknown; `rows` on the rim
    number[order] = np.arange(rows)
    reach = np.arange(2 * DEGREE + 1)
    along, down = (
        np.where(
            axis[:, None] % DEGREE == 0,  # a vertex belongs to the elements on both sides
            axis[:, None] - DEGREE + reach,
            np.where(reach <= DEGREE, axis[:, None] // DEGREE * DEGREE + reach, 0),
        )
        for axis in (order % width, order // width)
    )
    columns = number[down[:, :, None] * width + along[:, None, :]].reshape(rows, -1)
    columns.sort(axis=1)
    return columns, np.count_nonzero(columns < rows, axis=1).astype(np.int32)


def _unknowns(width: int, shuffle: np.random.Generator | None) -> np.ndarray:
    """Their places in a square of ``width``, kind by kind: as the elements come, or shuffled."""
    x = y = np.zeros(1, int)  # of the elements
    for _ in range(LEVELS):
        x, y = ((2 * axis[:, None] + son).ravel() for axis, son in ((x, [0, 1, 1, 0]), (y, [0, 0, 1, 1])))
    places = [
        np.stack([(DEGREE * y + down) * width + DEGREE * x + along for along, down in kind], axis=1).ravel()
        for kind in (VERTICES, EDGES, INSIDE)
    ]
    if shuffle is not None:
        places = [shuffle.permutation(kind) for kind in places]
    met = np.concatenate(places)
    _, first = np.unique(met, return_index=True)
    order = met[np.sort(first)]
    rim = ((order % width) % (width - 1) == 0) | ((order // width) % (width - 1) == 0)
    return order[~rim]


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
