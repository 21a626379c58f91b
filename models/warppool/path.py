"""The path with WarpPool: queue, ``warp_pool``, L1 (Kloosterman's thesis, chapter 3).

This is the unit's surroundings: it enters instructions, generates addresses, offers requests to the L1, returns its
answers and takes the results. The lanes of a result follow from its mapping and its instruction's active lanes. Every
lane of a load must be in exactly one result, and the word that this gives it must be the one at its address. The values
of loads are what ``line_crossbar`` moves from their lines to their lanes, and what ``store_crossbar`` moves from the
lanes of stores to their lines must be what these have written (``models/core/delivery.py``).
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.core.delivery import fill_line, fill_stored
from lockstep.models.execution.isa import LANES, Fault
from lockstep.models.jit import (
    addressof,
    assign,
    call,
    ctz,
    i64,
    inline,
    jit,
    lanes_equal,
    pointer_to,
    record,
    slot,
    without_lowest,
)
from lockstep.models.lsu import line_crossbar, store_crossbar
from lockstep.models.lsu.carried import answer_bytes, take_from_line
from lockstep.models.lsu.clients import next_answer, offer
from lockstep.models.lsu.faults import fail, fail_at
from lockstep.models.lsu.gates import cohort_mask
from lockstep.models.lsu.line_crossbar import lanes_of, word_of
from lockstep.models.lsu.queue import offered, take_head
from lockstep.models.lsu.tokens import VALUES, bytes_of, complete, is_store, lanes_of_line
from lockstep.models.lsu.unit import LSU, accepted
from lockstep.models.memory.fabric import PORT
from lockstep.models.memory.l1 import ATOMIC_ACCESS, HIT, LOAD_BYPASS
from lockstep.models.memory.values import IDENTITIES, copy_line, is_global
from lockstep.models.time import NEVER
from lockstep.models.warppool import warp_pool
from lockstep.spec.mapping import LINE_WORDS, Mapping
from lockstep.spec.parameters import CONFIG, TICKETS, layout
from lockstep.spec.warppool.parameters import MAX_METADATA, WarpPool

CONSECUTIVE, RANGE, RANDOM = int(Mapping.CONSECUTIVE), int(Mapping.RANGE), int(Mapping.RANDOM)
DELIVERIES = 4  # more than a crossbar holds
assert MAX_METADATA <= IDENTITIES
ANSWERS = 4  # more than are between their acceptance and their last result

COUNTS = record(
    [
        ("requests", "i8"),  # loads sent to the L1 ...
        ("merged", "i8"),  # ... and the lines of instructions that they serve
        ("overdue", "i8"),  # stores that went before loads because they had waited too long
        ("by_warp", "i8"),  # core cycles in which the lowest warp goes first, not the oldest request
        ("answers_held", "i8"),  # core cycles in which writeback took no answer of the L1
        ("mappings", "i8", (len(Mapping),)),  # of the merged lines
        ("stores_sent", "i8"),  # lines of stores whose lanes' values are moved, ...
        ("stores_moved", "i8"),  # ... and those that have been
    ]
)

REQUEST = record(
    [
        ("line", "i8"),
        ("lanes", "i8"),  # of an atomic; a load has 0
        ("results", "i8"),  # still to come
    ]
)

LINE = record([("words", "u4", (LINE_WORDS,))])
DELIVERY = record([("token", "i8"), ("pc", "i8")])  # the token may stand for another instruction when values arrive

STORED = record(
    [
        ("token", "i8"),  # which may stand for another instruction when the line arrives
        ("pc", "i8"),
        ("number", "i8"),  # of the line
        ("mask", "i8"),
        ("bytes", "i8"),  # per lane
        ("address", "u4", (LANES,)),
        ("words", "u4", (LINE_WORDS,)),  # the line as it must be, ...
        ("stored", "u1", (LINE_WORDS,)),  # ... and which bytes of each word
    ]
)

STATE = record(
    [
        ("warppool", layout(WarpPool)),
        ("next", "i8"),  # the first cycle that the unit has not seen
        ("counts", COUNTS),
        ("request", REQUEST, (MAX_METADATA,)),  # to the L1, in flight
        ("answer", REQUEST, (ANSWERS,)),  # a ring of those that were answered, ...
        ("bytes", LINE, (ANSWERS,)),  # the lines of these, where lines have values
        ("first", "i8"),  # ... from this one ...
        ("last", "i8"),  # ... to before this one: running numbers
        ("warp_pool", instance("warppool.warp_pool", warp_pool.STATE)),
        ("line_crossbar", instance("lsu.line_crossbar", line_crossbar.STATE)),
        ("line", "u4", (LINE_WORDS,)),  # of the load that the crossbar takes in this cycle
        ("delivery", DELIVERY, (DELIVERIES,)),  # a ring of the loads in the crossbar: ...
        ("delivered", "i8"),  # ... running numbers of the next to enter ...
        ("written", "i8"),  # ... and to leave it
        ("store_crossbar", instance("lsu.store_crossbar", store_crossbar.STATE)),
        ("values", VALUES),  # of the store that this crossbar takes in this cycle
        ("stored", STORED, (DELIVERIES,)),  # a ring of the stores in it, by the counts of those sent and moved
    ]
)

at_state, at_lsu, at_port, at_config = pointer_to(STATE), pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def reset(path, lsu, config):
    """An empty unit, which sees the launch from its first cycle on."""
    lsu.path.reorders = 1
    lsu.gates.cohort_warps = path.warppool.warps_per_queue
    path.next = config.launch.overhead
    path.first = 0
    path.last = 0
    io = path.warp_pool.io
    warp_pool.reset(path.warp_pool.state, io)
    io.i.line_shift = ctz(i64(config.l1.line_bytes))
    lsu.path.delivers = 1
    path.delivered = 0
    path.written = 0
    crossbar = path.line_crossbar.io
    line_crossbar.reset(path.line_crossbar.state, crossbar)
    crossbar.i.line_shift = io.i.line_shift
    crossbar.i.load.valid = 0
    stores = path.store_crossbar.io
    store_crossbar.reset(path.store_crossbar.state, stores)
    stores.i.line_shift = io.i.line_shift
    stores.i.store.valid = 0


@jit
def _word_shift(token):
    """Log2 of the bytes of a word, as mappings count them."""
    return max(i64(token.size), i64(2))


@inline
def _right(token, result, lanes, line, line_shift):
    """Those of the lanes of a result whose address is that of the word that it gives them."""
    where = addressof(token)
    if result.atomic != 0:  # the L1 answers an atomic lane by lane
        return lanes_equal(where, line_shift, 0, line)
    shift = _word_shift(token)
    first = line << line_shift - shift  # word of the line
    if result.mapping == CONSECUTIVE:
        return lanes_equal(where, shift, 1, first)
    if result.mapping == RANGE:
        return lanes_equal(where, shift, 1, first + i64(result.word) - i64(result.thread))
    if result.mapping != RANDOM:
        return lanes_equal(where, shift, 0, first + i64(result.word))
    right = i64(0)
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        if i64(token.address[lane]) >> shift == first + i64(result.words[lane]):
            right |= i64(1) << lane
    return right


@inline
def _gates(path, lsu, io):
    """Which warps may issue what in this cycle: the unit's masks, less the warps that it does not know of yet."""
    entered = i64(lsu.gates.entered)
    loads = entered & i64(lsu.gates.entered_loads)
    io.i.issue = entered
    io.i.issue_load = loads
    lsu.gates.drained = i64(io.o.drained) & ~entered
    lsu.gates.load_ready = i64(io.o.load_ready) & ~(entered & ~loads)
    lsu.gates.entered = 0
    lsu.gates.entered_loads = 0
    admitted = i64(0)
    for q in range(path.warp_pool.state.queues):
        lsu.gates.room[q] = i64(io.o.free[q]) - lsu.gates.staged[q]
        if lsu.gates.room[q] > 0:
            admitted |= cohort_mask(lsu.gates, q)
    lsu.gates.admit = admitted


@inline
def _enter(path, lsu, io, now):
    """Offer the head of the queue to its instruction queue, and generate addresses for what the coalescers take."""
    io.i.enter.valid = 0
    if offered(lsu, now):
        number = take_head(lsu, now)
        token = lsu.token[number]
        payload = io.i.enter.payload
        io.i.enter.valid = 1
        assign(payload, token)
        payload.store = is_store(token.kind)
        payload.atomic = token.kind == ATOMIC_ACCESS
        payload.bypass = token.kind == LOAD_BYPASS
        payload.warp = number // TICKETS
        payload.ticket = number % TICKETS
    for k in range(path.warp_pool.state.coalescers):
        if io.o.generate[k].valid != 0:
            generate = io.o.generate[k].payload
            token = lsu.token[i64(generate.warp) * TICKETS + i64(generate.ticket)]
            for lane in range(path.warp_pool.state.lanes):
                io.i.address[k, lane] = token.address[lane]


@inline
def _of_kind(access, kind):
    """Whether a request is what an instruction of this kind asks for."""
    atomic, bypass = kind == ATOMIC_ACCESS, kind == LOAD_BYPASS
    return access.store == is_store(kind) and access.atomic == atomic and access.bypass == bypass


@inline
def _bytes(lsu, access, first, lanes, line):
    """The bytes that a request accesses, if they matter: of its first instruction's lanes, or of all loads in it."""
    if access.store | access.atomic != 0:
        return bytes_of(lsu, first, lanes)
    low = high = i64(0)
    if access.bypass == 0:
        return low, high
    for j in range(i64(access.count)):
        number = i64(access.slots[j].warp) * TICKETS + i64(access.slots[j].ticket)
        of_low, of_high = bytes_of(lsu, number, lanes_of_line(lsu, number, line))
        low |= of_low
        high |= of_high
    return low, high


@inline
def _access(path, lsu, port, config, io, now):
    """Offer the unit's request to the L1."""
    access = io.o.access.payload
    first = i64(access.slots[0].warp) * TICKETS + i64(access.slots[0].ticket)
    lanes, line = i64(access.mask), i64(access.number)
    identity = i64(access.id)
    low, high = _bytes(lsu, access, first, lanes, line)
    code = offer(lsu, port, config, first, line, lanes, low, high, now, identity)
    if code < 0:
        return
    io.i.access.ready = 1
    if access.store == 0:  # stores have no answer, and no entry
        request = path.request[identity]
        request.line = line
        request.lanes = lanes if access.atomic != 0 else i64(0)
        request.results = i64(access.count)
    if not _of_kind(access, lsu.token[first].kind):
        fail(lsu, Fault.KIND, first)
    if access.store | access.atomic != 0:
        if access.store & lsu.token[first].delivered != 0:
            _send(path, lsu, first, lanes, line)
        if accepted(lsu, first, lanes, line, code) and access.store != 0:
            complete(lsu, first, now)
        return
    io.i.miss = code != HIT  # one that joins an MSHR too, as in the statistics
    counts = path.counts
    counts.requests += 1
    counts.merged += i64(access.count)
    lsu.counts.merged += i64(access.count) - 1
    for j in range(i64(access.count)):
        number = i64(access.slots[j].warp) * TICKETS + i64(access.slots[j].ticket)
        counts.mappings[i64(access.slots[j].mapping)] += 1
        if not _of_kind(access, lsu.token[number].kind):
            fail(lsu, Fault.KIND, number)
        accepted(lsu, number, lanes_of_line(lsu, number, line), line, code)


@inline
def _send(path, lsu, number, lanes, line):
    """Send these lanes of a store to the crossbar, which takes their values in the next cycle."""
    store, token = path.store_crossbar.io.i.store, lsu.token[number]
    store.valid = 1
    store.payload.mask = lanes
    store.payload.size = token.size
    for lane in range(LANES):
        store.payload.place[lane] = i64(token.address[lane]) & 127
    assign(path.values, lsu.values[number])
    stored = path.stored[path.counts.stores_sent % DELIVERIES]
    assign(stored, token)
    stored.token = number
    stored.number = line
    stored.mask = lanes
    fill_stored(lsu, number, lanes, stored.words, stored.stored)
    path.counts.stores_sent += 1


@inline
def _stored(path, lsu):
    """Show the crossbar the values of the last cycle's store, and compare the line that it gives with what is right."""
    io = path.store_crossbar.io
    if io.i.store.valid != 0:
        io.i.store.valid = 0
        assign(io.i, path.values)
    if io.o.write.valid == 0:
        return
    found = io.o.write.payload
    stored = path.stored[path.counts.stores_moved % DELIVERIES]
    if path.counts.stores_moved == path.counts.stores_sent:
        fail(lsu, Fault.LANES, i64(stored.token))
        return
    path.counts.stores_moved += 1
    wrong = i64(0)
    for k in range(LINE_WORDS):
        wrong |= i64(found.line[k]) ^ i64(stored.words[k]) | i64(found.bytes[k]) ^ i64(stored.stored[k])
    if wrong != 0:
        _fail_at_byte(lsu, stored, _wrong_byte(found, stored))


@jit
def _wrong_byte(found, stored):
    """The place in its line of the first byte that is wrong."""
    for byte in range(4 * LINE_WORDS):
        k, shift = byte >> 2, 8 * (byte & 3)
        bits = i64(found.line[k]) ^ i64(stored.words[k])
        enabled = i64(found.bytes[k]) ^ i64(stored.stored[k])
        if bits >> shift & 255 | enabled >> (byte & 3) & 1 != 0:
            return byte
    return i64(-1)


@jit
def _fail_at_byte(lsu, stored, byte):
    """Stop at a byte of a line: at the highest lane that stores it, or at the first one if there is none."""
    shift = i64(lsu.l1.line_shift)
    lane = ctz(i64(stored.mask))
    for k in range(LANES):
        first = i64(stored.address[k]) & (i64(1) << shift) - 1
        if (i64(stored.mask) >> k) & 1 and first <= byte < first + stored.bytes:
            lane = k
    fail_at(lsu, Fault.BYTES, i64(stored.token), stored, lane, (i64(stored.number) << shift) + byte)


@inline
def _result(path, lsu, io, now):
    """Answer lanes of one warp. If its values are delivered, they go to the crossbar with their line."""
    result = io.o.result.payload
    number = i64(result.warp) * TICKETS + i64(result.ticket)
    token = lsu.token[number]
    shift = i64(lsu.l1.line_shift)
    load = path.line_crossbar.io.i.load.payload
    assign(load, result)
    load.active = token.mask
    load.size = token.size
    lanes = i64(result.mask) if result.atomic != 0 else lanes_of(load, i64(path.warp_pool.state.lanes), shift)
    if lanes == 0 or lanes & ~token.pending != 0 or path.first == path.last:
        fail(lsu, Fault.LANES, number)
    place = i64(path.first) % ANSWERS
    answer = path.answer[place]
    line = i64(answer.line)
    wrong = lanes & ~_right(token, result, lanes, line, shift)
    if wrong != 0:
        lane = ctz(wrong)
        named = (line << shift) + (word_of(load, lane) << _word_shift(token))
        fail_at(lsu, Fault.WORD, number, token, lane, named)
    answer.results -= 1
    if answer.results == 0:
        path.first += 1
    if token.delivered != 0:
        _deliver(path, lsu, number, line, place)
    elif token.late != 0 and result.atomic == 0:
        take_from_line(lsu, number, lanes, addressof(path.bytes[place]))
    token.pending &= ~lanes
    if token.pending == 0:
        complete(lsu, number, now)


@inline
def _deliver(path, lsu, number, line, place):
    """Send a load to the crossbar, which takes its line in the next cycle."""
    load, token = path.line_crossbar.io.i.load, lsu.token[number]
    load.valid = 1
    load.payload.sign = token.sign
    for lane in range(path.warp_pool.state.lanes):
        load.payload.offset[lane] = i64(token.address[lane]) & 3
    if token.late != 0 and is_global(line << lsu.l1.line_shift):
        for k in range(LINE_WORDS):
            path.line[k] = path.bytes[place].words[k]
    else:
        fill_line(lsu, number, line, path.line)
    delivery = path.delivery[path.delivered % DELIVERIES]
    delivery.token = number
    delivery.pc = token.pc
    path.delivered += 1


@inline
def _write(path, lsu):
    """Show the crossbar the line of the last cycle's load, and write the registers with what it gives the lanes."""
    io = path.line_crossbar.io
    if io.i.load.valid != 0:
        io.i.load.valid = 0
        for k in range(LINE_WORDS):
            io.i.line[k] = path.line[k]
    if io.o.write.valid == 0:
        return
    values = io.o.write.payload
    delivery = path.delivery[path.written % DELIVERIES]
    number = i64(values.warp) * TICKETS + i64(values.ticket)
    if path.written == path.delivered or delivery.token != number:
        fail(lsu, Fault.LANES, number)
        return
    path.written += 1
    write = lsu.write
    write.valid = 1
    write.pc = delivery.pc
    assign(write, values)


@inline
def _cross(crossbar, lsu):
    """A cycle of a crossbar. Returns whether it did anything."""
    io, binding = crossbar.io, crossbar.binding
    if call(binding.idle, binding.handle, addressof(io)) != 0:
        return False
    if call(binding.step, binding.handle, addressof(io)) != 0:
        fail(lsu, Fault.DIFFERENCE, i64(0))
    return True


@inline
def step(path, lsu, port, config, now):
    """One core cycle."""
    _write(path, lsu)
    _stored(path, lsu)
    unit = path.warp_pool
    io, binding = unit.io, unit.binding
    missed = now - i64(path.next)
    if missed > 0:
        call(binding.skip, binding.handle, missed)
    counts = path.counts
    counts.overdue += i64(io.o.overdue)
    counts.by_warp += i64(io.o.policy) * (missed + 1)
    counts.answers_held += i64(io.o.answer.ready == 0)
    identity = i64(next_answer(lsu, port, config, now, io.o.answer.ready != 0))
    io.i.answer.valid = identity >= 0
    if identity >= 0:
        io.i.answer.payload.id = identity
        answer = path.answer[path.last % ANSWERS]
        assign(answer, path.request[identity])
        if lsu.carried != 0:
            copy_line(addressof(path.bytes[path.last % ANSWERS]), answer_bytes(lsu, identity), lsu.l1.line_bytes)
        path.last += 1
        io.i.answer.payload.mask = answer.lanes
        io.i.answer.payload.atomic = answer.lanes != 0
    io.i.access.ready = 0
    io.i.miss = 0
    if io.o.access.valid != 0:
        _access(path, lsu, port, config, io, now)
    io.i.result.ready = lsu.writable
    if io.o.result.valid & io.i.result.ready != 0:
        _result(path, lsu, io, now)
    _gates(path, lsu, io)
    _enter(path, lsu, io, now)
    moves = _cross(path.line_crossbar, lsu) | _cross(path.store_crossbar, lsu)
    idle = call(binding.idle, binding.handle, addressof(io))
    if io.o.result.valid != 0:
        idle = min(idle, i64(1))  # the register file may take it in the next cycle
    if idle != 0:
        counts.by_warp -= i64(io.o.policy)  # this cycle is passed over with those that follow
        path.next = now
        lsu.path.wake = now + 1 if moves else min(now + idle, i64(NEVER))
        return
    path.next = now + 1
    lsu.path.wake = now + 1
    if call(binding.step, binding.handle, addressof(io)) != 0:
        fail(lsu, Fault.DIFFERENCE, i64(0))


@slot
def reset_slot(path, lsu):
    unit = at_lsu(lsu)
    reset(at_state(path), unit, at_config(unit.config))
    return i64(0)


@slot
def step_slot(path, lsu):
    unit = at_lsu(lsu)
    step(at_state(path), unit, at_port(unit.port), at_config(unit.config), i64(unit.now))
    return i64(0)


@slot
def end_slot(path, lsu):
    """Count the cycles that the unit has slept through."""
    state = at_state(path)
    state.counts.by_warp += i64(state.warp_pool.io.o.policy) * max(i64(at_lsu(lsu).now) - i64(state.next), i64(0))
    return i64(0)


TENANTS = {"path": {"reset": reset_slot, "step": step_slot, "end": end_slot}}
