"""Golden model of ``rtl/scavenger/fallback_monitor.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.fixed import IPC

PORTS = ports("scavenger.fallback_monitor")
STATE = record(
    [
        ("limit", "i8"),  # parameters
        ("duration", "i8"),
        ("time", "i8"),
        ("running", "i8"),  # 1: the last cycle was one of a run
        ("term", "i8"),  # instructions - target, in that cycle
        ("sum", "i8"),  # of the run's cycles
        ("low", "i8"),  # cycles on end in which it has been below the limit
        ("left", "i8"),  # cycles alone, after this one
    ]
)
FRACTION = IPC.fraction


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.running = state.term = state.sum = state.low = state.left = 0


@inline
def _term(io):
    return (i64(io.i.issued) << FRACTION) - i64(io.i.target)


@inline
def _counts(io):
    return i64(io.i.run & ~io.i.clear & 1)


@inline
def _limit(state):
    """What the sum must be below."""
    return -(i64(state.limit) << FRACTION)


@jit
def step(state, io):
    """One clock edge."""
    state.running = _counts(io)
    state.term = _term(io)
    io.o.profile = 0
    if io.i.clear != 0:
        io.o.alone = 0
        state.sum = state.low = state.left = 0
    elif io.o.alone != 0:
        if state.left == 0:
            io.o.alone = 0
            io.o.profile = 1
        else:
            state.left -= 1
        state.sum = state.low = 0
    elif io.i.run == 0:
        state.sum = state.low = 0
    else:
        state.low = state.low + 1 if state.sum < _limit(state) else i64(0)
        state.sum += state.term
        if state.low == state.duration:
            state.low = 0
            io.o.alone = 1
            state.left = state.time - 1
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held; fewer, where the sum passes the limit meanwhile."""
    if io.o.profile != 0 or _counts(io) != state.running or state.term != _term(io):
        return i64(0)
    if io.i.clear != 0:
        return i64(NEVER) if io.o.alone == 0 and state.sum == 0 and state.low == 0 else i64(0)
    if io.o.alone != 0:
        return i64(state.left) if state.sum == 0 and state.low == 0 else i64(0)
    if io.i.run == 0:
        return i64(NEVER)
    above = state.sum - _limit(state)
    if above >= 0:
        if state.low != 0:
            return i64(0)
        return above // -state.term if state.term < 0 else i64(NEVER)
    left = i64(state.duration - 1 - state.low)
    return min(left, (-above - 1) // state.term + 1) if state.term > 0 else left


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.left != 0:
        state.left -= steps
    elif state.running != 0:
        if state.sum < _limit(state):
            state.low += steps
        state.sum += state.term * steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
