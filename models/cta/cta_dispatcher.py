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
        ("level", "i8"),  # the fewest CTAs of an SM with room, as far as it is followed
        ("question", "i8", (2,)),  # the SMs that the next CTA may go to
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


@inline
def _open(io, low, high):
    """Two words of SMs without the one served in this cycle, which has not told its room yet."""
    if io.o.dispatch.valid != 0:
        if io.o.dispatch.sm < 64:
            low &= ~i64(i64(1) << io.o.dispatch.sm)
        else:
            high &= ~i64(i64(1) << io.o.dispatch.sm - 64)
    return low, high


@jit
def _fewest(io, low, high):
    """The fewest CTAs of some SMs, which are not none, and those that have them."""
    fewest = i64(255)
    fewest_low = fewest_high = i64(0)
    while low | high != 0:
        sm = _lowest(low, high)
        if sm < 64:
            low = without_lowest(low)
        else:
            high = without_lowest(high)
        load = i64(io.i.load[sm])
        if load < fewest:
            fewest = load
            fewest_low = fewest_high = i64(0)
        if load == fewest and sm < 64:
            fewest_low = i64(fewest_low | i64(1) << sm)
        elif load == fewest:
            fewest_high = i64(fewest_high | i64(1) << sm - 64)
    return fewest, fewest_low, fewest_high


@jit
def _question(state, io):
    """The level and the SMs that come into question, after this clock edge."""
    if io.i.launch != 0:
        return i64(0), i64(0), i64(0)
    low, high = _open(io, i64(io.i.room[0]), i64(io.i.room[1]))
    if io.i.policy != LOAD_BALANCED or low | high == 0:
        return i64(state.level), low, high
    fewest, low, high = _fewest(io, low, high)
    if fewest == state.level:
        return fewest, low, high
    return i64(state.level) + (1 if fewest > state.level else -1), i64(0), i64(0)


@jit
def step(state, io):
    """One clock edge."""
    sm = i64(-1)
    level, question_low, question_high = _question(state, io)
    if io.i.launch != 0:
        state.next_cta = 0
        state.wait = 0
        state.last = MAX_SMS - 1
        io.o.remaining = io.i.ctas
    elif state.wait != 0:
        state.wait -= 1
    elif io.o.remaining != 0:
        low, high = _open(io, i64(state.question[0]), i64(state.question[1]))
        if low | high != 0:
            sm = _next(low, high, state.last)
    state.level = level
    state.question[0] = question_low
    state.question[1] = question_high
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
    level, low, high = _question(state, io)
    if level != state.level or low != state.question[0] or high != state.question[1]:
        return i64(0)
    if io.o.remaining == 0 or low | high == 0:
        return i64(NEVER)
    return state.wait


@jit
def skip(state, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""
    state.wait = max(state.wait - steps, 0)
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
