"""The gate of RegLess: warps issue in active regions whose words are decoded; else it says what a region waits for.

The frame slot *gates*: :func:`update` and :func:`explain`.
"""

from __future__ import annotations

from typing import Any

from lockstep.models.core.frame import KINDS, UNEXPLAINED
from lockstep.models.jit import ctz, i64, inline, jit, popcount, without_lowest, words_i32
from lockstep.models.observe import causes
from lockstep.models.regless.regions import slots_of
from lockstep.models.regless.state import at_config
from lockstep.models.time import NEVER


@jit
def update(state, sm):
    """Warps issue that are active, and whose words of the present region are all decoded."""
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    for k in range(schedulers):
        active, queues = i64(state.shard[k].capacity_manager.io.o.active), state.queues[k]
        if active != queues.active:
            started = i64(sm.frame.now) * popcount(active & ~i64(queues.active))
            state.counts.region_cycles -= started
            state.counts.held_cycles -= started
            state.closed ^= slots_of(active ^ i64(queues.active), k, schedulers)
            queues.active = active
    closed = i64(state.closed) | undecoded(state, sm, schedulers)
    gate = sm.frame.gate[state.gate]
    for kind in range(KINDS):
        gate.closed[kind] = closed
    return i64(NEVER)


@inline
def undecoded(state, sm, schedulers):
    """Active warps with words in their buffer that belong to the next instruction's region."""
    found = i64(0)
    left = i64(sm.worded) & ~i64(state.closed)
    while left != 0:
        slot = ctz(left)
        left = without_lowest(left)
        warp = sm.warps[slot]
        if warp.first_word < words_i32(i64(warp.words_to) + 4 * i64(warp.pc), 1)[0]:
            found |= i64(1) << slot
    for k in range(schedulers):
        queues = state.queues[k]
        if state.shard[k].region_metadata.io.i.word.valid != 0:
            warp = sm.warps[queues.decoded]
            if queues.word < words_i32(i64(warp.words_to) + 4 * i64(warp.pc), 1)[0]:
                found |= i64(1) << i64(queues.decoded)
    return found


@jit
def _cause(state, sm, slot):
    """Why a warp's gate is closed; UNEXPLAINED if it is open, or waits for another mechanism."""
    schedulers = i64(at_config(i64(sm.config)).core.schedulers)
    queues = state.queues[slot % schedulers]
    bit = i64(1) << slot // schedulers
    if (i64(state.closed) >> slot) & 1 == 0:
        return i64(causes.METADATA) if undecoded(state, sm, schedulers) & (i64(1) << slot) != 0 else i64(UNEXPLAINED)
    if i64(queues.draining) & bit != 0:
        return i64(causes.DRAINING)
    if i64(queues.announced) & bit != 0:
        return i64(UNEXPLAINED) if i64(queues.unreserved) & bit != 0 else i64(causes.CAPACITY)
    if i64(queues.started) & bit != 0:
        return i64(causes.PRELOADS)
    return i64(causes.OPERANDS if i64(queues.closing) & bit != 0 else causes.METADATA)


@jit
def explain(state, sm):
    """Why the gate of the warp slot in ``asked`` is closed."""
    return i64(_cause(state, sm, i64(sm.frame.asked)))


WAITS = {
    causes.CAPACITY: "capacity: its region needs more lines than the staging unit of its scheduler has free",
    causes.PRELOADS: "the registers of its region, which are on their way to the staging unit",
    causes.OPERANDS: "the operands of the last instruction of its region",
    causes.METADATA: "the metadata words of its region",
    causes.DRAINING: "results of its last region",
}


def waits(state: Any, sm: Any, slot: int) -> str:
    """What of a region a warp waits for that may not issue."""
    return WAITS.get(int(_cause(state, sm, slot)), "")
