"""pvc: Page View Count of the MapReduce framework Mars (He et al., PACT 2008), CTAs of 128 threads, a record each.

A first map counts the bytes of the keys, a second emits pairs of a URL and 1, and a reduction adds up the pairs of each
URL. Mars has kernels for the prefix sums and the sort between them; here the host does both. Mars also drops repeated
records first, by another round of map and reduction; ours are all counted. Its logs are not known to us: every page has
a URL of 12 to 44 characters here, and all pages are equally likely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Extents, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "page views by URL from the log of a web server"
SUITE = "Mars"
PTX = "pvc.ptx"

BLOCK = 128
RECORDS_PAGES = {"tiny": (150, 30), "small": (92_160, 9_000)}
SIZES = tuple(RECORDS_PAGES)
SHORTEST, LONGEST = 12, 44  # URLs
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789-/.", np.uint8)


def setup(size: str, seed: int) -> Data:
    """The log, and where its records begin."""
    random = np.random.default_rng(seed)
    records, pages = RECORDS_PAGES[size]
    urls = [b"/" + random.choice(LETTERS, n - 1).tobytes() for n in random.integers(SHORTEST, LONGEST + 1, pages)]
    addresses = random.integers(0, 256, (records, 4))
    lines = [
        b"%s\t%d.%d.%d.%d\t%08x\n" % (urls[page], *address, cookie)
        for page, address, cookie in zip(
            random.integers(0, pages, records), addresses.tolist(), random.integers(0, 1 << 32, records), strict=True
        )
    ]
    lengths = [len(line) for line in lines]
    return {
        "log": np.frombuffer(b"".join(lines), np.uint8),
        "begins": (np.cumsum(lengths) - lengths).astype(np.int32),
    }


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    records = data["begins"].size
    log, begins, lengths = gpu.to_device(data["log"]), gpu.to_device(data["begins"]), gpu.empty(records, np.int32)
    record = Extents(grid=(-(-records // BLOCK),), block=(BLOCK,))
    module.launch("map_count", **record, args=[log, begins, np.int32(records), lengths])

    key_ends = np.cumsum(gpu.from_device(lengths), dtype=np.int32)
    key_begins = gpu.to_device(key_ends - gpu.from_device(lengths))
    keys, hashes = gpu.empty(key_ends[-1], np.uint8), gpu.empty(records, np.uint32)
    values = gpu.empty(records, np.int32)
    module.launch("map_emit", **record, args=[log, begins, np.int32(records), key_begins, keys, hashes, values])

    order, first = _groups(gpu.from_device(hashes))
    pages = first.size - 1
    counts = gpu.empty(pages, np.int32)
    args = [values, gpu.to_device(order), gpu.to_device(first), np.int32(pages), counts]
    module.launch("reduce", grid=(-(-pages // BLOCK),), block=(BLOCK,), args=args)
    return {"keys": gpu.from_device(keys), "hashes": gpu.from_device(hashes), "counts": gpu.from_device(counts)}


def _groups(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs in the order of their hashes; where each new one begins, and the end."""
    order = np.argsort(hashes, kind="stable").astype(np.int32)
    begins = np.flatnonzero(np.diff(hashes[order].astype(np.int64), prepend=-1))
    return order, np.append(begins, hashes.size).astype(np.int32)


def reference(data: Data) -> Outputs:
    urls = [line.split(b"\t")[0] for line in data["log"].tobytes().splitlines()]
    known = {url: _hash(url) for url in set(urls)}
    hashes = np.array([known[url] for url in urls], np.uint32)
    counts = np.unique(hashes, return_counts=True)[1]
    return {
        "keys": np.frombuffer(b"".join(urls), np.uint8),
        "hashes": hashes,
        "counts": counts.astype(np.int32),
    }


def _hash(url: bytes) -> int:
    value = 5381
    for c in url:
        value = value * 33 % 2**32 ^ c
    return value
