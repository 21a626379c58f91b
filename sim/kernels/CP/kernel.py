"""CP: Parboil 1's Coulombic potential as GPGPU-Sim has it, CTAs of 16 x 8 threads, two points of a slice each.

full has GPGPU-Sim's 256 x 256 points and 200 atoms (256 CTAs); small has 50 atoms, and twice the rows, to fill 30 SMs
more than once. The original's atoms lie in the slice; ours are above it, so that none is on a point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "Coulombic potential on a slice of a lattice"
SUITE = "GPGPU-Sim"
PTX = "cp.ptx"
_REASON = "float32 coordinates up to 51 (2e-6 each) and rsqrt.approx (2^-22.9), summed over all atoms, against float64"
TOLERANCE = {"energy": Close(rtol=1e-6, atol=2e-5, reason=_REASON)}

BLOCK = 16, 8
POINTS = 2  # of a row, per thread
SPACING = np.float32(0.1)
HEIGHT = 0.5, 1.0  # of the atoms
ROWS_COLUMNS = {"tiny": (16, 64), "small": (512, 256), "full": (256, 256), "reference": (64, 256)}
SIZES = tuple(ROWS_COLUMNS)
ATOMS_PER_LAUNCH = {
    "tiny": (13, 8),
    "small": (50, 4000),
    "full": (200, 4000),
    "reference": (12, 4000),
}  # the constant array holds 4000


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (rows, columns), (count, per_launch) = ROWS_COLUMNS[size], ATOMS_PER_LAUNCH[size]
    ranges = (0, columns * SPACING), (0, rows * SPACING), HEIGHT, (-1, 1)
    atoms = np.stack([random.uniform(low, high, count) for low, high in ranges], axis=1)
    return {"atoms": atoms.astype(np.float32), "shape": (rows, columns), "per_launch": per_launch}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    rows, columns = data["shape"]
    energy = gpu.to_device(np.zeros((rows, columns), np.float32))
    grid = (columns // (POINTS * BLOCK[0]), rows // BLOCK[1])
    for first in range(0, len(data["atoms"]), data["per_launch"]):
        atoms = data["atoms"][first : first + data["per_launch"]].copy()
        atoms[:, 2] **= 2
        module.set_symbol("atoms", atoms)
        module.launch("cenergy", grid=grid, block=BLOCK, args=[np.int32(len(atoms)), SPACING, energy])
    return {"energy": gpu.from_device(energy)}


def reference(data: Data) -> Outputs:
    rows, columns = data["shape"]
    y, x = float(SPACING) * np.mgrid[:rows, :columns]
    energy = np.zeros((rows, columns))
    for atom_x, atom_y, height, charge in data["atoms"].astype(np.float64):
        energy += charge / np.sqrt((x - atom_x) ** 2 + (y - atom_y) ** 2 + height**2)
    return {"energy": energy.astype(np.float32)}
