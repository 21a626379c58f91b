"""bfs-levels: breadth-first search by one CTA of 512 threads, with barriers and with a launch for each level.

Chen's figures 2-1 and 2-2: the graph has 3,072 vertices, whose first edges stay in the scratchpad.
"""

from __future__ import annotations

from lockstep.sim.kernels.breadth_first import reference, run, setup_of

TITLE = "breadth-first search by one CTA, levels parted by barriers or launches"
SUITE = "Chen"
PTX = "bfs_levels.ptx"

VERTICES_DEGREE = {"tiny": (300, 2.0), "small": (3072, 2.0), "full": (3072, 16.0)}
SIZES = tuple(VERTICES_DEGREE)
setup = setup_of(VERTICES_DEGREE)
__all__ = ["PTX", "SIZES", "SUITE", "TITLE", "reference", "run", "setup"]
