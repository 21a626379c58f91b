"""Bank conflicts: known patterns, and random ones against a count of the words in each bank."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from lockstep.models.execution.isa import CONTEXT, LANES
from lockstep.models.jit import argument
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree
from lockstep.verif.bench import interpreted, mask, seeded

ALL = 0xFFFF_FFFF
EVERY = np.arange(LANES)


def degree(
    addresses: np.ndarray, bytes_: int = 4, vec: int = 1, lanes: int = ALL, banks: int = 32, width: int = 4,
    atomic: bool = False,
) -> int:  # fmt: skip
    x = np.zeros((), CONTEXT)
    x["lanes"], x["touched_shared"], x["address"] = LANES, lanes, addresses
    if atomic:
        return int(atomic_degree(argument(x), banks, width, bytes_))
    return int(conflict_degree(argument(x), banks, width, bytes_, vec))


def reference(addresses: list[int], size: int, lanes: int, banks: int, width: int, atomic: bool) -> int:
    """The sum over the requests of the most different words (for atomics: lanes) in one bank."""
    together = max(banks * width // max(size, width), 1)
    cycles = 0
    for start in range(0, LANES, together):
        wanted: dict[int, list[int]] = {}
        for lane in range(start, min(start + together, LANES)):
            if lanes >> lane & 1:
                for word in {(addresses[lane] + byte) // width for byte in range(size)}:
                    wanted.setdefault(word % banks, []).append(word)
        counts = [len(words if atomic else set(words)) for words in wanted.values()]
        cycles += max(counts, default=0)
    return max(cycles, 1)


@pytest.mark.parametrize("stride", range(1, 65))
def test_strides(stride: int) -> None:
    """Lanes that lie ``stride`` words apart: as many conflicts as the stride has factors of two, up to 32."""
    assert degree(4 * stride * EVERY) == math.gcd(stride, 32)


@pytest.mark.parametrize("conflicts", range(1, 33))
def test_each_degree(conflicts: int) -> None:
    """The first lanes use different words of bank 5, the others bank 6 with one word."""
    addresses = np.where(conflicts > EVERY, 4 * (5 + 32 * EVERY), 4 * 6)
    assert degree(addresses) == conflicts
    assert degree(addresses, atomic=True) == max(conflicts, 32 - conflicts)


def test_known_patterns() -> None:
    assert degree(4 * EVERY) == 1
    assert degree(4 * (EVERY ^ 21)) == 1
    assert degree(0 * EVERY + 64) == 1  # broadcast
    assert degree(EVERY, bytes_=1) == 1  # four lanes per word
    assert degree(2 * EVERY, bytes_=2) == 1
    assert degree(8 * EVERY, bytes_=8) == 2  # two half-warps
    assert degree(8 * EVERY, bytes_=4, vec=2) == 2
    assert degree(16 * EVERY, bytes_=4, vec=4) == 4  # four quarter-warps
    assert degree(32 * EVERY, bytes_=8, vec=4) == 8
    assert degree(8 * EVERY, bytes_=8, lanes=0xFFFF) == 1  # the other half-warp does nothing
    assert degree(16 * EVERY, bytes_=8) == 4
    assert degree(0 * EVERY, atomic=True) == 32  # one after the other
    assert degree(4 * EVERY, atomic=True) == 1
    assert degree(8 * EVERY, bytes_=8, width=8) == 1  # 8-byte banks take a whole warp
    assert degree(4 * EVERY, banks=16) == 2  # 16 banks: half-warps
    assert degree(0 * EVERY, lanes=0) == 1


def draw(rng: random.Random) -> tuple[list[int], int, int, int]:
    """Addresses, bytes, elements and lanes."""
    bytes_, vec = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4])
    size = bytes_ * vec
    stride, span = rng.choice([1, 1, 2, 3, 8, 33]), rng.choice([2, 40, 2048])
    addresses = [size * (stride * lane if rng.random() < 0.9 else rng.randrange(span)) for lane in range(LANES)]
    if rng.random() < 0.3:
        addresses = [size * rng.randrange(span) for _ in range(LANES)]
    return addresses, bytes_, vec, mask(rng, LANES)


@pytest.mark.parametrize(("banks", "width"), [(32, 4), (16, 4), (32, 8), (8, 4), (24, 4), (1, 4), (3, 8)])
def test_random_patterns(banks: int, width: int) -> None:
    rng = seeded()
    for _ in range(150):
        addresses, bytes_, vec, lanes = draw(rng)
        got = degree(np.array(addresses), bytes_, vec, lanes, banks, width)
        assert got == reference(addresses, bytes_ * vec, lanes, banks, width, False)
        got = degree(np.array(addresses), bytes_, 1, lanes, banks, width, atomic=True)
        assert got == reference(addresses, bytes_, lanes, banks, width, True)


def series(seed: int) -> str:
    rng = random.Random(seed)
    results = []
    for _ in range(60):
        addresses, bytes_, vec, lanes = draw(rng)
        for atomic in (False, True):
            results.append(degree(np.array(addresses), bytes_, vec, lanes, rng.choice([32, 12]), 4, atomic))
    return str(results)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
