"""Registers in the memory hierarchy: the shards' accesses to the L1, as one of its clients.

Register *r* of warp slot *w* has line ``r * MAX_WARPS + w``; behind all of them are the shards' compressed lines, by
group, then by shard. A value enters its line when the L1 accepts the store, and is read when the L1 answers the fetch.
The L1 writes lines back and never fetches one for a store.

If the L1's lines are shorter than a register, each of its accesses is several, one after the other. A store's value
enters with the last of them; a fetch is answered when all of them are.
"""

from __future__ import annotations

from lockstep.models.execution.isa import LANES, REGISTERS_PHYSICAL, Fault
from lockstep.models.jit import addressof, assign, call, i64, inline, jit
from lockstep.models.lsu.faults import fail
from lockstep.models.memory.l1 import HIT, LOCAL_DROP, LOCAL_LAST, LOCAL_LOAD, LOCAL_STORE
from lockstep.models.regless.register_compressor import group_and_slot
from lockstep.models.regless.state import ANSWERS, COMP, at_config
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.regless.parameters import LINES_OF_SM, MAX_REGISTERS, Access

FETCH, FETCH_LAST, STORE, DROP, FETCH_LINE, STORE_LINE = (int(kind) for kind in Access)
LINE_BYTES = 4 * LANES
COMPRESSED = MAX_REGISTERS * MAX_WARPS  # the first of the compressed lines

# Of the fields of a fetch, as its token: where each begins.
SLOT, LINE, PATTERN, EXPAND, INSTALL = 8, 14, 15, 18, 19


@inline
def is_fetch(kind):
    return kind == FETCH or kind == FETCH_LAST or kind == FETCH_LINE


@inline
def _line(config, kind, number, group, slot):
    """The line of a register, or the compressed line of a group of the slot's shard."""
    schedulers = i64(config.core.schedulers)
    compressed = COMPRESSED + group * schedulers + slot % schedulers
    return compressed if kind == FETCH_LINE or kind == STORE_LINE else number * MAX_WARPS + slot


@inline
def _parts(config, kind):
    """How many lines of the L1 an access needs; a compressed line is one."""
    return i64(1) if kind == FETCH_LINE or kind == STORE_LINE else LINE_BYTES // i64(config.l1.line_bytes)


@inline
def _slot(state, lsu, payload):
    return i64(payload.warp) * i64(at_config(i64(lsu.config)).core.schedulers) + i64(payload.shard)


@inline
def arbitrate(state, sm):
    """The connections to the arbiter: which access the L1 sees next. Returns whether hardware differs."""
    arbiter = state.hardware.shard_arbiter
    valid = i64(arbiter.io.c.access.valid)
    for k in range(i64(at_config(i64(sm.config)).core.schedulers)):
        access, request = state.shard[k].register_compressor.io.o.access, arbiter.io.i.request[k]
        full = is_fetch(i64(access.payload.kind)) and state.queues[k].fetches == ANSWERS
        request.valid = i64(access.valid != 0 and not full)
        valid |= request.valid
        if request.valid != 0:
            assign(request.payload, access.payload)
    if valid == 0:  # nor was one valid in the last cycle
        return i64(0)
    arbiter.io.i.accepted = 0
    different = call(arbiter.binding.comb, arbiter.binding.handle, addressof(arbiter.io))
    if arbiter.io.c.access.valid != 0:
        entry = sm.lsu.clients.client[state.client]
        entry.wake = sm.frame.now + 1
    return different


@jit
def ask(state, lsu):
    """Show the L1 what the arbiter has chosen."""
    entry, config = lsu.clients.client[state.client], at_config(i64(lsu.config))
    access = state.hardware.shard_arbiter.io.c.access
    entry.valid = access.valid
    if access.valid == 0:
        return i64(NEVER)
    payload = access.payload
    kind, number, slot = i64(payload.kind), i64(payload.number), i64(_slot(state, lsu, payload))
    if kind == FETCH or kind == FETCH_LINE:
        entry.kind = LOCAL_LOAD
    elif kind == FETCH_LAST:
        entry.kind = LOCAL_LAST
    else:
        entry.kind = LOCAL_DROP if kind == DROP else LOCAL_STORE
    entry.size = config.l1.line_bytes
    entry.address = state.base + _line(config, kind, number, i64(payload.group), slot) * LINE_BYTES
    entry.address += i64(state.queues[payload.shard].part) * i64(entry.size)
    token = number | slot << SLOT | i64(kind == FETCH_LINE) << LINE | i64(payload.pattern) << PATTERN
    entry.token = token | i64(payload.expand) << EXPAND | i64(payload.install) << INSTALL
    return i64(lsu.now) + 1


@jit
def accepted(state, lsu):
    """The L1 takes the access: a store's value is in its line from now on."""
    arbiter, config = state.hardware.shard_arbiter, at_config(i64(lsu.config))
    waiting = state.queues[arbiter.io.c.access.payload.shard]
    waiting.part += 1
    state.counts.requests += 1
    if waiting.part < _parts(config, i64(arbiter.io.c.access.payload.kind)):
        return i64(0)
    waiting.part = 0
    arbiter.io.i.accepted = 1
    if call(arbiter.binding.comb, arbiter.binding.handle, addressof(arbiter.io)) != 0:
        fail(lsu, Fault.DIFFERENCE, i64(0))
    payload, counts = arbiter.io.c.access.payload, state.counts
    shard, kind = i64(payload.shard), i64(payload.kind)
    queues = state.queues[shard]
    state.shard[shard].register_compressor.io.i.access.ready = arbiter.io.c.request[shard].ready
    queues.busy |= COMP
    slot = i64(_slot(state, lsu, payload))
    if is_fetch(kind):
        queues.fetches += 1
        counts.lines_fetched += kind == FETCH_LINE
        if kind != FETCH_LINE or payload.expand != 0:
            hit = lsu.clients.client[state.client].code == HIT
            counts.l1_hits += hit
            counts.l1_misses += not hit
    elif kind == DROP:
        counts.drops += 1
    else:
        counts.raw_stores += kind == STORE
        counts.line_stores += kind == STORE_LINE
        assign(state.kept[_line(config, kind, i64(payload.number), i64(payload.group), slot)], payload)
    return i64(0)


@jit
def answered(state, lsu):
    """The L1 answers a fetch: its line is read."""
    config = at_config(i64(lsu.config))
    token = i64(lsu.clients.client[state.client].answer)
    slot = (token >> SLOT) & (MAX_WARPS - 1)
    number = token & (MAX_REGISTERS - 1)
    kind = FETCH_LINE if (token >> LINE) & 1 != 0 else FETCH
    if kind == FETCH:
        place = slot * MAX_REGISTERS + number
        state.come[place] += 1
        if state.come[place] < _parts(config, kind):
            return i64(0)
        state.come[place] = 0
    queues = state.queues[slot % i64(config.core.schedulers)]
    answer = queues.answer[(i64(queues.first) + i64(queues.answers)) % ANSWERS]
    queues.answers += 1
    answer.token = token
    schedulers = i64(config.core.schedulers)
    group, _ = group_and_slot(state.shard[slot % schedulers].register_compressor.state, slot // schedulers, number)
    assign(answer, state.kept[_line(config, kind, number, group, slot)])
    return i64(0)


@inline
def show_answer(queues, compressor, schedulers):
    """Present the oldest answer to the compressor; it leaves at the clock edge if the compressor is ready.

    Returns whether there is one, or was one in the last cycle.
    """
    io = compressor.io
    before = i64(io.i.answer.valid)
    io.i.answer.valid = i64(queues.answers != 0)
    if queues.answers == 0:
        return before != 0
    answer, payload = queues.answer[queues.first], io.i.answer.payload
    token = i64(answer.token)
    payload.line = (token >> LINE) & 1
    payload.warp = ((token >> SLOT) & (MAX_WARPS - 1)) // schedulers
    payload.number = token & (MAX_REGISTERS - 1)
    payload.pattern = (token >> PATTERN) & 7
    payload.expand = (token >> EXPAND) & 1
    payload.install = (token >> INSTALL) & 1
    assign(payload, answer)
    if io.o.answer.ready != 0:
        queues.first = (queues.first + 1) % ANSWERS
        queues.answers -= 1
        queues.fetches -= 1
    return True


@inline
def base(sm):
    """The device address of an SM's registers."""
    return REGISTERS_PHYSICAL + i64(sm.index) * LINES_OF_SM * LINE_BYTES
