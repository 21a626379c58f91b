"""lavaMD: Rodinia's forces between particles of neighbouring boxes in double precision, a CTA of 128 threads per box.

full has Rodinia's 10 x 10 x 10 boxes of 100 particles each. steady computes the first 120 of them, each with two of its
neighbours.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "forces between particles of neighbouring boxes, in double precision"
SUITE = "Rodinia"
PTX = "lavaMD.ptx"
REGISTERS = {"kernel_gpu_cuda": 40}  # Jatala table 3
_REASON = "fused multiply-add, exp to 1 ulp, and up to 2,700 additions in another order"
TOLERANCE = {"forces": Close(rtol=1e-12, atol=1e-9, reason=_REASON)}

BLOCK = 128
PARTICLES = 100  # in a box
MAX_NEIGHBOURS = 26
ALPHA = 0.5
PLACE = np.dtype([(name, np.int32) for name in ("x", "y", "z", "number")] + [("offset", np.int64)], align=True)
BOX = np.dtype([("home", PLACE), ("neighbours", np.int32), ("neighbour", PLACE, MAX_NEIGHBOURS)], align=True)
DIMENSIONS = np.dtype(
    [(name, np.int32) for name in ("cur_arg", "arch_arg", "cores_arg", "boxes1d_arg")]
    + [(name, np.int64) for name in ("boxes", "box_bytes", "particles", "particle_bytes", "charge_bytes")]
)
# Boxes in x, y and z; how many of them are computed, and with how many of their neighbours.
BOXES_CTAS_NEIGHBOURS = {
    "tiny": ((1, 1, 1), 1, MAX_NEIGHBOURS),
    "small": ((3, 2, 2), 12, MAX_NEIGHBOURS),
    "full": ((10, 10, 10), 1000, MAX_NEIGHBOURS),
    "steady": ((10, 10, 10), 120, 2),
    "reference": ((2, 1, 1), 2, 4),
}
SIZES = tuple(BOXES_CTAS_NEIGHBOURS)


def setup(size: str, seed: int) -> Data:
    """Particles with v, x, y, z and charge in tenths up to 1, as Rodinia draws them."""
    random = np.random.default_rng(seed)
    extent, ctas, neighbours = BOXES_CTAS_NEIGHBOURS[size]
    particles = PARTICLES * int(np.prod(extent))
    return {
        "extent": extent,
        "ctas": ctas,
        "neighbours": neighbours,
        "positions": random.integers(1, 11, (particles, 4)) / 10,
        "charges": random.integers(1, 11, particles) / 10,
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    boxes, positions, charges = _boxes(data["extent"], data["neighbours"]), data["positions"], data["charges"]
    dimensions = np.zeros((), DIMENSIONS)
    dimensions["boxes"], dimensions["particles"] = len(boxes), len(charges)
    forces = gpu.to_device(np.zeros(positions.shape))
    buffers = [gpu.to_device(array) for array in (boxes, positions, charges)]
    args = [np.float64(ALPHA).tobytes(), dimensions.tobytes(), *buffers, forces]
    module.launch("kernel_gpu_cuda", grid=(data["ctas"],), block=(BLOCK,), args=args)
    return {"forces": gpu.from_device(forces)}


def _boxes(extent: tuple[int, int, int], neighbours: int) -> np.ndarray:
    """Every box with its neighbours, or the first of them; x runs fastest."""
    places = np.zeros(int(np.prod(extent)), PLACE)
    places["number"] = np.arange(places.size)
    places["offset"] = PARTICLES * places["number"]
    places["z"], places["y"], places["x"] = np.unravel_index(places["number"], extent[::-1])
    cube = places.reshape(extent[::-1])
    boxes = np.zeros(places.size, BOX)
    boxes["home"] = places
    for box in boxes:
        home = box["home"]
        z, y, x = (slice(max(int(home[axis]) - 1, 0), int(home[axis]) + 2) for axis in "zyx")
        around = cube[z, y, x].ravel()
        around = around[around["number"] != home["number"]][:neighbours]
        box["neighbours"] = around.size
        box["neighbour"][: around.size] = around
    return boxes


def reference(data: Data) -> Outputs:
    extent = data["extent"][::-1]
    shape = (*extent, PARTICLES)
    v, position = data["positions"][:, 0].reshape(shape), data["positions"][:, 1:].reshape(*shape, 3)
    charge = data["charges"].reshape(shape)
    forces = np.zeros((*shape, 4))
    for home in itertools.islice(np.ndindex(extent), data["ctas"]):
        around = [box for box in np.ndindex(extent) if max(abs(np.subtract(box, home))) == 1]
        for other in (home, *around[: data["neighbours"]]):
            r2 = v[home][:, None] + v[other] - position[home] @ position[other].T
            strength = charge[other] * np.exp(-2 * ALPHA**2 * r2)
            forces[home][:, 0] += strength.sum(axis=1)
            forces[home][:, 1:] += 2 * (strength.sum(axis=1)[:, None] * position[home] - strength @ position[other])
    return {"forces": forces.reshape(-1, 4)}
