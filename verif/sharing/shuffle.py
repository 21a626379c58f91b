"""A tenant of *gates* that shuffles: which warps may issue changes at random, so that locks are asked for in any order.

Every ``2 ** (seed % 6)`` cycles, about half of the warp slots are held back, all kinds of instructions alike. The test
writes ``seed`` when a launch begins.
"""

from __future__ import annotations

from lockstep.models.core.frame import KINDS
from lockstep.models.core.state import SM
from lockstep.models.jit import i64, jit, record, slots

STATE = record([("gate", "i8"), ("seed", "i8")])


@jit
def _scramble(x):
    """A bijection of the positive integers below 2 ** 62 that looks random."""
    for _ in range(3):
        x ^= x >> 31
        x = i64(x * 0x1B873593 + 0x2545F491) & 0x3FFF_FFFF_FFFF_FFFF
    return x ^ x >> 29


@jit
def update(state, sm):
    now, phase = i64(sm.frame.now), i64(state.seed) % 6
    held = i64(_scramble(i64(state.seed) * 0x10001 + (now >> phase)))
    gate = sm.frame.gate[state.gate]
    for kind in range(KINDS):
        gate.closed[kind] = held
    return ((now >> phase) + 1) << phase


TENANTS = {"gates": slots(STATE, SM, update=update)}
