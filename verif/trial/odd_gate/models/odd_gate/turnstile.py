"""Golden model of ``rtl/odd_gate/turnstile.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import i64, jit, record, slots
from lockstep.models.time import NEVER

PORTS = ports("odd_gate.turnstile")
STATE = record([("period", "i8"), ("phase", "i8")])


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    state.phase = 0
    io.o.open = 1


@jit
def comb(state, io):
    """The slots that are held back in this cycle."""
    io.c.closed = 0 if io.o.open != 0 else i64(io.i.slots)
    return i64(0)


@jit
def step(state, io):
    """One clock edge."""
    state.phase = (state.phase + 1) % state.period
    io.o.open = state.phase == 0
    return i64(0)


@jit
def idle(state, io):
    """Steps, after :func:`comb` and with these inputs held, that change no output."""
    if state.period == 1:
        return i64(NEVER)
    return i64(0) if state.phase == 0 else i64(state.period - 1 - state.phase)


@jit
def skip(state, steps):
    """The same as that many idle steps."""
    state.phase = (state.phase + steps) % state.period
    return i64(0)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle, skip=skip)
