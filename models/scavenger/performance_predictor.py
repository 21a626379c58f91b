"""Golden model of ``rtl/scavenger/performance_predictor.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.fixed import IPC
from lockstep.spec.scavenger.prediction import BEAT, EIGHTHS, SMALLS

PORTS = ports("scavenger.performance_predictor")
STATE = record(
    [
        ("minimum", "i8"),  # parameters
        ("maximum", "i8"),
        ("tolerance", "i8"),
        ("comparisons", "i8"),
        ("stage", "i8"),
        ("cycle", "i8"),  # of the profile
        ("left", "i8"),  # cycles of an early interval, this one among them
        ("early", "i8"),  # 1: nothing has joined
        ("unit", "i8"),  # cycles of the oldest small interval
        ("train_cycles", "i8"),
        ("train", "i8"),  # instructions
        ("validate", "i8"),
        *((f"small_{k}", "i8") for k in range(SMALLS)),
        ("beat", "i8"),  # cycles since the last comparison
        ("equal", "i8"),  # 1: the halves agreed then
        ("agreed", "i8"),  # comparisons in a row
        ("wait", "i8"),  # cycles up to what the stage waits for; of a comparison while counting
        ("issued", "i8"),  # instructions and cycles up to the last comparison
        ("cycles", "i8"),
        ("percent", "i8"),
    ]
)

COUNTING, PREDICTING, TARGETING, DONE = range(4)
HUNDRED = 100
FRACTION = IPC.fraction
# Cycles: a quotient has a bit more than the result and is then rounded; a percentage has seven bits.
PREDICTS = IPC.bits + 2
TARGETS = 7 + 1 + PREDICTS


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    state.stage = COUNTING
    state.issued = state.cycles = state.percent = 0
    _restart(state, io)


@inline
def _restart(state, io):
    """Discard all but the results."""
    state.cycle = state.train = state.validate = 0
    state.left = state.train_cycles = state.minimum // 2
    state.unit = state.minimum // EIGHTHS
    state.early = 1
    state.small_0 = state.small_1 = state.small_2 = state.small_3 = 0
    state.beat = state.equal = state.agreed = state.wait = 0
    io.o.part = io.o.joining.valid = io.o.joining.payload = io.o.restart = io.o.stable = 0


@inline
def _left(state):
    """Cycles of the interval, this one among them: it ends when both halves have equally many."""
    return i64(state.left) if state.early != 0 else 2 * i64(state.train_cycles) - state.cycle


@inline
def _small(state, k):
    """Instructions of a small interval."""
    if k < 2:
        return state.small_0 if k == 0 else state.small_1
    return state.small_2 if k == 2 else state.small_3


@inline
def _put(state, k, issued):
    """Set them."""
    if k == 0:
        state.small_0 = issued
    elif k == 1:
        state.small_1 = issued
    elif k == 2:
        state.small_2 = issued
    else:
        state.small_3 = issued


@jit
def _verdict(state):
    """Cycles from the last one that is compared to the result: two bits of the half with more cycles in each."""
    training, unit, ends, joined = i64(state.minimum) // 2, i64(state.minimum) // EIGHTHS, i64(state.minimum), 0
    while ends < state.maximum:
        training += unit
        ends += 2 * unit
        joined += 1
        if joined % SMALLS == 0:
            unit *= 2
    most = max(training, i64(state.maximum) - training)
    cycles = i64(5)
    while most != 0:
        most >>= 2
        cycles += 1
    return cycles


@inline
def _compare(state):
    """Both halves, at the end of this cycle."""
    train_cycles, train, validate = i64(state.train_cycles), i64(state.train), i64(state.validate)
    state.cycles = state.cycle
    state.issued = train + validate
    one, other = train * (state.cycle - train_cycles), validate * train_cycles
    state.equal = abs(one - other) * 1000 < i64(state.tolerance) * one
    state.wait = _verdict(state)


@jit
def _count(state, io):
    """A cycle of the profile."""
    part = i64(io.o.part)
    if part == 0:
        state.train += i64(io.i.issued)
    else:
        state.validate += i64(io.i.issued)
        _put(state, part - 1, i64(_small(state, part - 1)) + i64(io.i.issued))
    ends = _left(state) == 1
    state.cycle += 1
    state.left -= state.early
    if state.wait != 0:
        state.wait -= 1
        if state.wait == 0:
            state.agreed = state.agreed + 1 if state.equal != 0 else i64(0)
    if state.early == 0:
        state.beat += 1
    joins = ends and (state.early == 0 or part == SMALLS)
    if state.beat == BEAT or (joins and state.early != 0):
        state.beat = 0
        _compare(state)
    if not ends:
        return
    io.o.part = part % SMALLS + 1
    state.left = state.unit
    if joins:
        oldest = part % SMALLS
        issued = i64(_small(state, oldest))
        state.train += issued
        state.validate -= issued
        _put(state, oldest, i64(0))
        state.train_cycles += state.unit
        state.early = 0
        if oldest == SMALLS - 1:
            state.unit *= 2


@inline
def _show(state, io):
    """What the next cycle is."""
    o = io.o
    o.stable = state.wait == 1 and state.equal != 0 and state.agreed == state.comparisons - 1
    o.restart = state.cycle == state.maximum - 1 and o.stable == 0
    joins = _left(state) == 1 and (state.early == 0 or o.part == SMALLS) and o.restart == 0 and o.stable == 0
    o.joining.valid = joins
    o.joining.payload = o.part % SMALLS if joins else 0


@inline
def _rounded(numerator, denominator):
    """To the nearest integer."""
    return (2 * numerator + denominator) // (2 * denominator)


@jit
def step(state, io):
    """One clock edge."""
    o = io.o
    if io.i.profile == 0:
        state.stage = COUNTING
        o.done = 0
        _restart(state, io)
    elif state.stage == COUNTING:
        if o.stable != 0:
            state.percent = io.i.percent
            o.cycles = state.cycles // EIGHTHS
            _restart(state, io)
            state.stage = PREDICTING
            state.wait = PREDICTS
        elif o.restart != 0:
            _restart(state, io)
        else:
            _count(state, io)
            _show(state, io)
    elif state.stage != DONE:
        state.wait -= 1
        if state.wait == 0:
            _result(state, io)
    return i64(0)


@inline
def _result(state, io):
    """The prediction, and then the target."""
    if state.stage == PREDICTING:
        io.o.predicted = _rounded(i64(state.issued) << FRACTION, i64(state.cycles))
        state.stage = TARGETING
        state.wait = TARGETS
    else:
        io.o.target = _rounded(i64(state.percent) * i64(io.o.predicted), i64(HUNDRED))
        io.o.done = 1
        state.stage = DONE


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held: without an instruction, up to what happens next."""
    if io.i.profile == 0:
        return i64(NEVER) if state.stage == COUNTING and state.cycle == 0 else i64(0)
    if state.stage == DONE:
        return i64(NEVER)
    if state.stage != COUNTING or state.cycle == 0 or state.wait != 0 or io.i.issued != 0:
        return i64(0)
    ahead = min(_left(state) - 2, i64(state.maximum) - 2 - state.cycle)
    if state.early == 0:
        ahead = min(ahead, BEAT - 1 - state.beat)
    return max(ahead, i64(0))


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.stage == COUNTING and state.cycle != 0:
        state.cycle += steps
        state.left -= steps * state.early
        state.beat += steps * (1 - i64(state.early))
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
