"""matrixMul: the SDK's tiled product of matrices, 16 x 16 threads per CTA.

full has the 1500 CTAs of Chen table 4-3, 50 x 30 tiles; how long its sums are is not told, ours are the SDK's 320.
"""

from __future__ import annotations

import numpy as np

from lockstep.sim.kernels import Close
from lockstep.sim.kernels.products import ROWS_INNER_COLUMNS, Product

TITLE = "tiled product of matrices"
SUITE = "CUDA SDK"
PTX = "matrixmul.ptx"
REGISTERS = {"matrixMul": 25}  # the least that leaves Chen table 4-3's 4 CTAs per SM
TOLERANCE = {"c": Close(rtol=5e-6, reason="float32 sums of up to 320 positive products against float64")}

SIZES = tuple(ROWS_INNER_COLUMNS)
PRODUCT = Product(np.float32)
setup, run, reference = PRODUCT.setup, PRODUCT.run, PRODUCT.reference
