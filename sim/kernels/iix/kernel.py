"""iix: Inverted Index of the MapReduce framework Mars (He et al., PACT 2008), CTAs of 128 threads, a line of HTML each.

A first map counts the links of every line and their bytes, a second emits pairs of a link and its document. Mars has
kernels for the prefix sums between them and for the sort that makes an index of the pairs; here the host sums, and
nobody sorts. Its pages are not known to us: here lines are filled up to 72 characters, and every tenth part is a link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lockstep.sim.kernels import Data, Extents, Outputs

if TYPE_CHECKING:
    from lockstep.sim import Gpu, Module

TITLE = "index of the links in web pages"
SUITE = "Mars"
PTX = "iix.ptx"

BLOCK = 128
LINES_SITES = {"tiny": (150, 20), "small": (46_080, 2_000)}
SIZES = tuple(LINES_SITES)
LINES_PER_DOCUMENT = 40
WIDTH = 72  # of a line at most, in characters
WORDS = b"the", b"<p>", b"warp", b"<b>is</b>", b"<a name=x>", b"<a hre<a href", b"lines", b"of <i>", b"<td>", b"</td>"
"""The text of pages besides links; some begin like a link."""
LINKS = 1 / 10  # of all parts
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz-/.", np.uint8)


def setup(size: str, seed: int) -> Data:
    """The text, where its lines begin, its end, and the document of every line."""
    random = np.random.default_rng(seed)
    lines, sites = LINES_SITES[size]
    links = [b"http://" + random.choice(LETTERS, n).tobytes() for n in random.integers(4, 17, sites)]
    text = _fill([*WORDS, *(b"<a href=%s>x</a>" % link for link in links)], lines, random)
    return {
        "text": np.frombuffer(b"".join(text), np.uint8),
        "begins": np.cumsum([0, *(len(line) for line in text)], dtype=np.int32),
        "documents": (np.arange(lines) // LINES_PER_DOCUMENT).astype(np.int32),
    }


def _fill(parts: list[bytes], lines: int, random: np.random.Generator) -> list[bytes]:
    most = lines * WIDTH // min(len(part) + 1 for part in parts)
    linked = random.random(most) < LINKS
    chosen = np.where(linked, random.integers(len(WORDS), len(parts), most), random.integers(0, len(WORDS), most))
    filled, line = [], parts[chosen[0]]
    for part in chosen[1:].tolist():
        if len(line) + len(parts[part]) + 2 <= WIDTH:
            line += b" " + parts[part]
            continue
        filled.append(line + b"\n")
        line = parts[part]
        if len(filled) == lines:
            break
    return filled


def run(gpu: Gpu, module: Module, data: Data) -> Outputs:
    lines = data["documents"].size
    text, begins, documents = (gpu.to_device(data[name]) for name in ("text", "begins", "documents"))
    links, key_bytes = gpu.empty(lines, np.int32), gpu.empty(lines, np.int32)
    line = Extents(grid=(-(-lines // BLOCK),), block=(BLOCK,))
    module.launch("map_count", **line, args=[text, begins, np.int32(lines), links, key_bytes])

    pair_begins, key_begins = (_sums(gpu.from_device(counts)) for counts in (links, key_bytes))
    keys = gpu.empty(key_begins[-1], np.uint8)
    pairs = [gpu.empty(pair_begins[-1], np.int32) for _ in range(2)]
    sums = [gpu.to_device(begins[:-1]) for begins in (pair_begins, key_begins)]
    module.launch("map_emit", **line, args=[text, begins, documents, np.int32(lines), *sums, keys, *pairs])
    key_ends, values = (gpu.from_device(array) for array in pairs)
    return {"keys": gpu.from_device(keys), "key_ends": key_ends, "documents": values}


def _sums(counts: np.ndarray) -> np.ndarray:
    """Of all before each one, and of all."""
    return np.cumsum([0, *counts], dtype=np.int32)


def reference(data: Data) -> Outputs:
    text, begins = data["text"].tobytes(), data["begins"]
    keys, documents = [], []
    for begin, end, document in zip(begins[:-1], begins[1:], data["documents"], strict=True):
        links = [part.split(b">")[0] for part in text[begin:end].split(b"<a href=")[1:]]
        keys += links
        documents += [document] * len(links)
    return {
        "keys": np.frombuffer(b"".join(keys), np.uint8),
        "key_ends": np.cumsum([len(key) for key in keys], dtype=np.int32),
        "documents": np.array(documents, np.int32),
    }
