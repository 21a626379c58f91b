"""transpose-tiled: transpose through a 32 x 32 tile, CTAs of 32 x 8 threads.

The shape is that of M. Harris, "An efficient matrix transpose in CUDA C/C++", which Kloosterman's case study cites:
1024 x 1024 (small and full; steady is 2048 x 2048). The tile has no padding, so the lanes that read one of its columns
all meet in one bank.
"""

from __future__ import annotations

from lockstep.sim.kernels.transposes import SHAPES, Transpose

TITLE = "matrix transpose through the scratchpad"
SUITE = "Kloosterman case study"
PTX = "transpose_tiled.ptx"

TRANSPOSE = Transpose("transpose_tiled", SHAPES)
SIZES = tuple(TRANSPOSE.shapes)
setup, run, reference = TRANSPOSE.setup, TRANSPOSE.run, TRANSPOSE.reference
