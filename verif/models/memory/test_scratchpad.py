"""Bank conflicts: known patterns, and random ones against a count of the words in each bank."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from lockstep.models.execution.isa import CONTEXT, LANES
from lockstep.models.jit import argument
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree, least_degree
from lockstep.spec.parameters import ALL_WORDS, ONE_WORD
from lockstep.verif.bench import interpreted, mask, seeded

ALL = 0xFFFF_FFFF
EVERY = np.arange(LANES)


def degree(
    addresses: np.ndarray, bytes_: int = 4, vec: int = 1, lanes: int = ALL, banks: int = 32, width: int = 4,
    atomic: bool = False, broadcasts: int = ALL_WORDS,
) -> int:  # fmt: skip
    x = np.zeros((), CONTEXT)
    x["lanes"], x["touched_shared"], x["address"] = LANES, lanes, addresses
    if atomic:
        return int(atomic_degree(argument(x), banks, width, bytes_))
    return int(conflict_degree(argument(x), banks, width, broadcasts, bytes_, vec))


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


def one_broadcast(addresses: list[int], size: int, lanes: int, banks: int) -> int:
    """Steps of the programming guide's procedure for compute capability 1.x, over groups of lanes and words of each."""
    steps = 0
    for first in range(0, LANES, banks):
        for word in range(max(size // 4, 1)):
            left = [addresses[k] // 4 + word for k in range(first, min(first + banks, LANES)) if lanes >> k & 1]
            while left:
                broadcast, taken, later = left[0], {left[0] % banks}, []
                for each in left[1:]:
                    if each != broadcast and each % banks in taken:
                        later.append(each)
                    taken.add(each % banks)
                left = later
                steps += 1
    return max(steps, 1)


def half_warps(addresses: np.ndarray, bytes_: int = 4, lanes: int = ALL) -> int:
    """Cycles of an access in 16 banks, of whose words one is broadcast at a time."""
    return degree(addresses, bytes_, lanes=lanes, banks=16, broadcasts=ONE_WORD)


@pytest.mark.parametrize("stride", range(1, 33))
def test_strides_of_half_warps(stride: int) -> None:
    """No lane of one half conflicts with one of the other: as many as the stride has factors of two, up to 16."""
    assert half_warps(4 * stride * EVERY) == 2 * math.gcd(stride, 16)
    assert half_warps(4 * stride * EVERY, lanes=0xFFFF) == math.gcd(stride, 16)


def test_known_patterns_of_half_warps() -> None:
    """Counted by hand, by the guide's procedure; all are those of two halves."""
    assert half_warps(0 * EVERY + 64) == 2  # every lane's word is broadcast
    assert half_warps(4 * (EVERY ^ 9)) == 2
    assert half_warps(4 * (EVERY // 2)) == 4  # two lanes to a word: of all but the broadcast one, a lane is left
    assert half_warps(4 * (EVERY // 4)) == 8  # four lanes to a word
    assert half_warps(EVERY, bytes_=1) == 8  # so with bytes
    assert half_warps(2 * EVERY, bytes_=2) == 4
    assert half_warps(4 * EVERY, bytes_=1) == 2  # a byte of each word
    assert half_warps(8 * EVERY, bytes_=8) == 8  # two words of each lane, in each second bank
    assert half_warps(16 * EVERY, bytes_=16) == 32
    assert half_warps(12 * EVERY) == 2  # the first member of structures of three
    assert half_warps(np.where(EVERY % 16 < 15, 0, 4)) == 2  # the odd lane's bank is free
    assert half_warps(np.where(EVERY % 16 < 15, 0, 64)) == 4  # it is the broadcast word's
    assert half_warps(4 * EVERY, lanes=0) == 1
    assert [degree(64 * EVERY, banks=16, broadcasts=ONE_WORD, lanes=lanes) for lanes in (1, 3, 0x10001)] == [1, 2, 2]


@pytest.mark.parametrize("banks", [16, 8, 32])
def test_random_patterns_with_one_broadcast(banks: int) -> None:
    rng = seeded()
    for _ in range(150):
        addresses, bytes_, vec, lanes = draw(rng)
        got = degree(np.array(addresses), bytes_, vec, lanes, banks, broadcasts=ONE_WORD)
        assert got == one_broadcast(addresses, bytes_ * vec, lanes, banks)


@pytest.mark.parametrize(("banks", "expected"), [(32, 1), (16, 2), (8, 4)])
def test_an_access_without_conflicts(banks: int, expected: int) -> None:
    x = np.zeros((), CONTEXT)
    for lanes, least in ((ALL, expected), (1, 1), (0x8000_0001, min(expected, 2)), (0, 1)):
        x["touched_shared"] = lanes
        assert least_degree(argument(x), banks) == least


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
        results.append(degree(np.array(addresses), bytes_, vec, lanes, 16, broadcasts=ONE_WORD))
    return str(results)


def test_interpreted_equals_compiled() -> None:
    seed = seeded().getrandbits(32)
    assert interpreted(series, seed) == series(seed)
