"""Golden model of ``rtl/dyncore/activity_counter.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, jit, record, slots

PORTS = ports("dyncore.activity_counter")
STATE = record(
    [
        ("window", "i8"),  # parameter
        ("cycle", "i8"),
        ("so_far", "i8"),  # of this window
        ("was_active", "i8"),  # a cycle ago
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.cycle = state.so_far = state.was_active = 0


@jit
def step(state, io):
    """One clock edge."""
    state.so_far += state.was_active
    state.was_active = io.i.active
    state.cycle += 1
    if state.cycle == state.window:
        io.o.count = state.so_far
        state.cycle = state.so_far = 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while this input is held: up to the end of the window."""
    if io.i.active != state.was_active:
        return i64(0)
    return state.window - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    state.so_far += i64(state.was_active) * steps
    state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
