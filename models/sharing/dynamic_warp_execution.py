"""Golden model of ``rtl/sharing/dynamic_warp_execution.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.spec.sharing.parameters import CERTAIN, LFSR_BITS, LFSR_START, LFSR_STATES

PORTS = ports("sharing.dynamic_warp_execution")
STATE = record(
    [
        ("window", "i8"),  # parameter
        ("cycle", "i8"),  # of the window
        ("count", "i8"),  # stalls of the window in the cycles before
        ("begins", "i8"),  # the first cycle of a window that another one came before
        ("lfsr", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    io.o.probability = CERTAIN
    io.o.allow = 1
    state.cycle = state.count = state.begins = 0
    state.lfsr = LFSR_START


@inline
def _throttles(io):
    """Whether non-owner warps are held back if the draws say so."""
    return io.i.active != 0 and io.i.first == 0


@inline
def _draws(io):
    """Whether a number of the LFSR decides."""
    return _throttles(io) and 0 < io.o.probability < CERTAIN


@inline
def _allows(state, io):
    """What ``allow`` is in the next cycle."""
    if io.i.active == 0:
        return i64(1)
    if io.i.first != 0:
        return i64(0)
    return i64(state.lfsr <= LFSR_STATES * i64(io.o.probability) // CERTAIN)


@inline
def _shifted(lfsr):
    """The LFSR after one shift."""
    return (lfsr << 1 & LFSR_STATES) | ((lfsr >> 9 ^ lfsr >> 6) & 1)


@jit
def step(state, io):
    """One clock edge."""
    io.o.allow = _allows(state, io)
    if _draws(io):
        for _ in range(LFSR_BITS):
            state.lfsr = _shifted(state.lfsr)
    if state.begins != 0 and _throttles(io):
        if io.o.stalls > io.i.baseline:
            io.o.probability = max(i64(io.o.probability) - 1, 0)
        elif io.o.stalls < io.i.baseline:
            io.o.probability = min(i64(io.o.probability) + 1, CERTAIN)
    state.count += i64(io.i.stall)
    state.cycle += 1
    state.begins = state.cycle == state.window
    if state.begins != 0:
        io.o.stalls = state.count
        state.cycle = state.count = 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port, and of the state only the cycle of the window, while these inputs are held."""
    if io.i.stall | state.begins != 0 or _draws(io) or io.o.allow != _allows(state, io):
        return i64(0)
    return state.window - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
