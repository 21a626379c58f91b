"""syr2k: PolyBench's symmetric rank-2k update, CTAs of 32 x 8 threads; full is PolyBench's 2048 x 2048.

steady has its dimensions, but 15 x 3 CTAs, 3 for each SM of a GTX 480, and 192 of the 2048 terms of every sum: enough
for the warps to drift apart, on which the hits depend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs
from lockstep.sim.kernels.rank_updates import BLOCK, RankUpdate

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "C = alpha A B^T + alpha B A^T + beta C, one element per thread"
SUITE = "PolyBench"
PTX = "syr2k.ptx"
TOLERANCE = {"c": Close(rtol=1e-4, reason="float32 sums of up to 4096 positive terms against float64")}

SHAPES = {"tiny": (44, 4), "small": (256, 96), "full": (2048, 2048), "steady": (2048, 2048)}
SIZES = tuple(SHAPES)
UPDATE = RankUpdate("ab", SHAPES, {"steady": ((15, 3), 192)})
setup, reference = UPDATE.setup, UPDATE.reference


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n, m = data["a"].shape
    a, b, c = (gpu.to_device(data[name]) for name in "abc")
    args = [np.int32(n), np.int32(m), np.int32(data["steps"]), data["alpha"], data["beta"], a, b, c]
    module.launch("syr2k", grid=data["grid"], block=BLOCK, args=args)
    return {"c": gpu.from_device(c)}
