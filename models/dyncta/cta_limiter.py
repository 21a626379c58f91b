"""Golden model of ``rtl/dyncta/cta_limiter.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, ctz, i64, inline, jit, record, slots, without_lowest
from lockstep.spec.dyncta.parameters import HALF, MOST, ONE
from lockstep.spec.parameters import MAX_CTAS

PORTS = ports("dyncta.cta_limiter")
STATE = record(
    [
        ("first", "i8"),  # parameters
        ("window", "i8"),
        ("idle_high", "i8"),
        ("memory_low", "i8"),
        ("memory_high", "i8"),
        ("resident", "i8"),  # places with a CTA
        ("number", "i8", (MAX_CTAS,)),  # by place: which CTA of the grid it was that came
        ("came", "i8"),  # CTAs in all
        ("most", "i8"),
        ("cycle", "i8"),  # of the window
        ("idles", "i8"),  # C_idle
        ("memories", "i8"),  # C_mem
        ("was_idle", "i8"),  # a cycle ago
        ("was_memory", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset: no CTA."""
    clear(io.o)
    state.resident = state.came = state.most = 0
    state.cycle = state.idles = state.memories = 0
    state.was_idle = state.was_memory = 0


@inline
def _first(state, most):
    """The limit at the launch of a grid."""
    if state.first == HALF:
        return max(most >> 1, i64(1))
    return i64(1) if state.first == ONE else most


@inline
def _decide(state, io):
    """The limit after a window."""
    limit = i64(io.o.limit)
    if state.idles >= state.idle_high or state.memories < state.memory_low:
        return min(limit + 1, i64(state.most))
    if state.memories >= state.memory_high:
        return limit - 1 if limit > 1 else limit
    return limit


@inline
def _count(state, cycles):
    """Count some cycles, of which the last one was as is remembered of a cycle ago."""
    most = i64(1)
    while most < min(i64(state.window) - 1, i64(MOST)):
        most = 2 * most + 1
    state.idles = min(i64(state.idles) + i64(state.was_idle) * cycles, most)
    state.memories = min(i64(state.memories) + i64(state.was_memory) * cycles, most)


@jit
def step(state, io):
    """One clock edge."""
    if io.i.launch != 0:
        reset(state, io)
        state.most = io.i.most
        io.o.limit = _first(state, i64(io.i.most))
        return i64(0)
    _count(state, i64(1))
    state.cycle += 1
    if state.cycle == state.window:
        io.o.limit = _decide(state, io)
        state.cycle = state.idles = state.memories = 0
    state.was_idle = io.i.idle
    state.was_memory = io.i.memory
    state.resident = i64(state.resident) & ~i64(io.i.finish) | i64(io.i.start)
    starts = i64(io.i.start)
    while starts != 0:
        state.number[ctz(starts)] = state.came
        state.came += 1
        starts = without_lowest(starts)
    io.o.paused = _beyond(state, i64(io.o.limit))
    return i64(0)


@inline
def _beyond(state, limit):
    """The places of all but the ``limit`` CTAs that came first."""
    beyond = i64(state.resident)
    for _ in range(limit):
        first, left = i64(-1), beyond
        while left != 0:
            place = ctz(left)
            left = without_lowest(left)
            if first < 0 or state.number[place] < state.number[first]:
                first = place
        if first < 0:
            return i64(0)
        beyond &= ~(i64(1) << first)
    return beyond


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held: up to the end of the window."""
    if io.i.launch | io.i.start | io.i.finish != 0:
        return i64(0)
    if io.i.idle != state.was_idle or io.i.memory != state.was_memory:
        return i64(0)
    return state.window - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    _count(state, i64(steps))
    state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
