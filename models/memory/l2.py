"""One slice of the L2: write-back, write-allocate, LRU; one look-up per L2 cycle, in the order of arrival.

* A read that hits is answered; a miss reserves its way, allocates an MSHR and asks DRAM for the line; further reads of
  the line merge.
* A write never fetches. A line that was written in parts counts its valid bytes, since the requests carry no byte masks:
  complete when as many bytes have been written as it has (rewritten bytes count again), and a read of an incomplete
  line fetches it. A dirty victim goes to DRAM whole, masked.
* An atomic is a read that makes the line dirty and occupies the slice for ``l2.atomics`` L2 cycles per lane on one
  address, once the line is there.

What cannot go on (no MSHR, no merge slot, no way, no room in the channel's queue or in the reply pipeline) stops the
slice's look-ups until it can; replies and lines from DRAM go on, so it always will.
"""

from lockstep.models.jit import i64, inline, jit, pointer_to, record, words_i16, words_i64, words_u8
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.crossbar import accept_request, claim, port_free, send_reply
from lockstep.models.memory.dram import channel_of, dram_push, dram_room
from lockstep.models.memory.fabric import (
    ATOMIC,
    FOREVER,
    OCCUPANCY,
    QUEUE,
    READ,
    SLICES,
    WAITING,
    WRITE,
    enter,
    give,
    leave,
    packet_of,
    pop,
    push,
    take,
)
from lockstep.models.parameters import MAX_MSHRS

STALLS = ("mshrs", "merges", "dram", "ways", "replies")  # why look-ups stop, as ``stats.stalls`` counts it
GO_ON, NO_MSHR, NO_MERGE, NO_DRAM, NO_WAY, NO_REPLY = range(6)
RESERVED = 1 << 62  # the LRU stamp of a way whose line is on its way

SLICE_STATISTICS = record(
    [
        ("reads", "i8"),
        ("writes", "i8"),
        ("atomics", "i8"),
        ("bytes_in", "i8"),  # data in writes and atomics
        ("hits", "i8"),
        ("misses", "i8"),
        ("merges", "i8"),
        ("evictions", "i8"),  # valid lines that made room for another
        ("write_backs", "i8"),  # dirty ones among them
        ("fetches", "i8"),  # lines asked from DRAM ...
        ("fills", "i8"),  # ... and received
        ("replies", "i8"),
        ("bytes_out", "i8"),  # data in replies
        ("stalls", "i8", (len(STALLS),)),  # core cycles in which look-ups stood still
        ("busy", "i8"),  # L2 cycles of look-ups and atomics
    ]
)

SLICE = record(
    [
        ("index", "i8"),
        ("channel", "i8"),
        ("lines", "i8"),
        ("sets", "i8"),
        ("ways", "i8"),
        ("tags", "i8"),  # host addresses, an element per line: i64 line number in the slice, -1: invalid ...
        ("stamps", "i8"),  # ... i64 for LRU ...
        ("owners", "i8"),  # ... i16 MSHR of a reserved line ...
        ("valid", "i8"),  # ... u8 bytes that are there ...
        ("dirty", "i8"),  # ... u8
        ("pipeline", "i8"),  # replies that fit between the look-up and the crossbar
        ("clock", "i8"),  # LRU time
        ("next_free", "i8"),  # L2 tick from which the next look-up may start
        ("stalled_at", "i8"),
        ("last_reply", "i8"),  # core cycle in which the last reply in the pipeline leaves it
        ("stall", "i4"),
        ("free_count", "i4"),  # of MSHRs
        ("in_flight", OCCUPANCY),  # MSHRs
        ("stats", SLICE_STATISTICS),
        ("outbox", QUEUE),  # replies in the pipeline
        ("served", QUEUE),  # requests whose line has come, before the pipeline
        ("free", "i2", (MAX_MSHRS,)),
        ("way", "i4", (MAX_MSHRS,)),  # the line that an MSHR waits for
        ("since", "i8", (MAX_MSHRS,)),
        ("requests", QUEUE, (MAX_MSHRS,)),
    ]
)

_slice_at = pointer_to(SLICE)
_SLICE_BYTES = SLICE.itemsize


@inline
def slice_of(memory, index):
    return _slice_at(memory.slice_base + index * _SLICE_BYTES)


@inline
def set_index(cache, line):
    """The set of a line: its number within the slice, modulo the sets."""
    return line & (cache.sets - 1)


@inline
def _find(cache, line):
    """The way that holds or awaits a line, or -1."""
    tags = words_i64(cache.tags, cache.lines)
    first = set_index(cache, line) * cache.ways
    for way in range(first, first + cache.ways):
        if tags[way] == line:
            return way
    return -1


@inline
def _oldest(cache, line):
    """The least recently used way of a line's set."""
    stamps = words_i64(cache.stamps, cache.lines)
    first = set_index(cache, line) * cache.ways
    victim = first
    for way in range(first + 1, first + cache.ways):
        if stamps[way] < stamps[victim]:
            victim = way
    return victim


@inline
def _touch(cache, way):
    cache.clock += 1
    words_i64(cache.stamps, cache.lines)[way] = cache.clock


@inline
def _ask_dram(memory, cache, kind, line, entry, now):
    request = take(memory)
    packet = packet_of(memory, request)
    packet.kind = kind
    packet.address = line << memory.line_shift
    packet.slice = cache.index
    packet.entry = entry
    dram_push(memory, cache.channel, request, now)


@inline
def _replace(memory, cache, line, way, now):
    """Evict what a way holds, and give it to a line."""
    tags = words_i64(cache.tags, cache.lines)
    dirty = words_u8(cache.dirty, cache.lines)
    if tags[way] >= 0:
        cache.stats.evictions += 1
        if dirty[way]:
            cache.stats.write_backs += 1
            _ask_dram(memory, cache, WRITE, tags[way], 0, now)
    tags[way] = line
    dirty[way] = 0
    words_u8(cache.valid, cache.lines)[way] = 0


@inline
def _occupy(memory, cache, cycles, now):
    """Keep the slice busy for so many L2 cycles."""
    cache.next_free = max(cache.next_free, now * memory.l2.domain) + cycles * memory.l2.core
    cache.stats.busy += cycles


@inline
def _reply(memory, cache, index, packet, now):
    """Put a reply into the pipeline, an atomic's after its execution."""
    done = now
    if packet.kind == ATOMIC:
        _occupy(memory, cache, packet.lanes * memory.atomic, now)
        done = cycle_after(memory.l2, cache.next_free)
    cache.last_reply = max(done + memory.slice_delay, cache.last_reply)
    packet.ready = cache.last_reply
    cache.stats.replies += 1
    cache.stats.bytes_out += packet.bytes
    push(memory, cache.outbox, index)


@inline
def _write(memory, cache, index, packet, way, now):
    """Look up a write; returns why it cannot go on, or GO_ON."""
    line = packet.address >> memory.line_shift
    if way < 0:
        way = _oldest(cache, line)
        if words_i64(cache.stamps, cache.lines)[way] == RESERVED:
            return NO_WAY
        if words_u8(cache.dirty, cache.lines)[way] and dram_room(channel_of(memory, cache.channel)) < 1:
            return NO_DRAM
        _replace(memory, cache, line, way, now)
        cache.stats.misses += 1
    else:
        cache.stats.hits += 1
    valid = words_u8(cache.valid, cache.lines)
    valid[way] = min(i64(valid[way]) + packet.bytes, memory.line_bytes)
    words_u8(cache.dirty, cache.lines)[way] = 1
    if words_i64(cache.stamps, cache.lines)[way] != RESERVED:
        _touch(cache, way)
    accept_request(memory, cache.index, now)
    _occupy(memory, cache, 1, now)
    cache.stats.writes += 1
    cache.stats.bytes_in += packet.bytes
    leave(memory.flight, now, packet.born)
    leave(memory.waiting[cache.index], now, packet.entered)
    give(memory, index)
    return GO_ON


@inline
def _count_read(memory, cache, packet, now):
    leave(memory.waiting[cache.index], now, packet.entered)
    if packet.kind == ATOMIC:
        cache.stats.atomics += 1
        cache.stats.bytes_in += packet.bytes
    else:
        cache.stats.reads += 1


@inline
def _read(memory, cache, index, packet, way, now):
    """Look up a read or an atomic; returns why it cannot go on, or GO_ON."""
    line = packet.address >> memory.line_shift
    stamps = words_i64(cache.stamps, cache.lines)
    dirty = words_u8(cache.dirty, cache.lines)
    reserved = way >= 0 and stamps[way] == RESERVED
    if way >= 0 and not reserved and words_u8(cache.valid, cache.lines)[way] >= memory.line_bytes:
        if cache.served.head != 0 or cache.outbox.count >= cache.pipeline:
            return NO_REPLY
        accept_request(memory, cache.index, now)
        _touch(cache, way)
        if packet.kind == ATOMIC:
            dirty[way] = 1
        cache.stats.hits += 1
        _count_read(memory, cache, packet, now)
        if packet.kind == READ:
            _occupy(memory, cache, 1, now)
        _reply(memory, cache, index, packet, now)
        return GO_ON
    if reserved:
        entry = words_i16(cache.owners, cache.lines)[way]
        if cache.requests[entry].count >= memory.merges:
            return NO_MERGE
        cache.stats.merges += 1
    else:
        if cache.free_count == 0:
            return NO_MSHR
        victim = way if way >= 0 else _oldest(cache, line)
        if way < 0 and stamps[victim] == RESERVED:
            return NO_WAY
        if dram_room(channel_of(memory, cache.channel)) < (2 if way < 0 and dirty[victim] else 1):
            return NO_DRAM
        if way < 0:
            _replace(memory, cache, line, victim, now)
            way = victim
        cache.free_count -= 1
        entry = cache.free[cache.free_count]
        stamps[way] = RESERVED
        words_i16(cache.owners, cache.lines)[way] = entry
        cache.way[entry] = way
        cache.since[entry] = now
        enter(cache.in_flight, now)
        _ask_dram(memory, cache, READ, line, entry, now)
        cache.stats.misses += 1
        cache.stats.fetches += 1
    accept_request(memory, cache.index, now)
    _occupy(memory, cache, 1, now)
    _count_read(memory, cache, packet, now)
    if packet.kind == ATOMIC:
        dirty[way] = 1
    push(memory, cache.requests[entry], index)
    return GO_ON


@inline
def _fill(memory, cache, now):
    """A line comes from DRAM: those that wait for it are served."""
    index = pop(memory, memory.returns[cache.index])
    entry = packet_of(memory, index).entry
    give(memory, index)
    words_u8(cache.valid, cache.lines)[cache.way[entry]] = memory.line_bytes
    _touch(cache, cache.way[entry])
    cache.stats.fills += 1
    leave(cache.in_flight, now, cache.since[entry])
    cache.free[cache.free_count] = entry
    cache.free_count += 1
    requests = cache.requests[entry]
    while requests.head != 0:
        push(memory, cache.served, pop(memory, requests))


@inline
def _look_up(memory, cache, now):
    """Look up the requests that are due in this core cycle, one per L2 cycle."""
    waiting = memory.inputs[cache.index]
    end = (now + 1) * memory.l2.domain
    while waiting.head != 0 and cache.next_free < end:
        index = waiting.head
        packet = packet_of(memory, index)
        if packet.ready > now:
            return
        if cache.stall != GO_ON:
            cache.stats.stalls[cache.stall - 1] += now - cache.stalled_at
        way = _find(cache, packet.address >> memory.line_shift)
        if packet.kind == WRITE:
            cache.stall = _write(memory, cache, index, packet, way, now)
        else:
            cache.stall = _read(memory, cache, index, packet, way, now)
        cache.stalled_at = now
        memory.wants_dram[cache.index] = cache.stall == NO_DRAM
        if cache.stall != GO_ON:
            return


@inline
def _send(memory, cache, now):
    """Send the replies that are due and for which the crossbar has room."""
    while cache.outbox.head != 0 and memory.replies.state[cache.index] != WAITING:
        packet = packet_of(memory, cache.outbox.head)
        if packet.ready > now or not port_free(memory, memory.replies, cache.index, now):
            return
        if claim(memory.replies, cache.index, packet.sm, now):
            send_reply(memory, cache.index, pop(memory, cache.outbox), now)


@jit
def slice_step(memory, index, now):
    """Visit a slice: replies out, lines in from DRAM, look-ups. Sets its wake time."""
    cache = slice_of(memory, index)
    _send(memory, cache, now)
    returns = memory.returns[index]
    while returns.head != 0 and packet_of(memory, returns.head).ready <= now:
        _fill(memory, cache, now)
    while cache.served.head != 0 and cache.outbox.count < cache.pipeline:
        served = pop(memory, cache.served)
        _reply(memory, cache, served, packet_of(memory, served), now)
    _look_up(memory, cache, now)

    wake = FOREVER
    if returns.head != 0:
        wake = packet_of(memory, returns.head).ready
    if memory.inputs[index].head != 0 and cache.stall == GO_ON:
        ready = packet_of(memory, memory.inputs[index].head).ready
        wake = min(wake, max(ready, cycle_of(memory.l2, cache.next_free)))
    if cache.outbox.head != 0 and memory.replies.state[index] != WAITING:
        ready = packet_of(memory, cache.outbox.head).ready
        wake = min(wake, max(ready, cycle_of(memory.interconnect, memory.replies.in_free[index])))
    memory.wakes[SLICES + index] = wake
