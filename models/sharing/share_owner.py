"""Golden model of ``rtl/sharing/share_owner.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER

PORTS = ports("sharing.share_owner")
STATE = record([("ctas", "i8")])  # parameter; all else is in the outputs


@jit
def reset(state, io):
    """The outputs after reset: no CTA."""
    clear(io.o)


@inline
def _has(masks, side, pair):
    """Whether a mask of pairs, one of two by side, has this pair."""
    return i64(masks[side]) >> pair & 1 != 0


@jit
def _older_and_owner(io, pair):
    """The sides of a pair's older CTA and of its owner, after this cycle."""
    stays_0 = _has(io.o.present, 0, pair) and not _has(io.i.finish, 0, pair)
    stays_1 = _has(io.o.present, 1, pair) and not _has(io.i.finish, 1, pair)
    if stays_0 and stays_1:
        holds_0, holds_1 = _has(io.i.holds, 0, pair), _has(io.i.holds, 1, pair)
        owner = i64(holds_1) if holds_0 != holds_1 else i64(io.o.owner) >> pair & 1
        return i64(io.o.older) >> pair & 1, owner
    if stays_0 or stays_1:
        return i64(stays_1), i64(stays_1)
    comes = i64(_has(io.i.start, 1, pair) and not _has(io.i.start, 0, pair))
    return comes, comes


@jit
def step(state, io):
    """One clock edge."""
    older, owner = i64(0), i64(0)
    for pair in range(max(state.ctas // 2, 1)):
        its_older, its_owner = _older_and_owner(io, pair)
        older |= its_older << pair
        owner |= its_owner << pair
    io.o.older = older
    io.o.owner = owner
    for side in range(2):
        io.o.present[side] = i64(io.o.present[side]) & ~i64(io.i.finish[side]) | i64(io.i.start[side])
    io.o.sharing = i64(io.o.present[0]) & i64(io.o.present[1]) != 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    for side in range(2):
        if i64(io.i.start[side]) | i64(io.i.finish[side]) != 0:
            return i64(0)
    one, other = i64(io.i.holds[0]), i64(io.i.holds[1])
    both = i64(io.o.present[0]) & i64(io.o.present[1])
    passes = both & (one ^ other) & (other ^ i64(io.o.owner))
    return i64(0) if passes != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
