"""MUM: MUMmerGPU's matches of short DNA queries in a reference, a query per thread.

CTAs have 256 threads (Jatala table 2).

full has the sizes of GPGPU-Sim's input, 50,000 queries of 25 bases against 20,000, and MUMmerGPU's least match, 20; the
sequences are random, every second query is from the reference, and half of these have an error. The suffix tree is
numbered from its root down. tiny's queries differ in length.

Two results per suffix of a query that matches for long enough: how long, and where first in the reference. The kernel
gives a place in the tree, which the host translates; the reference knows no tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "matches of DNA queries by a suffix tree"
SUITE = "GPGPU-Sim"
PTX = "mum.ptx"
REGISTERS = {"mummergpuKernel": 28}  # Jatala table 2

BLOCK = 256
BASES, END = b"ACGT", ord("$")
REFERENCE_QUERIES = {"tiny": (40, 265), "small": (4_000, 6_000), "full": (20_000, 50_000)}
LENGTHS_LEAST = {"tiny": ((5, 7), 4), "small": ((25, 25), 20), "full": ((25, 25), 20)}
BAND_ROWS, WIDTH = 32, 4096  # of the textures of nodes, ...
TEXT_ROWS, TEXT_WIDTH = 4, 65_536  # ... and of that of the reference
ROOT = 1


def setup(size: str, seed: int) -> Data:
    random = np.random.default_rng(seed)
    (bases, count), ((shortest, longest), least) = REFERENCE_QUERIES[size], LENGTHS_LEAST[size]
    letters = np.frombuffer(BASES, np.uint8)
    reference = letters[random.integers(0, 4, bases)]
    queries = []
    for number in range(count):
        length = int(random.integers(shortest, longest + 1))
        first = int(random.integers(0, bases - length + 1))
        query = letters[random.integers(0, 4, length)] if number % 2 else reference[first : first + length].copy()
        if number % 4 == 0:
            query[random.integers(0, length)] = letters[random.integers(0, 4)]
        queries.append(query.tobytes())
    return {"reference": reference.tobytes(), "queries": queries, "least": least}


class Tree:
    """A suffix tree, by plain insertion of one suffix after the other. Lists have an item per node, the root first."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.children: list[dict[int, int]] = [{}]
        self.edges = [(0, 0)]  # the first and the last character; the root has none
        self.depths = [0]  # characters from the root
        self.occurrences = [0]  # of what leads to the node: the first in the text
        self.links = [-1]
        for suffix in range(len(text)):
            self._insert(suffix)
        for node in range(1, len(self.edges)):
            if self.children[node]:
                self.links[node] = self._walk(self.occurrences[node] + 1, self.depths[node] - 1)

    def _add(self, parent: int, first: int, last: int, occurrence: int) -> int:
        self.children.append({})
        self.edges.append((first, last))
        self.depths.append(self.depths[parent] + last - first + 1)
        self.occurrences.append(occurrence)
        self.links.append(-1)
        self.children[parent][self.text[first]] = len(self.edges) - 1
        return len(self.edges) - 1

    def _insert(self, suffix: int) -> None:
        node, at = 0, suffix
        while (below := self.children[node].get(self.text[at])) is not None:
            first, last = self.edges[below]
            same = 1
            while first + same <= last and self.text[first + same] == self.text[at + same]:
                same += 1
            at += same
            if first + same <= last:
                node = self._add(node, first, first + same - 1, self.occurrences[below])
                self.edges[below] = (first + same, last)
                self.children[node][self.text[first + same]] = below
                break
            node = below
        self._add(node, at, len(self.text) - 1, suffix)

    def _walk(self, at: int, depth: int) -> int:
        """The node that ``depth`` characters from ``at`` lead to."""
        node = 0
        while self.depths[node] < depth:
            node = self.children[node][self.text[at + self.depths[node]]]
        return node

    def numbers(self) -> np.ndarray:
        """Of the nodes, those nearer to the root first."""
        order = [0]
        for node in order:
            order.extend(self.children[node].values())
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(ROOT, ROOT + len(order))
        return numbers


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    queries, least = data["queries"], data["least"]
    tree = Tree(data["reference"] + bytes([END]))
    numbers = tree.numbers()
    bands = -(-(ROOT + numbers.size) // (BAND_ROWS * WIDTH))
    nodes, children = (np.zeros((bands * BAND_ROWS, WIDTH, 4), np.uint32) for _ in range(2))
    x, y = _place(numbers)
    addresses = (y << 16 | x).astype(np.uint32)
    nodes[y, x, :2] = tree.edges
    inner = np.array(tree.links) >= 0
    nodes[y[inner], x[inner], 2] = addresses[np.array(tree.links)[inner]]
    for node, below in enumerate(tree.children):
        for k, base in enumerate(BASES):
            if base in below:
                children[y[node], x[node], k] = addresses[below[base]]

    lengths = np.array([len(query) for query in queries], np.int32)
    begins = (np.cumsum(lengths + 2) - lengths - 2).astype(np.int32)
    matches = gpu.to_device(np.zeros(((lengths - least + 1).sum(), 2), np.int32))
    text = gpu.to_device(np.frombuffer(b"".join(b"q%b\0" % query for query in queries), np.uint8))
    textures = gpu.texture(nodes, channels=4), gpu.texture(children, channels=4), gpu.texture(_text(tree.text))
    places = gpu.to_device(begins), gpu.to_device(lengths)
    args = [matches, text, *textures, *places, np.int32(len(queries)), np.int32(least)]
    module.launch("mummergpuKernel", grid=(-(-len(queries) // BLOCK),), block=(BLOCK,), args=args)

    number, edge = gpu.from_device(matches).T
    order = np.argsort(numbers)
    node = order[np.maximum(number - ROOT, 0)]
    firsts, lasts = np.array(tree.edges).T
    depth = np.array(tree.depths)[node]
    length = np.where(edge > 0, depth - (lasts - firsts + 1)[node] + edge, depth)
    return {
        "length": np.where(number > 0, length, 0).astype(np.int32),
        "first": np.where(number > 0, np.array(tree.occurrences)[node], 0).astype(np.int32),
    }


def _place(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Column and row in the textures: down the rows of a band first."""
    band, within = np.divmod(numbers, BAND_ROWS * WIDTH)
    return within // BAND_ROWS, band * BAND_ROWS + within % BAND_ROWS


def _text(text: bytes) -> np.ndarray:
    bands = -(-len(text) // (TEXT_ROWS * TEXT_WIDTH))
    texels = np.zeros((bands, TEXT_WIDTH, TEXT_ROWS), np.int8)
    texels.ravel()[: len(text)] = np.frombuffer(text, np.int8)
    return texels.transpose(0, 2, 1).reshape(-1, TEXT_WIDTH)


def reference(data: Data) -> Outputs:
    """By a table of all parts of the reference that a query could have."""
    text, least = data["reference"], data["least"]
    longest = max(len(query) for query in data["queries"])
    first: dict[bytes, int] = {}
    for length in range(least, longest + 1):
        for at in range(len(text) - length + 1):
            first.setdefault(text[at : at + length], at)
    matches = []
    for query in data["queries"]:
        for begin in range(len(query) - least + 1):
            end = begin + least
            while end < len(query) and query[begin : end + 1] in first:
                end += 1
            part = query[begin:end]
            matches.append((len(part), first[part]) if part in first else (0, 0))
    lengths, places = np.array(matches, np.int32).T.copy()
    return {"length": lengths, "first": places}
