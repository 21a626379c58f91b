"""Golden model of ``rtl/scavenger/sliding_window.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.prediction import MAX_ENTRIES

PORTS = ports("scavenger.sliding_window")
STATE = record(
    [
        ("entries", "i8"),  # parameters
        ("cycles", "i8"),
        ("bits", "i8"),
        ("signed", "i8"),
        ("clean", "i8"),  # 1: the last cycle had ``clear``
        ("cycle", "i8"),  # of the entry
        ("last_value", "i8"),  # a cycle ago
        ("sum", "i8"),  # of this entry so far
        ("sums", "i8", (MAX_ENTRIES,)),  # of the entries
        ("oldest", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.clean = 1
    state.cycle = state.last_value = state.sum = state.oldest = 0
    for entry in range(MAX_ENTRIES):
        state.sums[entry] = 0


@inline
def _value(state, io):
    """The number that stands on the port."""
    value = i64(io.i.value)
    return value - (value >> state.bits - 1 << state.bits) if state.signed != 0 else value


@jit
def _on_port(state, total):
    """A total in as many bits as its port has."""
    bits, values = i64(state.bits), i64(state.entries) * state.cycles
    while i64(1) << bits - state.bits < values:
        bits += 1
    return total & (i64(1) << bits) - 1


@jit
def step(state, io):
    """One clock edge."""
    if io.i.clear != 0:
        reset(state, io)
        return i64(0)
    state.clean = 0
    state.sum += state.last_value
    state.last_value = _value(state, io)
    state.cycle += 1
    if state.cycle == state.cycles:
        state.sums[state.oldest] = state.sum
        state.oldest = (state.oldest + 1) % state.entries
        state.cycle = state.sum = 0
        total = i64(0)
        for entry in range(state.entries):
            total += state.sums[entry]
        io.o.total = _on_port(state, total)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while this value is held: up to the end of the entry."""
    if io.i.clear != 0:
        return i64(NEVER) if state.clean != 0 else i64(0)
    if state.clean != 0 or _value(state, io) != state.last_value:
        return i64(0)
    return state.cycles - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.clean == 0:
        state.sum += state.last_value * steps
        state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
