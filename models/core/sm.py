"""One streaming multiprocessor: a cycle of it, its start and its reset.

A step is one core cycle: events that are due, fetched instructions, the memory side (``lsu``), what the mechanisms of
the frame say (``frame``), one issue per scheduler (``select``), fetch requests. Pipelines and operand collection are
reservations: at issue it is known when each register bank, the pipeline and the result are free or ready, so nothing is
stepped while an instruction is on its way. Where this is not possible (the path to the L1), the state is stepped.

Timing rules, in core cycles; ``t`` is the cycle of issue:

* operands: each bank delivers one register per cycle from ``t + 1`` on, in order of issue;
* the pipeline starts with the last operand, at ``t + 1`` when unloaded, and is busy for its initiation interval
  (scratchpad and constant accesses: for as many cycles as the access has conflicts, if that is longer; the load/store
  unit, besides, while the path to the L1 does not take what has started);
* the result can be used by an instruction that issues ``latency - 1`` cycles after the start: ``t + latency``;
* an instruction holds an operand collector of its pipeline from issue to start; none free: the pipeline is blocked;
* a warp issues nothing for ``control.latency`` cycles after a branch; after a jump the buffer is refilled besides.

An SM that can't do anything sleeps until ``wake``; the cycles in between count as repetitions of the last one.
"""

from __future__ import annotations

from lockstep.models.core.constants import constants_looked_up
from lockstep.models.core.counters import count_cycles
from lockstep.models.core.delivery import write_late, write_values
from lockstep.models.core.events import UNBLOCK, next_event, reset_events, take
from lockstep.models.core.fetch import deliver_fetches, line_of_code, line_of_constants, request_fetches
from lockstep.models.core.frame import (
    HAS_CONTEXT,
    HAS_LISTENERS,
    LEFT,
    STEPPED,
    emit_of_warp,
    update,
)
from lockstep.models.core.issue import deliver
from lockstep.models.core.operands import write_back
from lockstep.models.core.placement import leave
from lockstep.models.core.scoreboard import held_by_lsu, refresh, release
from lockstep.models.core.select import select
from lockstep.models.core.state import (
    ALL_WAIT,
    EMPTY,
    NOT_BOUND,
    PIPE_LSU,
    SM,
    SOME_WAIT,
    instruction_of,
)
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, clear, ctz, i64, inline, inline_once, jit, without_lowest
from lockstep.models.lsu.performed import advance, answered
from lockstep.models.lsu.queue import head_start, near_start, start_near
from lockstep.models.lsu.tokens import is_store, take_completed
from lockstep.models.lsu.unit import lsu_reset, lsu_step, lsu_wake
from lockstep.models.marks import Part, mark
from lockstep.models.memory.l1 import NONE, QUEUE_FULL
from lockstep.models.memory.read_cache import CODE, CONSTANTS, arrived, invalidate, read_cache_reset
from lockstep.models.memory.timing import BACK_END
from lockstep.models.scheduling import warp_scheduler
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_CTAS, MAX_GRIDS, MAX_WARPS, TICKETS


@jit
def sm_step(sm, port, launch, config, context, now):
    """One core cycle. On return ``wake`` is the next cycle in which a step would do more than count.

    A part is visited only when it has something to do: in other cycles its step would change nothing.
    """
    count_cycles(sm, now)
    for g in range(MAX_GRIDS):
        sm.ended[g] = 0
    if sm.wheel.count != 0:
        mark(Part.SCOREBOARD)
        _events(sm, config, now)
    if sm.fetch_count != 0:
        mark(Part.FETCH)
        deliver_fetches(sm, config, now)
    mark(Part.LSU)
    # A refused line is offered again after an event of the L1, or when the queue to the crossbar may have room again.
    if now >= sm.memory_wake or port.reply_ready <= now or sm.lsu.refused == QUEUE_FULL:
        _memory_side(sm, port, config, now)
    if sm.lsu.performed.waits != 0:
        _fences(sm, config)
    if sm.lsu.l1.passed_on != NONE:
        _line_arrives(sm, config, now)
    if near_start(sm.lsu) <= now:
        _start_near(sm, port, now)
    queued = i64(sm.lsu.queue.count)
    if sm.tenants & STEPPED != 0:
        mark(Part.MECHANISMS)
        sm.frame.now = now
        _mechanisms(sm, launch, config, context, now)
    if now >= sm.select_wake:
        mark(Part.SCHEDULERS)
        _select(sm, launch, config, context, now)
    if sm.lsu.queue.count != queued:
        mark(Part.LSU)
        sm.memory_wake = min(i64(sm.memory_wake), lsu_wake(sm.lsu, port, config, now))
    if sm.want_fetch != 0:
        mark(Part.FETCH)
        request_fetches(sm, config, port, now)
    mark(Part.LOOP)
    _sleep(sm, port, now)


@inline
def _events(sm, config, now):
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
            refresh(sm, config, slot)
        else:
            release(sm, config, slot, pc, now)
        e = take(sm.wheel, now)


@inline
def _start_near(sm, port, now):
    """Start an access to the scratchpad or to constants, and let the path see what comes behind it."""
    waiting = sm.lsu.queue.entry[sm.lsu.queue.head]
    slot, pc = i64(waiting.warp), i64(waiting.pc)
    place = i64(NONE)
    if waiting.lines != 0:
        if not constants_looked_up(sm, port, now):
            return
        place = i64(waiting.incomplete)
    done = start_near(sm.lsu, now)
    if place == NONE:
        write_back(sm, done, slot, pc, now)
    else:
        sm.constant[place].slot = slot
        sm.constant[place].pc = pc
        sm.constant[place].ready = done
        _line_of_access(sm, place, now)
    _collector_free(sm)
    if sm.lsu.queue.count > 0:
        sm.memory_wake = min(i64(sm.memory_wake), max(head_start(sm.lsu), now + 1))


@jit
def _line_arrives(sm, config, now):
    """A line of instructions or of constants has come from the L2."""
    identity = i64(sm.lsu.l1.passed_on)
    sm.lsu.l1.passed_on = NONE
    if identity < CONSTANTS:
        line_of_code(sm, config, identity)
        return
    sm.lsu.queue.stuck = 0
    places = i64(arrived(sm.constants, identity))
    line_of_constants(sm, config)
    while places != 0:
        _line_of_access(sm, ctz(places), now)
        places = without_lowest(places)


@jit
def _line_of_access(sm, place, now):
    """An access to constants waits for one line less, or has started; after the last one its result is written."""
    access = sm.constant[place]
    access.left -= 1
    if access.left == 0:
        sm.incomplete = i64(sm.incomplete) & ~(i64(1) << place)
        write_back(sm, max(i64(access.ready), now + BACK_END), i64(access.slot), i64(access.pc), now)


@inline
def _collector_free(sm):
    """Choose again, if warps wait for a collector of the load/store unit."""
    if (i64(sm.stalled_pipes) >> PIPE_LSU) & 1 != 0:
        sm.select_wake = 0


@jit
def _late_values(sm, token, number):
    """A memory instruction whose values lines and requests have is done."""
    warp = sm.warps[number // TICKETS]
    if token.delivered == 0 and not is_store(token.kind):
        write_late(sm.lsu, warp, instruction_of(warp, i64(token.pc)), number)
    answered(sm.lsu.performed, i64(token.epoch))


@jit
def _fences(sm, config):
    """Let warps go on that wait at a fence for what has been performed now."""
    performed = sm.lsu.performed
    advance(performed)
    waits = i64(performed.waits) & ~i64(sm.ready)
    while waits != 0:
        slot = ctz(waits)
        waits = without_lowest(waits)
        if performed.until[slot] < performed.oldest:
            refresh(sm, config, slot)


@inline
def _memory_side(sm, port, config, now):
    """Step the LSU and the L1, and let the instructions that they have completed write back."""
    lsu = sm.lsu
    held, queued = held_by_lsu(sm), i64(lsu.queue.count)
    lsu_step(lsu, port, config, now)
    write = lsu.write
    if write.valid != 0:
        warp = sm.warps[write.warp]
        write_values(warp, instruction_of(warp, i64(write.pc)), write)
    completed = take_completed(lsu)
    while completed >= 0:
        token = lsu.token[completed]
        if token.late != 0:
            _late_values(sm, token, completed)
        write_back(sm, i64(token.ready), completed // TICKETS, i64(token.pc), now)
        completed = take_completed(lsu)
    if lsu.queue.count != queued:
        _collector_free(sm)
    if held_by_lsu(sm) != held:
        sm.select_wake = 0
    if lsu.fault.code != Fault.NONE:
        sm.fault = lsu.fault.code
        sm.fault_warp = lsu.fault.token // TICKETS
        sm.fault_pc = lsu.fault.pc
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
            mark(Part.MECHANISMS)
            delivered = without_lowest(delivered)
    if update(frame, addressof(sm)):
        sm.select_wake = 0
    if i64(frame.leaving) | i64(frame.context.moving) | i64(sm.leaving) | i64(sm.saved) != 0:
        leave(sm, launch, config, i64(frame.leaving | frame.context.moving), now)
    if sm.tenants & HAS_CONTEXT != 0:
        frame.context.wake = call(frame.context.step, frame.context.handle, addressof(sm))
    for k in range(sm.lsu.clients.count):
        sm.memory_wake = min(i64(sm.memory_wake), i64(sm.lsu.clients.client[k].wake))


@inline_once
def _select(sm, launch, config, context, now):
    """Issue, and see when the next choice of warps can differ from this one."""
    sm.select_wake = NEVER
    wake = select(sm, launch, config, context, now)
    sm.select_wake = min(i64(sm.select_wake), wake)
    waiting = i64(sm.memory_wait)
    others = i64(sm.resident) & ~(waiting | i64(sm.at_barrier))
    sm.memory_bound = NOT_BOUND
    if waiting != 0:
        sm.memory_bound = ALL_WAIT if others == 0 else SOME_WAIT


@inline
def _sleep(sm, port, now):
    """The next cycle in which any part has something to do."""
    wake = min(i64(sm.select_wake), i64(sm.memory_wake), i64(port.reply_ready), near_start(sm.lsu))
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
    if frame.context.step != 0:
        wake = min(wake, i64(frame.context.wake))
    return wake


@jit
def sm_quiet(sm):
    """Whether nothing is left to do: no CTA, no memory instruction, no event."""
    left = sm.ctas_resident | sm.lsu.tickets.in_flight | sm.wheel.count | sm.fetch_count | sm.want_fetch
    lsu = sm.lsu
    for k in range(lsu.clients.count):
        left |= lsu.clients.client[k].valid | (lsu.l1.stats.tokens_in - lsu.l1.stats.tokens_out)
    return left == 0


@jit
def sm_reset(sm, index, launch, config):
    """An empty SM, from one whose first :data:`ZEROED` bytes are zero. Its frame's tenants are the host's matter."""
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
    sm.incomplete = 0
    lsu_reset(sm.lsu, config)
    read_cache_reset(sm.code, config.instruction_cache, config.instruction_cache.prefetch, CODE)
    read_cache_reset(sm.constants, config.constant_cache, i64(0), CONSTANTS)
    if config.constant_cache.kept == 0:
        invalidate(sm.constants)


ZEROED: int = SM.fields["fetch"][1]  # type: ignore[index]
"""Bytes at the front of an SM, up to this field, that are zero when a launch begins.

Of the other fields, some are reset above, and the rest is written before it is read. Lines of instructions stay from
launch to launch; those of constants do only if the description says so, since the host may write constants.
"""
