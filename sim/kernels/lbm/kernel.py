"""lbm: Parboil's lattice Boltzmann flow in a box with a lid, a CTA of 120 threads per row of 120 cells.

full has Parboil's 120 x 120 x 150 cells, and the first ten of the 100 steps of its short input.
Parboil's obstacles come from a file; ours are the walls of the box and a few cells at random.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "lattice Boltzmann flow, 19 directions"
SUITE = "Parboil"
PTX = "lbm.ptx"
TOLERANCE = {"densities": Close(rtol=1e-5, atol=1e-6, reason="float32 sums of 19 densities against float64")}

SHAPE_STEPS = {
    "tiny": ((34, 4, 5), 2),
    "small": ((120, 30, 20), 2),
    "full": ((120, 120, 150), 10),
}
PADDING = 8  # places that a row has more than cells, as in Parboil
MARGIN = 2  # planes before the first and behind the last: the cells of the walls push into them, too

OBSTACLE, ACCELERATED = 1, 2
OBSTACLES = 0.02  # of the cells within the walls
OMEGA = 1.95
LID = 0.005, 0.002, 0.0  # the velocity of accelerated cells, in x, y and z
HALF = ((0, 1, 0), (1, 0, 0), (0, 0, 1), (1, 1, 0), (-1, 1, 0), (0, 1, 1), (0, 1, -1), (1, 0, 1), (1, 0, -1))
DIRECTIONS = np.array([(0, 0, 0), *(np.multiply(sign, way) for way in HALF for sign in (1, -1))])
WEIGHTS = np.array([1 / 3, *6 * [1 / 18], *12 * [1 / 36]])
OPPOSITE = [0, *(k + 1 if k % 2 else k - 1 for k in range(1, len(DIRECTIONS)))]


def setup(size: str, seed: int) -> Data:
    """Densities near those at rest; walls, and the planes beside the first and the last in motion."""
    random = np.random.default_rng(seed)
    (nx, ny, nz), steps = SHAPE_STEPS[size]
    densities = WEIGHTS[:, None, None, None] * random.uniform(0.8, 1.2, (len(WEIGHTS), nz, ny, nx))
    flags = np.full((nz, ny, nx), OBSTACLE, np.uint32)
    inside = random.random((nz - 2, ny - 2, nx - 2)) < OBSTACLES
    flags[1:-1, 1:-1, 1:-1] = np.where(inside, OBSTACLE, 0)
    flags[[1, -2], 1:-1, 1:-1] |= ACCELERATED
    return {"densities": densities.astype(np.float32), "flags": flags, "steps": steps}


def _padded(data: Data) -> np.ndarray:
    """The arrays of the kernel."""
    entries = np.concatenate([data["densities"], data["flags"].view(np.float32)[None]])
    return np.pad(entries, ((0, 0), (MARGIN, MARGIN), (0, 0), (0, PADDING)))


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    arrays = _padded(data)
    _, planes, ny, pitch = arrays.shape
    nz, nx = planes - 2 * MARGIN, pitch - PADDING
    sizes = [np.int32(value) for value in (pitch, pitch * ny, pitch * ny * planes)]
    begin = 4 * MARGIN * pitch * ny
    source, target = gpu.to_device(arrays), gpu.to_device(arrays)
    for _ in range(data["steps"]):
        args = [source + begin, target + begin, *sizes]
        module.launch("performStreamCollide_kernel", grid=(ny, nz), block=(nx,), args=args)
        source, target = target, source
    return {"densities": gpu.from_device(source)[:-1, MARGIN:-MARGIN, :, :nx].copy()}


def reference(data: Data) -> Outputs:
    arrays = _padded(data)[:-1].astype(np.float64)
    shape, pitch, plane = arrays.shape, arrays.shape[3], arrays.shape[2] * arrays.shape[3]
    cells = np.zeros(shape[1:], bool)
    cells[MARGIN:-MARGIN, :, :-PADDING] = True
    places = np.flatnonzero(cells).reshape(len(data["flags"]), -1)  # by planes
    source, target = arrays.reshape(len(arrays), -1), arrays.reshape(len(arrays), -1).copy()
    for _ in range(data["steps"]):
        for there, flags in zip(places, data["flags"], strict=True):
            collided = _collided(source[:, there], flags.ravel())
            for values, into, way in zip(collided, target, DIRECTIONS @ [1, pitch, plane], strict=True):
                into[there + way] = values
        source, target = target, source
    return {"densities": source.reshape(shape)[:, MARGIN:-MARGIN, :, :-PADDING].astype(np.float32)}


def _collided(densities: np.ndarray, flags: np.ndarray) -> np.ndarray:
    total = densities.sum(axis=0)
    velocity = np.where(flags & ACCELERATED, np.array(LID)[:, None], DIRECTIONS.T @ densities / total)
    along = DIRECTIONS @ velocity
    rest = 1 - 1.5 * (velocity**2).sum(axis=0)
    settled = WEIGHTS[:, None] * total * (rest + 3 * along + 4.5 * along**2)
    fluid = (1 - OMEGA) * densities + OMEGA * settled
    return np.where(flags & OBSTACLE, densities[OPPOSITE], fluid)
