"""The scoreboard: what the next instruction of each warp waits for, and what those on their way will write."""

from __future__ import annotations

from lockstep.models.core.frame import (
    ATOMIC,
    HAS_LISTENERS,
    HAS_OPERANDS,
    LOAD,
    OTHER,
    STORE,
    SYNC,
    WRITTEN,
    emit_of_warp,
)
from lockstep.models.core.state import instruction_of, is_access
from lockstep.models.core.warp import PUT_OFF
from lockstep.models.execution.isa import Control, Flag, Group, Space
from lockstep.models.jit import i64, inline, inline_once, jit, popcount
from lockstep.models.lsu.gates import closed
from lockstep.models.lsu.performed import all_performed
from lockstep.models.lsu.tokens import is_load, is_store, request_kind
from lockstep.models.marks import Part, mark


@inline
def kind_of(config, instruction):
    """The kind of an instruction, for gates."""
    if instruction.group == Group.CONTROL:
        op = instruction.op
        synchronises = op == Control.BARRIER or op == Control.ARRIVE or op == Control.REDUCE or op == Control.FENCE
        return SYNC if synchronises else OTHER
    if not is_access(instruction):
        return OTHER
    space = instruction.space
    if space == Space.SHARED or space == Space.CONST or space == Space.PARAM:
        return OTHER
    request = request_kind(config, instruction)
    if is_load(request):
        return LOAD
    return STORE if is_store(request) else ATOMIC


@inline
def _fence_waits(sm, instruction, slot):
    """Whether a fence whose scope is beyond the CTA must wait for what its SM has not performed yet."""
    return sm.lsu.carried != 0 and instruction.sub != 0 and not all_performed(sm.lsu.performed, slot)


@jit
def refresh(sm, config, slot):
    """Find out anew what a warp waits for: after an issue, a write-back, a fetch or a jump."""
    before = mark(Part.SCOREBOARD)
    _refresh(sm, config, slot)
    mark(before)


@inline_once
def _refresh(sm, config, slot):
    """The same, but for marks."""
    bit = i64(1) << slot
    sm.select_wake = 0
    sm.ready = i64(sm.ready) & ~bit
    sm.memory_wait = i64(sm.memory_wait) & ~bit
    warp = sm.warps[slot]
    sm.by_pipe[warp.pipe] &= ~bit
    sm.by_kind[warp.kind] &= ~bit
    if i64(sm.blocked) & bit != 0 or warp.buffered == 0 or warp.put_off_count == PUT_OFF:
        return
    instruction = instruction_of(warp, warp.pc)
    busy = i64(warp.pending_predicates & instruction.pneed)
    from_memory = i64(0)
    for k in range(4):
        busy |= i64(warp.pending[k] & instruction.need[k])
        from_memory |= i64(warp.from_memory[k] & instruction.need[k])
    if instruction.group == Group.CONTROL:
        if instruction.op == Control.EXIT:
            busy |= i64(warp.pending_predicates) | i64(warp.outstanding) | i64(warp.put_off_count)
            for k in range(4):
                busy |= i64(warp.pending[k])
                from_memory |= i64(warp.from_memory[k])
        elif instruction.op == Control.FENCE and (warp.outstanding != 0 or _fence_waits(sm, instruction, slot)):
            busy = i64(1)
            from_memory = i64(1)
    if busy != 0:
        if from_memory != 0:
            sm.memory_wait = i64(sm.memory_wait) | bit
        return
    warp.pipe = config.pipelines[instruction.category].pipe
    sm.ready = i64(sm.ready) | bit
    sm.by_pipe[warp.pipe] |= bit
    warp.kind = kind_of(config, instruction)
    if warp.kind == LOAD and sm.lsu.carried != 0 and sm.lsu.path.delivers != 0:
        if i64(instruction.flags) & Flag.VOLATILE != 0:
            warp.kind = STORE  # the path may exchange a warp's loads, and must not exchange these
    sm.by_kind[warp.kind] |= bit


@inline
def held_by_lsu(sm):
    """Slots whose next instruction the load/store unit does not let issue."""
    kinds = sm.by_kind
    held = closed(sm.lsu, i64(kinds[LOAD]), i64(kinds[STORE] | kinds[ATOMIC]), i64(kinds[SYNC]))
    if sm.tenants & HAS_OPERANDS != 0:
        # What was delivered in this cycle is in the LSU, but the path's masks do not know of it yet.
        held |= i64(sm.ordered | sm.lsu.gates.entered) & ~i64(kinds[OTHER])
    return held


@inline
def hold(warp, instruction, memory):
    """Mark the results of an instruction as pending; returns how many registers it writes."""
    written = i64(0)
    for k in range(4):
        warp.pending[k] |= instruction.writes[k]
        if memory:
            warp.from_memory[k] |= instruction.writes[k]
        written += popcount(i64(instruction.writes[k]))
    warp.pending_predicates = warp.pending_predicates | instruction.pwrites
    return written


@jit
def hold_sources(warp, instruction):
    """Keep the sources of an instruction from being written before they are delivered."""
    for k in range(4):
        warp.pending[k] |= instruction.need[k]
    warp.pending_predicates = warp.pending_predicates | instruction.pneed


@jit
def release_sources(warp, instruction):
    """Let the sources of a delivered instruction be written."""
    for k in range(4):
        warp.pending[k] &= ~(instruction.need[k] & ~instruction.writes[k])
    warp.pending_predicates = warp.pending_predicates & ~(instruction.pneed & ~instruction.pwrites)


@inline
def release(sm, config, slot, pc, now):
    """An instruction's results are written."""
    warp = sm.warps[slot]
    instruction = instruction_of(warp, pc)
    for k in range(4):
        warp.pending[k] &= ~instruction.writes[k]
        warp.from_memory[k] &= ~instruction.writes[k]
    warp.pending_predicates = warp.pending_predicates & ~instruction.pwrites
    if is_access(instruction):
        warp.outstanding -= 1
    if sm.tenants & HAS_LISTENERS != 0:
        emit_of_warp(sm.frame.events, WRITTEN, now, slot, pc, i64(warp.present), i64(0))
    refresh(sm, config, slot)
