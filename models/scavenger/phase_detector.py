"""Golden model of ``rtl/scavenger/phase_detector.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.fixed import MARGIN, MEAN
from lockstep.spec.scavenger.prediction import DISTANCE_BITS, RANGE_BITS, SMALLS, Reason

PORTS = ports("scavenger.phase_detector")
PARTS, STATISTICS = SMALLS + 1, 2
STATE = record(
    [
        ("maximum", "i8"),  # parameters
        ("interval", "i8"),
        ("above", "i8"),
        ("longest", "i8"),
        ("lanes", "i8"),
        ("requests", "i8"),
        ("share", "i8"),
        ("amounts", "i8", (STATISTICS, PARTS)),  # of a profile's intervals
        ("counts", "i8", (STATISTICS, PARTS)),
        ("least", "i8", (STATISTICS,)),  # what a run's mean may be, in 256ths
        ("most", "i8", (STATISTICS,)),
        ("known", "i8", (STATISTICS,)),
        ("limit", "i8"),  # of a distance, of 64K
        ("profiled", "i8"),  # a cycle ago
        ("over", "i8"),  # 1: the profile was stable
        ("left", "i8"),  # cycles until its means are known
        ("ready", "i8"),
        ("waits", "i8"),  # 1: its distance is to be divided
        ("difference", "i8"),
        ("total", "i8"),
        ("left_limit", "i8"),  # cycles until the limit is known
        ("cycle", "i8"),  # of the run
        ("armed", "i8"),  # 1: it is as long as its profile was
        ("ended", "i8"),
        ("compared", "i8"),  # 1: a window's distance waits
        ("window_difference", "i8"),
        ("window_total", "i8"),
        ("taken", "i8"),  # 1: it is compared
        ("taken_difference", "i8"),
        ("taken_total", "i8"),
        ("window_amount", "i8", (STATISTICS,)),
        ("window_count", "i8", (STATISTICS,)),
        ("outside", "i8", (STATISTICS,)),  # comparisons in a row
        ("beat", "i8"),  # of the interval
        ("step", "i8"),  # cycles since the last interval ended; 0: nothing is compared
    ]
)
UNIT, WHOLE, LARGER = MEAN.one, MARGIN.one, MARGIN.code(1.1)
PCS, LENGTH = int(Reason.PCS), int(Reason.LENGTH)
STEPS = DISTANCE_BITS + 2  # of a comparison
DIVISION = RANGE_BITS + 2 + 2  # cycles
BOUNDS = 2  # further ones after the last division


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    _discard(state)
    for s in range(STATISTICS):
        state.least[s] = state.most[s] = state.known[s] = state.window_amount[s] = state.window_count[s] = 0
    state.profiled = state.over = state.difference = state.total = 0
    state.window_difference = state.window_total = state.taken = state.taken_difference = state.taken_total = 0
    _rest(state)


@jit
def _discard(state):
    """The counts of a profile."""
    for s in range(STATISTICS):
        for k in range(PARTS):
            state.amounts[s, k] = state.counts[s, k] = 0
    state.left = state.left_limit = state.ready = state.waits = 0
    state.limit = state.share


@jit
def _rest(state):
    """No run."""
    state.cycle = state.armed = state.ended = state.compared = state.beat = state.step = 0
    for s in range(STATISTICS):
        state.outside[s] = 0


@inline
def _rounded(numerator, denominator):
    """To the nearest integer."""
    return (2 * numerator + denominator) // (2 * denominator)


@inline
def _margin(difference):
    """A difference, and a tenth more."""
    return _rounded(i64(difference) * LARGER, i64(WHOLE))


@jit
def _bounds(state):
    """From the means of a profile to what a run's may be."""
    for s in range(STATISTICS):
        amount, count = i64(0), i64(0)
        for k in range(1, PARTS):
            amount += state.amounts[s, k]
            count += state.counts[s, k]
        first_amount, first_count = i64(state.amounts[s, 0]), i64(state.counts[s, 0])
        threshold = i64(state.lanes if s == 0 else state.requests) * UNIT
        if count != 0 and first_count != 0:
            one, other = _rounded(first_amount * UNIT, first_count), _rounded(amount * UNIT, count)
            threshold = max(threshold, _margin(abs(one - other)))
        amount += first_amount
        count += first_count
        state.known[s] = count != 0
        mean = _rounded(amount * UNIT, max(count, i64(1)))
        state.least[s] = max(mean - threshold, i64(0))
        state.most[s] = mean + threshold


@jit
def _divide(state, io):
    """A cycle of the divider."""
    if state.left != 0:
        state.left -= 1
        if state.left == 0:
            _bounds(state)
            state.ready = 1
    elif state.left_limit != 0:
        state.left_limit -= 1
        if state.left_limit == 0 and state.total != 0:
            share = _margin(_rounded(i64(state.difference) << RANGE_BITS, i64(state.total)))
            state.limit = max(i64(state.share), share)
    elif state.waits != 0 and state.ready != 0:
        state.waits = 0
        state.left_limit = DIVISION + BOUNDS + 1


@jit
def _count(state, io, s, amount, count):
    """What a cycle adds to a statistic."""
    part = i64(io.i.part)
    state.amounts[s, part] += amount
    state.counts[s, part] += count
    if io.i.joining.valid != 0:
        k = i64(io.i.joining.payload) + 1
        state.amounts[s, 0] += state.amounts[s, k]
        state.counts[s, 0] += state.counts[s, k]
        state.amounts[s, k] = state.counts[s, k] = 0


@jit
def _profile(state, io):
    """A cycle of a profile."""
    i = io.i
    if i.profile != 0 and state.profiled == 0:
        _discard(state)
    counting = i.profile != 0 and state.over == 0
    if counting and i.restart != 0:
        _discard(state)
    elif counting:
        _count(state, io, 0, i64(i.lanes), i64(i.instructions))
        _count(state, io, 1, i64(i.requests), i64(i.memory_instructions))
        if i.stable != 0:
            state.left = STATISTICS * (3 * DIVISION + BOUNDS + 1)
    state.over = i.profile != 0 and (state.over != 0 or i.stable != 0)
    state.profiled = i.profile


@inline
def _far(state, s):
    """Whether a mean of the run is outside."""
    amount, count = i64(state.window_amount[s]) * UNIT, i64(state.window_count[s])
    if state.armed == 0 or state.known[s] == 0 or count == 0:
        return False
    return amount > count * state.most[s] or amount < count * state.least[s]


@inline
def _end(state, io, reason):
    state.ended = 1
    io.o.ends.valid = 1
    io.o.ends.payload = reason


@jit
def _decide(state, io):
    """What has been compared, if anything is decided in this cycle."""
    for s in range(STATISTICS):
        if state.step == STEPS * (s + 1):
            far = _far(state, s)
            state.outside[s] = state.outside[s] + 1 if far else i64(0)
            if state.outside[s] == state.above:
                _end(state, io, s)
    if state.step == 2 * STEPS + 1:
        state.taken, state.compared = state.compared, i64(0)
        state.taken_difference, state.taken_total = state.window_difference, state.window_total
    if state.step == 3 * STEPS:
        far = (i64(state.taken_difference) << RANGE_BITS) > i64(state.limit) * state.taken_total
        if far and state.taken != 0 and state.armed != 0:
            _end(state, io, PCS)
        state.step = 0


@jit
def _run(state, io):
    """A cycle of a run."""
    i = io.i
    if state.ended != 0:
        return
    if state.step != 0:
        _decide(state, io)
        if state.step != 0:
            state.step += 1
    state.beat += 1
    if state.beat == state.interval:
        state.beat = 0
        state.step = 1
        divided = state.ready != 0 and state.left == 0 and state.left_limit == 0 and state.waits == 0
        state.armed = divided and state.cycle + 1 >= 8 * i64(i.cycles)
        state.window_amount[0], state.window_count[0] = i64(i.window_lanes), i64(i.window_instructions)
        state.window_amount[1], state.window_count[1] = i64(i.window_requests), i64(i.window_memory_instructions)
    if i.distance.valid != 0 and i.distance.payload.run != 0:
        state.compared = 1
        state.window_difference = i.distance.payload.difference
        state.window_total = i.distance.payload.total
    if state.cycle == state.longest - 1:
        _end(state, io, LENGTH)
    state.cycle += 1


@jit
def step(state, io):
    """One clock edge."""
    i = io.i
    io.o.ends.valid = 0
    if i.run != 0:
        _run(state, io)
    else:
        _rest(state)
    _divide(state, io)
    if i.distance.valid != 0 and i.distance.payload.run == 0:
        state.waits = 1
        state.difference, state.total = i.distance.payload.difference, i.distance.payload.total
    _profile(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held: none where anything is counted, divided or compared."""
    i = io.i
    if i.profile != state.profiled or i.distance.valid != 0 or io.o.ends.valid != 0:
        return i64(0)
    if state.left != 0 or state.left_limit != 0 or (state.waits != 0 and state.ready != 0):
        return i64(0)
    if i.profile != 0 and state.over == 0:
        return i64(0)
    if i.run == 0:
        return i64(NEVER) if state.cycle == 0 and state.beat == 0 else i64(0)
    if state.ended != 0:
        return i64(NEVER)
    if state.step != 0 or state.cycle == 0:
        return i64(0)
    return max(i64(0), min(state.interval - 1 - state.beat, state.longest - 1 - state.cycle))


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.cycle != 0 and state.ended == 0:
        state.cycle += steps
        state.beat += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
