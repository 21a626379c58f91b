"""b+tree: Rodinia's findRangeK, a CTA of 508 threads per range query on a B+ tree of order 508.

Nodes are half full, as insertion in ascending order leaves them; whether the keys of Rodinia's file stand in that order
is not known to us. full has its million keys and 6,000 ranges of 3,000. As PTX it needs 28 registers, more than the
papers' 24: two CTAs fit on a Fermi SM with either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "range queries on a B+ tree"
SUITE = "Rodinia"
PTX = "find_range.ptx"
REGISTERS = {"findRangeK": 24}  # Jatala table 2

ORDER = 508
HALF = ORDER // 2  # entries of a node
FIRST, LAST = np.iinfo(np.int32).min, np.iinfo(np.int32).max  # of the keys, around those of a node
NODE = np.dtype(
    [
        ("location", np.int32),
        ("indices", np.int32, ORDER + 1),
        ("keys", np.int32, ORDER + 1),
        ("is_leaf", bool),
        ("num_keys", np.int32),
    ],
    align=True,
)
# The gap is the largest between two keys: with 2, about every third query's end is missing.
KEYS_GAP_QUERIES_RANGE = {
    "tiny": (600, 2, 4, 300),
    "small": (100_000, 1, 1_000, 3_000),
    "full": (1_000_000, 1, 6_000, 3_000),
    "reference": (6_000, 1, 60, 600),
}
SIZES = tuple(KEYS_GAP_QUERIES_RANGE)


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    count, gap, queries, reach = KEYS_GAP_QUERIES_RANGE[size]
    keys = (np.cumsum(random.integers(1, gap + 1, count)) - 1).astype(np.int32)
    end = np.minimum(random.integers(0, keys[-1], queries) + reach, keys[-1])
    return {"keys": keys, "start": (end - reach).astype(np.int32), "end": end.astype(np.int32)}


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    queries = data["start"].size
    nodes, height = _tree(data["keys"])
    walk = [gpu.to_device(np.zeros(queries, np.int64)) for _ in range(4)]  # from the root, which is node 0
    ends = gpu.to_device(data["start"]), gpu.to_device(data["end"])
    record, length = (gpu.to_device(np.zeros(queries, np.int32)) for _ in range(2))
    args = [np.int64(height), gpu.to_device(nodes), np.int64(len(nodes)), *walk, *ends, record, length]
    module.launch("findRangeK", grid=(queries,), block=(ORDER,), args=args)
    return {"record": gpu.from_device(record), "length": gpu.from_device(length)}


def _tree(keys: np.ndarray) -> tuple[np.ndarray, int]:
    """The nodes, level by level from the root on, and how many levels there are below it. A level's entries are the
    nodes below it by their lowest keys; those of the leaves are the records.
    """
    levels: list[np.ndarray] = []
    entries = keys
    while not levels or len(levels[0]) > 1:
        leaf = not levels
        numbers = np.arange(entries.size)
        node, place = np.divmod(numbers, HALF)
        place += leaf
        level = np.zeros(node[-1] + 1, NODE)
        level["indices"][node, place] = numbers
        level["keys"] = LAST
        level["keys"][node, place] = entries
        level["keys"][:, 0] = FIRST
        level["is_leaf"] = leaf
        level["num_keys"] = np.bincount(node) + leaf
        levels.insert(0, level)
        entries = entries[::HALF]
    nodes = np.zeros(sum(map(len, levels)), NODE)
    first = 0
    for level in levels:
        below = first + len(level)
        if level is not levels[-1]:
            level["indices"] += below
        nodes[first:below] = level
        first = below
    return nodes, len(levels) - 1


def reference(data: Data) -> Outputs:
    keys = data["keys"]
    place, found = {}, {}
    for name in ("start", "end"):
        place[name] = np.searchsorted(keys, data[name])
        found[name] = keys[np.minimum(place[name], keys.size - 1)] == data[name]
    record = np.where(found["start"], place["start"], 0)
    length = np.where(found["end"], place["end"] - record + 1, 0)
    return {"record": record.astype(np.int32), "length": length.astype(np.int32)}
