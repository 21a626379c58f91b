"""Golden model of ``rtl/warppool/load_store_order.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import ctz, i64, jit, record, slots, without_lowest
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS

PORTS = ports("warppool.load_store_order")
STATE = record(
    [
        ("count", "i8", (MAX_WARPS,)),  # by warp: its instructions and requests under way
        ("change", "i8", (MAX_WARPS,)),  # by warp: of its count, by the lines of the cycle before
        ("changes", "i8"),  # warps with lines in the cycle before
        ("busy", "i8"),  # warps whose count is not 0
        ("loads", "i8"),  # warps whose last instruction was a load
        ("warps", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
        ("merges", "i8"),  # parameter
    ]
)


@jit
def _present(state, io):
    every = i64(-2) << state.warps - 1  # inverted; the warps may be as many as the bits
    io.o.drained = i64(~(state.busy | every))
    io.o.load_ready = i64(~(state.busy & ~state.loads | every))


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    for warp in range(state.warps):
        state.count[warp] = 0
        state.change[warp] = 0
    state.changes = 0
    state.busy = 0
    state.loads = 0
    _present(state, io)


@jit
def _count(state, enter):
    """What enters counts at once, lines a cycle late."""
    touched = i64(state.changes | enter)
    while touched != 0:
        warp = ctz(touched)
        bit = i64(1) << warp
        touched = without_lowest(touched)
        state.count[warp] += state.change[warp] + i64(enter & bit != 0)
        state.change[warp] = 0
        state.busy = state.busy & ~bit if state.count[warp] == 0 else state.busy | bit
    state.changes = 0


@jit
def _change(state, warp, by):
    state.change[warp] += by
    state.changes |= i64(1) << warp


@jit
def step(state, io):
    """One clock edge."""
    enter = i64(io.i.enter)
    if enter != 0:
        state.loads = state.loads & ~enter | i64(io.i.enter_load)
    if state.changes | enter != 0:
        _count(state, enter)
        _present(state, io)
    for port in range(state.coalescers):
        line = io.i.line[port].payload
        if io.i.line[port].valid & io.i.line[port].ready & ~line.last & 1 != 0:
            _change(state, i64(line.warp), i64(1))
    if io.i.access.valid & io.i.access.ready != 0:
        access = io.i.access.payload
        if access.store | access.atomic == 0:
            for index in range(i64(access.count)):
                _change(state, i64(access.warps[index]), i64(-1))
        elif access.last != 0:
            _change(state, i64(access.warps[0]), i64(-1))
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held. What is transferred counts as work, whatever it is."""
    work = state.changes | i64(io.i.enter) | (io.i.access.valid & io.i.access.ready)
    for port in range(state.coalescers):
        work |= io.i.line[port].valid & io.i.line[port].ready
    return i64(0) if work != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
