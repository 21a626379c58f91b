"""Golden model of ``rtl/scavenger/pc_histogram.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.prediction import BUCKETS, EIGHTHS, SMALLS

PORTS = ports("scavenger.pc_histogram")
_COUNTS = ("i8", (BUCKETS,))
STATE = record(
    [
        ("buckets", "i8"),  # parameters
        ("minimum", "i8"),
        ("maximum", "i8"),
        ("window", "i8"),
        ("large_bits", "i8"),
        ("small_bits", "i8"),
        ("training", *_COUNTS),
        *((f"interval_{k}", *_COUNTS) for k in range(SMALLS)),
        ("running", *_COUNTS),
        ("training_total", "i8"),
        *((f"interval_total_{k}", "i8") for k in range(SMALLS)),
        ("running_total", "i8"),
        ("frozen", "i8"),  # a bit for each small one
        ("profiled", "i8"),  # in the last cycle
        ("over", "i8"),  # 1: the profile was stable
        ("counted", "i8"),  # 1: a sample, in the last cycle
        ("cycle", "i8"),  # of the window
        ("wanted", "i8"),  # 1: the distance of a profile
        ("comparing", "i8"),  # HALVES or WINDOW, or NOTHING
        ("left", "i8"),  # cycles in which nothing is counted
    ]
)
NOTHING, HALVES, WINDOW = range(3)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    _clear(state)
    state.profiled = state.over = state.counted = state.cycle = state.wanted = state.comparing = state.left = 0


@inline
def _small(state, k):
    """The buckets of a small histogram."""
    if k < 2:
        return state.interval_0 if k == 0 else state.interval_1
    return state.interval_2 if k == 2 else state.interval_3


@inline
def _total(state, k):
    if k < 2:
        return state.interval_total_0 if k == 0 else state.interval_total_1
    return state.interval_total_2 if k == 2 else state.interval_total_3


@inline
def _add(state, k, count):
    """To the total of a small histogram."""
    if k == 0:
        state.interval_total_0 += count
    elif k == 1:
        state.interval_total_1 += count
    elif k == 2:
        state.interval_total_2 += count
    else:
        state.interval_total_3 += count


@jit
def _clear(state):
    """All histograms."""
    for b in range(BUCKETS):
        state.training[b] = state.running[b] = 0
        state.interval_0[b] = state.interval_1[b] = state.interval_2[b] = state.interval_3[b] = 0
    state.training_total = state.running_total = state.frozen = 0
    state.interval_total_0 = state.interval_total_1 = state.interval_total_2 = state.interval_total_3 = 0


@jit
def _join(state, k):
    """Add a small histogram to the large one."""
    small = _small(state, k)
    for b in range(BUCKETS):
        state.training[b] += small[b]
        small[b] = 0
    total = i64(_total(state, k))
    state.training_total += total
    _add(state, k, -total)
    state.frozen &= ~(1 << k)


@jit
def _sample(state, io):
    """Count an instruction."""
    bucket = i64(io.i.sample.payload)
    if io.i.run != 0:
        state.running[bucket] += 1
        state.running_total += 1
    elif io.i.part == 0:
        state.training[bucket] += 1
        state.training_total += 1
    else:
        k = i64(io.i.part) - 1
        if state.frozen >> k & 1 == 0:
            small = _small(state, k)
            small[bucket] += 1
            _add(state, k, i64(1))
            if small[bucket] == (i64(1) << state.small_bits) - 1:
                state.frozen |= 1 << k


@jit
def _latency(state):
    """Cycles of a comparison: a step for each bit of a total, one for each bucket, and nine."""
    training, unit = i64(state.minimum) // 2, i64(state.minimum) // EIGHTHS
    ends, joined = i64(state.minimum), 0
    while ends < state.maximum:
        training += unit
        ends += 2 * unit
        joined += 1
        if joined % SMALLS == 0:
            unit *= 2
    most = max(training, i64(state.maximum) - training, i64(state.window))
    cycles = i64(state.buckets) + 9
    while most != 0:
        most >>= 1
        cycles += 1
    return cycles


@jit
def _distance(state, io):
    """The result of a comparison."""
    distance = io.o.distance
    distance.valid = 1
    distance.payload.run = state.comparing == WINDOW
    training, other = i64(state.training_total), i64(state.running_total)
    if state.comparing == HALVES:
        other = i64(0)
        for k in range(SMALLS):
            other += _total(state, k)
    shift_training = shift_other = i64(0)
    difference = i64(0)
    if training != 0 and other != 0:
        while 16 * training >= 23 * (other << shift_other):
            shift_other += 1
        if shift_other == 0:
            while 16 * other >= 23 * (training << shift_training):
                shift_training += 1
        training <<= shift_training
        other <<= shift_other
        for b in range(state.buckets):
            count = i64(state.running[b])
            if state.comparing == HALVES:
                count = i64(0)
                for k in range(SMALLS):
                    count += _small(state, k)[b]
            difference += abs((i64(state.training[b]) << shift_training) - (count << shift_other))
    else:
        training = other = i64(0)
    distance.payload.difference = difference
    distance.payload.total = training + other


@inline
def _clear_window(state):
    for b in range(BUCKETS):
        state.running[b] = 0
    state.running_total = 0


@jit
def _walk(state, io):
    """A cycle in which nothing is counted."""
    state.left -= 1
    if state.left == 0 and state.comparing != NOTHING:
        if state.comparing == HALVES or io.i.run != 0:
            _distance(state, io)
        if state.comparing == WINDOW:
            _clear_window(state)
        state.comparing = NOTHING


@jit
def step(state, io):
    """One clock edge."""
    i = io.i
    counting = i.profile != 0 and state.over == 0
    begins = (i.profile != 0 and state.profiled == 0) or (counting and i.restart != 0)
    joins = counting and i.joining.valid != 0
    last = i.run != 0 and state.cycle == state.window - 1
    rests = state.left == 0
    io.o.distance.valid = 0
    state.counted = 0
    if begins:
        _clear(state)
        state.wanted = 0
        state.comparing = NOTHING
        state.left = state.buckets + 1
    elif rests:
        if i.sample.valid != 0 and state.wanted == 0 and (counting or i.run != 0):
            state.counted = 1
            _sample(state, io)
        if joins:
            _join(state, i64(i.joining.payload))
            state.left = state.buckets + 1
        elif state.wanted != 0 or last:
            state.comparing = HALVES if state.wanted != 0 else WINDOW
            state.wanted = 0
            state.left = _latency(state)
    else:
        _walk(state, io)
    if counting and i.stable != 0 and not begins:
        state.wanted = 1
    state.over = i.profile != 0 and (state.over != 0 or i.stable != 0)
    state.profiled = i.profile
    state.cycle = state.cycle + 1 if i.run != 0 and not last else i64(0)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held: without a sample, up to what happens next."""
    i = io.i
    if state.left != 0 or state.wanted != 0 or state.counted != 0 or io.o.distance.valid != 0:
        return i64(0)
    if i.profile != state.profiled:
        return i64(0)
    if i.profile != 0 and state.over == 0:
        busy = i.sample.valid != 0 or i.joining.valid != 0 or i.restart != 0 or i.stable != 0
        return i64(0) if busy else i64(NEVER)
    if i.run == 0:
        return i64(NEVER) if state.cycle == 0 else i64(0)
    return i64(0) if i.sample.valid != 0 or state.cycle == 0 else state.window - 1 - state.cycle


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    if state.cycle != 0:
        state.cycle += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
