"""Golden model of ``rtl/scavenger/pid_controller.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.fixed import ERROR, GAIN, IPC, SHARE, WARPS

PORTS = ports("scavenger.pid_controller")
STATE = record(
    [
        ("most", "i8"),  # parameters
        ("interval", "i8"),
        ("proportional", "i8"),
        ("integral", "i8"),
        ("scale", "i8"),
        ("relative", "i8"),
        ("reciprocal", "i8"),
        ("running", "i8"),  # in the last cycle
        ("term", "i8"),  # target - instructions, in that cycle
        ("cycle", "i8"),  # of the beat
        ("error", "i8"),  # of the beat, summed
        ("left", "i8"),  # cycles until the allocation is ``next``; 0: there is none to come
        ("next", "i8"),
    ]
)
ONE, FULL = WARPS.one, SHARE.one  # of an allocation, of a slack
SIGN = 1 << ERROR.bits - 1
IPC_BITS, GAIN_BITS = IPC.fraction, GAIN.fraction
WEIGHT, RECIPROCAL = SHARE.bits, 2 * SHARE.fraction + 1  # bits


@jit
def reset(state, io):
    """The state and the outputs after reset: an allocation of 1."""
    state.running = state.term = 0
    _rest(state, io, i64(ONE))


@inline
def _rest(state, io, allocation):
    """No beat has begun."""
    state.cycle = state.error = state.left = state.next = 0
    _allocate(state, io, allocation)


@inline
def _allocate(state, io, allocation):
    io.o.allocation = allocation
    io.o.primary = allocation // ONE
    io.o.secondary = state.most - allocation // ONE


@inline
def _bits(number):
    count = i64(0)
    while number >> count != 0:
        count += 1
    return count


@inline
def _latency(state):
    """Two cycles for each bit of the larger gain, one for each bit of the weight, the divisor and the quotient."""
    gains = max(state.proportional * state.scale, state.integral * state.scale * state.interval, i64(1))
    weight = i64(RECIPROCAL if state.reciprocal != 0 else WEIGHT)
    divisor = _bits(i64(state.interval)) if state.relative | state.reciprocal != 0 else i64(0)
    return 2 * _bits(gains) + weight + divisor + max(_bits((state.most - 1) * ONE), i64(1)) + 5


@inline
def _changed(state, io):
    """The allocation after a beat: a fraction of integers, rounded once."""
    long_term, slack = (i64(io.i.long_term) ^ SIGN) - SIGN, min(i64(io.i.slack), i64(FULL))
    allocation = i64(io.o.allocation)
    # scale * (Kp * e_s + Ki * e_l), times the interval.
    sum = state.scale * (state.proportional * state.error + state.integral * state.interval * long_term)
    numerator, denominator = abs(sum), state.interval << IPC_BITS + GAIN_BITS
    if sum < 0:
        numerator *= slack
    elif state.reciprocal != 0:
        numerator *= FULL * FULL
        denominator *= max(slack, i64(1))
    else:
        numerator *= FULL - slack
    if state.relative != 0:
        denominator = (denominator >> IPC_BITS) * i64(io.i.target)
    change = (2 * numerator + denominator) // (2 * denominator)
    if sum < 0:
        return max(allocation - change, i64(ONE))
    return min(allocation + change, state.most * ONE)


@jit
def step(state, io):
    """One clock edge."""
    state.running = io.i.run
    state.term = _term(io)
    if io.i.run == 0:
        _rest(state, io, i64(io.i.first) * ONE)
        return i64(0)
    if state.left != 0:
        state.left -= 1
        if state.left == 0:
            _allocate(state, io, i64(state.next))
    state.error += state.term
    state.cycle += 1
    if state.cycle == state.interval:
        state.next = _changed(state, io)
        state.left = _latency(state) - 1
        state.cycle = state.error = 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held, up to the last cycle of a beat."""
    if io.i.run == 0:
        rests = state.running == 0 and io.o.allocation == io.i.first * ONE
        return i64(NEVER) if rests and state.term == _term(io) else i64(0)
    if state.running == 0 or state.term != _term(io):
        return i64(0)
    left = i64(state.interval - 1 - state.cycle)
    return min(left, state.left - 1) if state.left != 0 else left


@inline
def _term(io):
    return i64(io.i.target) - (i64(io.i.issued) << IPC_BITS)


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.running != 0:
        state.error += state.term * steps
        state.cycle += steps
        if state.left != 0:
            state.left -= steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
