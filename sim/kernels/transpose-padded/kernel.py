"""transpose-padded: transpose-tiled with a 33rd column in its tile, without bank conflicts.

It is the fastest version of Kloosterman's case study. Sizes are those of transpose-tiled.
"""

from __future__ import annotations

from lockstep.sim.kernels.transposes import SHAPES, Transpose

TITLE = "matrix transpose through the scratchpad, padded against bank conflicts"
SUITE = "Kloosterman case study"
PTX = "transpose_padded.ptx"

TRANSPOSE = Transpose("transpose_padded", {**SHAPES, "reference": (320, 512)})
SIZES = tuple(TRANSPOSE.shapes)
setup, run, reference = TRANSPOSE.setup, TRANSPOSE.run, TRANSPOSE.reference
