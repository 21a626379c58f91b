"""transpose-columns: transpose without scratchpad that reads column by column, CTAs of 32 x 8 threads.

Kloosterman's case study describes it so and cites M. Harris, "An efficient matrix transpose in CUDA C/C++", which has
the shape: 32 x 32 elements per CTA, and 1024 x 1024 in all (here small and full). Each lane reads another line, and all
warps of a CTA read the same 32 lines, which WarpPool can merge. In transpose-naive it is the writes that stride through
memory. steady is 2048 x 2048, all of it, since a part of the CTAs finds more in the L1 than all do.
"""

from __future__ import annotations

from lockstep.sim.kernels.transposes import SHAPES, Transpose

TITLE = "matrix transpose, strided reads"
SUITE = "Kloosterman case study"
PTX = "transpose_columns.ptx"

TRANSPOSE = Transpose("transpose_columns", {**SHAPES, "reference": (320, 512)}, down=True)
SIZES = tuple(TRANSPOSE.shapes)
setup, run, reference = TRANSPOSE.setup, TRANSPOSE.run, TRANSPOSE.reference
