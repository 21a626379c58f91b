"""Instructions that have issued and wait for their sources, in their warp's record (the frame slot *operands*).

Between :func:`put_off` and :func:`take_back` such an instruction holds what nothing else may have:

=============================  ======================  =====================================================
what                           of which instructions   taken, and given back
=============================  ======================  =====================================================
``warp.put_off``               all                     an entry of the ring, with its lanes and collector
a collector of its pipeline    all but accesses        up to NEVER; the start is written when it is known
``sm.lsu.queue.collecting``    accesses                + 1, - 1: a collector of the load/store unit
``sm.blocked``                 control                 set, cleared: the warp waits to know where it goes on
``warp.buffered``              control                 + 1, - 1: the instruction stays in the buffer until then
``warp.pending``               all but control         sources set, cleared; results stay, for the execution
``sm.ordered``                 accesses                set, cleared: no other instruction may overtake it
``warp.outstanding``           accesses                + 1, - 1
the path's room                accesses beyond the SM  ``gates.take_room``, ``gates.return_room``
=============================  ======================  =====================================================
"""

from __future__ import annotations

from lockstep.models.core import warp as W
from lockstep.models.core.frame import ATOMIC, LOAD, STORE
from lockstep.models.core.operands import collect
from lockstep.models.core.scoreboard import hold_sources, kind_of, release_sources
from lockstep.models.core.state import is_access
from lockstep.models.execution.isa import Group
from lockstep.models.jit import i64, inline, jit
from lockstep.models.lsu.gates import return_room, take_room
from lockstep.models.time import NEVER


@jit
def put_off(sm, config, context, instruction, slot, pc):
    """Keep an instruction until its sources are there."""
    warp = sm.warps[slot]
    kept = warp.put_off[(i64(warp.put_off_first) + i64(warp.put_off_count)) % W.PUT_OFF]
    warp.put_off_count += 1
    kept.pc = pc
    kept.mask = context.mask
    kept.active = context.active
    kept.collector = collect(sm, config, instruction, i64(NEVER))
    _take(sm, config, instruction, slot)


@jit
def take_back(sm, config, instruction, slot):
    """The sources of a warp's oldest instruction are there, and it executes now."""
    warp = sm.warps[slot]
    warp.put_off_first = (warp.put_off_first + 1) % W.PUT_OFF
    warp.put_off_count -= 1
    _give_back(sm, config, instruction, slot)


@jit
def _take(sm, config, instruction, slot):
    warp = sm.warps[slot]
    bit = i64(1) << slot
    if instruction.group == Group.CONTROL:
        sm.blocked = i64(sm.blocked) | bit
        warp.buffered += 1
        return
    hold_sources(warp, instruction)
    if is_access(instruction):
        sm.lsu.queue.collecting += 1
        sm.ordered = i64(sm.ordered) | bit
        warp.outstanding += 1
        if _takes_room(config, instruction):
            take_room(sm.lsu.gates, slot)


@jit
def _give_back(sm, config, instruction, slot):
    warp = sm.warps[slot]
    bit = i64(1) << slot
    if instruction.group == Group.CONTROL:
        sm.blocked = i64(sm.blocked) & ~bit
        warp.buffered -= 1
        return
    release_sources(warp, instruction)
    if is_access(instruction):
        sm.lsu.queue.collecting -= 1
        sm.ordered = i64(sm.ordered) & ~bit
        warp.outstanding -= 1
        if _takes_room(config, instruction):
            return_room(sm.lsu.gates, slot)


@inline
def _takes_room(config, instruction):
    """Whether an instruction may need the path; it has issued, and its addresses are not known yet."""
    kind = kind_of(config, instruction)
    return kind == LOAD or kind == STORE or kind == ATOMIC
