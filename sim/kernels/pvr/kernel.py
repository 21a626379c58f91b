"""pvr: Page View Rank of the MapReduce framework Mars (He et al., PACT 2008), CTAs of 128 threads.

A map reads the counts that Page View Count has written, and the pairs are sorted by them; there is no reduction. Mars's
sort is bitonic, too, but calls a function of the user to compare two pairs, which ours packs into words. Its counts are
not known to us: ours are those of a Zipf distribution, of URLs of 12 to 44 characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "pages sorted by their views"
SUITE = "Mars"
PTX = "pvr.ptx"

BLOCK, TILE = 128, 256
RECORDS = {"tiny": 300, "small": 60_000}
SIZES = tuple(RECORDS)
SHORTEST, LONGEST = 12, 44  # URLs
MOST = 10_000  # views of the first page, about
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789-/.", np.uint8)


def setup(size: str, seed: int) -> Data:
    """The text, and where its records begin."""
    random = np.random.default_rng(seed)
    records = RECORDS[size]
    lengths = random.integers(SHORTEST, LONGEST + 1, records)
    letters = random.choice(LETTERS, lengths.sum()).tobytes()
    views = 1 + MOST // (1 + random.permutation(records))
    ends = np.cumsum(lengths)
    lines = [
        b"/%s\t%d\n" % (letters[begin + 1 : end], count)
        for begin, end, count in zip((ends - lengths).tolist(), ends.tolist(), views.tolist(), strict=True)
    ]
    sizes = [len(line) for line in lines]
    return {
        "text": np.frombuffer(b"".join(lines), np.uint8),
        "begins": (np.cumsum(sizes) - sizes).astype(np.int32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    records = data["begins"].size
    padded = max(TILE, 1 << (records - 1).bit_length())
    pairs = gpu.empty(padded, np.uint64)
    args = [gpu.to_device(data["text"]), gpu.to_device(data["begins"]), np.int32(records), pairs]
    module.launch("map_emit", grid=(padded // BLOCK,), block=(BLOCK,), args=args)

    def sort(name: str, *sizes: int) -> None:
        module.launch(name, grid=(padded // TILE,), block=(BLOCK,), args=[pairs, *map(np.int32, sizes)])

    sort("sort_tiles", 2, TILE)
    length = 2 * TILE
    while length <= padded:
        distance = length // 2
        while distance >= TILE:
            sort("sort_step", length, distance)
            distance //= 2
        sort("sort_tiles", length, length)
        length *= 2
    ranked = gpu.from_device(pairs)[:records]
    return {"views": (ranked >> 32).astype(np.uint32), "records": ~ranked.astype(np.uint32)}


def reference(data: Data) -> Outputs:
    lines = data["text"].tobytes().splitlines()
    views = np.array([int(line.split(b"\t")[1]) for line in lines], np.uint32)
    records = np.argsort(-views.astype(np.int64), kind="stable")
    return {"views": views[records], "records": records.astype(np.uint32)}
