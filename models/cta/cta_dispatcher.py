"""Golden model of ``rtl/cta/cta_dispatcher.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, ctz, i64, inline, jit, record, slots, without_lowest
from lockstep.models.time import NEVER
from lockstep.spec.parameters import DISPATCHERS, MAX_SMS

LOAD_BALANCED = DISPATCHERS.index("load-balanced")

PORTS = ports("cta.cta_dispatcher")
STATE = record(
    [
        ("next_cta", "i8"),  # number of the next CTA
        ("wait", "i8"),  # cycles until the interval is over
        ("last", "i8"),  # SM served last
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(state)
    clear(io.o)
    state.last = MAX_SMS - 1


@inline
def _lowest(low, high):
    """The lowest bit of two words, not both empty."""
    return ctz(low) if low != 0 else 64 + ctz(high)


@inline
def _next(low, high, last):
    """The first bit of two words, not both empty, after ``last``, circularly."""
    later_low = low & i64(i64(-2) << last) if last < 64 else i64(0)
    later_high = high if last < 64 else high & i64(i64(-2) << last - 64)
    if later_low | later_high != 0:
        return _lowest(later_low, later_high)
    return _lowest(low, high)


@jit
def _choose(io, last):
    """The SM for the next CTA; -1 when none has room. The SM served in this cycle has not told its room yet."""
    low, high = i64(io.i.room[0]), i64(io.i.room[1])
    if io.o.dispatch.valid != 0:
        if last < 64:
            low &= ~i64(i64(1) << last)
        else:
            high &= ~i64(i64(1) << last - 64)
    if low | high == 0:
        return i64(-1)
    if io.i.policy == LOAD_BALANCED:
        least = i64(255)
        least_low = least_high = i64(0)
        while low | high != 0:
            sm = _lowest(low, high)
            if sm < 64:
                low = without_lowest(low)
            else:
                high = without_lowest(high)
            load = i64(io.i.load[sm])
            if load < least:
                least = load
                least_low = least_high = i64(0)
            if load == least and sm < 64:
                least_low = i64(least_low | i64(1) << sm)
            elif load == least:
                least_high = i64(least_high | i64(1) << sm - 64)
        low, high = least_low, least_high
    return _next(low, high, last)


@jit
def step(state, io):
    """One clock edge."""
    sm = i64(-1)
    if io.i.launch != 0:
        state.next_cta = 0
        state.wait = 0
        state.last = MAX_SMS - 1
        io.o.remaining = io.i.ctas
    elif state.wait != 0:
        state.wait -= 1
    elif io.o.remaining != 0:
        sm = _choose(io, state.last)
    io.o.dispatch.valid = sm >= 0
    if sm >= 0:
        io.o.dispatch.sm = sm
        io.o.dispatch.cta = state.next_cta
        io.o.remaining -= 1
        state.next_cta += 1
        state.wait = i64(io.i.interval) - 1
        state.last = sm
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing but the wait, while these inputs are held."""
    if io.i.launch != 0 or io.o.dispatch.valid != 0:
        return i64(0)
    if io.o.remaining == 0 or io.i.room[0] | io.i.room[1] == 0:
        return i64(NEVER)
    return state.wait


@jit
def skip(state, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""
    state.wait = max(state.wait - steps, 0)
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
