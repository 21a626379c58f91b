"""RegLess in the SM's frame: registers live in the staging units of the shards, one for each scheduler.

A cycle of the hardware begins when the SM's mechanisms are stepped (:func:`step`): the clock edge of the cycle before,
then what follows from its outputs, and the inputs. It ends with the L1's next cycle. In between, instructions issue and
execute. The file of the frame holds what the staging units have delivered to an instruction that waits or executes, and
results on their way; all else in it is poison.
"""

from __future__ import annotations

from typing import Any

from lockstep.models.core.frame import WARP_END, WARP_START
from lockstep.models.core.state import SM
from lockstep.models.core.warp import PUT_OFF
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, call, clear, ctz, i64, inline, jit, slots, without_lowest
from lockstep.models.lsu.unit import LSU
from lockstep.models.regless import lines
from lockstep.models.regless.gate import explain, update, waits
from lockstep.models.regless.operands import exchange_operands, present_accesses, read
from lockstep.models.regless.regions import (
    announce_region,
    close_region,
    decode_word,
    drop_words,
    place_warps,
    reserve_scratchpads,
    warps_of,
)
from lockstep.models.regless.results import take, write, write_results
from lockstep.models.regless.state import ALL, CM, COMP, MD, OSU, STATE, at_config
from lockstep.models.regless.wires import busy, connect, edge, reset_inputs, with_neighbours
from lockstep.models.time import NEVER

__all__ = ["STATE", "TENANTS", "waits"]


@jit
def step(state, sm):
    """The clock edge of the last cycle in which we were stepped; nothing changes in those since. Then this cycle."""
    now = i64(sm.frame.now)
    config = at_config(i64(sm.config))
    schedulers = i64(config.core.schedulers)
    arbiter = state.hardware.shard_arbiter
    different, wake, first = i64(0), i64(NEVER), i64(0)
    if state.began == 0:
        first = ALL
        _begin(state, sm, schedulers)
    elif arbiter.io.c.access.valid != 0:
        different = call(arbiter.binding.step, arbiter.binding.handle, addressof(arbiter.io))
    for k in range(schedulers):
        queues, shard = state.queues[k], state.shard[k]
        different |= edge(shard, i64(queues.busy))
        touched = first | with_neighbours(i64(queues.busy))
        touched |= _cycle(state, sm, config, queues, shard, k, schedulers, now)
        if touched != 0:
            different |= connect(shard, state.counts, touched)
        queues.busy = busy(shard, touched)
        if _has_work(queues):
            wake = now + 1
        wake = min(wake, i64(queues.due))
    different |= lines.arbitrate(state, sm)
    if arbiter.io.c.access.valid != 0:
        wake = now + 1
    if _deliver(state, sm):
        wake = now + 1
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    return max(wake, now + 1)


@inline
def _has_work(queues):
    """Whether something of a shard will change in the next cycle by itself."""
    waiting = queues.busy | queues.flushes | queues.begins | queues.ended | queues.closing | queues.answers
    return waiting | queues.asked != 0


@jit
def _begin(state, sm, schedulers):
    """A launch begins: no input is valid."""
    state.began = 1
    state.closed = -1
    state.base = lines.base(sm)
    clear(state.hardware.shard_arbiter.io.i)
    for k in range(schedulers):
        reset_inputs(state.shard[k])
        state.queues[k].due = NEVER


@jit
def _cycle(state, sm, config, queues, shard, k, schedulers, now):
    """A cycle of a shard, up to issue; returns the blocks that have other inputs from outside than before."""
    md, cm, osu = shard.region_metadata, shard.capacity_manager.io, shard.operand_staging_unit.io
    if queues.issued != 0:
        present_accesses(state, sm, queues, md, k, schedulers)
    md.io.i.issue.valid = 0
    if md.io.c.last.valid != 0 and call(md.binding.comb, md.binding.handle, addressof(md.io)) != 0:
        sm.fault = Fault.DIFFERENCE
    cm.i.last.valid = 0
    exchange_operands(state, sm, queues, shard)
    write_results(state, sm, config, queues, shard, schedulers, now)
    drop_words(sm, queues, md.io, k, schedulers)
    close_region(state, queues, cm, k, schedulers, now)
    decode_word(state, sm, config, queues, md.io, k, schedulers)
    place_warps(queues, cm, osu)
    if md.io.o.region.valid != 0:
        announce_region(state, sm, queues, i64(md.io.o.region.payload.warp), k, schedulers)
    if cm.o.start.valid != 0:
        started = i64(1) << i64(cm.o.start.payload.warp)
        queues.announced &= ~started
        queues.started |= started
    queues.started &= ~i64(cm.o.active)
    barred = i64(warps_of(i64(sm.at_barrier) & i64(sm.partition[k]), schedulers))
    reserve_scratchpads(sm, queues, i64(queues.unreserved) & ~barred, k, schedulers)
    barred |= i64(queues.unreserved)
    touched = MD if md.io.i.word.valid | md.io.i.flush.valid != 0 else i64(0)
    events = queues.reserved | queues.written | cm.i.begin.valid | cm.i.delivered.valid | (barred ^ i64(cm.i.barred))
    touched |= CM if events != 0 else 0
    touched |= OSU if queues.asked | queues.written | osu.i.finish.valid != 0 else 0
    cm.i.barred = barred
    touched |= COMP if lines.show_answer(queues, shard.register_compressor, schedulers) else 0
    return touched


@inline
def _deliver(state, sm):
    """The oldest instructions of warps that have all their operands execute. Returns whether there are any."""
    left = i64(state.waits)
    while left != 0:
        slot = ctz(left)
        left = without_lowest(left)
        waiting = state.waiting[slot]
        if waiting.left[waiting.first] == 0:
            sm.frame.delivered |= i64(1) << slot
            waiting.first = (waiting.first + 1) % PUT_OFF
            waiting.count -= 1
            if waiting.count == 0:
                state.waits &= ~(i64(1) << slot)
    return sm.frame.delivered != 0


@jit
def hear(state, sm):
    """A warp starts, or ends."""
    events = sm.frame.events
    if events.kind != WARP_START and events.kind != WARP_END:
        return i64(0)
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues, bit = state.queues[events.slot % schedulers], i64(1) << i64(events.slot) // schedulers
    if events.kind == WARP_START:
        queues.begins |= bit
    else:
        queues.flushes |= bit
    sm.frame.operands.wake = min(i64(sm.frame.operands.wake), i64(events.now) + 1)
    return i64(0)


TENANTS: dict[str, dict[str, Any]] = {
    "operands": slots(STATE, SM, read=read, step=step, take=take, write=write),
    "gates": slots(STATE, SM, update=update, explain=explain),
    "events": slots(STATE, SM, hear=hear),
    "l1_clients": slots(STATE, LSU, ask=lines.ask, accepted=lines.accepted, answered=lines.answered),
}
