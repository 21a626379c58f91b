"""Why a warp does not issue: one definition, for profiles, traces and whoever explains a launch that got stuck.

It is read from the SM's state after a step, and holds for all cycles up to the next one. ``spec/causes.py`` says what
each cause means.
"""

from __future__ import annotations

from lockstep.models.core.events import WHEEL
from lockstep.models.core.frame import UNEXPLAINED, explain
from lockstep.models.core.scoreboard import held_by_lsu
from lockstep.models.core.state import PIPE_LSU, instruction_of, is_access
from lockstep.models.core.warp import PUT_OFF
from lockstep.models.execution.isa import Control, Group, Space
from lockstep.models.jit import addressof, ctz, i64, inline, jit, pointer_to, without_lowest
from lockstep.models.lsu.queue import ENTRIES
from lockstep.spec.causes import CAUSES
from lockstep.spec.parameters import CONFIG

MEMORY, CONSTANT_CACHE, CONSTANTS, SCRATCHPAD, ARITHMETIC, OPERANDS, BRANCH, BARRIER = range(8)
INSTRUCTION_CACHE, FETCH, CAPACITY, PRELOADS, METADATA, DRAINING, SHARE, MECHANISM, LSU, PIPELINE = range(8, 18)
NOT_SELECTED, NONE = range(18, 20)

assert list(CAUSES) == (
    "memory constant_cache constants scratchpad arithmetic operands branch barrier "
    "instruction_cache fetch capacity preloads metadata draining share mechanism lsu pipeline not_selected"
).split()

at_config = pointer_to(CONFIG)


@jit
def cause(sm, slot, now):
    """Why a resident warp has not issued in cycle ``now``, the first one that is not counted yet, as an index."""
    bit = i64(1) << slot
    warp = sm.warps[slot]
    if i64(sm.at_barrier) & bit != 0:
        return i64(BARRIER)
    if i64(sm.blocked) & bit != 0:
        return i64(OPERANDS) if _is_put_off(warp) else i64(BRANCH)
    if warp.buffered == 0:
        if i64(sm.lacking) & bit != 0:
            return i64(CONSTANT_CACHE)
        return i64(INSTRUCTION_CACHE) if i64(sm.refetch | sm.refused_fetch) & bit != 0 else i64(FETCH)
    if warp.put_off_count == PUT_OFF:
        return i64(OPERANDS)
    if i64(sm.memory_wait) & bit != 0:
        return i64(MEMORY)
    if i64(sm.ready) & bit == 0:
        return _awaited(sm, warp, slot)
    return _held_up(sm, warp, slot, now)


@inline
def _is_put_off(warp):
    """Whether the warp's next instruction has issued, and decides where it goes on as soon as it has its operands."""
    count = i64(warp.put_off_count)
    return count != 0 and warp.put_off[(i64(warp.put_off_first) + count - 1) % PUT_OFF].pc == warp.pc


@jit
def _held_up(sm, warp, slot, now):
    """Why a warp has not issued that could: all that its next instruction needs is there."""
    bit = i64(1) << slot
    k = slot % i64(at_config(i64(sm.config)).core.schedulers)
    io = sm.warp_scheduler[k].io
    if i64(sm.frame.seen.held) & bit != 0:
        why = i64(explain(sm.frame, addressof(sm), slot))
        return i64(MECHANISM) if why == UNEXPLAINED else why
    if i64(io.i.request) & bit != 0:
        return i64(MECHANISM) if io.i.refused != 0 and io.c.grant.warp == slot else i64(NOT_SELECTED)
    if io.c.grant.valid == 0 and sm.next_issue[k] > now:
        return i64(NOT_SELECTED)
    if held_by_lsu(sm) & bit != 0:
        return i64(LSU)
    if (i64(sm.stalled_pipes) >> i64(warp.pipe)) & 1 != 0:
        return i64(LSU) if warp.pipe == PIPE_LSU else i64(PIPELINE)
    return i64(NOT_SELECTED)


# --------------------------------------------------------------------------------------- results that a warp waits for


@jit
def _awaited(sm, warp, slot):
    """Of which kind the result is that a warp's next instruction needs, and that no access through the L1 brings."""
    found = i64(OPERANDS) if warp.put_off_count != 0 else i64(ARITHMETIC)
    if warp.outstanding == 0:
        return found
    following = instruction_of(warp, warp.pc)
    to_end = following.group == Group.CONTROL and following.op == Control.EXIT
    if to_end and sm.lsu.tickets.used[slot] != 0:
        return i64(MEMORY)
    places = i64(sm.incomplete)
    while places != 0:
        access = sm.constant[ctz(places)]
        places = without_lowest(places)
        if access.slot == slot and (to_end or _needs(following, instruction_of(warp, i64(access.pc)))):
            return i64(CONSTANT_CACHE)
    for k in range(sm.lsu.queue.count):
        waiting = sm.lsu.queue.entry[(i64(sm.lsu.queue.head) + k) % ENTRIES]
        if waiting.warp == slot:
            found = min(found, _kind_of(warp, following, i64(waiting.pc), to_end))
    return min(found, _written_later(sm.wheel, warp, following, slot, to_end))


@jit
def _written_later(wheel, warp, following, slot, to_end):
    """The same, of results whose time is known: they stand in the wheel. NONE: of no kind."""
    found = i64(NONE)
    for word in range(WHEEL // 64):
        buckets = i64(wheel.occupied[word])
        while buckets != 0:
            e = i64(wheel.head[(word << 6) + ctz(buckets)])
            buckets = without_lowest(buckets)
            while e >= 0:
                event = wheel.event[e]
                if event.warp == slot and event.pc >= 0:
                    found = min(found, _kind_of(warp, following, i64(event.pc), to_end))
                e = i64(event.next)
    return found


@inline
def _needs(following, earlier):
    """Whether an instruction needs a result of an earlier one of its warp."""
    common = i64(following.pneed & earlier.pwrites)
    for k in range(4):
        common |= i64(following.need[k] & earlier.writes[k])
    return common != 0


@jit
def _kind_of(warp, following, pc, to_end):
    """Of which kind the result of an instruction on its way is, if a warp's next one needs it; else NONE."""
    earlier = instruction_of(warp, pc)
    if not (to_end or _needs(following, earlier)):
        return i64(NONE)
    if not is_access(earlier):
        return i64(ARITHMETIC)
    space = i64(earlier.space)
    if earlier.group == Group.TEXTURE or space == Space.GLOBAL or space == Space.LOCAL:
        return i64(MEMORY)
    return i64(CONSTANTS) if space == Space.CONST or space == Space.PARAM else i64(SCRATCHPAD)
