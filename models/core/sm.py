"""One streaming multiprocessor: fetch, scoreboard, issue, pipelines, barriers.

A step is one core cycle: events that are due, fetched instructions, the memory side (``lsu``), one issue per scheduler,
fetch requests. Pipelines and operand collection are reservations: at issue it is known when each register bank, the
pipeline and the result are free or ready, so nothing is stepped while an instruction is on its way. Where this is
not possible (the path to the L1), the state is stepped.

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

from lockstep.models.blocks import instance
from lockstep.models.core import warp as W
from lockstep.models.core.events import (
    EVENT_WHEEL,
    EVENTS,
    NEVER,
    RESERVE,
    UNBLOCK,
    next_event,
    reset_events,
    schedule,
    take,
)
from lockstep.models.core.lsu import (
    LSU,
    is_load,
    issue_memory,
    lsu_full,
    lsu_reset,
    lsu_step,
    lsu_wake,
    request_kind,
    take_completed,
)
from lockstep.models.execution.isa import (
    CONTEXT,
    INSTRUCTION,
    LANES,
    MAX_PREDICATES,
    PT,
    RZ,
    Category,
    Control,
    Fault,
    Group,
    Kind,
    Space,
)
from lockstep.models.jit import addressof, call, ctz, i64, jit, pointer_to, popcount, record, words_i32, words_u32
from lockstep.models.memory.l1 import QUEUE_FULL
from lockstep.models.memory.scratchpad import atomic_degree, conflict_degree
from lockstep.models.scheduling import warp_scheduler
from lockstep.spec.parameters import (
    CATEGORIES,
    MAX_COLLECTORS,
    MAX_CTAS,
    MAX_REGISTER_BANKS,
    MAX_SCHEDULERS,
    MAX_WARPS,
    PIPES,
    TICKETS,
)

PIPE_KINDS = len(PIPES)
PIPE_LSU = PIPES.index("lsu")
MAX_PIPES = 4
FETCHES = 512  # slots of the ring, of which as many are used as fetches can be in flight

at_instruction = pointer_to(INSTRUCTION)
INSTRUCTION_BYTES = INSTRUCTION.itemsize

# Why an SM did not issue in a cycle.
ISSUED, STALLED, IDLE, EMPTY = range(4)

# Counters of one SM. ``sim/statistics.py`` gives them their names and units for users.
COUNTERS = record(
    [
        ("cycles", "i8"),  # with at least one resident CTA
        ("issued_cycles", "i8"),  # at least one instruction issued
        ("active_cycles", "i8"),  # KA: N_act, an issue is under way; one takes ``issue_interval`` cycles
        ("stall_cycles", "i8"),  # a warp was ready, every ready one's pipeline was blocked
        ("idle_cycles", "i8"),  # warps resident, none ready
        ("stall_pipe_cycles", "i8", (PIPE_KINDS,)),  # cycles in which ready warps were held back by this pipeline
        ("scheduler_stall_cycles", "i8"),  # summed over schedulers: could have issued, had warps, issued nothing
        ("memory_wait_cycles", "i8"),  # KA: C_mem
        ("other_idle_cycles", "i8"),  # KA: C_idle
        ("lsu_busy_cycles", "i8"),  # memory instructions wait in the LSU
        ("lsu_stalled_cycles", "i8"),  # the L1 refused a request
        ("resident_warp_cycles", "i8"),
        ("resident_cta_cycles", "i8"),
        ("warp_instructions", "i8"),
        ("thread_instructions", "i8"),
        ("categories", "i8", (len(CATEGORIES),)),  # warp instructions
        ("branches", "i8"),
        ("divergent_branches", "i8"),
        ("barriers", "i8"),
        ("fences", "i8"),
        ("register_reads", "i8"),  # warp registers
        ("register_writes", "i8"),
        ("bank_conflict_cycles", "i8"),  # operand reads that waited for a register bank
        ("scratchpad_accesses", "i8"),  # warp instructions
        ("scratchpad_conflict_cycles", "i8"),
        ("ctas", "i8"),
        ("warps", "i8"),
    ]
)

FETCH = record(
    [
        ("time", "i8"),  # of arrival
        ("warp", "i4"),
        ("epoch", "i4"),
        ("size", "i4"),  # instructions
    ]
)

SM = record(
    [
        ("index", "i8"),
        ("wake", "i8"),  # next cycle in which a step does something
        ("last", "i8"),  # first cycle that is not counted yet
        ("changed", "i8"),  # a warp's readiness, or what it depends on, since the last choice of warps
        ("select_next", "i8"),  # otherwise the next cycle in which the choice could differ
        ("lsu_next", "i8"),  # the next cycle in which the memory side has something to do by itself
        ("resident", "i8"),  # slots with a warp that has not ended
        ("ready", "i8"),  # slots whose next instruction may issue
        ("blocked", "i8"),  # slots that wait for a barrier, a branch
        ("memory_wait", "i8"),  # slots whose next instruction waits for a load
        ("at_barrier", "i8"),
        ("unit", "i8", (PIPE_KINDS,)),  # ready slots by the pipeline of their next instruction
        ("memory", "i8"),  # slots whose next instruction may go to the L1 ...
        ("load", "i8"),  # ... is a load among them
        ("draining", "i8"),  # ... or is a store, an atomic, a barrier or a fence: it waits for what went before
        ("pipe_free", "i8", (PIPE_KINDS, MAX_PIPES)),
        ("collector", "i8", (PIPE_KINDS, MAX_COLLECTORS)),  # start cycles of the last instructions
        ("collector_at", "i8", (PIPE_KINDS,)),
        ("bank_free", "i8", (MAX_REGISTER_BANKS,)),
        ("next_issue", "i8", (MAX_SCHEDULERS,)),
        ("want_fetch", "i8"),  # slots with room in their buffer
        ("fetching", "i8"),  # slots with a fetch on its way
        ("fetch_pointer", "i8"),
        ("fetch_head", "i8"),
        ("fetch_count", "i8"),
        ("fetch_slots", "i8"),
        ("partition", "i8", (MAX_SCHEDULERS,)),  # slots of each scheduler
        ("active_until", "i8"),  # cycle in which the last issue is over
        ("progress", "i8"),  # last cycle in which a warp ended or passed a barrier
        ("ended", "i8"),  # CTAs that ended in this step
        # the last step, repeated while the SM sleeps
        ("outcome", "i8"),
        ("stalled_pipes", "i8"),
        ("idle_schedulers", "i8"),
        ("all_wait_for_memory", "i8"),
        ("ctas_resident", "i8"),
        # where execution stopped
        ("fault", "i8"),
        ("fault_pc", "i8"),
        ("fault_warp", "i8"),
        ("counters", COUNTERS),
        ("fetch", FETCH, (FETCHES,)),
        ("wheel", EVENT_WHEEL),
        ("warp_scheduler", instance("scheduling.warp_scheduler", warp_scheduler.STATE), (MAX_SCHEDULERS,)),
        ("lsu", LSU),
        ("ctas", W.CTA, (MAX_CTAS,)),
        ("warps", W.WARP, (MAX_WARPS,)),
    ]
)

# What all SMs share during a launch.
LAUNCH = record(
    [
        ("code", "i8"),  # host address of the instructions
        ("length", "i8"),
        ("branch_table", "i8"),  # host address, i4
        ("slots", "i8", (len(Group),)),  # addresses of the executing functions
        ("block", "i8", (3,)),
        ("grid", "i8", (3,)),
        ("total", "i8"),  # CTAs
        ("threads", "i8"),  # per CTA
        ("warps", "i8"),  # per CTA
        ("per_sm", "i8"),  # resident CTAs
        ("registers", "i8"),  # per thread
        ("shared_bytes", "i8"),  # of a CTA, with the padding between CTAs
        ("local_bytes", "i8"),
        ("register_file", "i8"),  # host address: u32[sm][slot][register][lane]
        ("predicate_file", "i8"),
        ("scratchpad", "i8"),
        ("local", "i8"),
        ("local_physical", "i8"),
    ]
)


@jit
def reset(sm, index, config):
    """An empty SM. Its counters start at zero; they cover one launch."""
    sm.index = index
    sm.wake = NEVER
    sm.last = 0
    sm.changed = 1
    sm.select_next = 0
    sm.lsu_next = 0
    for p in range(PIPE_KINDS):
        sm.unit[p] = 0
        for k in range(MAX_PIPES):
            sm.pipe_free[p, k] = 0
        for k in range(MAX_COLLECTORS):
            sm.collector[p, k] = 0
        sm.collector_at[p] = 0
    for b in range(MAX_REGISTER_BANKS):
        sm.bank_free[b] = 0
    sm.resident = 0
    sm.memory = 0
    sm.load = 0
    sm.draining = 0
    sm.ready = 0
    sm.blocked = 0
    sm.memory_wait = 0
    sm.at_barrier = 0
    sm.want_fetch = 0
    sm.fetching = 0
    sm.fetch_pointer = 0
    sm.fetch_head = 0
    sm.fetch_count = 0
    sm.fetch_slots = i64(config.core.fetches) * (i64(config.core.fetch_latency) + 1)
    sm.active_until = 0
    sm.progress = 0
    sm.ended = 0
    sm.outcome = EMPTY
    sm.ctas_resident = 0
    sm.fault = Fault.NONE
    reset_events(sm.wheel)
    schedulers = i64(config.core.schedulers)
    for k in range(MAX_SCHEDULERS):
        sm.next_issue[k] = 0
    for k in range(schedulers):
        sm.partition[k] = 0
        for s in range(k, MAX_WARPS, schedulers):
            sm.partition[k] = i64(i64(sm.partition[k]) | i64(1) << s)
        io = sm.warp_scheduler[k].io
        warp_scheduler.reset(sm.warp_scheduler[k].state, io)
        io.i.request = 0
        io.i.start = 0
        io.i.finish = 0
        io.i.long_latency = 0
        io.i.global_wait = 0
        io.i.paused = 0
        io.i.secondary = 0
        io.i.owner = 0
        io.i.non_owner = 0
        io.i.hint = 0
        io.i.refused = 0
        io.i.policy = config.core.scheduler
        io.i.active_warps = config.core.active_warps
        io.i.patience = config.core.patience
    for c in range(MAX_CTAS):
        sm.ctas[c].live = 0
    lsu_reset(sm.lsu, config)


# ------------------------------------------------------------------------------------------------------- the scoreboard


@jit
def _gates(sm, config, c, bit):
    """Note which of the load/store unit's gates the next instruction of a slot has to pass."""
    sm.memory &= ~bit
    sm.load &= ~bit
    sm.draining &= ~bit
    if c.group == Group.CONTROL:
        if c.op == Control.BARRIER or c.op == Control.ARRIVE or c.op == Control.REDUCE or c.op == Control.FENCE:
            sm.draining |= bit
        return
    if c.group != Group.MEMORY and c.group != Group.ATOMIC and c.group != Group.TEXTURE:
        return
    if c.space == Space.SHARED or c.space == Space.CONST or c.space == Space.PARAM:
        return
    sm.memory |= bit
    if is_load(request_kind(config, c)):
        sm.load |= bit
    else:
        sm.draining |= bit


@jit
def _held(sm):
    """Slots that the load/store unit does not let issue."""
    lsu = sm.lsu
    held = sm.memory & (~lsu.admit | lsu.unticketed)
    return i64(held | sm.load & ~lsu.load_ready | sm.draining & ~lsu.drained)


@jit
def refresh(sm, launch, config, s):
    """Recompute what slot ``s`` is waiting for: after an issue, a release, a fetch or a jump."""
    bit = i64(1) << s
    sm.changed = 1
    sm.ready = i64(sm.ready) & ~bit
    sm.memory_wait = i64(sm.memory_wait) & ~bit
    warp = sm.warps[s]
    sm.unit[warp.pipe] &= ~bit
    if i64(sm.blocked) & bit != 0 or warp.buffered == 0:
        return
    c = at_instruction(i64(launch.code) + i64(warp.pc) * INSTRUCTION_BYTES)
    busy = i64(warp.pending_predicates & c.pneed)
    from_memory = i64(0)
    for k in range(4):
        busy |= i64(warp.pending[k] & c.need[k])
        from_memory |= i64(warp.from_memory[k] & c.need[k])
    if c.group == Group.CONTROL:
        if c.op == Control.EXIT:
            busy |= i64(warp.pending_predicates) | i64(warp.outstanding)
            for k in range(4):
                busy |= i64(warp.pending[k])
                from_memory |= i64(warp.from_memory[k])
        elif c.op == Control.FENCE and warp.outstanding != 0:
            busy = i64(1)
            from_memory = i64(1)
    if busy != 0:
        if from_memory != 0:
            sm.memory_wait = i64(sm.memory_wait) | bit
        return
    warp.pipe = config.pipelines[c.category].pipe
    sm.ready = i64(sm.ready) | bit
    sm.unit[warp.pipe] |= bit
    _gates(sm, config, c, bit)


@jit
def _release(sm, launch, config, s, pc):
    """An instruction's results are written: clear its registers in the scoreboard."""
    warp = sm.warps[s]
    c = at_instruction(i64(launch.code) + pc * INSTRUCTION_BYTES)
    for k in range(4):
        warp.pending[k] &= ~c.writes[k]
        warp.from_memory[k] &= ~c.writes[k]
    warp.pending_predicates = warp.pending_predicates & ~c.pwrites
    if c.group == Group.MEMORY or c.group == Group.ATOMIC or c.group == Group.TEXTURE:
        warp.outstanding -= 1
    refresh(sm, launch, config, s)


@jit
def _events(sm, launch, config, now):
    e = take(sm.wheel, now)
    while e >= 0:
        s = i64(sm.wheel.event[e].warp)
        pc = i64(sm.wheel.event[e].pc)
        if pc == UNBLOCK:
            sm.blocked = i64(sm.blocked) & ~(i64(1) << s)
            sm.at_barrier = i64(sm.at_barrier) & ~(i64(1) << s)
            refresh(sm, launch, config, s)
        else:
            _release(sm, launch, config, s, pc)
        e = take(sm.wheel, now)


# ------------------------------------------------------------------------------------------------------------- fetching


@jit
def _fetch_wanted(sm, launch, config, s):
    warp = sm.warps[s]
    if (
        (i64(sm.fetching) >> s) & 1 == 0
        and warp.buffered + config.core.fetch_width <= config.core.instruction_buffer
        and warp.pc + warp.buffered < launch.length
    ):
        sm.want_fetch = i64(sm.want_fetch) | (i64(1) << s)


@jit
def _flush(sm, launch, config, s):
    """The warp jumped: drop what was fetched and what is on its way."""
    warp = sm.warps[s]
    warp.buffered = 0
    warp.epoch += 1
    sm.fetching = i64(sm.fetching) & ~(i64(1) << s)
    _fetch_wanted(sm, launch, config, s)


@jit
def _fetch(sm, launch, config, now):
    """Deliver fetches that are due, then start new ones, round robin over the warps with room in their buffer."""
    while sm.fetch_count > 0 and sm.fetch[sm.fetch_head].time <= now:
        k = i64(sm.fetch_head)
        s = i64(sm.fetch[k].warp)
        warp = sm.warps[s]
        if warp.epoch == sm.fetch[k].epoch:
            was_empty = warp.buffered == 0
            sm.fetching = i64(sm.fetching) & ~(i64(1) << s)
            warp.buffered += sm.fetch[k].size
            if was_empty:
                refresh(sm, launch, config, s)
            _fetch_wanted(sm, launch, config, s)
        sm.fetch_head = (k + 1) % i64(sm.fetch_slots)
        sm.fetch_count -= 1


@jit
def _request_fetches(sm, launch, config, now):
    for _ in range(config.core.fetches):
        want = i64(sm.want_fetch)
        if want == 0:
            return
        above = want & (i64(-1) << i64(sm.fetch_pointer))
        s = ctz(above if above != 0 else want)
        sm.want_fetch = want & ~(i64(1) << s)
        sm.fetching = i64(sm.fetching) | (i64(1) << s)
        sm.fetch_pointer = (s + 1) % MAX_WARPS
        warp = sm.warps[s]
        k = (i64(sm.fetch_head) + i64(sm.fetch_count)) % i64(sm.fetch_slots)
        sm.fetch[k].time = now + i64(config.core.fetch_latency)
        sm.fetch[k].warp = s
        sm.fetch[k].epoch = warp.epoch
        left = i64(launch.length) - i64(warp.pc) - i64(warp.buffered)
        sm.fetch[k].size = min(i64(config.core.fetch_width), left)
        sm.fetch_count += 1


# -------------------------------------------------------------------------------------------------- issue and execution


@jit
def _blocked_pipe(sm, config, p, now):
    """The cycle up to which pipeline ``p`` takes no instruction: no collector is free."""
    if p == PIPE_LSU and lsu_full(sm.lsu, config):
        return i64(NEVER)
    return i64(sm.collector[p, i64(sm.collector_at[p])])


@jit
def _reserve(sm, config, c, s, now, cycles):
    """Reserve register banks, a collector and the pipeline, which is busy for ``cycles``; returns the start cycle."""
    start = now + 1
    banks = i64(config.core.register_banks)
    for k in range(c.reads):
        bank = (s + i64(c.read[k])) % banks
        granted = max(i64(sm.bank_free[bank]), now + 1)
        sm.bank_free[bank] = granted + 1
        start = max(start, granted)
    sm.counters.bank_conflict_cycles += start - now - 1
    sm.counters.register_reads += i64(c.reads)
    p = i64(config.pipelines[c.category].pipe)
    copies = i64(0)
    if p == 0:
        copies = i64(config.pipes.alu)
    elif p == 1:
        copies = i64(config.pipes.sfu)
    elif p == 2:
        copies = i64(config.pipes.dp)
    else:
        copies = i64(config.pipes.lsu)
    best = i64(0)
    for k in range(1, copies):
        if sm.pipe_free[p, k] < sm.pipe_free[p, best]:
            best = i64(k)
    start = max(start, i64(sm.pipe_free[p, best]))
    sm.pipe_free[p, best] = start + max(i64(config.pipelines[c.category].interval), cycles)
    at = i64(sm.collector_at[p])
    sm.collector[p, at] = start
    sm.collector_at[p] = (at + 1) % i64(config.core.collectors)
    return start


@jit
def _hold(warp, c, memory):
    """Mark the results of an instruction as pending."""
    written = i64(0)
    for k in range(4):
        warp.pending[k] |= c.writes[k]
        if memory:
            warp.from_memory[k] |= c.writes[k]
        written += popcount(i64(c.writes[k]))
    warp.pending_predicates = warp.pending_predicates | c.pwrites
    return written


@jit
def _block(sm, s):
    sm.blocked = i64(sm.blocked) | (i64(1) << s)


@jit
def _open_barrier(sm, config, cta, barrier, now):
    """Let the waiters of a completed barrier go on."""
    slots = W.release(cta, barrier)
    later = now + i64(config.pipelines[Category.SYNCHRONIZATION].latency)
    while slots != 0:
        s = ctz(slots)
        slots &= slots - 1
        schedule(sm.wheel, later, s, UNBLOCK)
    sm.progress = now


@jit
def _deadlocked(cta):
    """Every warp that is left waits at a barrier, and none of the barriers is complete."""
    return cta.live > 0 and popcount(i64(cta.waiting)) == cta.live


@jit
def _value(x, c, which, otherwise):
    """A uniform source: the value in the first lane that executes."""
    if c.kind[which] == Kind.IMMEDIATE:
        return i64(c.imm[which])
    if c.kind[which] == Kind.REGISTER:
        return i64(words_u32(i64(x.regs) + i64(c.src[which]) * (4 * LANES), LANES)[ctz(i64(x.mask))])
    return otherwise


@jit
def _predicate(preds, index, negated):
    """A predicate as a lane mask."""
    value = i64(words_u32(preds + i64(index) * 4, 1)[0])
    return ~value & 0xFFFF_FFFF if negated != 0 else value


@jit
def _barrier(sm, launch, config, x, c, s, now):
    warp = sm.warps[s]
    cta = sm.ctas[warp.cta]
    which = _value(x, c, 0, i64(0))
    threads = _value(x, c, 1, i64(0))
    if which < 0 or which >= W.BARRIERS or threads % LANES != 0:
        return i64(Fault.BAD_BARRIER)
    if sm.lsu.reorders != 0 and (sm.lsu.unsent >> s) & 1 != 0:
        return i64(Fault.MEMORY_ORDER)  # the path must have held the barrier back
    sm.counters.barriers += 1
    if c.op == Control.REDUCE:
        votes = _predicate(i64(x.preds), c.psrc, c.psrc_not) & i64(x.mask)
        cta.votes[which] += popcount(votes)
        cta.voters[which] += popcount(i64(x.mask))
    waits = c.op != Control.ARRIVE
    W.arrive(cta, which, s, warp, threads, waits)
    if waits:
        _block(sm, s)
        sm.at_barrier = i64(sm.at_barrier) | (i64(1) << s)
    if W.complete(cta, which):
        if c.op == Control.REDUCE:
            _broadcast(sm, launch, c, cta, which)
        _open_barrier(sm, config, cta, which, now)
    elif waits and _deadlocked(cta):
        return i64(Fault.BARRIER_DEADLOCK)
    return i64(Fault.NONE)


@jit
def _broadcast(sm, launch, c, cta, which):
    """The result of a barrier reduction goes to every lane that waits, in the instruction's destination."""
    votes = i64(cta.votes[which])
    result = votes
    if c.sub == 1:
        result = i64(1) if votes == cta.voters[which] else i64(0)
    elif c.sub == 2:
        result = i64(1) if votes != 0 else i64(0)
    slots = i64(cta.at[which])
    while slots != 0:
        warp = sm.warps[ctz(slots)]
        slots &= slots - 1
        mask = i64(warp.alive)
        if c.dst != RZ:
            registers = words_u32(i64(warp.regs) + i64(c.dst) * (4 * LANES), LANES)
            for lane in range(LANES):
                if (mask >> lane) & 1 != 0:
                    registers[lane] = result
        if c.pdst != PT:
            word = words_u32(i64(warp.preds) + i64(c.pdst) * 4, 1)
            word[0] = (i64(word[0]) & ~mask) | (mask if result != 0 else 0)


@jit
def _end_warp(sm, launch, config, s, now):
    """The last lane of a warp has exited."""
    bit = i64(1) << s
    warp = sm.warps[s]
    cta = sm.ctas[warp.cta]
    sm.resident = i64(sm.resident) & ~bit
    sm.want_fetch = i64(sm.want_fetch) & ~bit
    _block(sm, s)
    sm.warp_scheduler[s % i64(config.core.schedulers)].io.i.finish |= bit
    sm.progress = now
    cta.live -= 1
    cta.warps = i64(cta.warps) & ~bit
    if cta.live == 0:
        sm.ended += 1
        sm.ctas_resident -= 1
        return i64(Fault.NONE)
    for b in range(W.BARRIERS):
        if cta.arrived[b] != 0 and W.complete(cta, b):
            _open_barrier(sm, config, cta, b, now)
    return i64(Fault.BARRIER_DEADLOCK) if _deadlocked(cta) else i64(Fault.NONE)


@jit
def _control(sm, launch, config, x, c, s, now):
    """Branches, exits, barriers. Returns a fault."""
    warp = sm.warps[s]
    op = i64(c.op)
    mask = i64(x.mask)
    limit = i64(config.core.reconvergence_stack)
    start = _reserve(sm, config, c, s, now, i64(1))
    resume = start - 1 + i64(config.pipelines[c.category].latency)
    if op == Control.BRANCH or op == Control.INDEXED:
        sm.counters.branches += 1
        if op == Control.BRANCH:
            if mask != 0 and mask != warp.mask:
                sm.counters.divergent_branches += 1
            fault = W.branch(warp, i64(c.target), i64(c.reconverge), mask, limit)
        else:
            table = words_i32(i64(launch.branch_table) + i64(c.target) * 4, i64(c.imm[3]))
            index = words_u32(i64(x.regs) + i64(c.src[0]) * (4 * LANES), LANES)
            targets = x.address
            for lane in range(LANES):
                if (mask >> lane) & 1 != 0:
                    if i64(index[lane]) >= i64(c.imm[3]):
                        x.fault_lane = lane
                        return i64(Fault.BAD_BRANCH_INDEX)
                    targets[lane] = table[i64(index[lane])]
            before = i64(warp.depth)
            fault = W.branch_indexed(warp, targets, i64(c.reconverge), mask, limit)
            if warp.depth > before + 1:
                sm.counters.divergent_branches += 1
        _block(sm, s)
        schedule(sm.wheel, resume, s, UNBLOCK)
        return fault
    if mask == 0:
        warp.pc += 1
        W.pop_reconverged(warp)
        return i64(Fault.NONE)
    if op == Control.EXIT:
        if W.exit_lanes(warp, mask) != 0:
            return _end_warp(sm, launch, config, s, now)
        return i64(Fault.NONE)
    if op == Control.TRAP:
        return i64(Fault.ASSERT) if c.sub == 1 else i64(Fault.TRAP)
    fault = i64(Fault.NONE)
    if op == Control.BARRIER or op == Control.ARRIVE or op == Control.REDUCE:
        fault = _barrier(sm, launch, config, x, c, s, now)
    elif op == Control.FENCE:
        sm.counters.fences += 1
    warp.pc += 1
    W.pop_reconverged(warp)
    return fault


@jit
def _context(sm, launch, x, warp, s, now):
    """Show the executing functions the warp that issues."""
    cta = sm.ctas[warp.cta]
    x.active = warp.mask
    x.regs = warp.regs
    x.preds = warp.preds
    x.present = warp.present
    x.warp = warp.index
    x.sm = sm.index
    x.slot = s
    x.now = now
    x.shared = cta.shared
    x.local = warp.local
    x.local_physical = warp.local_physical
    for k in range(3):
        x.ctaid[k] = cta.ctaid[k]


@jit
def _issue(sm, launch, config, x, s, now):
    """Issue the next instruction of slot ``s``: execute it, reserve its resources, note what it will write."""
    warp = sm.warps[s]
    pc = i64(warp.pc)
    where = i64(launch.code) + pc * INSTRUCTION_BYTES
    c = at_instruction(where)
    _context(sm, launch, x, warp, s, now)
    mask = i64(warp.mask)
    if c.guard != PT:
        mask &= _predicate(i64(warp.preds), c.guard, c.guard_not)
    x.mask = mask
    counters = sm.counters
    counters.warp_instructions += 1
    counters.thread_instructions += popcount(mask)
    counters.categories[c.category] += 1
    warp.buffered -= 1
    group = i64(c.group)
    if group == Group.CONTROL:
        fault = _control(sm, launch, config, x, c, s, now)
    else:
        x.touched = 0
        x.touched_shared = 0
        fault = i64(0)
        if mask != 0:
            fault = call(i64(launch.slots[group]), addressof(x), where)
        warp.pc += 1
        W.pop_reconverged(warp)
        if group == Group.MEMORY or group == Group.ATOMIC or group == Group.TEXTURE:
            _memory(sm, launch, config, x, c, s, pc, now)
        else:
            start = _reserve(sm, config, c, s, now, i64(1))
            written = _hold(warp, c, False)
            if written != 0 or i64(c.pwrites) != 0:
                schedule(sm.wheel, start - 1 + i64(config.pipelines[c.category].latency), s, pc)
            counters.register_writes += written
    if fault != Fault.NONE:
        sm.fault = fault
        sm.fault_pc = pc
        sm.fault_warp = s
        return
    if (i64(sm.resident) >> s) & 1 != 0:
        if warp.pc != pc + 1:
            _flush(sm, launch, config, s)
        else:
            _fetch_wanted(sm, launch, config, s)
    refresh(sm, launch, config, s)


@jit
def _distinct(x):
    """How many different addresses the lanes touch: constant accesses take a cycle for each."""
    touched = i64(x.touched)
    leader = i64(x.address[ctz(touched)]) if touched != 0 else i64(0)
    others = i64(0)
    for lane in range(x.lanes):
        others |= (i64(x.address[lane]) ^ leader) & -((touched >> lane) & 1)
    if others == 0:
        return i64(1)
    count = i64(0)
    while touched != 0:
        first = i64(x.address[ctz(touched)])
        count += 1
        rest = touched & (touched - 1)
        while rest != 0:
            lane = ctz(rest)
            rest &= rest - 1
            if i64(x.address[lane]) == first:
                touched &= ~(i64(1) << lane)
        touched &= touched - 1
    return count


@jit
def _memory(sm, launch, config, x, c, s, pc, now):
    """Timing of loads, stores, atomics and texture fetches after their execution."""
    warp = sm.warps[s]
    counters = sm.counters
    touched = i64(x.touched)
    in_scratchpad = i64(x.touched_shared)
    cached = touched & ~in_scratchpad
    space = i64(c.space)
    cycles = i64(1)
    latency = i64(config.pipelines[c.category].latency)
    if in_scratchpad != 0:
        counters.scratchpad_accesses += 1
        banks, bank_bytes = i64(config.scratchpad.banks), i64(config.scratchpad.bank_bytes)
        if c.group == Group.ATOMIC:
            cycles = atomic_degree(x, banks, bank_bytes, i64(c.bytes))
        else:
            cycles = conflict_degree(x, banks, bank_bytes, i64(c.bytes), i64(c.vec))
        counters.scratchpad_conflict_cycles += cycles - 1
        latency = i64(config.pipelines[Category.SHARED].latency)
    elif space == Space.CONST or space == Space.PARAM:
        cycles = _distinct(x)
        cached = i64(0)
    start = _reserve(sm, config, c, s, now, cycles)
    warp.outstanding += 1
    written = _hold(warp, c, cached != 0)
    counters.register_writes += written
    done = start - 1 + latency + cycles - 1
    if cached == 0:
        schedule(sm.wheel, done, s, pc)
    else:
        issue_memory(sm.lsu, config, x, c, cached, start, done if in_scratchpad != 0 else i64(0), s, pc)


@jit
def _select(sm, launch, config, x, now):
    """One issue per scheduler. Leaves the result in ``outcome`` and its companions; returns the cycle to look next."""
    wake = i64(NEVER)
    sm.stalled_pipes = 0
    sm.idle_schedulers = 0
    issued = i64(0)
    could = i64(sm.ready)
    schedulers = i64(config.core.schedulers)
    for k in range(schedulers):
        io = sm.warp_scheduler[k].io
        binding = sm.warp_scheduler[k].binding
        requests = i64(0)
        mine = i64(sm.partition[k])
        held = _held(sm)
        if sm.next_issue[k] > now:
            if i64(sm.resident) & mine != 0:
                wake = min(wake, i64(sm.next_issue[k]))
        elif i64(sm.ready) & mine != 0 and sm.wheel.count < EVENTS - RESERVE:
            if held & mine & i64(sm.ready) != 0:
                sm.stalled_pipes |= i64(1) << PIPE_LSU
            for p in range(PIPE_KINDS):
                waiting = i64(sm.unit[p]) & mine & ~held
                if waiting != 0:
                    until = _blocked_pipe(sm, config, p, now)
                    if until <= now:
                        requests |= waiting
                    else:
                        sm.stalled_pipes = i64(sm.stalled_pipes) | (i64(1) << p)
                        wake = min(wake, until)
        io.i.request = requests
        io.i.long_latency = (i64(sm.memory_wait) | i64(sm.at_barrier)) & mine
        io.i.global_wait = i64(sm.memory_wait) & mine
        different = call(binding.comb, binding.handle, addressof(io))
        if io.c.grant.valid != 0:
            s = i64(io.c.grant.warp)
            until = now + i64(config.core.issue_interval)
            sm.next_issue[k] = until
            sm.counters.active_cycles += until - max(now, i64(sm.active_until))
            sm.active_until = until
            issued += 1
            _issue(sm, launch, config, x, s, now)
        elif sm.next_issue[k] <= now and i64(sm.resident) & mine != 0:
            sm.idle_schedulers += 1
        different |= call(binding.step, binding.handle, addressof(io))
        if different != 0:
            sm.fault = Fault.DIFFERENCE
        io.i.start = 0
        io.i.finish = 0
        # A request that was not granted waits for its warp to become active (two-level), which the step may have done.
        if issued == 0 and (requests != 0 or call(binding.idle, binding.handle, addressof(io)) == 0):
            wake = now + 1
    if issued != 0:
        sm.outcome = ISSUED
        return now + 1
    if i64(sm.resident) == 0:
        sm.outcome = EMPTY
    elif could != 0:
        sm.outcome = STALLED
    else:
        sm.outcome = IDLE
    return wake


@jit
def _count(sm, now):
    """Add the cycles since the last step, all alike, to the counters."""
    n = now - i64(sm.last)
    sm.last = now
    if n == 0 or sm.outcome == EMPTY:
        return
    counters = sm.counters
    counters.cycles += n
    outcome = i64(sm.outcome)
    if outcome == ISSUED:
        counters.issued_cycles += n
    elif outcome == STALLED:
        counters.stall_cycles += n
    else:
        counters.idle_cycles += n
    if outcome != ISSUED:
        if sm.all_wait_for_memory != 0:
            counters.memory_wait_cycles += n
        elif outcome == IDLE:
            counters.other_idle_cycles += n
    pipes = i64(sm.stalled_pipes)
    while pipes != 0:
        counters.stall_pipe_cycles[ctz(pipes)] += n
        pipes &= pipes - 1
    counters.scheduler_stall_cycles += i64(sm.idle_schedulers) * n
    counters.resident_warp_cycles += popcount(i64(sm.resident)) * n
    counters.resident_cta_cycles += i64(sm.ctas_resident) * n
    if sm.lsu.busy != 0:
        counters.lsu_busy_cycles += n
    if sm.lsu.refused != 0:
        counters.lsu_stalled_cycles += n


@jit
def _memory_side(sm, port, config, now):
    """Step the LSU and the L1, and let the instructions that they have completed write back."""
    held = _held(sm)
    lsu_step(sm.lsu, port, config, now)
    completed = take_completed(sm.lsu)
    while completed >= 0:
        token = sm.lsu.token[completed]
        schedule(sm.wheel, i64(token.ready), completed // TICKETS, i64(token.pc))
        completed = take_completed(sm.lsu)
    if (i64(sm.stalled_pipes) >> PIPE_LSU) & 1 != 0 and not lsu_full(sm.lsu, config):
        sm.changed = 1
    if _held(sm) != held:
        sm.changed = 1
    if sm.lsu.fault != Fault.NONE:
        sm.fault = sm.lsu.fault
        sm.fault_warp = sm.lsu.fault_token // TICKETS
        sm.fault_pc = sm.lsu.token[sm.lsu.fault_token].pc
    sm.lsu_next = lsu_wake(sm.lsu, port, config, now)


@jit
def step(sm, port, launch, config, x, now):
    """One core cycle. On return ``wake`` is the next cycle in which a step would do more than count.

    A part is visited only when it has something to do: in other cycles its step would change nothing.
    """
    _count(sm, now)
    sm.ended = 0
    if sm.wheel.count != 0:
        _events(sm, launch, config, now)
    if sm.fetch_count != 0:
        _fetch(sm, launch, config, now)
    # A refused line is offered again after an event of the L1, or when the queue to the crossbar may have room again.
    if now >= sm.lsu_next or port.reply_ready <= now or sm.lsu.refused == QUEUE_FULL:
        _memory_side(sm, port, config, now)
    if sm.changed != 0 or now >= sm.select_next:
        sm.changed = 0
        queued = i64(sm.lsu.count)
        sm.select_next = _select(sm, launch, config, x, now)
        if sm.lsu.count != queued:
            sm.lsu_next = min(i64(sm.lsu_next), lsu_wake(sm.lsu, port, config, now))
        waiting = i64(sm.memory_wait)
        resident = i64(sm.resident)
        sm.all_wait_for_memory = 1 if waiting != 0 and (waiting | i64(sm.at_barrier)) & resident == resident else 0
    if sm.want_fetch != 0:
        _request_fetches(sm, launch, config, now)
    wake = min(i64(sm.select_next), i64(sm.lsu_next), i64(port.reply_ready))
    if sm.changed != 0 or sm.want_fetch != 0:
        wake = now + 1
    elif wake > now + 1:
        wake = min(wake, next_event(sm.wheel, now))
        if sm.fetch_count != 0:
            wake = min(wake, i64(sm.fetch[sm.fetch_head].time))
    sm.wake = max(wake, now + 1)


@jit
def quiet(sm):
    """Whether nothing is left to do: no CTA, no memory instruction, no event."""
    left = sm.ctas_resident | sm.lsu.in_flight | sm.wheel.count | sm.fetch_count | sm.want_fetch
    return left == 0


@jit
def start_cta(sm, launch, config, number, now):
    """Place CTA ``number`` into a free slot of this SM, before the SM's step of the same cycle."""
    _count(sm, now)
    sm.wake = now
    sm.changed = 1
    slot = i64(0)
    while sm.ctas[slot].live != 0:
        slot += 1
    cta = sm.ctas[slot]
    cta.index = number
    cta.ctaid[0] = number % i64(launch.grid[0])
    cta.ctaid[1] = number // i64(launch.grid[0]) % i64(launch.grid[1])
    cta.ctaid[2] = number // (i64(launch.grid[0]) * i64(launch.grid[1]))
    cta.live = launch.warps
    cta.waiting = 0
    cta.warps = 0
    for b in range(W.BARRIERS):
        cta.arrived[b] = 0
        cta.at[b] = 0
        cta.votes[b] = 0
        cta.voters[b] = 0
    per_sm = i64(launch.per_sm)
    cta.shared = i64(launch.scratchpad) + (i64(sm.index) * per_sm + slot) * i64(launch.shared_bytes)
    for k in range(launch.warps):
        s = slot * i64(launch.warps) + k
        bit = i64(1) << s
        warp = sm.warps[s]
        position = i64(sm.index) * MAX_WARPS + s
        warp.cta = slot
        warp.index = k
        warp.regs = i64(launch.register_file) + position * i64(launch.registers) * (4 * LANES)
        warp.preds = i64(launch.predicate_file) + position * (4 * (MAX_PREDICATES + 1))
        words_u32(i64(warp.preds), MAX_PREDICATES + 1)[PT] = 0xFFFF_FFFF
        warp.local = i64(launch.local) + position * i64(launch.local_bytes) * LANES
        warp.local_physical = i64(launch.local_physical) + position * i64(launch.local_bytes) * LANES
        lanes = min(i64(launch.threads) - k * LANES, i64(LANES))
        W.start(warp, (i64(1) << lanes) - 1, i64(launch.length))
        warp.epoch += 1
        sm.fetching = i64(sm.fetching) & ~bit
        cta.warps = i64(cta.warps) | bit
        sm.resident = i64(sm.resident) | bit
        sm.blocked = i64(sm.blocked) & ~bit
        sm.warp_scheduler[s % i64(config.core.schedulers)].io.i.start |= bit
        _fetch_wanted(sm, launch, config, s)
    sm.ctas_resident += 1
    sm.counters.ctas += 1
    sm.counters.warps += i64(launch.warps)
    sm.progress = now


__all__ = ["CONTEXT", "COUNTERS", "LAUNCH", "SM", "quiet", "reset", "start_cta", "step"]
