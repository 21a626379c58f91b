"""Counts the SM's cycles: all of them, also those that it sleeps through, which repeat the last one."""

from __future__ import annotations

from lockstep.models.core.frame import HAS_MONITORS
from lockstep.models.core.state import ALL_WAIT, EMPTY, IDLE, ISSUED, SOME_WAIT, STALLED
from lockstep.models.jit import addressof, call, ctz, i64, inline, jit, popcount, without_lowest
from lockstep.models.marks import Part, mark

FIRST, SECOND = 1, 2  # grids, as bits


@inline
def count_cycles(sm, now):
    """Add the cycles before ``now`` that are not counted yet, all alike, to the counters, and show them to monitors."""
    cycles = now - i64(sm.last)
    first = i64(sm.last)
    sm.last = now
    if cycles == 0:
        return
    issuing = min(max(i64(sm.active_until) - first, 0), cycles)
    if sm.tenants & HAS_MONITORS != 0:
        _show(sm, first, cycles, issuing)
    counters = sm.counters
    outcome = i64(sm.outcome)
    if outcome == EMPTY:
        if sm.limit == 0:
            counters.asleep_cycles += cycles
        return
    counters.cycles += cycles
    if outcome == ISSUED:
        counters.issued_cycles += cycles
    elif outcome == STALLED:
        counters.stall_cycles += cycles
    else:
        counters.idle_cycles += cycles
    if outcome != ISSUED:
        if sm.memory_bound == ALL_WAIT:
            counters.memory_wait_cycles += cycles - issuing
        elif memory_blocked(sm):
            counters.memory_blocked_cycles += cycles - issuing
        elif outcome == IDLE:
            counters.other_idle_cycles += cycles - issuing
    if sm.tenants != 0 and sm.frame.seen.held != 0:
        counters.gated_cycles += cycles
    pipes = i64(sm.stalled_pipes)
    while pipes != 0:
        counters.stall_pipe_cycles[ctz(pipes)] += cycles
        pipes = without_lowest(pipes)
    counters.scheduler_stall_cycles += i64(sm.idle_schedulers) * cycles
    counters.resident_warp_cycles += popcount(i64(sm.resident)) * cycles
    counters.resident_cta_cycles += i64(sm.ctas_resident) * cycles
    if sm.second | (sm.issued_of & SECOND) != 0:
        _share(sm, outcome, cycles)
    if sm.lsu.busy != 0:
        counters.lsu_busy_cycles += cycles
    if sm.lsu.refused != 0:
        counters.lsu_stalled_cycles += cycles


@jit
def _share(sm, outcome, cycles):
    """Count the part that grid 1 has in the SM's cycles. A CTA's last instruction issues in a cycle of its own grid."""
    share, alone = sm.share, sm.alone
    share.resident_warp_cycles += popcount(i64(sm.resident & sm.second)) * cycles
    share.resident_cta_cycles += i64(sm.ctas_of[1]) * cycles
    issued = i64(sm.issued_of) if outcome == ISSUED else i64(0)
    if sm.ctas_of[1] != 0 or issued & SECOND != 0:
        share.cycles += cycles
        if sm.ctas_of[0] == 0 and issued & FIRST == 0:
            alone.cycles += cycles
    if issued & SECOND != 0:
        share.issued_cycles += cycles
        if issued & FIRST == 0:
            alone.issued_cycles += cycles


@inline
def memory_blocked(sm):
    """Some warps wait for memory, others do not, and the L1 refuses what the LSU has to send."""
    return sm.memory_bound == SOME_WAIT and sm.lsu.refused != 0


@jit
def _show(sm, first, cycles, issuing):
    frame = sm.frame
    seen = frame.seen
    seen.first = first
    seen.cycles = cycles
    seen.issuing = issuing
    seen.outcome = sm.outcome
    for k in range(frame.monitors):
        monitor = frame.monitor[k]
        before = mark(Part.MECHANISMS)
        monitor.wake = call(monitor.see, monitor.handle, addressof(sm))
        mark(before)
