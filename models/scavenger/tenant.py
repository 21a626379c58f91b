"""Scavenger in an SM: what fills the frame slots around ``scavenger_unit``.

The primary kernel is the grid in the first place, the secondary that in the second (``models/session.py``). In a cycle
the unit sees what happens in it, and its clock edge is made when the cycle is counted; so its outputs hold in the next.

* ``gates``: which warps and requests it lets each kernel have (``shares``), and what it sees of the SM in this cycle.
* ``limits``: how many CTAs each may have. Those beyond it leave, the last that came first (``models/preemption``).
* ``events``, ``monitors``: what it sees of instructions, requests and CTAs; its clock.

Pairs of CTAs are loaded when kernels meet whose pairs are others than those of before (``pairs``). While the secondary
is nowhere near, the primary has all, whatever the unit says.
"""

from __future__ import annotations

from typing import Any

from lockstep.models.blocks import instance
from lockstep.models.core.frame import (
    ATOMIC,
    CTA_RESUMED,
    CTA_START,
    ISSUE,
    KINDS,
    LOAD,
    SENT,
    STORE,
    UNEXPLAINED,
    WARP_START,
)
from lockstep.models.core.placement import fits_beside
from lockstep.models.core.state import LAUNCH, SM
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import (
    addressof,
    call,
    clear,
    ctz,
    i64,
    inline,
    jit,
    pointer_to,
    popcount,
    record,
    slots,
    without_lowest,
)
from lockstep.models.observe import causes
from lockstep.models.scavenger import scavenger_unit
from lockstep.models.scavenger.pairs import PAIRS, find_pairs
from lockstep.models.scavenger.shares import outstanding, window
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, MAX_CTAS, MAX_SCHEDULERS, layout
from lockstep.spec.scavenger.control import OUTSTANDING_BITS, End, State
from lockstep.spec.scavenger.parameters import UNIT, Scavenger
from lockstep.spec.scavenger.prediction import BUCKETS
from lockstep.spec.scavenger.statistics import ENDS, STATES

PRIMARY, SECONDARY = range(2)
RUNNING = int(State.RUNNING)
MOST = (1 << OUTSTANDING_BITS) - 1

COUNTS = record(
    [
        *((state.name.lower(), "i8") for state in STATES),  # cycles
        *((f"ended_{end.name.lower()}", "i8") for end in ENDS),  # runs
        ("shared", "i8"),  # cycles of runs in which both kernels have CTAs here
        ("profiles", "i8"),
        ("predicted", "i8"),  # instructions per cycle, as the unit has them, added up over profiles
        ("target", "i8"),  # ... and over shared cycles
        ("instructions", "i8"),  # of the primary in shared cycles
        ("primary_warps", "i8"),  # x shared cycles
        ("primary_requests", "i8"),
        ("primary_limit", "i8"),
        ("secondary_limit", "i8"),
        ("wrongly_issued", "i8"),  # instructions of warps that may not
    ]
)
GAUGES = record(
    [
        ("running", "i8"),  # 1 in a run
        ("target", "i8"),
        ("primary_warps", "i8"),
        ("primary_requests", "i8"),
        ("primary_limit", "i8"),
        ("secondary_limit", "i8"),
    ]
)
STATE = record(
    [
        ("scavenger", layout(Scavenger)),
        ("counts", COUNTS),
        ("gauges", GAUGES),
        ("gate", "i8"),
        ("limit", "i8"),
        ("monitor", "i8"),
        ("began", "i8"),
        ("primary", "i8"),  # the number of its launch, ...
        ("secondary", "i8"),
        ("begun", "i8"),  # ... and of the launch whose first CTA was the last to come here
        ("leave", "i8"),  # places of CTAs that are to leave
        ("closed", "i8"),  # grids of which no further one may come
        ("company", "i8"),  # the secondary has a CTA here, or may get one
        ("shared", "i8"),  # this cycle is one of a run, and both have CTAs here
        ("pairs", PAIRS),
        ("loaded", "i8"),  # of them
        ("sampled", "i8"),  # schedulers that have issued an instruction of the primary in this cycle ...
        ("sample", "i8", (MAX_SCHEDULERS,)),  # ... and the number of it
        ("sampler", "i8"),  # the scheduler whose sample is taken first
        ("reached", "i8", (2,)),  # buckets of the primary's instructions since ``since`` ...
        ("known", "i8", (2,)),  # ... and in the time before
        ("since", "i8"),
        ("first", "i8"),  # of the primary's warps by age, the first one that is active
        ("active", "i8", (2,)),  # warp slots of each kernel that may issue
        ("allowed", "i8", (2,)),  # how many ...
        ("chosen_from", "i8", (2,)),  # ... of these warp slots
        ("assigned", "i8"),  # CTAs that had come by then
        ("seen_ctas", "i8"),  # that were here when ``fits`` was found
        ("seen_assigned", "i8"),
        ("scavenger_unit", instance(UNIT, scavenger_unit.STATE)),
    ]
)

at_launch, at_config = pointer_to(LAUNCH), pointer_to(CONFIG)


# --------------------------------------------------------------------------------------------------- what happens in it


@jit
def hear(state, sm):
    """What the unit counts of instructions, requests, warps and CTAs."""
    events, i = sm.frame.events, state.scavenger_unit.io.i
    kind = i64(events.kind)
    if kind == ISSUE:
        slot = i64(events.slot)
        i.issued |= i64(1) << slot
        closed = i64(sm.frame.gate[state.gate].closed[sm.warps[slot].kind])
        state.counts.wrongly_issued += (closed >> slot) & 1
        if events.grid == PRIMARY:
            _issued(state, sm, i)
    elif kind == SENT:
        i.requests += i64(events.grid == PRIMARY)
    elif kind == WARP_START:
        i.started |= i64(1) << i64(events.slot)
    elif kind == CTA_RESUMED:
        i.started |= i64(sm.ctas[events.cta].warps)
    elif kind == CTA_START and events.grid == PRIMARY and state.begun != state.primary:
        state.begun = state.primary
        i.begins = 1
    return i64(0)


@inline
def _is_access(kind):
    """Whether instructions of a kind access memory beyond the SM."""
    return kind == LOAD or kind == STORE or kind == ATOMIC


@inline
def _issued(state, sm, i):
    """An instruction of the primary."""
    events = sm.frame.events
    slot, lanes = i64(events.slot), i64(events.lanes)
    bucket = i64(events.pc) % BUCKETS
    i.instructions += 1
    i.lanes += popcount(lanes)
    i.memory_instructions += i64(lanes != 0 and _is_access(i64(sm.warps[slot].kind)))
    scheduler = slot % i64(at_config(i64(sm.config)).core.schedulers)
    state.sampled |= i64(1) << scheduler
    state.sample[scheduler] = bucket
    state.reached[bucket >> 6] |= i64(1) << (bucket & 63)


@inline
def _sample(state, i, schedulers):
    """Of the instructions of a cycle one is counted by its number: schedulers take turns."""
    i.sample.valid = i64(state.sampled != 0)
    for turn in range(schedulers):
        k = (i64(state.sampler) + turn) % schedulers
        if (state.sampled >> k) & 1 != 0:
            i.sample.payload = state.sample[k]
            state.sampler = (k + 1) % schedulers
            state.sampled = 0
            return


# ------------------------------------------------------------------------------------------------------------ its clock


@jit
def see(state, sm):
    """Clock the unit for the cycles that are counted; what happened did so in the first of them."""
    cycles = i64(sm.frame.seen.cycles)
    unit = state.scavenger_unit
    io, binding = unit.io, unit.binding
    if state.sampled != 0:
        _sample(state, io.i, i64(at_config(i64(sm.config)).core.schedulers))
    different = _edge(state, io, binding)
    _forget(io.i)
    cycles -= 1
    while cycles > 0:
        passed = min(i64(call(binding.idle, binding.handle, addressof(io))), cycles)
        if passed > 0:
            call(binding.skip, binding.handle, passed)
            _count(state, io, passed)
            cycles -= passed
        else:
            different |= _edge(state, io, binding)
            cycles -= 1
    if different != 0:
        sm.fault = Fault.DIFFERENCE
    _show(state, io.o)
    return NEVER


@inline
def _edge(state, io, binding):
    """One clock edge."""
    _count(state, io, i64(1))
    before = i64(io.o.state)
    different = call(binding.step, binding.handle, addressof(io))
    o, counts = io.o, state.counts
    if o.state == RUNNING and before != RUNNING:
        counts.profiles += 1
        counts.predicted += i64(o.predicted)
    if o.ends.valid != 0:
        _count_end(counts, i64(o.ends.payload))
    return different


@inline
def _forget(i):
    """What happens in one cycle does not in the next."""
    i.clear = i.begins = i.load.valid = 0
    i.instructions = i.lanes = i.memory_instructions = i.requests = 0
    i.sample.valid = 0
    i.issued = i.started = 0


@jit
def _count(state, io, cycles):
    """Count cycles by the outputs that they had."""
    counts, o = state.counts, io.o
    stage = i64(o.state)
    counts.free += cycles * i64(stage == State.FREE)
    counts.clearing += cycles * i64(stage == State.CLEARING)
    counts.profiling += cycles * i64(stage == State.PROFILING)
    counts.targeting += cycles * i64(stage == State.TARGETING)
    counts.alone += cycles * i64(stage == State.ALONE)
    counts.running += cycles * i64(stage == RUNNING)
    if state.shared != 0:
        counts.shared += cycles
        counts.target += cycles * i64(o.target)
        counts.instructions += i64(io.i.instructions)
        counts.primary_warps += cycles * i64(o.primary_warps)
        counts.primary_requests += cycles * i64(o.primary_requests)
        counts.primary_limit += cycles * i64(o.primary_limit)
        counts.secondary_limit += cycles * i64(o.secondary_limit)


@jit
def _count_end(counts, why):
    """A run has ended."""
    counts.ended_lanes += i64(why == End.LANES)
    counts.ended_requests += i64(why == End.REQUESTS)
    counts.ended_pcs += i64(why == End.PCS)
    counts.ended_length += i64(why == End.LENGTH)
    counts.ended_fallback += i64(why == End.FALLBACK)
    counts.ended_kernel += i64(why == End.KERNEL)
    counts.ended_gone += i64(why == End.GONE)


@inline
def _show(state, o):
    """The gauges; of no run they are 0."""
    gauges, running = state.gauges, i64(o.state == RUNNING)
    gauges.running = running
    gauges.target = running * i64(o.target)
    gauges.primary_warps = running * i64(o.primary_warps)
    gauges.primary_requests = running * i64(o.primary_requests)
    gauges.primary_limit = running * i64(o.primary_limit)
    gauges.secondary_limit = running * i64(o.secondary_limit)


# ------------------------------------------------------------------------------------------------------------ its gates


@jit
def update(state, sm):
    """What each kernel may issue in this cycle, and what the unit sees of it."""
    launch, config, now = at_launch(i64(sm.launch)), at_config(i64(sm.config)), i64(sm.frame.now)
    io = state.scavenger_unit.io
    if state.began == 0:
        _begin(state, io, now)
    _meet(state, sm, launch, config, io.i)
    wake = min(_load(state, io.i, now), _look_on(state, now))
    _see_ctas(state, sm, launch, config, io.i)
    _limit(state, sm, io.o)
    shared = io.o.state == RUNNING and sm.ctas_of[PRIMARY] != 0 and sm.ctas_of[SECONDARY] != 0
    state.shared = i64(shared)
    _activate(state, sm, io, shared)
    primary, secondary = outstanding(sm)
    io.i.primary_outstanding = min(primary, MOST)
    io.i.secondary_outstanding = min(secondary, MOST)
    io.i.stalled = i64(sm.lsu.refused != 0)
    _close(state, sm, io.o, shared, primary, secondary)
    if _happens(io.i):
        return now + 1
    binding = state.scavenger_unit.binding
    return min(wake, now + 1 + i64(call(binding.idle, binding.handle, addressof(io))))


@inline
def _begin(state, io, now):
    state.began = 1
    state.primary = state.secondary = state.begun = -1
    state.since = now
    clear(io.i)
    io.i.percent = state.scavenger.target


@inline
def _happens(i):
    """Whether the unit sees what is over in the next cycle; how long it is idle holds for inputs that stay."""
    return i.clear | i.begins | i.load.valid | i.requests != 0 or i.started != 0


@inline
def _there(sm, launch, grid):
    """Whether a grid has a CTA here, or may get one."""
    return sm.ctas_of[grid] != 0 or launch.grids[grid].left != 0 or (i64(sm.frame.context.out) >> grid) & 1 != 0


@jit
def _meet(state, sm, launch, config, i):
    """Where other kernels meet, the unit forgets the pairs of those before, and gets theirs."""
    state.company = i64(_there(sm, launch, SECONDARY))
    first = i64(launch.grids[PRIMARY].number) if _there(sm, launch, PRIMARY) else i64(state.primary)
    second = i64(launch.grids[SECONDARY].number) if state.company != 0 else i64(state.secondary)
    if first == state.primary and second == state.secondary:
        return
    others = find_pairs(state.pairs, launch, config)
    if first != state.primary or others:
        i.clear = 1
        state.loaded = 0
        i.primary_cta_warps = launch.grids[PRIMARY].warps if state.pairs.count != 0 else 0
        i.secondary_cta_warps = launch.grids[SECONDARY].warps if state.pairs.count != 0 else 0
    state.primary, state.secondary = first, second


@jit
def _load(state, i, now):
    """A pair in each cycle after that in which the unit has forgotten the others. Returns when the next one comes."""
    if state.loaded == state.pairs.count:
        return i64(NEVER)
    if i.clear == 0:
        pair = state.pairs.pair[state.loaded]
        i.load.valid = 1
        i.load.payload.primary = pair.primary
        i.load.payload.secondary = pair.secondary
        state.loaded += 1
    return now + 1


@jit
def _look_on(state, now):
    """If the primary has reached nothing new for long enough, another of its warps becomes active, and another waits.

    Returns when to look again.
    """
    patience = i64(state.scavenger.patience)
    if now >= state.since + patience:
        fresh = i64(0)
        for k in range(2):
            fresh |= i64(state.reached[k]) & ~i64(state.known[k])
            state.known[k] = state.reached[k]
            state.reached[k] = 0
        state.first += i64(fresh == 0)
        state.since = now
    return i64(state.since) + patience


@jit
def _see_ctas(state, sm, launch, config, i):
    """The CTAs here, and those of the primary that may come."""
    i.primary_ctas = sm.ctas_of[PRIMARY]
    i.secondary_ctas = sm.ctas_of[SECONDARY]
    i.left = i64(launch.grids[PRIMARY].left != 0 or i64(sm.frame.context.out) & (1 << PRIMARY) != 0)
    i.writing = i64(sm.frame.context.moving != 0)
    if sm.assigned != state.seen_assigned or sm.ctas_resident != state.seen_ctas:
        state.seen_assigned, state.seen_ctas = sm.assigned, sm.ctas_resident
        room = sm.ctas_of[PRIMARY] < launch.grids[PRIMARY].per_sm
        i.fits = i64(room and fits_beside(sm, launch, config, PRIMARY, i64(MAX_CTAS)))


@jit
def _activate(state, sm, io, shared):
    """Which warps of each kernel may issue, of those that are at no barrier, and what of the primary is ready."""
    i, o = io.i, io.o
    second = i64(sm.second)
    i.primary_resident = i64(sm.resident) & ~second
    i.secondary_resident = i64(sm.resident) & second
    here = i64(sm.resident) & ~i64(sm.at_barrier) & ~_slots_of(sm, i64(state.leave | sm.frame.context.moving))
    if shared:
        stays = sm.assigned == state.assigned
        state.assigned = sm.assigned
        _allow(state, sm, PRIMARY, here & ~second, i64(o.primary_warps), i64(state.first), stays)
        _allow(state, sm, SECONDARY, here & second, i64(o.secondary_warps), i64(0), stays)
    else:
        state.assigned = -1
        state.active[PRIMARY] = here & ~second
        state.active[SECONDARY] = here & second
    counted = here & ~second if state.scavenger.gated_slack != 0 else i64(state.active[PRIMARY])
    i.active = popcount(counted)
    i.ready = popcount(counted & i64(sm.ready))


@inline
def _slots_of(sm, places):
    """The warp slots of the CTAs in some places."""
    slots = i64(0)
    while places != 0:
        slots |= i64(sm.ctas[ctz(places)].slots)
        places = without_lowest(places)
    return slots


@jit
def _allow(state, sm, kernel, here, most, first, stays):
    """Of the warps of a kernel in these slots, let the oldest be active, from the ``first`` on."""
    key = most | first << 32
    if stays and here == state.chosen_from[kernel] and key == state.allowed[kernel]:
        return
    state.chosen_from[kernel] = here
    state.allowed[kernel] = key
    state.active[kernel] = window(sm, here, most, first)


@jit
def _close(state, sm, o, shared, primary, secondary):
    """What must not issue in this cycle."""
    gate, second = sm.frame.gate[state.gate], i64(sm.second)
    here = i64(sm.resident) & ~i64(sm.at_barrier)
    closed = here & ~(i64(state.active[PRIMARY]) | i64(state.active[SECONDARY])) if shared else i64(0)
    accesses = closed
    if shared:
        requests = i64(o.primary_requests) + i64(o.secondary_requests)
        if secondary >= o.secondary_requests:
            accesses |= here & second
        if primary >= requests - secondary:
            accesses |= here & ~second
    for kind in range(KINDS):
        gate.closed[kind] = accesses if _is_access(kind) else closed


@jit
def explain(state, sm):
    """A slot that is closed has used up the share of its kernel."""
    slot = i64(sm.frame.asked)
    closed = i64(0)
    for kind in range(KINDS):
        closed |= i64(sm.frame.gate[state.gate].closed[kind])
    return i64(causes.SHARE) if (closed >> slot) & 1 != 0 else i64(UNEXPLAINED)


def waits(state: Any, sm: Any, slot: int) -> str:
    """What a warp waits for that its kernel's share holds back."""
    entry = sm["frame"]["gate"][int(state["gate"])]
    closed = any(int(mask) >> slot & 1 for mask in entry["closed"])
    return "its kernel's share of active warps or requests (Scavenger)" if closed else ""


# ----------------------------------------------------------------------------------------------------------- its limits


@jit
def _limit(state, sm, o):
    """How many CTAs each kernel may have, and which leave: those that came last."""
    state.closed = state.leave = 0
    if state.company != 0:
        _limit_one(state, sm, PRIMARY, i64(o.primary_limit))
        _limit_one(state, sm, SECONDARY, i64(o.secondary_limit))


@jit
def _limit_one(state, sm, grid, most):
    here = i64(sm.ctas_of[grid])
    if here >= most:
        state.closed |= i64(1) << grid
    for _ in range(here - most):
        last = i64(-1)
        for place in range(MAX_CTAS):
            cta = sm.ctas[place]
            if cta.live != 0 and cta.grid == grid and (state.leave >> place) & 1 == 0:
                if last < 0 or cta.assigned > sm.ctas[last].assigned:
                    last = i64(place)
        state.leave |= i64(1) << last


@jit
def limit(state, sm):
    """Say so; the gates have found it in this cycle."""
    entry = sm.frame.limit[state.limit]
    entry.ctas = NEVER
    entry.closed = state.closed
    entry.leave = state.leave
    return NEVER


TENANTS = {
    "gates": slots(STATE, SM, update=update, explain=explain),
    "limits": slots(STATE, SM, update=limit),
    "events": slots(STATE, SM, hear=hear),
    "monitors": slots(STATE, SM, see=see),
}
