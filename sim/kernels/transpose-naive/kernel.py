"""transpose-naive: the SDK's transpose without scratchpad, CTAs of 16 x 16 threads; full and steady: 2048 x 2048."""

from __future__ import annotations

from lockstep.sim.kernels.transposes import Transpose

TITLE = "matrix transpose, strided writes"
SUITE = "CUDA SDK"
PTX = "transpose_naive.ptx"

SHAPES = {
    "tiny": (40, 72),
    "small": (800, 1024),
    "full": (2048, 2048),
    "steady": (2048, 2048),
    "reference": (320, 512),
}
TRANSPOSE = Transpose("transpose_naive", SHAPES, tile=16, rows=16)
SIZES = tuple(TRANSPOSE.shapes)
setup, run, reference = TRANSPOSE.setup, TRANSPOSE.run, TRANSPOSE.reference
