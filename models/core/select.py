"""The choice of an SM in a cycle: a warp for each scheduler, and what follows for the next cycle.

Each scheduler in turn grants one of its requests, which issues. The first of them is the one that found no collector
free the last time, so that they share those of a pipeline that both want. Where there are claims, a grant issues when
all schedulers have granted and none of the claims refuses it (``grants``). Then the schedulers' clocks tick.
"""

from __future__ import annotations

from lockstep.models.core.events import EVENTS, RESERVE
from lockstep.models.core.frame import HAS_CLAIMS, HAS_GATES, HAS_LIMITS, HAS_ORDER, KINDS
from lockstep.models.core.grants import ask, note_grant
from lockstep.models.core.issue import issue
from lockstep.models.core.operands import blocked_until
from lockstep.models.core.scoreboard import held_by_lsu
from lockstep.models.core.state import EMPTY, IDLE, ISSUED, PIPE_KINDS, PIPE_LSU, STALLED
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, i64, inline, jit
from lockstep.models.marks import Part, mark
from lockstep.models.time import NEVER


@jit
def select(sm, launch, config, context, now):
    """Issue at most one instruction per scheduler; leaves the outcome in the SM, and returns the cycle to look next."""
    schedulers = i64(config.core.schedulers)
    sm.stalled_pipes = 0
    sm.idle_schedulers = 0
    sm.issued_of = 0
    if sm.tenants & HAS_ORDER != 0:
        sm.settled = 0
    held = _held_by_tenants(sm) if sm.tenants & (HAS_GATES | HAS_CLAIMS | HAS_LIMITS) != 0 else i64(0)
    could = i64(sm.ready) & ~held
    if sm.tenants != 0:
        _see(sm, held)
    granted, wake, different = _choose(sm, launch, config, context, held, now)
    refused = i64(0)
    if granted != 0 and sm.tenants & HAS_CLAIMS != 0:
        mark(Part.MECHANISMS)
        refused = ask(sm, granted)
        mark(Part.SCHEDULERS)
        _issue_all(sm, launch, config, context, granted & ~refused, now)
    if sm.passed_over >= 0:
        sm.first = sm.passed_over
    issued = granted & ~refused
    if issued != 0:
        _busy_until(sm, now + i64(config.core.issue_interval), now)
    for k in range(schedulers):
        io = sm.warp_scheduler[k].io
        _next_issue(sm, config, k, (granted >> k) & 1 != 0, now)
        io.i.refused = (refused >> k) & 1
        if io.i.refused != 0:
            could &= ~(i64(1) << i64(io.c.grant.warp))
        if (sm.settled >> k) & 1 == 0:
            different |= _clock(sm, k)
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    if issued != 0:
        sm.outcome = ISSUED
        return now + 1
    if i64(sm.resident) == 0:
        sm.outcome = EMPTY
    else:
        sm.outcome = STALLED if could != 0 else IDLE
    return wake if sm.settled == (i64(1) << schedulers) - 1 else now + 1


# ------------------------------------------------------------------------------------------------------------- choosing


@jit
def _held_by_tenants(sm):
    """Ready slots that a gate or a claim does not let issue, and those of CTAs that are to leave."""
    frame = sm.frame
    held = i64(frame.waiting) | i64(sm.leaving)
    for kind in range(KINDS):
        held |= i64(sm.by_kind[kind] & frame.closed[kind])
    return held & i64(sm.ready)


@inline
def _choose(sm, launch, config, context, held, now):
    """Let each scheduler grant one of its requests, in turn. A grant issues at once, unless claims are to be asked.

    ``held``: the slots that mechanisms hold back. Returns the schedulers that have granted, the cycle to look again,
    and whether hardware differs.
    """
    schedulers = i64(config.core.schedulers)
    granted = different = i64(0)
    wake = i64(NEVER)
    sm.passed_over = -1
    for turn in range(schedulers):
        k = (i64(sm.first) + turn) % schedulers
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        wake = min(wake, _request(sm, config, k, held, now))
        if (sm.settled >> k) & 1 != 0:
            continue
        if sm.tenants & HAS_ORDER != 0:
            _rank(sm.frame.classes, io.i, i64(sm.partition[k]))
        different |= call(binding.comb, binding.handle, addressof(io))
        if io.c.grant.valid != 0:
            granted |= i64(1) << k
            if sm.tenants & HAS_CLAIMS == 0:
                issue(sm, launch, config, context, k, now)
                mark(Part.SCHEDULERS)
            else:
                note_grant(sm, launch, config, context, k, now)
    return granted, wake, different


@inline
def _request(sm, config, k, tenants, now):
    """Show a scheduler the slots whose next instruction it may grant; returns the cycle to look again if there is none.

    ``tenants``: the slots that mechanisms hold back.
    """
    wake = i64(NEVER)
    mine = i64(sm.partition[k])
    waits = (i64(sm.memory_wait) | tenants) & mine
    late = waits | i64(sm.at_barrier) & mine
    inputs = sm.warp_scheduler[k].io.i
    if i64(inputs.global_wait) ^ waits | i64(inputs.long_latency) ^ late | i64(inputs.start) | i64(inputs.finish) != 0:
        sm.settled &= ~(i64(1) << k)
    inputs.request = 0
    inputs.global_wait = waits
    inputs.long_latency = late
    if sm.next_issue[k] > now:
        return i64(sm.next_issue[k]) if i64(sm.resident) & mine != 0 else wake
    if i64(sm.ready) & mine == 0 or sm.wheel.count >= EVENTS - RESERVE:
        return wake
    held = held_by_lsu(sm)
    if held & mine & i64(sm.ready) != 0:
        sm.stalled_pipes |= i64(1) << PIPE_LSU
    mine &= ~(held | tenants)
    requests = i64(0)
    for pipe in range(PIPE_KINDS):
        waiting = i64(sm.by_pipe[pipe]) & mine
        if waiting != 0:
            until = blocked_until(sm, config, pipe, now)
            if until <= now:
                requests |= waiting
            else:
                sm.stalled_pipes = i64(sm.stalled_pipes) | (i64(1) << pipe)
                if sm.passed_over < 0:
                    sm.passed_over = k
                wake = min(wake, until)
    if requests != 0:
        searches = _next_search(sm, config, k, now)
        if searches > now:
            return min(wake, searches)
        inputs.request = requests
        sm.settled &= ~(i64(1) << k)
    return wake


@inline
def _next_search(sm, config, k, now):
    """The first cycle from this one on in which a scheduler looks for an instruction."""
    overhead = i64(config.core.scheduler_overhead)
    return now if overhead == 1 else now + (i64(sm.next_issue[k]) - now) % overhead


@jit
def _issue_all(sm, launch, config, context, granted, now):
    """Issue the granted instructions of some schedulers, in the order in which these have chosen."""
    schedulers = i64(config.core.schedulers)
    for turn in range(schedulers):
        k = (i64(sm.first) + turn) % schedulers
        if (granted >> k) & 1 != 0:
            issue(sm, launch, config, context, k, now)
            mark(Part.SCHEDULERS)


@jit
def _rank(classes, inputs, mine):
    """Show a scheduler the classes of its warps."""
    inputs.paused = i64(classes.paused) & mine
    inputs.secondary = i64(classes.secondary) & mine
    inputs.owner = i64(classes.owner) & mine
    inputs.non_owner = i64(classes.non_owner) & mine


@inline
def _see(sm, held):
    """Note in what state the warps are when they are chosen from."""
    seen = sm.frame.seen
    seen.resident = sm.resident
    seen.ready = sm.ready
    seen.waiting = sm.memory_wait
    seen.at_barrier = sm.at_barrier
    seen.held = held
    seen.issued = 0


# ------------------------------------------------------------------------------------------------------- the next cycle


@inline
def _busy_until(sm, until, now):
    """An issue is under way up to a cycle: count those that no other one covers."""
    sm.counters.active_cycles += until - max(now, i64(sm.active_until))
    sm.active_until = until


@inline
def _next_issue(sm, config, k, granted, now):
    """When a scheduler may grant again; one that could have granted in this cycle and has warps was idle."""
    if granted:
        sm.next_issue[k] = now + max(i64(config.core.issue_interval), i64(config.core.scheduler_overhead))
    elif sm.next_issue[k] <= now and i64(sm.resident) & i64(sm.partition[k]) != 0:
        sm.idle_schedulers += 1


@inline
def _clock(sm, k):
    """The clock edge of a scheduler, which is settled if nothing changes until an input does.

    Returns whether hardware differs.
    """
    io, binding = sm.warp_scheduler[k].io, sm.warp_scheduler[k].binding
    different = call(binding.step, binding.handle, addressof(io))
    io.i.start = 0
    io.i.finish = 0
    # A request that was not granted waits for its warp to become active (two-level), which the step may have done.
    if io.i.request == 0 and call(binding.idle, binding.handle, addressof(io)) >= NEVER:
        sm.settled |= i64(1) << k
    return different
