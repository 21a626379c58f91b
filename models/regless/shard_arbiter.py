"""Golden model of ``rtl/regless/shard_arbiter.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, i64, jit, record, slots
from lockstep.models.time import NEVER

PORTS = ports("regless.shard_arbiter")
STATE = record([("turn", "i8"), ("shards", "i8")])  # who is presented first; parameter


@jit
def reset(state, io):
    """The state after reset."""
    clear(io.c)
    state.turn = 0


@jit
def comb(state, io):
    """What the L1 sees, and who hears of it."""
    clear(io.c.access)
    for k in range(state.shards):
        io.c.request[k].ready = 0
    for k in range(state.shards):
        shard = (i64(state.turn) + k) % i64(state.shards)
        request = io.i.request[shard]
        if request.valid != 0:
            io.c.access.valid = 1
            assign(io.c.access.payload, request.payload)
            io.c.access.payload.shard = shard
            io.c.request[shard].ready = io.i.accepted
            break
    return i64(0)


@jit
def step(state, io):
    """One clock edge."""
    if io.c.access.valid != 0:
        state.turn = (i64(io.c.access.payload.shard) + 1) % i64(state.shards)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    return i64(NEVER) if io.c.access.valid == 0 else i64(0)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
