"""ssc: Similarity Score of the MapReduce framework Mars (He et al., PACT 2008), CTAs of 128 threads.

A first map gives the norms of the documents' vectors, a second the cosine of every pair of them, a thread each. Mars's
documents are not known to us: ours have 128 terms in small, so that all rows begin in the same few sets of an L1 whose
index is not hashed. Components are small whole numbers: sums are exact in float32, and scores can be compared exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "cosine similarity of all pairs of documents"
SUITE = "Mars"
PTX = "ssc.ptx"

BLOCK = 128
DOCUMENTS_TERMS = {"tiny": (18, 21), "small": (320, 128)}
SIZES = tuple(DOCUMENTS_TERMS)
MOST = 8  # of one term in a document


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    return {"vectors": random.integers(0, MOST + 1, DOCUMENTS_TERMS[size]).astype(np.float32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    documents, terms = data["vectors"].shape
    pairs = _pairs(documents)
    vectors = gpu.to_device(data["vectors"])
    norms, scores = gpu.empty(documents, np.float32), gpu.empty(len(pairs), np.float32)
    args = [vectors, np.int32(documents), np.int32(terms), norms]
    module.launch("map_norms", grid=(-(-documents // BLOCK),), block=(BLOCK,), args=args)
    args = [vectors, norms, gpu.to_device(pairs), np.int32(len(pairs)), np.int32(terms), scores]
    module.launch("map_scores", grid=(-(-len(pairs) // BLOCK),), block=(BLOCK,), args=args)
    return {"norms": gpu.from_device(norms), "scores": gpu.from_device(scores)}


def _pairs(documents: int) -> np.ndarray:
    """Every two documents once, the lower number first."""
    return np.stack(np.triu_indices(documents, 1), axis=-1).astype(np.int32)


def reference(data: Data) -> Outputs:
    products = data["vectors"] @ data["vectors"].T  # exact: whole numbers below 2^24
    norms = np.sqrt(products.diagonal())
    first, second = _pairs(len(norms)).T
    return {"norms": norms, "scores": products[first, second] / (norms[first] * norms[second])}
