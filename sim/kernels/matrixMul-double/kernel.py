"""matrixMul-double: matrixMul in double precision, of the same sizes (Chen table 3-2)."""

from __future__ import annotations

import numpy as np

from lockstep.sim.kernels import Close
from lockstep.sim.kernels.products import ROWS_INNER_COLUMNS, Product

TITLE = "tiled product of matrices, in double precision"
SUITE = "CUDA SDK"
PTX = "matrixmul_double.ptx"
TOLERANCE = {"c": Close(rtol=1e-13, reason="float64 sums of up to 320 positive products, added in another order")}

SIZES = tuple(ROWS_INNER_COLUMNS)
PRODUCT = Product(np.float64)
setup, run, reference = PRODUCT.setup, PRODUCT.run, PRODUCT.reference
