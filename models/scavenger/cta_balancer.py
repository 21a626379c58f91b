"""Golden model of ``rtl/scavenger/cta_balancer.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, popcount, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.control import MAX_PAIRS

PORTS = ports("scavenger.cta_balancer")
STATE = record(
    [
        ("warps", "i8"),  # parameters
        ("pairs", "i8"),
        ("window", "i8"),
        ("primary_slack", "i8"),
        ("secondary_slack", "i8"),
        ("carry", "i8"),
        ("primary", "i8", (MAX_PAIRS,)),  # the table
        ("secondary", "i8", (MAX_PAIRS,)),
        ("count", "i8"),
        ("running", "i8"),  # in the last cycle
        ("cycle", "i8"),
        ("busy", "i8"),  # warps that issued or started in this window
        ("rule", "i8"),  # of the last window
        ("carried", "i8"),  # quarters of warps
        ("left", "i8"),  # cycles until the outputs show this pair; 0: there is none to come
        ("next_primary", "i8"),
        ("next_secondary", "i8"),
    ]
)
NONE, STARVES, GIVES, RETURNS = range(4)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.count = 0
    state.running = 0
    _rest(state)


@inline
def _rest(state):
    state.cycle = state.busy = state.rule = state.carried = state.left = 0
    state.next_primary = state.next_secondary = 0


@jit
def _begin(state, io):
    """The pair with the most of the secondary's CTAs that are half of those it had at most, or else the fewest."""
    best, fewest = i64(-1), i64(-1)
    for k in range(state.count):
        few = 2 * state.secondary[k] <= i64(io.o.secondary)
        if few and (best < 0 or state.secondary[k] > state.secondary[best]):
            best = k
        if fewest < 0 or state.secondary[k] < state.secondary[fewest]:
            fewest = k
    if best < 0:
        best = fewest
    state.left = state.pairs + 5
    state.next_primary = state.primary[best] if best >= 0 else i64(0)
    state.next_secondary = state.secondary[best] if best >= 0 else i64(0)


@inline
def _rule(state, primary, secondary):
    """Which rule applies to both kernels' slack."""
    if primary < state.primary_slack:
        return STARVES
    if secondary < state.secondary_slack and primary > state.primary_slack:
        return GIVES
    return RETURNS if secondary > state.secondary_slack else NONE


@jit
def _decide(state, io, primary, secondary):
    """After a window: both kernels' slack says which pair is next."""
    rule = _rule(state, primary, secondary)
    budget = i64(0)  # quarters of warps
    if rule == GIVES or rule == RETURNS:
        excess = primary - state.primary_slack if rule == GIVES else secondary - state.secondary_slack
        budget = min(4 * excess, abs(primary - secondary))
        if rule == state.rule:
            budget += state.carried
    own = i64(io.o.secondary) if rule == GIVES else i64(io.o.primary)
    size = i64(io.i.secondary_warps) if rule == GIVES else i64(io.i.primary_warps)
    best, most = i64(-1), i64(0)
    for k in range(state.count):
        more = (state.secondary[k] if rule == GIVES else state.primary[k]) - own
        if more <= 0 or rule == NONE:
            continue
        if rule == STARVES:
            if best < 0 or more < most:
                best, most = i64(k), more
        elif 4 * more * size <= budget and more > most:
            best, most = i64(k), more
    state.left = state.pairs + 5
    state.next_primary = state.primary[best] if best >= 0 else i64(io.o.primary)
    state.next_secondary = state.secondary[best] if best >= 0 else i64(io.o.secondary)
    state.rule = rule
    state.carried = 0
    if state.carry != 0 and (rule == GIVES or rule == RETURNS):
        state.carried = min(budget - 4 * most * size, 4 * state.warps)


@jit
def step(state, io):
    """One clock edge."""
    if io.i.clear != 0:
        state.count = io.o.primary = io.o.secondary = 0
    elif io.i.load.valid != 0:
        state.primary[state.count] = io.i.load.payload.primary
        state.secondary[state.count] = io.i.load.payload.secondary
        state.count += 1
    io.o.shares = state.count != 0
    first = state.running == 0
    state.running = io.i.run
    if io.i.run == 0:
        _rest(state)
        return i64(0)
    if state.left != 0:
        state.left -= 1
        if state.left == 0:
            io.o.primary = state.next_primary
            io.o.secondary = state.next_secondary
    state.busy |= i64(io.i.issued) | i64(io.i.started)
    state.cycle += 1
    if state.cycle == state.window:
        primary, secondary = i64(io.i.primary_resident), i64(io.i.secondary_resident)
        _decide(state, io, popcount(primary & ~i64(state.busy)), popcount(secondary & ~i64(state.busy)))
        state.cycle = state.busy = 0
    elif first:
        _begin(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held, up to the last cycle of a window."""
    if io.i.clear | io.i.load.valid != 0 or io.i.run != state.running:
        return i64(0)
    if io.i.run == 0:
        return i64(NEVER)
    if (i64(io.i.issued) | i64(io.i.started)) & ~i64(state.busy) != 0:
        return i64(0)
    left = i64(state.window - 1 - state.cycle)
    return min(left, state.left - 1) if state.left != 0 else left


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.running != 0:
        state.cycle += steps
        if state.left != 0:
            state.left -= steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
