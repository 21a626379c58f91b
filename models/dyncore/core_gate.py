"""Golden model of ``rtl/dyncore/core_gate.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, jit, record, slots

PORTS = ports("dyncore.core_gate")
STATE = record(
    [
        ("sms", "i8"),  # parameters
        ("off", "i8"),
        ("window", "i8"),
        ("threshold", "i8"),
        ("cycle", "i8"),
        ("later", "i8"),  # 1: the window is not the very first one
        ("sum", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.cycle = state.later = state.sum = 0


@jit
def step(state, io):
    """One clock edge."""
    if state.cycle < state.sms:
        state.sum += i64(io.i.active[state.cycle])
    elif state.cycle == state.sms:
        if state.later != 0 and io.o.off == 0:
            _decide(state, io)
        state.sum = 0
    state.cycle += 1
    if state.cycle == state.window:
        state.cycle = 0
        state.later = 1
    return i64(0)


@jit
def _decide(state, io):
    if io.o.drained != 0 and i64(io.i.busy[0]) | i64(io.i.busy[1]) == 0:
        io.o.off = 1
    elif state.sum < state.threshold:
        io.o.drained = 1
    elif state.sum > state.threshold:
        io.o.drained = 0


@jit
def idle(state, io):
    """Steps that change nothing but the cycle of the window, while these inputs are held."""
    if state.cycle <= state.sms:
        return i64(0)
    return state.window - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
