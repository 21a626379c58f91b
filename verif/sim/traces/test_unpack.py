"""The check of strided accesses, beside a check of each lane."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from lockstep.models.execution.isa import GLOBAL_BASE, LANES, LOCAL_PHYSICAL, PARAM_WINDOW
from lockstep.models.jit import argument
from lockstep.models.traces.replay import ACCESS
from lockstep.models.traces.unpack import BAD_ADDRESS, GOOD, unpack

SCRATCHPAD, LOCAL, PARAMS = 4096, 1024, 96
EDGES = (0, SCRATCHPAD, PARAM_WINDOW, PARAM_WINDOW + PARAMS, GLOBAL_BASE, LOCAL_PHYSICAL + LOCAL, 1 << 32)


def is_there(address: int, shared: bool) -> bool:
    if shared:
        return address < SCRATCHPAD
    return PARAM_WINDOW <= address < PARAM_WINDOW + PARAMS or GLOBAL_BASE <= address < LOCAL_PHYSICAL + LOCAL


def found(lanes: int, shared: int, base: int, stride: int) -> int:
    columns = (np.array([value & 0xFFFF_FFFF], np.uint32) for value in (lanes, shared, base))
    strides, listed, none = np.array([stride], np.int32), np.zeros(1, np.uint32), np.zeros(0, np.uint32)
    counts = np.ones(1, np.int64), np.zeros(1, np.int64)
    compiled: Any = unpack
    out, sizes = argument(np.zeros(1, ACCESS)), (SCRATCHPAD, LOCAL, PARAMS)
    return int(compiled(*columns, strides, listed, none, *counts, out, *sizes))


def test_strided_accesses_are_checked_lane_by_lane() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, verdicts = random.Random(seed), set()
    for _ in range(5_000):
        lanes = chance.choice([0, 1, 0xFFFF_FFFF, 1 << chance.randrange(32), chance.getrandbits(32)])
        shared = lanes & chance.choice([0, 0xFFFF_FFFF, chance.getrandbits(32)])
        stride = chance.choice([0, 4, -4, 8, chance.randrange(-200, 200), chance.randrange(-(1 << 31), 1 << 31)])
        near = chance.choice(EDGES) + chance.choice([0, -4, 4, chance.randrange(-150, 150)])
        base = near - chance.choice([0, 31 * stride])
        touched = [(base + lane * stride) % (1 << 32) for lane in range(LANES)]
        right = all(is_there(touched[k], bool(shared >> k & 1)) for k in range(LANES) if lanes >> k & 1)
        verdicts.add(right)
        what = hex(lanes), hex(shared), hex(base % (1 << 32)), stride
        assert found(lanes, shared, base, stride) == (GOOD if right else BAD_ADDRESS), what
    assert verdicts == {True, False}
