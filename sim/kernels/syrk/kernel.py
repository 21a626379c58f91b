"""syrk: PolyBench's symmetric rank-k update, CTAs of 32 x 8 threads; full is PolyBench's 1024 x 1024.

steady has its dimensions, but 25 x 3 CTAs, 5 for each SM of a GTX 480, and 384 of the 1024 terms of every sum: enough
for the warps to drift apart, on which the hits depend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs
from lockstep.sim.kernels.rank_updates import BLOCK, RankUpdate

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "C = alpha A A^T + beta C, one element per thread"
SUITE = "PolyBench"
PTX = "syrk.ptx"
TOLERANCE = {"c": Close(rtol=3e-5, reason="float32 sums of up to 1024 positive terms against float64")}

SHAPES = {
    "tiny": (44, 5),
    "small": (256, 128),
    "full": (1024, 1024),
    "steady": (1024, 1024),
    "reference": (160, 12),
}
SIZES = tuple(SHAPES)
UPDATE = RankUpdate("a", SHAPES, {"steady": ((25, 3), 384)})
setup, reference = UPDATE.setup, UPDATE.reference


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    n, m = data["a"].shape
    a, c = gpu.to_device(data["a"]), gpu.to_device(data["c"])
    name, steps = ("syrk", []) if data["steps"] == m else ("syrk_part", [np.int32(data["steps"])])
    args = [np.int32(n), np.int32(m), *steps, data["alpha"], data["beta"], a, c]
    module.launch(name, grid=data["grid"], block=BLOCK, args=args)
    return {"c": gpu.from_device(c)}
