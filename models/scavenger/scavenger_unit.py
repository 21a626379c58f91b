"""Golden model of ``rtl/scavenger/scavenger_unit.py``, which documents it: the models of its blocks, connected."""

from __future__ import annotations

from lockstep.models.blocks import instance, ports
from lockstep.models.jit import addressof, assign, call, clear, i64, inline, jit, record, slots
from lockstep.models.scavenger import (
    cta_balancer,
    fallback_monitor,
    pc_histogram,
    performance_predictor,
    phase_detector,
    pid_controller,
    sliding_window,
)
from lockstep.models.time import NEVER
from lockstep.spec.scavenger.control import SLACK_LATENCY, End
from lockstep.spec.scavenger.control import State as Stage
from lockstep.spec.scavenger.fixed import ERROR, IPC, SHARE
from lockstep.spec.scavenger.parameters import (
    BALANCER,
    CONTROLLER,
    CONTROLLERS,
    DETECTOR,
    ERRORS,
    FALLBACK,
    HISTOGRAM,
    PREDICTOR,
    REQUESTS,
    UNIT,
    WARPS,
    WINDOW,
    WINDOWS,
)

PORTS = ports(UNIT)
SUMS = len(WINDOWS)
STATE = record(
    [
        ("warps", "i8"),  # parameters
        ("ctas", "i8"),
        ("requests", "i8"),
        ("entries", "i8"),
        ("entry", "i8"),
        ("interval", "i8"),
        ("stage", "i8"),
        ("beat", "i8"),  # the cycle of it
        ("first_warps", "i8"),  # of the primary, when the next run begins
        ("first_requests", "i8"),
        ("stalled_with", "i8"),  # outstanding
        ("long_term", "i8"),  # the error
        ("part", "i8", (CONTROLLERS,)),  # of the last cycle, of the sums of slack
        ("whole", "i8", (CONTROLLERS,)),
        ("part_sum", "i8", (CONTROLLERS,)),
        ("whole_sum", "i8", (CONTROLLERS,)),
        ("slack", "i8", (CONTROLLERS,)),
        ("performance_predictor", instance(PREDICTOR, performance_predictor.STATE)),
        ("pc_histogram", instance(HISTOGRAM, pc_histogram.STATE)),
        ("phase_detector", instance(DETECTOR, phase_detector.STATE)),
        ("cta_balancer", instance(BALANCER, cta_balancer.STATE)),
        ("fallback_monitor", instance(FALLBACK, fallback_monitor.STATE)),
        ("sliding_window", instance(WINDOW, sliding_window.STATE), (SUMS,)),
        ("pid_controller", instance(CONTROLLER, pid_controller.STATE), (CONTROLLERS,)),
    ]
)
FREE, CLEARING, PROFILING, TARGETING, RUNNING, ALONE = (int(stage) for stage in Stage)
BY_FALLBACK, BY_KERNEL, BY_ABSENCE = int(End.FALLBACK), int(End.KERNEL), int(End.GONE)
LANES, INSTRUCTIONS, LINES, MEMORY_INSTRUCTIONS = range(ERRORS)
IPC_BITS, ERROR_BITS, ONE = IPC.fraction, ERROR.bits, SHARE.one
ERROR_MASK = (1 << ERROR_BITS) - 1


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    performance_predictor.reset(state.performance_predictor.state, state.performance_predictor.io)
    pc_histogram.reset(state.pc_histogram.state, state.pc_histogram.io)
    phase_detector.reset(state.phase_detector.state, state.phase_detector.io)
    cta_balancer.reset(state.cta_balancer.state, state.cta_balancer.io)
    fallback_monitor.reset(state.fallback_monitor.state, state.fallback_monitor.io)
    for k in range(SUMS):
        sliding_window.reset(state.sliding_window[k].state, state.sliding_window[k].io)
    for k in range(CONTROLLERS):
        pid_controller.reset(state.pid_controller[k].state, state.pid_controller[k].io)
        state.part[k] = state.whole[k] = state.part_sum[k] = state.whole_sum[k] = state.slack[k] = 0
    state.stage = FREE
    state.beat = state.long_term = 0
    state.first_warps, state.first_requests = state.warps, state.requests
    state.stalled_with = state.requests
    _outputs(state, io)


@inline
def _runs(state):
    """Whether this cycle is one of a run."""
    return state.stage == RUNNING and state.phase_detector.io.o.ends.valid == 0


@inline
def _next(state, io):
    """The stage of the next cycle."""
    i, stage = io.i, i64(state.stage)
    if i.primary_ctas == 0 and i.left == 0:
        return i64(FREE)
    if i.begins != 0 or i.clear != 0 or stage == FREE:
        return i64(CLEARING)
    predictor, fallback = state.performance_predictor.io.o, state.fallback_monitor.io.o
    if stage == CLEARING:
        alone = i.primary_ctas != 0 and i.secondary_ctas == 0 and i.writing == 0 and (i.fits == 0 or i.left == 0)
        return i64(PROFILING) if alone and state.cta_balancer.io.o.shares != 0 else stage
    if stage == PROFILING:
        return i64(TARGETING) if predictor.stable != 0 else stage
    if stage == TARGETING:
        return i64(RUNNING) if predictor.done != 0 else stage
    if stage == RUNNING:
        if state.phase_detector.io.o.ends.valid != 0:
            return i64(CLEARING)
        return i64(ALONE) if fallback.alone != 0 else stage
    return i64(CLEARING) if fallback.profile != 0 else stage


@inline
def _reason(state, io):
    """Why a run ends."""
    if io.i.primary_ctas == 0 and io.i.left == 0:
        return i64(BY_ABSENCE)
    if io.i.begins != 0 or io.i.clear != 0:
        return i64(BY_KERNEL)
    ends = state.phase_detector.io.o.ends
    return i64(ends.payload) if ends.valid != 0 else i64(BY_FALLBACK)


@inline
def _profiled(part, state, io):
    """What a part sees of the profile and of the run."""
    predictor = state.performance_predictor.io.o
    part.profile = state.stage == PROFILING or state.stage == TARGETING
    part.part = predictor.part
    assign(part.joining, predictor.joining)
    part.restart = predictor.restart
    part.stable = predictor.stable
    part.run = _runs(state)


@jit
def _inputs(state, io):
    """From the unit's inputs, and from part to part."""
    i, runs = io.i, _runs(state)
    predictor = state.performance_predictor.io
    predictor.i.profile = state.stage == PROFILING or state.stage == TARGETING
    predictor.i.issued = i.instructions
    predictor.i.percent = i.percent
    histogram, detector = state.pc_histogram.io, state.phase_detector.io.i
    _profiled(histogram.i, state, io)
    assign(histogram.i.sample, i.sample)
    _profiled(detector, state, io)
    detector.cycles = predictor.o.cycles
    detector.lanes = i.lanes
    detector.instructions = i.instructions
    detector.requests = i.requests
    detector.memory_instructions = i.memory_instructions
    detector.window_lanes = state.sliding_window[LANES].io.o.total
    detector.window_instructions = state.sliding_window[INSTRUCTIONS].io.o.total
    detector.window_requests = state.sliding_window[LINES].io.o.total
    detector.window_memory_instructions = state.sliding_window[MEMORY_INSTRUCTIONS].io.o.total
    assign(detector.distance, histogram.o.distance)
    for k in range(SUMS):
        state.sliding_window[k].io.i.clear = not runs
    state.sliding_window[LANES].io.i.value = i.lanes
    state.sliding_window[INSTRUCTIONS].io.i.value = i.instructions
    state.sliding_window[LINES].io.i.value = i.requests
    state.sliding_window[MEMORY_INSTRUCTIONS].io.i.value = i.memory_instructions
    error = i64(predictor.o.target) - (i64(i.instructions) << IPC_BITS)
    state.sliding_window[ERRORS].io.i.value = error & ERROR_MASK
    balancer, fallback = state.cta_balancer.io.i, state.fallback_monitor.io.i
    assign(balancer, i)
    balancer.primary_warps = i.primary_cta_warps
    balancer.secondary_warps = i.secondary_cta_warps
    balancer.run = (runs or state.stage == TARGETING) and i.clear == 0
    fallback.run = runs
    fallback.clear = state.stage != RUNNING and state.stage != ALONE
    fallback.issued = i.instructions
    fallback.target = predictor.o.target
    for k in range(CONTROLLERS):
        controller = state.pid_controller[k].io.i
        controller.run = runs
        controller.first = state.first_warps if k == WARPS else state.first_requests
        controller.issued = i.instructions
        controller.target = predictor.o.target
        controller.long_term = state.long_term & ERROR_MASK
        controller.slack = state.slack[k]


@inline
def _outstanding(io):
    return i64(io.i.primary_outstanding) + i64(io.i.secondary_outstanding)


@inline
def _part(state, io, k):
    """What a cycle adds to the part of a resource that the primary does not use, and to the whole."""
    if k == WARPS:
        return i64(io.i.ready), i64(io.i.active)
    return i64(state.stalled_with) - _outstanding(io), i64(state.stalled_with)


@jit
def _measure(state, io):
    """Slack, and the error of a window."""
    runs = _runs(state)
    for k in range(CONTROLLERS):
        state.part[k], state.whole[k] = _part(state, io, k)
        state.part_sum[k] += state.part[k]
        state.whole_sum[k] += state.whole[k]
        last = runs and state.beat == state.interval - 1 - SLACK_LATENCY
        if last:
            part, whole = max(i64(state.part_sum[k]), i64(0)), i64(state.whole_sum[k])
            state.slack[k] = (2 * ONE * part + whole) // (2 * whole) if whole != 0 else i64(ONE)
        if last or not runs:
            state.part_sum[k] = state.whole_sum[k] = 0
    state.beat = state.beat + 1 if runs and state.beat != state.interval - 1 else i64(0)
    if io.i.clear != 0:
        state.stalled_with = state.requests
    elif _records(state, io):
        state.stalled_with = _outstanding(io)
    state.long_term = _mean_error(state)


@inline
def _records(state, io):
    return state.stage == RUNNING and io.i.stalled != 0 and _outstanding(io) != 0


@inline
def _mean_error(state):
    """The mean of the window, to the nearest 1/64K."""
    cycles, total = state.entries * state.entry, i64(state.sliding_window[ERRORS].io.o.total)
    if total >= cycles << ERROR_BITS - 1:
        total -= cycles << ERROR_BITS
    magnitude = (2 * abs(total) + cycles) // (2 * cycles)
    return magnitude if total >= 0 else -magnitude


@inline
def _first(state, k):
    """What the primary has when the next run begins, if this cycle is the last one of this."""
    most = state.warps if k == WARPS else state.requests
    return most - i64(state.pid_controller[k].io.o.secondary) // 2


@inline
def _begin(state, io):
    """With what the next run begins."""
    if io.i.clear != 0:
        state.first_warps, state.first_requests = state.warps, state.requests
    elif state.stage == RUNNING:
        state.first_warps, state.first_requests = _first(state, WARPS), _first(state, REQUESTS)


@inline
def _step(part):
    return call(part.binding.step, part.binding.handle, addressof(part.io))


@jit
def _outputs(state, io):
    """The unit's outputs."""
    o, running, free = io.o, state.stage == RUNNING, state.stage == FREE
    balancer, predictor = state.cta_balancer.io.o, state.performance_predictor.io.o
    o.state = state.stage
    o.shares = balancer.shares
    o.primary_limit, o.secondary_limit = state.ctas, state.ctas if free else i64(0)
    o.primary_warps, o.secondary_warps = state.warps, state.warps if free else i64(0)
    o.primary_requests, o.secondary_requests = state.requests, state.requests if free else i64(0)
    if running:
        warps, requests = state.pid_controller[WARPS].io.o, state.pid_controller[REQUESTS].io.o
        o.primary_limit, o.secondary_limit = balancer.primary, balancer.secondary
        o.primary_warps, o.secondary_warps = warps.primary, warps.secondary
        o.primary_requests, o.secondary_requests = requests.primary, requests.secondary
    o.predicted = predictor.predicted
    o.target = predictor.target


@jit
def step(state, io):
    """One clock edge. Returns what the blocks return: not 0 when hardware in the place of one differs from it."""
    _inputs(state, io)
    after = _next(state, io)
    io.o.ends.valid = state.stage == RUNNING and after != RUNNING
    if io.o.ends.valid != 0:
        io.o.ends.payload = _reason(state, io)
    _measure(state, io)
    _begin(state, io)
    different = _step(state.performance_predictor) | _step(state.pc_histogram) | _step(state.phase_detector)
    different |= _step(state.cta_balancer) | _step(state.fallback_monitor)
    for k in range(SUMS):
        different |= _step(state.sliding_window[k])
    for k in range(CONTROLLERS):
        different |= _step(state.pid_controller[k])
    state.stage = after
    _outputs(state, io)
    return different


@inline
def _idle(part):
    return i64(call(part.binding.idle, part.binding.handle, addressof(part.io)))


@jit
def _rests(state, io):
    """Whether the next step changes nothing of what is the unit's own but sums and the cycle of the beat."""
    if io.o.ends.valid != 0 or _next(state, io) != state.stage or state.long_term != _mean_error(state):
        return False
    if io.i.clear != 0:
        return state.first_warps == state.warps and state.first_requests == state.requests and (
            state.stalled_with == state.requests
        )
    if state.stage != RUNNING:
        return state.beat == 0 and state.whole_sum[WARPS] == 0 and state.whole_sum[REQUESTS] == 0
    if _records(state, io) and state.stalled_with != _outstanding(io):
        return False
    for k in range(CONTROLLERS):
        part, whole = _part(state, io, k)
        if part != state.part[k] or whole != state.whole[k]:
            return False
    return state.first_warps == _first(state, WARPS) and state.first_requests == _first(state, REQUESTS)


@jit
def idle(state, io):
    """Steps that change no port while these inputs are held."""
    _inputs(state, io)
    if not _rests(state, io):
        return i64(0)
    steps = min(_idle(state.performance_predictor), _idle(state.pc_histogram), _idle(state.phase_detector))
    steps = min(steps, _idle(state.cta_balancer), _idle(state.fallback_monitor))
    for k in range(SUMS):
        steps = min(steps, _idle(state.sliding_window[k]))
    for k in range(CONTROLLERS):
        steps = min(steps, _idle(state.pid_controller[k]))
    measured = state.interval - 1 - SLACK_LATENCY - state.beat
    if state.stage == RUNNING and measured >= 0:
        steps = min(steps, measured)
    return min(steps, i64(NEVER))


@inline
def _skip(part, steps):
    call(part.binding.skip, part.binding.handle, steps)


@jit
def skip(state, steps):
    """The same as ``steps`` idle steps."""
    _skip(state.performance_predictor, steps)
    _skip(state.pc_histogram, steps)
    _skip(state.phase_detector, steps)
    _skip(state.cta_balancer, steps)
    _skip(state.fallback_monitor, steps)
    for k in range(SUMS):
        _skip(state.sliding_window[k], steps)
    for k in range(CONTROLLERS):
        _skip(state.pid_controller[k], steps)
        if state.stage == RUNNING:
            state.part_sum[k] += steps * state.part[k]
            state.whole_sum[k] += steps * state.whole[k]
    if state.stage == RUNNING:
        state.beat += steps
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
