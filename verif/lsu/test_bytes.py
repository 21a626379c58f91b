"""Which bytes of a line a store accesses, against a set of them."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.jit import argument, i64, jit
from lockstep.models.lsu import tokens
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory import l1
from lockstep.verif.bench import mask, seeded
from lockstep.verif.models.memory.traffic import words

LINE = 128
TOKEN = 5


@jit
def bytes_of(lsu, lanes):
    return tokens.bytes_of(lsu, i64(TOKEN), i64(lanes))


@pytest.fixture(scope="module")
def unit() -> np.ndarray:
    lsu = np.zeros((), LSU)
    lsu["l1"]["line_bytes"] = LINE
    lsu["token"]["kind"][TOKEN] = l1.STORE
    return lsu


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("pattern", ["consecutive", "reversed", "equal", "gap", "random"])
def test_bytes_of_a_store(unit: np.ndarray, pattern: str, width: int) -> None:
    rng = seeded()
    for _ in range(200):
        lanes = range(rng.randrange(32), 32)[: rng.randint(1, LINE // width)]
        first = rng.randrange(LINE // width - len(lanes) + 1)
        places = {lane: first + k for k, lane in enumerate(lanes)}
        if pattern == "reversed":
            places = dict(zip(lanes, reversed(places.values()), strict=True))
        elif pattern == "equal":
            places = dict.fromkeys(lanes, first)
        elif pattern == "gap":
            kept = mask(rng, 32)
            places = {lane: at for lane, at in places.items() if kept >> lane & 1} or places
        elif pattern == "random":
            places = {lane: rng.randrange(LINE // width) for lane in lanes}
        line = rng.randrange(1 << 20) * LINE
        token = unit["token"][TOKEN : TOKEN + 1]
        token["bytes"], token["size"] = width, width.bit_length() - 1
        token["address"] = [line + width * places.get(lane, rng.randrange(1 << 20)) for lane in range(32)]
        expected = sum({(1 << width) - 1 << width * at for at in places.values()})
        assert bytes_of(argument(unit), sum(1 << lane for lane in places)) == words(expected)
