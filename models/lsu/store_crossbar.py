"""Golden model of ``rtl/lsu/store_crossbar.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, jit, record, slots, u32, without_lowest
from lockstep.models.time import NEVER

PORTS = ports("lsu.store_crossbar")
STATE = record(
    [
        ("store", PORTS["i"]["store"]["payload"]),  # whose registers come now, ...
        ("moves", "i8"),  # ... if there is one
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. The store is memory: unseen unless it moves."""
    clear(io.o)
    state.moves = 0


@jit
def _move(state, io):
    """Write the bytes of each lane into the line, the highest lane last."""
    store, write = state.store, io.o.write.payload
    clear(write)
    size = i64(store.size)
    inside = (i64(1) << io.i.line_shift) - (i64(1) << size)
    keep = (i64(1) << 8 * (i64(1) << min(size, i64(2)))) - 1  # of a register
    lanes = i64(store.mask)
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        at = i64(store.place[lane]) & inside
        word, byte = at >> 2, at & 3
        if size < 2:
            rest = i64(write.line[word]) & ~(keep << 8 * byte)
            write.line[word] = u32(rest | (i64(io.i.registers[0, lane]) & keep) << 8 * byte)
            write.bytes[word] |= (i64(1) << (i64(1) << size)) - 1 << byte
        else:
            for k in range(1 << size - 2):
                write.line[word + k] = io.i.registers[k, lane]
                write.bytes[word + k] = 15


@jit
def step(state, io):
    """One clock edge."""
    io.o.write.valid = state.moves
    if state.moves != 0:
        _move(state, io)
    state.moves = io.i.store.valid
    if state.moves != 0:
        assign(state.store, io.i.store.payload)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    return i64(0) if io.i.store.valid | state.moves | io.o.write.valid != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
