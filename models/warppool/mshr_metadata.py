"""Golden model of ``rtl/warppool/mshr_metadata.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, i64, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.warppool.parameters import MAX_METADATA

PORTS = ports("warppool.mshr_metadata")
ENTRY = PORTS["o"]["slots"]
STATE = record(
    [
        ("entry", ENTRY, (MAX_METADATA,)),
        ("queue", "i2", (MAX_METADATA,)),  # the free entries that were used before, oldest first
        ("head", "i8"),  # where the next one leaves the queue
        ("tail", "i8"),  # where the next one enters it
        ("reused", "i8"),  # every entry was allocated before
        ("entries", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Entries and queue are memory: unseen until they are written."""
    clear(io.o)
    io.o.free = state.entries
    state.head = 0
    state.tail = 0
    state.reused = 0


@jit
def step(state, io):
    """One clock edge."""
    access, answer = io.i.access, io.i.answer
    allocated = access.valid & access.ready != 0 and access.payload.store == 0
    answered = answer.valid & answer.ready != 0
    if not (allocated or answered):
        return i64(0)
    if answered:
        index = i64(answer.payload.id)
        entry, shown = state.entry[index], io.o.slots
        for i in range(entry.count):
            assign(shown.slots[i], entry.slots[i])
        for i in range(entry.count, shown.count):
            clear(shown.slots[i])
        shown.count = entry.count
        state.queue[state.tail] = index
        state.tail = state.tail + 1 if state.tail + 1 < state.entries else 0
    if allocated:
        assign(state.entry[i64(io.o.id)], access.payload)
        state.head += 1
        if state.head == state.entries:
            state.head = 0
            state.reused = 1
    free = i64(io.o.free) + i64(answered) - i64(allocated)
    io.o.free = free
    if free == 0:
        io.o.id = 0
    else:
        io.o.id = i64(state.queue[state.head]) if state.reused else state.head
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    access, answer = io.i.access, io.i.answer
    if access.valid & access.ready != 0 and access.payload.store == 0:
        return i64(0)
    return i64(0) if answer.valid & answer.ready != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
