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
    state.busy = 0
    state.loads = 0
    _present(state, io)


@jit
def _more(state, warp):
    state.count[warp] += 1
    state.busy |= i64(1) << warp


@jit
def _less(state, warp):
    state.count[warp] -= 1
    if state.count[warp] == 0:
        state.busy &= ~(i64(1) << warp)


@jit
def step(state, io):
    """One clock edge. Counters rise before they fall."""
    changed = False
    enter = i64(io.i.enter)
    if enter != 0:
        state.loads = state.loads & ~enter | i64(io.i.enter_load)
        while enter != 0:
            _more(state, ctz(enter))
            enter = without_lowest(enter)
        changed = True
    for port in range(state.coalescers):
        line = io.i.line[port].payload
        if io.i.line[port].valid & io.i.line[port].ready & ~line.last & 1 != 0:
            _more(state, i64(line.warp))
            changed = True
    if io.i.access.valid & io.i.access.ready != 0:
        access = io.i.access.payload
        if access.store | access.atomic == 0:
            for index in range(i64(access.count)):
                _less(state, i64(access.warps[index]))
        elif access.last != 0:
            _less(state, i64(access.warps[0]))
        changed = True
    if changed:
        _present(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held. What is transferred counts as work, whatever it is."""
    work = i64(io.i.enter) | (io.i.access.valid & io.i.access.ready)
    for port in range(state.coalescers):
        work |= io.i.line[port].valid & io.i.line[port].ready
    return i64(0) if work != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
