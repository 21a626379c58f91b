"""One slice of the L2: write-back, write-allocate, LRU; one look-up per L2 cycle, in the order of arrival.

Requests name the bytes of their line, and the slice knows which bytes of a line are valid.

* A read hits if all its bytes are valid. A miss reserves its way, allocates an MSHR and asks DRAM for the sectors that
  it lacks, in one request; further reads that miss the line merge, and ask for what has not been asked for. All are
  served when no sector of the line is on its way any more.
* A write never fetches, and makes its bytes valid. The dirty sectors of a victim go to DRAM in one request, masked.
* An atomic is a read that makes its sectors dirty and occupies the slice for ``l2.atomics`` L2 cycles per lane on one
  address, once its bytes are there.

Where requests have values (``values.py``), they take effect when they are looked up, whether they hit or miss.

Lines from ``memory.uncached`` on take no way: each of their reads and writes, of whole sectors, goes to DRAM at once.
So does all that has passed the L1 where ``l2.data`` is 0; an atomic then reads its sectors and writes them.

Replies leave when they are ready, in the order of their service if that is at once; those to instruction and constant
caches are ready sooner by ``l2.read_only_lead``.

A sector (``l2.sector_bytes``) is the line in a GPU whose L2 has none.

What cannot go on (no MSHR, no merge slot, no way, no room in the channel's queue or in the reply pipeline) stops the
slice's look-ups until it can; replies and lines from DRAM go on, so it always will.
"""

from lockstep.models.jit import addressof, i64, inline, pointer_to, popcount, record, slot, words_i64
from lockstep.models.memory.clock import cycle_after, cycle_of
from lockstep.models.memory.dram import channel_of, dram_push, dram_room, dram_waited
from lockstep.models.memory.fabric import (
    ATOMIC,
    OCCUPANCY,
    QUEUE,
    READ,
    WAITING,
    WRITE,
    enter,
    give,
    insert,
    leave,
    memory_at,
    packet_of,
    pop,
    push,
    put_back,
    slice_part,
    take,
    wake_sm,
    wake_up,
)
from lockstep.models.memory.interconnect import accept_request, claim_reply, send_reply
from lockstep.models.memory.masks import BYTES, bytes_of, sectors_of
from lockstep.models.memory.read_cache import CODE
from lockstep.models.memory.tags import (
    COMPLETE,
    DIRTY,
    OWNER,
    OWNERS,
    RESERVED,
    SECTOR,
    WAY,
    find,
    line_of,
    named,
    use,
    victim,
)
from lockstep.models.memory.values import take_effect
from lockstep.models.share import exclude, include, share_of, words_of
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_MSHRS

STALLS = ("mshrs", "merges", "dram", "ways", "replies")  # why look-ups stop, as ``stats.stalls`` counts it
HIT, GO_ON, NO_MSHR, NO_MERGE, NO_DRAM, NO_WAY, NO_REPLY = range(-1, 6)

assert MAX_MSHRS <= OWNERS + 1

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
        ("written", "i8"),  # their dirty sectors
        ("fetches", "i8"),  # sectors asked from DRAM ...
        ("fills", "i8"),  # ... and received
        ("replies", "i8"),
        ("bytes_out", "i8"),  # data in replies
        ("busy", "i8"),  # L2 cycles of look-ups and atomics
        ("stalls", "i8", (len(STALLS),)),  # core cycles in which look-ups stood still
    ]
)
SHARE = share_of(SLICE_STATISTICS, "busy")
SHARE_WORDS = words_of(SHARE)

MSHR = record(
    [
        ("line", "i8"),
        ("since", "i8"),
        ("asked", "i4"),  # sectors ...
        ("left", "i4"),  # ... and the requests for them whose answers are to come
        ("passes", "i8"),  # the line takes no way
        ("requests", QUEUE),
    ]
)

SLICE = record(
    [
        ("index", "i8"),
        ("channel", "i8"),
        ("sets", "i8"),
        ("ways", "i8"),
        ("lines", "i8"),  # host address of the words (``tags.py``)
        ("valid", "i8"),  # host address of the valid bytes of incomplete lines, by set and way
        ("pipeline", "i8"),  # replies that fit between the look-up and the crossbar
        ("next_free", "i8"),  # L2 tick from which the next look-up may start
        ("last_reply", "i8"),  # core cycle in which the last reply enters the pipeline
        ("stalled_at", "i8"),
        ("stalled_fills", "i8"),  # sectors that had come then
        ("stall", "i8"),
        ("free_count", "i8"),  # of MSHRs
        ("outbox", QUEUE),  # replies in the pipeline, by the cycle in which they leave it
        ("served", QUEUE),  # requests whose line has come, before the pipeline
        ("in_flight", OCCUPANCY),  # MSHRs
        ("stats", SLICE_STATISTICS),
        ("free", "i2", (MAX_MSHRS,)),
        ("entries", MSHR, (MAX_MSHRS,)),
        ("share", SHARE),
    ]
)

_slice_at = pointer_to(SLICE)
_SLICE_BYTES = SLICE.itemsize
_bytes_at = pointer_to(BYTES)
_BYTES_BYTES = BYTES.itemsize


@inline
def slice_of(memory, index):
    return _slice_at(memory.slice_base + index * _SLICE_BYTES)


@inline
def _exclude(cache, grid):
    """What is done from now on is a grid's."""
    if grid != 0:
        exclude(addressof(cache.share), addressof(cache.stats), SHARE_WORDS)


@inline
def _include(cache, grid):
    """It is done."""
    if grid != 0:
        include(addressof(cache.share), addressof(cache.stats), SHARE_WORDS)


@inline
def _set(cache, line):
    """Where the words of a line's set begin: its number within the slice, modulo the sets."""
    return (line & cache.sets - 1) * cache.ways


@inline
def _words(cache):
    return words_i64(cache.lines, cache.sets * cache.ways)


@inline
def _find(cache, line):
    return find(_words(cache), _set(cache, line), cache.ways, line)


@inline
def _use(cache, line, place, word):
    use(_words(cache), _set(cache, line), place, word)


@inline
def _victim(cache, line):
    return victim(_words(cache), _set(cache, line), cache.ways)


@inline
def _valid(cache, line, word):
    """The valid bytes of a line that is not complete."""
    return _bytes_at(cache.valid + (_set(cache, line) + (word & WAY)) * _BYTES_BYTES)


@inline
def _enter(cache, line, old):
    """The word of a line, without any valid byte, in the way of an old one."""
    word = named(line) | old & WAY
    valid = _valid(cache, line, word)
    valid.low = 0
    valid.high = 0
    return word


@inline
def _validate(memory, cache, line, word, low, high):
    """The word of a line once these bytes are valid too."""
    if word & COMPLETE:
        return word
    whole = memory.line
    if low != whole.low or high != whole.high:
        valid = _valid(cache, line, word)
        valid.low |= low
        valid.high |= high
        if valid.low != whole.low or valid.high != whole.high:
            return word
    return word | COMPLETE


@inline
def _missing(memory, cache, line, word, mask):
    """The sectors of a request's bytes that are not all valid."""
    if word & COMPLETE:
        return i64(0)
    valid = _valid(cache, line, word)
    return sectors_of(mask.low & ~valid.low, mask.high & ~valid.high, memory.sector_shift)


@inline
def _dirty(memory, mask):
    """The bits of a word for a request that changes these bytes."""
    return sectors_of(mask.low, mask.high, memory.sector_shift) << SECTOR


@inline
def _ask_dram(memory, cache, kind, line, sectors, index, grid, now):
    """Queue a request for sectors of a line on a grid's behalf, for which there is room; returns how many they are."""
    count = popcount(sectors)
    request = take(memory)
    packet = packet_of(memory, request)
    packet.kind = kind
    packet.address = line << memory.line_shift
    packet.mask.low, packet.mask.high = bytes_of(sectors, memory.sector_shift)
    packet.bytes = count << memory.sector_shift
    packet.slice = cache.index
    packet.entry = index
    packet.grid = grid
    dram_push(memory, cache.channel, request, now)
    return count


@inline
def _evict(memory, cache, word, grid, now):
    """A line makes room for another, of a grid, which is charged with what has to be written back."""
    if line_of(word) >= 0:
        cache.stats.evictions += 1
        if word & DIRTY:
            cache.stats.write_backs += 1
            sectors = (word & DIRTY) >> SECTOR
            cache.stats.written += _ask_dram(memory, cache, WRITE, line_of(word), sectors, 0, grid, now)


@inline
def _fetch(memory, cache, line, sectors, owner, grid, now):
    """Ask for sectors on behalf of an MSHR, and of a grid."""
    entry = cache.entries[owner]
    entry.asked |= sectors
    entry.left += 1
    cache.stats.fetches += _ask_dram(memory, cache, READ, line, sectors, owner, grid, now)


@inline
def _occupy(memory, cache, cycles, now):
    """Keep the slice busy for some L2 cycles."""
    cache.next_free = max(cache.next_free, now * memory.l2.domain) + cycles * memory.l2.core
    cache.stats.busy += cycles


@inline
def _reply(memory, cache, index, packet, now):
    """Put a reply into the pipeline, an atomic's after its execution."""
    done = now
    if packet.kind == ATOMIC:
        _occupy(memory, cache, packet.lanes * memory.atomic, now)
        done = cycle_after(memory.l2, cache.next_free)
    cache.last_reply = max(done, cache.last_reply)
    # Later than now, so that it passes no reply for which room is claimed.
    packet.ready = cache.last_reply + (memory.read_only_delay if packet.entry >= CODE else memory.slice_delay)
    cache.stats.replies += 1
    cache.stats.bytes_out += packet.bytes
    insert(memory, cache.outbox, index)


@inline
def _full(cache):
    """Whether the pipeline takes no reply."""
    return cache.outbox.count >= cache.pipeline


@inline
def _room(memory, cache, needs):
    """Whether DRAM takes as many requests as are needed."""
    return dram_room(memory, channel_of(memory, cache.channel), cache.index, needs)


@inline
def _write(memory, cache, line, place, word, packet, now):
    """Look up a write; returns why it cannot go on, or GO_ON."""
    if memory.acknowledges != 0 and (cache.served.head != 0 or _full(cache)):
        return NO_REPLY
    if place < 0:
        place = _victim(cache, line)
        if place < 0:
            return NO_WAY
        old = _words(cache)[place]
        if old & DIRTY and not _room(memory, cache, 1):
            return NO_DRAM
        _evict(memory, cache, old, packet.grid, now)
        word = _enter(cache, line, old)
        cache.stats.misses += 1
    else:
        cache.stats.hits += 1
    word = _validate(memory, cache, line, word, packet.mask.low, packet.mask.high)
    _use(cache, line, place, word | _dirty(memory, packet.mask))
    cache.stats.writes += 1
    cache.stats.bytes_in += packet.bytes
    return GO_ON


@inline
def _merge(memory, cache, line, place, word, missing, dirty, index, now):
    """A read joins the MSHR of its line."""
    owner = (word >> OWNER) & OWNERS
    entry = cache.entries[owner]
    if entry.requests.count >= memory.merges:
        return NO_MERGE
    missing &= ~entry.asked
    if missing != 0:
        if not _room(memory, cache, 1):
            return NO_DRAM
        _fetch(memory, cache, line, missing, owner, packet_of(memory, index).grid, now)
    _use(cache, line, place, word | dirty)
    push(memory, entry.requests, index)
    cache.stats.merges += 1
    return GO_ON


@inline
def _passes(memory, packet):
    """Whether a request's line takes no way."""
    return packet.address >= memory.uncached or (memory.data == 0 and packet.lanes != 0)


@inline
def _allocate(memory, cache, line, index, now):
    """A request waits for its line in a free MSHR; returns which."""
    cache.free_count -= 1
    owner = i64(cache.free[cache.free_count])
    entry = cache.entries[owner]
    entry.line = line
    entry.since = now
    entry.asked = 0
    entry.left = 0
    entry.passes = _passes(memory, packet_of(memory, index))
    push(memory, entry.requests, index)
    enter(cache.in_flight, now)
    return owner


@inline
def _miss(memory, cache, line, place, word, missing, dirty, index, now):
    """A read takes an MSHR, and a way if its line has none."""
    if cache.free_count == 0:
        return NO_MSHR
    old = i64(0)
    if place < 0:
        place = _victim(cache, line)
        if place < 0:
            return NO_WAY
        old = _words(cache)[place]
    if not _room(memory, cache, 2 if old & DIRTY else 1):
        return NO_DRAM
    grid = packet_of(memory, index).grid
    if word == 0:
        _evict(memory, cache, old, grid, now)
        word = _enter(cache, line, old)
    owner = _allocate(memory, cache, line, index, now)
    _use(cache, line, place, word & ~(OWNERS << OWNER) | owner << OWNER | RESERVED | dirty)
    _fetch(memory, cache, line, missing, owner, grid, now)
    cache.stats.misses += 1
    return GO_ON


@inline
def _read(memory, cache, line, place, word, packet, index, now):
    """Look up a read, or an atomic; returns why it cannot go on, GO_ON, or HIT."""
    dirty = _dirty(memory, packet.mask) if packet.kind == ATOMIC else i64(0)
    if place < 0:
        missing = sectors_of(packet.mask.low, packet.mask.high, memory.sector_shift)
    else:
        missing = _missing(memory, cache, line, word, packet.mask)
    if missing == 0:
        if cache.served.head != 0 or _full(cache):
            return NO_REPLY
        cache.stats.hits += 1
        _use(cache, line, place, word | dirty)
        return HIT
    if word & RESERVED:
        return _merge(memory, cache, line, place, word, missing, dirty, index, now)
    return _miss(memory, cache, line, place, word, missing, dirty, index, now)


@inline
def _pass(memory, cache, line, packet, index, now):
    """Look up a request for a line that is not to stay; returns why it cannot go on, or GO_ON."""
    sectors = sectors_of(packet.mask.low, packet.mask.high, memory.sector_shift)
    if packet.kind == WRITE:
        if memory.acknowledges != 0 and (cache.served.head != 0 or _full(cache)):
            return NO_REPLY
        if not _room(memory, cache, 1):
            return NO_DRAM
        cache.stats.writes += 1
        cache.stats.bytes_in += packet.bytes
        cache.stats.written += _ask_dram(memory, cache, WRITE, line, sectors, 0, packet.grid, now)
    else:
        if cache.free_count == 0:
            return NO_MSHR
        if not _room(memory, cache, 2 if packet.kind == ATOMIC else 1):
            return NO_DRAM
        _fetch(memory, cache, line, sectors, _allocate(memory, cache, line, index, now), packet.grid, now)
        if packet.kind == ATOMIC:
            cache.stats.written += _ask_dram(memory, cache, WRITE, line, sectors, 0, packet.grid, now)
    cache.stats.misses += 1
    return GO_ON


@inline
def _fill(memory, cache, gate, now):
    """Sectors come from DRAM. If no more are on their way, those that wait for their line are served."""
    index = pop(memory, gate.returns)
    packet = packet_of(memory, index)
    owner = packet.entry
    entry = cache.entries[owner]
    passes = entry.passes != 0
    place = -1 if passes else _find(cache, entry.line)
    words = _words(cache)
    if not passes:
        words[place] = _validate(memory, cache, entry.line, words[place], packet.mask.low, packet.mask.high)
    fills = packet.bytes >> memory.sector_shift
    cache.stats.fills += fills
    if packet.grid != 0:
        cache.share.fills += fills
    give(memory, index)
    entry.left -= 1
    if entry.left != 0:
        return
    if not passes:
        words[place] &= ~RESERVED
    leave(cache.in_flight, now, entry.since)
    cache.free[cache.free_count] = owner
    cache.free_count += 1
    while entry.requests.head != 0:
        push(memory, cache.served, pop(memory, entry.requests))


@inline
def _stuck(memory, cache, gate):
    """Whether what stopped the look-ups is still so."""
    stall = cache.stall
    if stall == NO_DRAM:
        channel = channel_of(memory, cache.channel)
        return channel.first != cache.index + 1 or channel.limit - channel.queue.count < gate.needs
    if stall == NO_MSHR:
        return cache.free_count == 0
    if stall == NO_REPLY:
        return cache.served.head != 0 or _full(cache)
    return (stall == NO_MERGE or stall == NO_WAY) and cache.stalled_fills == cache.stats.fills


@inline
def _look_up_one(memory, cache, gate, index, packet, now):
    """Look up a request, the first of a slice; returns why it cannot go on, GO_ON, or HIT."""
    line = packet.address >> memory.line_shift
    passes = _passes(memory, packet)
    place = -1 if passes else _find(cache, line)
    word = _words(cache)[place] if place >= 0 else 0
    if passes:
        code = _pass(memory, cache, line, packet, index, now)
    elif packet.kind == WRITE:
        code = _write(memory, cache, line, place, word, packet, now)
    else:
        code = _read(memory, cache, line, place, word, packet, index, now)
    if code <= GO_ON:
        _looked_up(memory, cache, gate, index, packet, code == HIT, now)
    return code


@inline
def _store_arrives(memory, packet, now):
    """A store is on its way no longer."""
    if packet.lanes != 0:
        port = memory.ports[packet.sm]
        port.stores[packet.grid] -= 1
        if port.told != 0:
            wake_sm(memory, packet.sm, now + 1)


@inline
def _looked_up(memory, cache, gate, index, packet, hits, now):
    """A request has left the slice's buffer. Those that wait for their line are counted already, and served later."""
    stats = cache.stats
    if memory.cargo != 0:
        take_effect(memory, index)
    if gate.needs != 0:
        dram_waited(memory, channel_of(memory, cache.channel), gate)
    accept_request(memory, cache.index, now)
    leave(gate.waiting, now, packet.entered)
    if not hits or packet.kind != ATOMIC:
        _occupy(memory, cache, 1, now)
    if packet.kind == WRITE:
        _store_arrives(memory, packet, now)
        if memory.acknowledges != 0:
            packet.bytes = 0
            _reply(memory, cache, index, packet, now)
            return
        leave(memory.ports[packet.sm].flight, now, packet.born)
        give(memory, index)
        return
    if packet.kind == ATOMIC:
        stats.atomics += 1
        stats.bytes_in += packet.bytes
    else:
        stats.reads += 1
    if hits:
        _reply(memory, cache, index, packet, now)


@inline
def _look_up(memory, cache, gate, now):
    """Look up the requests that are due in this core cycle, one per L2 cycle."""
    end = (now + 1) * memory.l2.domain
    stats = cache.stats
    while gate.input.head != 0 and cache.next_free < end:
        index = gate.input.head
        packet = packet_of(memory, index)
        if packet.ready > now or _stuck(memory, cache, gate):
            return
        if cache.stall != GO_ON:
            stats.stalls[cache.stall - 1] += now - cache.stalled_at
        cache.stalled_at = now
        cache.stalled_fills = stats.fills
        pop(memory, gate.input)
        grid = packet.grid
        _exclude(cache, grid)
        code = _look_up_one(memory, cache, gate, index, packet, now)
        _include(cache, grid)
        cache.stall = max(code, GO_ON)
        if cache.stall != GO_ON:
            put_back(gate.input, index)
            return


@inline
def _send(memory, cache, now):
    """Send the replies that are due and for which the crossbar has room."""
    sender = memory.replies.senders[cache.index]
    end = (now + 1) * memory.interconnect.domain
    while cache.outbox.head != 0 and sender.state != WAITING:
        packet = packet_of(memory, cache.outbox.head)
        if packet.ready > now or sender.free >= end:
            return
        if claim_reply(memory, cache.index, packet.sm, now):
            send_reply(memory, pop(memory, cache.outbox), cache.index, now)


@inline
def _next_visit(memory, cache, gate):
    """When a slice can do something again."""
    wake = NEVER
    if gate.returns.head != 0:
        wake = packet_of(memory, gate.returns.head).ready
    if gate.input.head != 0 and cache.stall == GO_ON:
        ready = packet_of(memory, gate.input.head).ready
        wake = min(wake, max(ready, cycle_of(memory.l2, cache.next_free)))
    sender = memory.replies.senders[cache.index]
    if cache.outbox.head != 0 and sender.state != WAITING:
        ready = packet_of(memory, cache.outbox.head).ready
        wake = min(wake, max(ready, cycle_of(memory.interconnect, sender.free)))
    return wake


@slot
def visit_slice(where, index):
    """Serve a slice: replies out, sectors in from DRAM, look-ups."""
    memory = memory_at(where)
    now = memory.now
    cache = slice_of(memory, index)
    gate = memory.gates[index]
    _send(memory, cache, now)
    while gate.returns.head != 0 and packet_of(memory, gate.returns.head).ready <= now:
        _fill(memory, cache, gate, now)
    while cache.served.head != 0 and not _full(cache):
        served = pop(memory, cache.served)
        packet = packet_of(memory, served)
        _exclude(cache, packet.grid)
        _reply(memory, cache, served, packet, now)
        _include(cache, packet.grid)
    _look_up(memory, cache, gate, now)
    wake = _next_visit(memory, cache, gate)
    if wake < NEVER:
        wake_up(memory, slice_part(memory, index), wake, now)
    return 0
