"""Golden model of ``rtl/sharing/share_access.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import ctz, i64, jit, record, slots, without_lowest
from lockstep.models.time import NEVER

PORTS = ports("sharing.share_access")
STATE = record([("lanes", "i8")])  # parameter; the block has no state


@jit
def reset(state, io):
    """The state and the outputs after reset: there are none that a reset could change."""


@jit
def comb(state, io):
    """The locks that this cycle's instruction needs."""
    io.c.register_lock = io.i.shared != 0 and io.i.names != 0 and io.i.highest >= io.i.own_registers
    beyond = False
    touched = i64(io.i.touched)
    while touched != 0:
        lane = ctz(touched)
        beyond = beyond or i64(io.i.address[lane]) + i64(io.i.size) > i64(io.i.own_bytes)
        touched = without_lowest(touched)
    io.c.scratchpad_lock = io.i.shared != 0 and beyond
    return i64(0)


@jit
def step(state, io):
    """One clock edge, which changes nothing."""
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held: all."""
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
