"""hybridsort: Rodinia's sorting: histogram (CTAs of 96 threads), buckets (32; 4096 elements each), merging (256).

full sorts 500,000 numbers, as many as the file has that Rodinia offers beside 50 million random ones. Between the
histogram and the buckets, the host chooses 1023 pivots that make buckets of about the same size. Buckets are padded to
whole float4 with infinities at their ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "sorting of numbers in buckets, and by merging"
SUITE = "Rodinia"
PTX = "hybridsort.ptx"

BINS = BUCKETS = 1024
HISTOGRAM_BLOCK, BUCKET_BLOCK, PREFIX_BLOCK, MERGE_BLOCK, PACK_BLOCK = 96, 32, 128, 256, 96
COUNT = {"tiny": 2533, "small": 100_000, "full": 500_000}
HISTOGRAM_CTAS = {"tiny": 2}  # where they are not 64
PER_CTA = {"tiny": 28 * BUCKET_BLOCK}  # elements, where they are not 4096


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    values = random.random(COUNT[size], np.float32) ** 2  # the buckets are not equally wide
    return {
        "values": values,
        "histogram_ctas": HISTOGRAM_CTAS.get(size, 64),
        "per_cta": PER_CTA.get(size, 4096),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    count, per_cta = np.int32(len(data["values"])), np.int32(data["per_cta"])
    values = gpu.to_device(data["values"])
    least, most = data["values"].min(), data["values"].max()

    bins = gpu.to_device(np.zeros(BINS, np.uint32))
    args = [values, count, least, np.float32(BINS / (most - least)), bins]
    module.launch("histogram", grid=(data["histogram_ctas"],), block=(HISTOGRAM_BLOCK,), args=args)
    pivots = gpu.texture(_pivots(gpu.from_device(bins), least, most))

    ctas = -(-count // per_cta)
    places, counts = gpu.empty(count, np.uint32), gpu.empty((ctas, BUCKETS), np.uint32)
    sizes = gpu.empty(BUCKETS, np.uint32)
    args = [values, count, per_cta, pivots, places, counts]
    module.launch("bucket_count", grid=(ctas,), block=(BUCKET_BLOCK,), args=args)
    args = [counts, sizes, np.int32(ctas)]
    module.launch("bucket_prefix", grid=(BUCKETS // PREFIX_BLOCK,), block=(PREFIX_BLOCK,), args=args)

    in_bucket = gpu.from_device(sizes).astype(np.int32)
    fours = -(-in_bucket // 4)
    starts = _starts(fours)
    module.set_symbol("bucket_start", starts)
    module.set_symbol("sorted_start", _starts(in_bucket))
    padded = np.full((starts[-1], 4), np.inf, np.float32)
    source, target = gpu.to_device(padded), gpu.empty(padded.shape, np.float32)
    args = [values, count, per_cta, places, counts, source]
    module.launch("bucket_scatter", grid=(ctas,), block=(BUCKET_BLOCK,), args=args)

    grid = (-(-len(padded) // MERGE_BLOCK),)
    module.launch("sort_fours", grid=grid, block=(MERGE_BLOCK,), args=[source, target, np.int32(len(padded))])
    run_length = 1
    while run_length < fours.max():
        source, target = target, source
        pairs = -(-fours.max() // (2 * run_length))
        runs = gpu.texture(gpu.from_device(source), channels=4)
        args = [runs, target, np.int32(run_length), np.int32(pairs)]
        module.launch("merge_pass", grid=(-(-BUCKETS * pairs // MERGE_BLOCK),), block=(MERGE_BLOCK,), args=args)
        run_length *= 2
    result = gpu.empty(count, np.float32)
    module.launch("merge_pack", grid=(BUCKETS,), block=(PACK_BLOCK,), args=[target, result])
    return {"sorted": gpu.from_device(result)}


def _pivots(bins: np.ndarray, least: np.float32, most: np.float32) -> np.ndarray:
    """Between which values each bucket gets the same number, if values are spread evenly within a bin."""
    edges = np.linspace(least, most, BINS + 1)
    wanted = bins.sum() * np.arange(1, BUCKETS) / BUCKETS
    return np.interp(wanted, np.concatenate([[0], np.cumsum(bins)]), edges).astype(np.float32)


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def reference(data: Data) -> Outputs:
    return {"sorted": np.sort(data["values"])}
