"""scalarProd: the SDK's scalar products of 256 pairs of vectors of 4096 elements, 256 threads per CTA.

full has the 96 CTAs of Chen table 4-3 in place of the SDK's 128. Of them 5 fit on a Fermi SM, not the table's 6: our
compiler needs more registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Close, Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "scalar products of many pairs of vectors"
SUITE = "CUDA SDK"
PTX = "scalarprod.ptx"
TOLERANCE = {"product": Close(rtol=1e-6, reason="float32 sums of up to 4096 positive products against float64")}

BLOCK = 256
VECTORS_ELEMENTS_CTAS = {"tiny": (3, 1_100, 2), "small": (160, 4_096, 96), "full": (256, 4_096, 96)}


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    vectors, elements, ctas = VECTORS_ELEMENTS_CTAS[size]
    return {name: random.random((vectors, elements), np.float32) for name in "ab"} | {"ctas": ctas}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    vectors, elements = data["a"].shape
    product = gpu.empty(vectors, np.float32)
    args = [product, gpu.to_device(data["a"]), gpu.to_device(data["b"]), np.int32(vectors), np.int32(elements)]
    module.launch("scalarProdGPU", grid=(data["ctas"],), block=(BLOCK,), args=args)
    return {"product": gpu.from_device(product)}


def reference(data: Data) -> Outputs:
    return {"product": (data["a"].astype(np.float64) * data["b"]).sum(axis=1).astype(np.float32)}
