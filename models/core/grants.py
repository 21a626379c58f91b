"""Grants of schedulers that claims are asked about, all of a cycle together.

While the other schedulers choose, a grant takes what they share with it; all of it is given back before the claims are
asked, since only then it is known which grants issue:

==========================  ============================  ===========================
what                        :func:`note_grant`            :func:`_give_back`
==========================  ============================  ===========================
collectors of a pipeline    ``sm.granted[pipe]`` + 1      ``sm.granted`` = 0
the path's room             ``gates.take_room``           ``gates.return_room``,
                            for an access beyond the SM   where ``grant.room`` is set
==========================  ============================  ===========================
"""

from __future__ import annotations

from lockstep.models.core.frame import ATOMIC, LOAD, STORE
from lockstep.models.core.issue import show
from lockstep.models.core.state import PIPE_KINDS, address_of, at_instruction, is_access
from lockstep.models.jit import addressof, call, ctz, i64, jit, popcount, without_lowest
from lockstep.models.lsu.gates import return_room, take_room
from lockstep.spec.parameters import MAX_SCHEDULERS


@jit
def note_grant(sm, launch, config, context, k, now):
    """Describe a scheduler's grant for the claims, and take what it may need of what the schedulers share."""
    slot = i64(sm.warp_scheduler[k].io.c.grant.warp)
    warp = sm.warps[slot]
    grant = sm.frame.grants[k]
    grant.slot = slot
    grant.pc = warp.pc
    grant.instruction = address_of(warp, warp.pc)
    instruction = at_instruction(i64(grant.instruction))
    show(sm, launch, context, instruction, slot, now)
    grant.lanes = context.mask
    _locate(launch, context, grant, instruction)
    sm.granted[config.pipelines[instruction.category].pipe] += 1
    kinds = sm.by_kind
    beyond = (i64(kinds[LOAD] | kinds[STORE] | kinds[ATOMIC]) >> slot) & 1 != 0
    grant.room = i64(beyond and grant.touched & ~grant.touched_shared != 0)
    if grant.room != 0:
        take_room(sm.lsu.gates, slot)


@jit
def _give_back(sm, granted):
    """Give back what the grants of some schedulers have taken."""
    while granted != 0:
        grant = sm.frame.grants[ctz(granted)]
        granted = without_lowest(granted)
        if grant.room != 0:
            return_room(sm.lsu.gates, i64(grant.slot))
    for pipe in range(PIPE_KINDS):
        sm.granted[pipe] = 0


@jit
def _locate(launch, context, grant, instruction):
    """Find out where a granted instruction would access memory."""
    grant.touched = 0
    grant.touched_shared = 0
    group = i64(instruction.group)
    if grant.lanes == 0 or not is_access(instruction):
        return
    context.probe = 1
    call(i64(launch.execute[group]), addressof(context), i64(grant.instruction))
    context.probe = 0
    grant.touched = context.touched
    grant.touched_shared = context.touched_shared
    for lane in range(context.lanes):
        grant.address[lane] = context.address[lane]


@jit
def ask(sm, granted):
    """Ask the claims about the granted instructions of this cycle, all together; returns the refused schedulers."""
    _give_back(sm, granted)
    frame = sm.frame
    for k in range(MAX_SCHEDULERS):
        frame.grants[k].valid = (granted >> k) & 1
        frame.grants[k].refused = 0
    refused = i64(0)
    for k in range(frame.claims):
        claim = frame.claim[k]
        refused |= call(claim.ask, claim.handle, addressof(sm))
    refused &= granted
    for k in range(MAX_SCHEDULERS):
        frame.grants[k].refused = (refused >> k) & 1
    for k in range(frame.claims):
        claim = frame.claim[k]
        call(claim.commit, claim.handle, addressof(sm))
        frame.waiting |= claim.waiting
    sm.counters.refused_grants += popcount(refused)
    return refused
