"""cfd: compute_flux of Rodinia's Euler solver, 192 threads per CTA, on an unstructured mesh of tetrahedra.

Rodinia's mesh of 0.2 million elements around a missile gives 1,212 CTAs; copies of its last element fill the last one.
full has as many, of a box of 38 x 34 x 30 cells with six tetrahedra each, numbered cell by cell. The order in Rodinia's
file is not known to us. The box's floor is a wall, the rest of its rim the far field.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "flux of the Euler equations through an unstructured mesh"
SUITE = "Rodinia"
PTX = "compute_flux.ptx"
_REASON = "float32 with fused multiply-add against float64, and the fluxes through four faces cancel"
TOLERANCE = {"fluxes": Close(rtol=1e-6, atol=3e-6, reason=_REASON)}

BLOCK = 192
WALL, FAR = -1, -2
GAMMA, SMOOTHING = 1.4, 0.2
FAR_DENSITY, FAR_VELOCITY, FAR_PRESSURE = 1.4, (1.2, 0.0, 0.0), 1.0
CELLS = {"tiny": (5, 3, 2), "small": (18, 16, 14), "full": (38, 34, 30)}  # in x, y and z

# A tetrahedron's vertices are its cell's corners on the way from (0, 0, 0) to (1, 1, 1), an axis at a time.
ORDERS = list(itertools.permutations(range(3)))


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    neighbours, normals = _mesh(CELLS[size], random)
    count = neighbours.shape[1]
    velocity = np.array(FAR_VELOCITY)[:, None] + random.uniform(-0.2, 0.2, (3, count))
    density, pressure = (far * random.uniform(0.9, 1.1, count) for far in (FAR_DENSITY, FAR_PRESSURE))
    state = _state(density, velocity, pressure)
    pad = np.minimum(np.arange(-(-count // BLOCK) * BLOCK), count - 1)
    return {
        "neighbours": neighbours[:, pad].astype(np.int32),
        "normals": normals[:, :, pad].astype(np.float32),
        "variables": state[:, pad].astype(np.float32),
    }


def _mesh(cells: tuple[int, int, int], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours by face and element, and outward normals, as long as the face is large, by axis, face and element."""
    shape = np.array(cells)
    corner = np.stack(np.unravel_index(np.arange(np.prod(shape)), cells[::-1])[::-1], axis=-1)  # of every cell: x, y, z
    grid = np.stack(np.meshgrid(*(np.arange(n + 1) for n in cells), indexing="ij"), axis=-1)
    points = grid + random.uniform(-0.1, 0.1, grid.shape)
    neighbours = np.empty((4, len(corner), len(ORDERS)), int)
    normals = np.empty((3, 4, len(corner), len(ORDERS)))
    for number, order in enumerate(ORDERS):
        first, middle, last = order
        unit = np.eye(3, dtype=int)
        steps = np.cumsum([np.zeros(3, int), *(unit[axis] for axis in order)], axis=0)
        vertices = [points[tuple((corner + step).T)] for step in steps]
        beyond = (  # by the vertex that is not on the face: the cell across it, and the order there
            (unit[first], (middle, last, first)),
            (0 * unit[0], (middle, first, last)),
            (0 * unit[0], (first, last, middle)),
            (-unit[last], (last, first, middle)),
        )
        for face, (step, across) in enumerate(beyond):
            cell = corner + step
            inside = ((cell >= 0) & (cell < shape)).all(axis=1)
            at = (cell[:, 2] * cells[1] + cell[:, 1]) * cells[0] + cell[:, 0]
            rim = np.where(cell[:, 2] < 0, WALL, FAR)
            neighbours[face, :, number] = np.where(inside, len(ORDERS) * at + ORDERS.index(across), rim)
            a, b, c = (vertices[k] for k in range(4) if k != face)
            normal = np.cross(b - a, c - a) / 2
            outward = np.sign(((a - vertices[face]) * normal).sum(axis=1))
            normals[:, face, :, number] = (outward[:, None] * normal).T
    return neighbours.reshape(4, -1), normals.reshape(3, 4, -1)


def _state(density: np.ndarray | float, velocity: np.ndarray, pressure: np.ndarray | float) -> np.ndarray:
    """Density, three of momentum, and energy."""
    energy = pressure / (GAMMA - 1) + density * (velocity**2).sum(axis=0) / 2
    return np.stack([density, *(density * velocity), energy])


def _far() -> np.ndarray:
    return _state(np.array([FAR_DENSITY]), np.array(FAR_VELOCITY)[:, None], np.array([FAR_PRESSURE]))


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    count = data["variables"].shape[1]
    far = _far()
    module.set_symbol("far_variables", far[:, 0].astype(np.float32))
    module.set_symbol("far_carried", _carried(far)[:, 1:, 0].T.astype(np.float32).copy())
    inputs = [gpu.to_device(data[name]) for name in ("neighbours", "normals", "variables")]
    fluxes = gpu.empty((5, count), np.float32)
    module.launch("cuda_compute_flux", grid=(count // BLOCK,), block=(BLOCK,), args=[np.int32(count), *inputs, fluxes])
    return {"fluxes": gpu.from_device(fluxes)}


def _pressure(state: np.ndarray) -> np.ndarray:
    return np.asarray((GAMMA - 1) * (state[4] - (state[1:4] ** 2).sum(axis=0) / state[0] / 2))


def _carried(state: np.ndarray) -> np.ndarray:
    """The loss of each of the five variables along each axis, by axis and variable."""
    velocity, pressure = state[1:4] / state[0], _pressure(state)
    carried = velocity[:, None] * state
    carried[:, 4] += velocity * pressure
    for axis in range(3):
        carried[axis, 1 + axis] += pressure
    return np.asarray(carried)


def _speeds(state: np.ndarray) -> np.ndarray:
    """Of the flow, and of sound."""
    return np.asarray(np.sqrt((state[1:4] ** 2).sum(axis=0)) / state[0] + np.sqrt(GAMMA * _pressure(state) / state[0]))


def reference(data: Data) -> Outputs:
    own, normals = data["variables"].astype(np.float64), data["normals"].astype(np.float64)
    fluxes = np.zeros_like(own)
    for other, normal in zip(data["neighbours"], normals.swapaxes(0, 1), strict=True):
        state = np.where(other >= 0, own[:, other], np.where(other == FAR, _far(), own))
        flux = (normal[:, None] * (_carried(own) + _carried(state))).sum(axis=0) / 2
        area = np.sqrt((normal**2).sum(axis=0))
        viscosity = SMOOTHING / 2 * area * (_speeds(own) + _speeds(state)) * (state - own)
        wall = np.concatenate([np.zeros_like(own[:1]), normal * _pressure(own), np.zeros_like(own[:1])])
        fluxes += np.where(other == WALL, wall, flux + np.where(other >= 0, viscosity, 0))
    return {"fluxes": fluxes.astype(np.float32)}
