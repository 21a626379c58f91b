"""Golden model of ``rtl/warppool/thread_map_table.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import FOREVER, ports
from lockstep.models.jit import ctz, i64, jit, pointer_to, popcount, record, slot
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import MAX_MAPS

RANDOM = int(Mapping.RANDOM)
LANES = 32

PORTS = ports("warppool.thread_map_table")
ENTRY = record([("words", "u1", (LANES,)), ("mask", "u4")])
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
    p = line.payload
    return line.valid & line.ready != 0 and p.mapping == RANDOM and p.store | p.atomic == 0


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
        entry = state.entry[index]
        found.mask = entry.mask
        for lane in range(LANES):
            found.words[lane] = entry.words[lane]
    elif found.mask != 0:  # as an entry's is: only a line of several lanes needs one
        found.mask = 0
        for lane in range(LANES):
            found.words[lane] = 0


@jit
def step(state, io):
    """One clock edge."""
    used = state.used
    for k in range(state.coalescers):
        line = io.i.line[k]
        if _takes(line):
            index = i64(io.o.entry[k])
            entry = state.entry[index]
            entry.mask = line.payload.mask
            for lane in range(LANES):
                entry.words[lane] = line.payload.words[lane]
            used |= i64(1) << index
    if _releases(io.i.result):
        used &= ~(i64(1) << i64(io.i.result.payload.word))
    if used != state.used:
        state.used = used
        _show(state, io)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    for k in range(state.coalescers):
        if _takes(io.i.line[k]):
            return i64(0)
    return i64(0) if _releases(io.i.result) else i64(FOREVER)


@jit
def skip(state, io, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""


at_state, at_ports = pointer_to(STATE), pointer_to(PORTS)


@slot
def step_slot(state, io):
    step(at_state(state), at_ports(io))
    return i64(0)


@slot
def comb_slot(state, io):
    comb(at_state(state), at_ports(io))
    return i64(0)


@slot
def idle_slot(state, io):
    return idle(at_state(state), at_ports(io))


@slot
def skip_slot(state, steps):
    return i64(0)


SLOTS = {"step": step_slot, "comb": comb_slot, "idle": idle_slot, "skip": skip_slot}
