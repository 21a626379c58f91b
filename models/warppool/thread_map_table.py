"""Golden model of ``rtl/warppool/thread_map_table.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, jit, popcount, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import MAX_MAPS

RANDOM = int(Mapping.RANDOM)

PORTS = ports("warppool.thread_map_table")
ENTRY = PORTS["c"]["map"]
STATE = record(
    [
        ("entry", ENTRY, (MAX_MAPS,)),
        ("used", "i8"),  # the entries in use
        ("entries", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
    ]
)


@jit
def _show(state, io):
    """What is free in each bank."""
    size = state.entries // state.coalescers
    for k in range(state.coalescers):
        free = ~(state.used >> k * size) & (i64(1) << size) - 1
        io.o.free[k] = popcount(free)
        io.o.entry[k] = k * size + (ctz(free) if free != 0 else 0)


@jit
def reset(state, io):
    """The state and the outputs after reset. The entries are memory: unseen unless in use."""
    state.used = 0
    _show(state, io)


@jit
def _takes(line):
    return line.valid & line.ready != 0 and line.payload.mapping == RANDOM


@jit
def _releases(result):
    p = result.payload
    return result.valid & result.ready != 0 and p.mapping == RANDOM and p.atomic == 0


@jit
def comb(state, io):
    """The entry looked up."""
    index = i64(io.i.lookup)
    found = io.c.map
    if state.used >> index & 1:
        assign(found, state.entry[index])
    elif found.mask != 0:  # as an entry's is: only a line of several lanes needs one
        clear(found)
    return i64(0)


@jit
def step(state, io):
    """One clock edge."""
    used = state.used
    for k in range(state.coalescers):
        line = io.i.line[k]
        if _takes(line):
            index = i64(io.o.entry[k])
            assign(state.entry[index], line.payload)
            used |= i64(1) << index
    if _releases(io.i.result):
        used &= ~(i64(1) << i64(io.i.result.payload.word))
    if used != state.used:
        state.used = used
        _show(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    for k in range(state.coalescers):
        if _takes(io.i.line[k]):
            return i64(0)
    return i64(0) if _releases(io.i.result) else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, comb=comb, idle=idle)
