"""Golden model of ``rtl/scheduling/warp_scheduler.py``, which documents the policies."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, ctz, i64, inline, jit, popcount, record, slots, without_lowest
from lockstep.models.masks import next_after
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS, SCHEDULERS

LRR, GREEDY_RR, GTO, OLDEST, TWO_LEVEL, SIMPLE_P, REGION_P = range(len(SCHEDULERS))

PORTS = ports("scheduling.warp_scheduler")
STATE = record(
    [
        ("live", "i8"),  # slots between start and finish
        ("active", "i8"),  # two-level: the active set, kept while another policy is chosen
        ("filled", "i8"),  # two-level: how many were active a cycle ago, the one that became active then too
        ("waiting", "i8"),  # two-level: slots that reported a long latency a cycle ago
        ("paused", "i8"),  # the classes, as the ports gave them a cycle ago
        ("secondary", "i8"),
        ("owner", "i8"),
        ("non_owner", "i8"),
        ("urgent", "i8"),  # slots whose patience has ended
        ("passed", "i8"),  # slots whose number of passes is not zero, the urgent ones too
        ("last", "i8"),  # slot that issued last
        ("greedy", "i8"),  # ``last`` still holds the warp that issued
        ("promoted", "i8"),  # two-level: slot that became active last
        ("held", "i8"),  # simple-p, region-p: the first in ``order`` has the priority
        ("warps", "i8"),  # live warps
        ("order", "u1", (MAX_WARPS,)),  # their slots by age, circularly: from the holder of the priority, or the oldest
        ("oldest", "i8"),  # where in ``order``
        ("passes", "u2", (MAX_WARPS,)),  # grants to higher classes since a slot's own, up to ``patience``
    ]
)


@jit
def reset(state, io):
    """The state after reset. There are no registered outputs."""
    clear(state)
    state.last = MAX_WARPS - 1
    state.promoted = MAX_WARPS - 1


@inline
def _first(state, mask):
    """The first in the order, of a mask of live slots, not empty."""
    k = 0
    while (mask >> i64(state.order[k])) & 1 == 0:
        k += 1
    return i64(state.order[k])


# ------------------------------------------------------------------------------------------------------------- classes


@inline
def _classified(masks):
    """The slots that some masks, of the state or of the ports, do not leave in the class of those in none."""
    return i64(masks.paused) | i64(masks.secondary) | i64(masks.owner) | i64(masks.non_owner)


@inline
def _among(mask, preferred):
    """Those bits of a mask that are preferred, or all if none is."""
    return mask & preferred if mask & preferred != 0 else mask


@jit
def _highest(state, mask):
    """The slots of a mask that are in its highest class."""
    mask = _among(mask, ~state.paused)
    mask = _among(mask, ~state.secondary)
    return _among(_among(mask, state.owner), state.owner | ~state.non_owner)


@jit
def _lowest(state, mask):
    """The slots of a mask that are in its lowest class."""
    mask = _among(mask, state.paused)
    mask = _among(mask, state.secondary)
    return _among(_among(mask, ~state.owner), state.non_owner & ~state.owner)


@jit
def _lower(state, warp):
    """The slots in lower classes than a slot's."""
    paused, secondary, owner, non_owner = (
        state.paused, state.secondary, state.owner, state.non_owner & ~state.owner
    )  # fmt: skip
    bit = i64(1) << warp
    lower = i64(0) if paused & bit != 0 else paused
    alike = paused if paused & bit != 0 else ~paused
    if secondary & bit != 0:
        alike &= secondary
    else:
        lower |= alike & secondary
        alike &= ~secondary
    if owner & bit != 0:
        lower |= alike & ~owner
    elif non_owner & bit == 0:
        lower |= alike & non_owner
    return lower


# --------------------------------------------------------------------------------------------------------------- cycle


@inline
def _candidates(state, io):
    """The slots that may be granted."""
    requesting = i64(io.i.request) & state.live
    return requesting & (state.active | state.urgent) if io.i.policy == TWO_LEVEL else requesting


@jit
def _foremost(state, candidates):
    """Of the slots that may be granted, those among which the policy decides."""
    overdue = candidates & state.urgent
    return overdue if overdue != 0 else _highest(state, candidates)


@jit
def _grant(state, io, candidates):
    """Grant one of some slots, as the policy says."""
    if candidates == 0:
        io.c.grant.valid = 0
        io.c.grant.warp = 0
        io.c.granted = 0
        return
    policy = io.i.policy
    greedy = policy == GREEDY_RR or policy == GTO
    if greedy and state.greedy != 0 and (candidates >> state.last) & 1 != 0:
        warp = state.last
    elif policy <= GREEDY_RR or policy == TWO_LEVEL:
        warp = next_after(candidates, state.last)
    else:
        warp = _first(state, candidates)
    io.c.grant.valid = 1
    io.c.grant.warp = warp
    io.c.granted = i64(1) << warp


@jit
def comb(state, io):
    """The grant, from this cycle's requests."""
    candidates = _candidates(state, io)
    if candidates != 0 and _classified(state) | state.urgent != 0:
        candidates = _foremost(state, candidates)
    _grant(state, io, candidates)
    return i64(0)


@jit
def _clear(state, gone):
    """Forget how often slots were passed over."""
    state.urgent &= ~gone
    gone &= state.passed
    state.passed &= ~gone
    while gone != 0:
        state.passes[ctz(gone)] = 0
        gone = without_lowest(gone)


@jit
def _pass_over(state, io, warp):
    """Count a grant to a slot for all that it passes over."""
    overdue = state.urgent >> warp & 1
    _clear(state, i64(1) << warp)
    if io.i.patience == 0 or overdue != 0:
        return
    rest = i64(io.i.request) & state.live & _lower(state, warp) & ~state.urgent
    state.passed |= rest
    while rest != 0:
        s = ctz(rest)
        state.passes[s] += 1
        if state.passes[s] == io.i.patience:
            state.urgent |= i64(1) << s
        rest = without_lowest(rest)


@inline
def _staying(state, io):
    """The live warps that neither end nor make room for others at the end of this cycle."""
    return state.live & ~i64(io.i.start) & ~i64(io.i.finish)


@jit
def _yielding(state, warp):
    """Two-level: the mask of the active warp that leaves its place to a pending one; empty if none does."""
    if state.active == 0:
        return i64(0)
    lowest = _lowest(state, state.active)
    return lowest & _lower(state, warp) & i64(1) << next_after(lowest, state.promoted)


@jit
def _contender(state, io, pending):
    """Two-level, where there are classes: the pending warp that becomes active; -1 for none."""
    warp = next_after(_highest(state, pending), state.promoted)
    if state.filled >= i64(io.i.active_warps) and _yielding(state, warp) == 0:
        return i64(-1)
    return warp


@inline
def _activated(state, io):
    """Two-level: the pending warp that becomes active at the end of this cycle, unless it ends; -1 for none."""
    pending = state.live & ~state.waiting & ~state.active
    if pending == 0:
        return i64(-1)
    if _classified(state) != 0:
        return _contender(state, io, pending)
    return i64(-1) if state.filled >= i64(io.i.active_warps) else next_after(pending, state.promoted)


@jit
def _activate(state, io):
    """Two-level: the active warps of the next cycle."""
    warp = _activated(state, io)
    if warp >= 0:
        if state.filled >= i64(io.i.active_warps):
            state.active &= ~_yielding(state, warp)
        state.active |= i64(1) << warp
        state.promoted = warp
    state.filled = popcount(state.active)
    state.waiting = _staying(state, io) & i64(io.i.long_latency)
    state.active &= _staying(state, io) & ~state.waiting


@inline
def _shifts(state, io, issued):
    """simple-p, region-p: whether the priority leaves its holder, which does not end, at the end of this cycle."""
    holder = i64(state.order[0])
    staying = _staying(state, io)
    if state.held == 0 or (staying >> holder) & 1 == 0:
        return False
    if io.i.policy == SIMPLE_P:
        waiting = i64(io.i.global_wait)
        return (waiting >> holder) & 1 != 0 and staying & ~waiting != 0
    return issued and io.i.hint != 0 and i64(io.c.grant.warp) == holder


@jit
def _leave(state, gone):
    """Take slots out of the order."""
    count = oldest = 0
    for k in range(state.warps):
        slot = i64(state.order[k])
        if k == state.oldest:
            oldest = count
        if (gone >> slot) & 1 == 0:
            state.order[count] = slot
            count += 1
    state.warps = count
    state.oldest = oldest if oldest < count else 0


@jit
def _hold(state, shifts):
    """simple-p, region-p: the first in the order has the priority, after its holder went to the end if it shifts."""
    state.held = 0 if state.warps == 0 else 1
    if not shifts:
        return
    holder = state.order[0]
    for k in range(1, state.warps):
        state.order[k - 1] = state.order[k]
    state.order[state.warps - 1] = holder
    state.oldest = (state.oldest if state.oldest != 0 else state.warps) - 1


@jit
def _enter(state, start):
    """Put slots that start into the order, after the youngest."""
    count = popcount(start)
    where = state.oldest if state.oldest != 0 else state.warps
    for k in range(state.warps - 1, where - 1, -1):
        state.order[k + count] = state.order[k]
    state.oldest += count if state.oldest != 0 else 0
    state.warps += count
    while start != 0:
        state.order[where] = ctz(start)
        start = without_lowest(start)
        where += 1


@jit
def _follow(state, io, issued):
    """What changes at a clock edge beside the warp that issued last."""
    start, finish = i64(io.i.start), i64(io.i.finish)
    if issued and _classified(state) | state.passed != 0:
        _pass_over(state, io, state.last)
    if io.i.policy == TWO_LEVEL:
        _activate(state, io)
    shifts = io.i.policy >= SIMPLE_P and _shifts(state, io, issued)
    if start | finish != 0:
        if (start >> state.last) & 1 != 0:
            state.greedy = 0
        _clear(state, start | finish)
        _leave(state, start | finish)
        state.live = state.live & ~finish | start
    if io.i.policy >= SIMPLE_P:
        _hold(state, shifts)
    if start != 0:
        _enter(state, start)


@jit
def _classify(state, io):
    """Take the classes for the next cycle."""
    state.paused = i64(io.i.paused)
    state.secondary = i64(io.i.secondary)
    state.owner = i64(io.i.owner)
    state.non_owner = i64(io.i.non_owner)


@inline
def _reclassified(state, io):
    """Whether the classes of the next cycle are others."""
    return (
        (state.paused ^ i64(io.i.paused)) | (state.secondary ^ i64(io.i.secondary))
        | (state.owner ^ i64(io.i.owner)) | (state.non_owner ^ i64(io.i.non_owner))
    ) != 0  # fmt: skip


@jit
def step(state, io):
    """One clock edge, after :func:`comb`."""
    issued = io.c.grant.valid != 0 and io.i.refused == 0
    if issued:
        state.last = i64(io.c.grant.warp)
        state.greedy = 1
    if io.i.policy >= TWO_LEVEL or io.i.start | io.i.finish | _classified(state) | state.passed != 0:
        _follow(state, io, issued)
    if _classified(state) | _classified(io.i) != 0:
        _classify(state, io)
    return i64(0)


@jit
def _moves(state, io):
    """Without a grant, a start or a finish: whether active warps or the priority change at the end of this cycle."""
    if io.i.policy == TWO_LEVEL:
        waiting = state.live & i64(io.i.long_latency)
        rests = waiting == state.waiting and state.active & waiting == 0 and state.filled == popcount(state.active)
        return not rests or _activated(state, io) >= 0
    return (state.held == 0 and state.live != 0) or _shifts(state, io, False)


@jit
def idle(state, io):
    """Steps, after :func:`comb` and with these inputs held, that change nothing."""
    if io.c.grant.valid != 0 or io.i.start | io.i.finish != 0 or _reclassified(state, io):
        return i64(0)
    return i64(0) if io.i.policy >= TWO_LEVEL and _moves(state, io) else i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
