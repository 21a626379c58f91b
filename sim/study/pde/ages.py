"""How old the boundary values are that the CTAs of a solver read, as a problem whose nodes count their steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lockstep.sim.kernels.problems import Problem

__all__ = ["KINDS", "SOURCE", "Ages", "ages", "seen"]

SOURCE = Path(__file__).with_name("ages.cu")

PHASE = 4
KINDS = ("no older", f"1 to {PHASE}", f"{PHASE + 1} to {2 * PHASE}", f"over {2 * PHASE}")
"""Ages in steps: how many more the reader has taken than the node had when its value was stored."""


class Ages(Problem):
    """Fields: steps taken, and four counts of a byte each. Constant: on which sides a node of another block is."""

    FUNCTION = "ages"
    EPSILON = 1.0

    def update(self, fields: np.ndarray, constants: np.ndarray) -> np.ndarray:
        after = fields[:, 1:-1, 1:-1].copy()
        after[0] += 1
        return after


def ages(rows: int, columns: int, height: int, width: int) -> Ages:
    """Of nodes in blocks of ``height`` rows and ``width`` columns."""
    sides = np.zeros((1, rows + 2, columns + 2), np.float32)
    inner = sides[0, 1:-1, 1:-1]
    inner[height::height] += 1  # above
    inner[height - 1 : -1 : height] += 2  # below
    inner[:, width::width] += 4  # left
    inner[:, width - 1 : -1 : width] += 8  # right
    return Ages(np.zeros((2, rows + 2, columns + 2), np.float32), sides)


def seen(fields: np.ndarray) -> np.ndarray:
    """How many values of each kind have been read."""
    counts = np.ascontiguousarray(fields[1]).view(np.uint32)
    return np.array([(counts >> 8 * kind & 255).sum() for kind in range(len(KINDS))])
