"""One streaming multiprocessor: a cycle of it, its start and its reset.

A step is one core cycle: events that are due, fetched instructions, the memory side (``lsu``), what the mechanisms of
the frame say (``frame``), one issue per scheduler (``issue``), fetch requests. Pipelines and operand collection are
reservations: at issue it is known when each register bank, the pipeline and the result are free or ready, so nothing is
stepped while an instruction is on its way. Where this is not possible (the path to the L1), the state is stepped.

Timing rules, in core cycles; ``t`` is the cycle of issue:

* operands: each bank delivers one register per cycle from ``t + 1`` on, in order of issue;
* the pipeline starts with the last operand, at ``t + 1`` when unloaded, and is busy for its initiation interval
  (scratchpad and constant accesses: for as many cycles as the access has conflicts, if that is longer);
* the result can be used by an instruction that issues ``latency - 1`` cycles after the start: ``t + latency``;
* an instruction holds an operand collector of its pipeline from issue to start; none free: the pipeline is blocked;
* a warp issues nothing for ``control.latency`` cycles after a branch; after a jump the buffer is refilled besides.

An SM that can't do anything sleeps until ``wake``; the cycles in between count as repetitions of the last one.
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.counters import count
from lockstep.models.core.events import UNBLOCK, next_event, reset_events, take
from lockstep.models.core.fetch import deliver_fetches, request_fetches, want_fetch
from lockstep.models.core.frame import CTA_START, HAS_LISTENERS, LEFT, STEPPED, WARP_START, emit, emit_of_warp, update
from lockstep.models.core.issue import deliver, select
from lockstep.models.core.lsu import lsu_full, lsu_reset, lsu_step, lsu_wake, take_completed
from lockstep.models.core.operands import write_back
from lockstep.models.core.scoreboard import held_by_lsu, refresh, release
from lockstep.models.core.state import COUNTERS, EMPTY, LAUNCH, PIPE_LSU, SM
from lockstep.models.execution.isa import LANES, MAX_PREDICATES, MAX_REGISTERS, PT, Fault
from lockstep.models.jit import addressof, call, clear, ctz, i64, jit, words_u32
from lockstep.models.memory.l1 import QUEUE_FULL
from lockstep.models.scheduling import warp_scheduler
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS, TICKETS


@jit
def step(sm, port, launch, config, context, now):
    """One core cycle. On return ``wake`` is the next cycle in which a step would do more than count.

    A part is visited only when it has something to do: in other cycles its step would change nothing.
    """
    count(sm, now)
    sm.ended = 0
    if sm.wheel.count != 0:
        _events(sm, launch, config, now)
    if sm.fetch_count != 0:
        deliver_fetches(sm, launch, config, now)
    # A refused line is offered again after an event of the L1, or when the queue to the crossbar may have room again.
    if now >= sm.memory_wake or port.reply_ready <= now or sm.lsu.refused == QUEUE_FULL:
        _memory_side(sm, port, launch, config, now)
    queued = i64(sm.lsu.count)
    if sm.tenants & STEPPED != 0:
        sm.frame.now = now
        _mechanisms(sm, launch, config, context, now)
    if now >= sm.select_wake:
        _select(sm, launch, config, context, now)
    if sm.lsu.count != queued:
        sm.memory_wake = min(i64(sm.memory_wake), lsu_wake(sm.lsu, port, config, now))
    if sm.want_fetch != 0:
        request_fetches(sm, launch, config, now)
    _sleep(sm, port, now)


@jit
def _events(sm, launch, config, now):
    """Write back what is due, and let warps go on that waited for a branch or a barrier."""
    e = take(sm.wheel, now)
    while e >= 0:
        slot = i64(sm.wheel.event[e].warp)
        pc = i64(sm.wheel.event[e].pc)
        if pc == UNBLOCK:
            bit = i64(1) << slot
            if sm.tenants & HAS_LISTENERS != 0 and i64(sm.at_barrier) & bit != 0:
                emit_of_warp(sm.frame.events, LEFT, now, slot, i64(sm.warps[slot].pc), i64(sm.warps[slot].mask), i64(0))
            sm.blocked = i64(sm.blocked) & ~bit
            sm.at_barrier = i64(sm.at_barrier) & ~bit
            refresh(sm, launch, config, slot)
        else:
            release(sm, launch, config, slot, pc, now)
        e = take(sm.wheel, now)


@jit
def _memory_side(sm, port, launch, config, now):
    """Step the LSU and the L1, and let the instructions that they have completed write back."""
    lsu = sm.lsu
    held = held_by_lsu(sm)
    lsu_step(lsu, port, config, now)
    completed = take_completed(lsu)
    while completed >= 0:
        token = lsu.token[completed]
        write_back(sm, launch, i64(token.ready), completed // TICKETS, i64(token.pc), now)
        completed = take_completed(lsu)
    if (i64(sm.stalled_pipes) >> PIPE_LSU) & 1 != 0 and not lsu_full(lsu, config):
        sm.select_wake = 0
    if held_by_lsu(sm) != held:
        sm.select_wake = 0
    if lsu.fault != Fault.NONE:
        sm.fault = lsu.fault
        sm.fault_warp = lsu.fault_token // TICKETS
        sm.fault_pc = lsu.token[lsu.fault_token].pc
    sm.memory_wake = lsu_wake(lsu, port, config, now)


@jit
def _mechanisms(sm, launch, config, context, now):
    """Execute what the operands' tenant delivers, and ask gates and classes for this cycle's masks."""
    frame = sm.frame
    operands = frame.operands
    if operands.step != 0:
        frame.delivered = 0
        operands.wake = call(operands.step, operands.handle, addressof(sm))
        delivered = i64(frame.delivered)
        while delivered != 0:
            deliver(sm, launch, config, context, ctz(delivered), now)
            delivered &= delivered - 1
    if update(frame, addressof(sm)):
        sm.select_wake = 0


@jit
def _select(sm, launch, config, context, now):
    """Issue, and see when the next choice of warps can differ from this one."""
    sm.select_wake = NEVER
    wake = select(sm, launch, config, context, now)
    sm.select_wake = min(i64(sm.select_wake), wake)
    waiting = i64(sm.memory_wait)
    resident = i64(sm.resident)
    sm.all_wait_for_memory = 1 if waiting != 0 and (waiting | i64(sm.at_barrier)) & resident == resident else 0


@jit
def _sleep(sm, port, now):
    """The next cycle in which any part has something to do."""
    wake = min(i64(sm.select_wake), i64(sm.memory_wake), i64(port.reply_ready))
    if sm.want_fetch != 0:
        wake = now + 1
    if wake > now + 1:
        wake = min(wake, next_event(sm.wheel, now))
        if sm.fetch_count != 0:
            wake = min(wake, i64(sm.fetch[sm.fetch_head].time))
        if sm.tenants != 0:
            wake = min(wake, _tenants_wake(sm.frame))
    sm.wake = max(wake, now + 1)


@jit
def _tenants_wake(frame):
    """The next cycle in which a mechanism wants the SM to be stepped."""
    wake = i64(frame.operands.wake) if frame.operands.step != 0 else i64(NEVER)
    for k in range(frame.gates):
        wake = min(wake, i64(frame.gate[k].wake))
    for k in range(frame.orders):
        wake = min(wake, i64(frame.order[k].wake))
    for k in range(frame.monitors):
        wake = min(wake, i64(frame.monitor[k].wake))
    for k in range(frame.limits):
        wake = min(wake, i64(frame.limit[k].wake))
    return wake


@jit
def quiet(sm):
    """Whether nothing is left to do: no CTA, no memory instruction, no event."""
    left = sm.ctas_resident | sm.lsu.in_flight | sm.wheel.count | sm.fetch_count | sm.want_fetch
    lsu = sm.lsu
    for k in range(lsu.clients):
        left |= lsu.client[k].valid | (lsu.l1.stats.tokens_in - lsu.l1.stats.tokens_out)
    return left == 0


@jit
def start_cta(sm, launch, config, index, number, now):
    """Place a CTA of the grid ``index`` into this SM, before the SM's step of the same cycle."""
    count(sm, now)
    sm.wake = now
    sm.select_wake = 0
    grid = launch.grids[index]
    slot = i64(0)
    while sm.ctas[slot].live != 0:
        slot += 1
    cta = sm.ctas[slot]
    cta.grid = index
    cta.first_warp = _room_for(sm, i64(grid.warps))
    cta.index = number
    cta.ctaid[0] = number % i64(grid.size[0])
    cta.ctaid[1] = number // i64(grid.size[0]) % i64(grid.size[1])
    cta.ctaid[2] = number // (i64(grid.size[0]) * i64(grid.size[1]))
    cta.live = grid.warps
    cta.waiting = 0
    cta.warps = 0
    for b in range(W.BARRIERS):
        cta.arrived[b] = 0
        cta.at[b] = 0
        cta.votes[b] = 0
        cta.voters[b] = 0
    first = i64(sm.index) * MAX_WARPS + i64(cta.first_warp)
    cta.registers = i64(launch.register_file) + first * i64(grid.registers) * (4 * LANES)
    cta.shared = i64(launch.scratchpad) + (i64(sm.index) * i64(grid.per_sm) + slot) * i64(grid.shared_bytes)
    sm.ctas_resident += 1
    sm.counters.ctas += 1
    sm.counters.warps += i64(grid.warps)
    sm.progress = now
    events = sm.frame.events
    events.grid_of[slot] = index
    if sm.tenants & HAS_LISTENERS != 0:
        emit(events, CTA_START, now, i64(-1), slot, i64(-1), i64(0), i64(0))
    for k in range(grid.warps):
        _start_warp(sm, launch, config, grid, cta, slot, k, now)


@jit
def _room_for(sm, warps):
    """The lowest free warp slots in a row."""
    room = (i64(1) << warps) - 1 if warps < MAX_WARPS else i64(-1)
    first = i64(0)
    while i64(sm.resident) & (room << first) != 0:
        first += 1
    return first


@jit
def _start_warp(sm, launch, config, grid, cta, cta_slot, k, now):
    slot = i64(cta.first_warp) + k
    bit = i64(1) << slot
    warp = sm.warps[slot]
    position = i64(sm.index) * MAX_WARPS + slot
    warp.grid = cta.grid
    warp.cta = cta_slot
    warp.index = k
    warp.regs = i64(cta.registers) + k * i64(grid.registers) * (4 * LANES)
    warp.own_registers = MAX_REGISTERS
    warp.preds = i64(launch.predicate_file) + position * (4 * (MAX_PREDICATES + 1))
    words_u32(i64(warp.preds), MAX_PREDICATES + 1)[PT] = 0xFFFF_FFFF
    warp.local = i64(launch.local) + position * i64(grid.local_bytes) * LANES
    warp.local_physical = i64(launch.local_physical) + position * i64(grid.local_bytes) * LANES
    lanes = min(i64(grid.threads) - k * LANES, i64(LANES))
    W.start(warp, (i64(1) << lanes) - 1, i64(grid.length))
    warp.epoch += 1
    sm.fetching = i64(sm.fetching) & ~bit
    cta.warps = i64(cta.warps) | bit
    sm.resident = i64(sm.resident) | bit
    sm.blocked = i64(sm.blocked) & ~bit
    sm.warp_scheduler[slot % i64(config.core.schedulers)].io.i.start |= bit
    sm.frame.events.cta_of[slot] = cta_slot
    if sm.tenants & HAS_LISTENERS != 0:
        emit_of_warp(sm.frame.events, WARP_START, now, slot, i64(0), i64(warp.present), i64(0))
    want_fetch(sm, launch, config, slot)


@jit
def reset(sm, index, launch, config):
    """An empty SM, from one whose fields in :data:`ZEROED` are zero. The tenants of its frame are the host's matter."""
    sm.index = index
    sm.launch = addressof(launch)
    sm.config = addressof(config)
    sm.wake = NEVER
    sm.limit = NEVER
    sm.outcome = EMPTY
    sm.fetch_entries = i64(config.core.fetches) * (i64(config.core.fetch_latency) + 1)
    sm.frame.events.sm = addressof(sm)
    sm.lsu.events = addressof(sm.frame.events) if sm.tenants & HAS_LISTENERS != 0 else 0
    reset_events(sm.wheel)
    schedulers = i64(config.core.schedulers)
    for k in range(schedulers):
        for slot in range(k, MAX_WARPS, schedulers):
            sm.partition[k] = i64(i64(sm.partition[k]) | i64(1) << slot)
        io = sm.warp_scheduler[k].io
        warp_scheduler.reset(sm.warp_scheduler[k].state, io)
        clear(io.i)
        io.i.policy = config.core.scheduler
        io.i.active_warps = config.core.active_warps
        io.i.patience = config.core.patience
    for slot in range(MAX_CTAS):
        sm.ctas[slot].live = 0
    lsu_reset(sm.lsu, config)


ZEROED = tuple(
    name
    for name in SM.names or ()
    if name not in ("tenants", "fetch", "wheel", "warp_scheduler", "lsu", "ctas", "warps", "frame")
)
"""What a launch begins with as zero. Of the others, some is reset above, and the rest is written before it is read."""

__all__ = ["COUNTERS", "LAUNCH", "SM", "ZEROED", "count", "quiet", "reset", "start_cta", "step"]
