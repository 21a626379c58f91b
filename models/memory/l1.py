"""The L1 data cache of one SM: one access and one answer per core cycle.

* Global loads: LRU, a miss reserves its way at once, allocates an MSHR and sends a request; further loads of the line
  merge into the MSHR. ``LOAD_BYPASS`` (``.cg``, volatile, and all global loads when ``l1.data`` is 0) uses the MSHRs
  but neither looks up nor fills the cache. It asks for the sectors that it needs (``l2.sector_bytes``), all others for
  the whole line; a load merges with one that has asked for all that it would ask for. Where global memory has no cache
  at all (``l2.data`` is 0), loads past the L1 do not merge: each asks for itself. The L1 then has texture fetches.
* Global stores: write-through, no allocate; a hit line is evicted. A line on its way is not filled when a store passes
  it, and later loads fetch it anew, behind the store.
* Atomics go to the L2 like stores, hold an MSHR of their own until the reply, and evict as stores do.
* Local memory: write-back, write-allocate. A store of a whole line needs no fetch; of a part, it fetches the line.
  Dirty lines die with their threads: the cache is invalidated at a launch.
* Where lines have values (``values.py``), a line keeps the bytes with which it was filled, whatever memory has by now:
  a store of the same SM evicts it, one of another SM does not. A load that merges gets what the reply brings. One that
  bypasses the L1 must not get what is older than itself: where it merges, the reply has what memory has now.
  :func:`l1_invalidate` is what fences do.
* Texture fetches are loads, or, where textures have a cache of their own (``TEXTURE_LOAD``), loads of sets of their
  own, beside those of the L1. All else they share: the port, the MSHRs, the queue. No store changes these sets, and a
  fetch does not merge with a load of data.
* ``LOCAL_LAST`` is the last load of a line that nobody reads again, and ``LOCAL_DROP`` says so of one that is not
  loaded: the line leaves the cache, and is not written back.

An access that finds no MSHR, no merge slot, no way that could be evicted or no room in the queue to the crossbar is
refused and changes nothing. Replies are always accepted, so nothing can block for ever. The answer's port gives one
token per core cycle: hits ``l1.latency`` after issue, the loads that a fill serves one after the other; when both are
ready they alternate.
"""

from lockstep.models.execution.isa import CONTEXTS_PHYSICAL
from lockstep.models.jit import addressof, clear, ctz, i64, inline, jit, record
from lockstep.models.memory.fabric import (
    ATOMIC,
    OCCUPANCY,
    READ,
    WRITE,
    enter,
    keep,
    leave,
    memory_at,
    packet_of,
)
from lockstep.models.memory.index import hashed
from lockstep.models.memory.interconnect import accept_reply, send_request
from lockstep.models.memory.masks import BYTES, bytes_of, count_of, sectors_of, span
from lockstep.models.memory.tags import DIRTY, RESERVED, WAY, drop, find, line_of, named, use, victim
from lockstep.models.memory.timing import BACK_END, FRONT_END
from lockstep.models.memory.values import LINE_BYTES, copy_line, in_memory, is_global, sent
from lockstep.models.share import exclude, include, share_of, words_of
from lockstep.spec.parameters import MAX_L1_LINES, MAX_MERGES, MAX_MSHRS, MAX_TEXTURE_LINES

# Kinds of access.
LOAD, STORE, ATOMIC_ACCESS, LOAD_BYPASS, LOCAL_LOAD, LOCAL_STORE, LOCAL_LAST, LOCAL_DROP, TEXTURE_LOAD = range(9)

# What becomes of an access: its code. Refusals are negative.
HIT, MISS, MERGED, STORED = range(4)
NO_MSHR, NO_MERGE, QUEUE_FULL, NO_WAY, RETURN_FULL = range(-1, -6, -1)


REFUSALS = ("mshrs", "merges", "queue", "ways", "return")  # the refusals, as ``stats.stalls`` counts them

NONE = -1
BUCKETS = 64
TEXTURE_LINE = 1 << 40  # in the number of a line that is in the texture cache, or on its way there
RETURNS = 8192  # room for hits on their way

L1_STATISTICS = record(
    [
        ("loads", "i8"),  # accesses by kind, one per line
        ("stores", "i8"),
        ("atomics", "i8"),
        ("bypass_loads", "i8"),
        ("local_loads", "i8"),
        ("local_stores", "i8"),
        ("local_drops", "i8"),
        ("hits", "i8"),  # of loads and of local stores
        ("misses", "i8"),
        ("merges", "i8"),
        ("evictions", "i8"),  # valid lines that made room for another
        ("write_backs", "i8"),  # dirty ones among them
        ("store_evictions", "i8"),  # valid lines that a global store or an atomic hit
        ("fetches", "i8"),  # lines asked for
        ("requests_out", "i8"),  # packets to the crossbar
        ("bytes_out", "i8"),  # data in them
        ("replies_in", "i8"),
        ("bytes_in", "i8"),
        ("round_trip", "i8"),  # sum over fetches: core cycles from the request to the reply (Kayiran's lat_rt)
        ("stalls", "i8", (len(REFUSALS),)),  # core cycles in which the LSU's access was refused
        ("tokens_in", "i8"),  # accesses that get an answer
        ("tokens_out", "i8"),
    ]
)
SHARE = share_of(L1_STATISTICS, "round_trip")
SHARE_WORDS = words_of(SHARE)

MSHR = record(
    [
        ("line", "i8"),
        ("asked", BYTES),  # of it
        ("next", "i4"),  # in the list of free or filled ones, or in its bucket
        ("tokens", "i4"),  # loads that wait for the line
        ("drained", "i4"),  # of them, those that were answered
        ("fills", "i4"),  # a way is reserved for the line
        ("dirty", "i4"),  # a local store has written to the line
        ("listed", "i4"),  # further accesses to the line find this MSHR
    ]
)

ANSWER = record([("ready", "i8"), ("token", "i8")])

L1 = record(
    [
        ("line_shift", "i8"),  # the configuration, as the functions below use it
        ("line_bytes", "i8"),
        ("sector_shift", "i8"),
        ("sets", "i8"),
        ("index", "i8"),
        ("set_bits", "i8"),
        ("ways", "i8"),
        ("texture_sets", "i8"),
        ("texture_ways", "i8"),
        ("mshrs", "i8"),
        ("merges", "i8"),
        ("queue", "i8"),
        ("alone", "i8"),  # loads past the L1 do not merge
        ("hit_delay", "i8"),
        ("refusal", "i8"),  # code of the access that waits; 0: none
        ("refused_at", "i8"),
        ("ring", "i8"),  # hits on their way: slots of the ring in use, a power of two ...
        ("hit_first", "i8"),  # ... and the first and last of them, running numbers
        ("hit_last", "i8"),
        ("free", "i4"),  # MSHRs as 1 + index; 0: none. Free ones ...
        ("filled", "i4"),  # ... those whose line is there, with loads to answer
        ("filled_last", "i4"),
        ("turn", "i4"),  # the port's last answer was a fill's
        ("passed_on", "i8"),  # the reply of this cycle is of another cache, in this MSHR of it; or NONE
        ("contents", "i8"),  # host addresses of the bytes of lines (``values``); 0: they have none ...
        ("brought", "i8"),  # ... and of what the reads of the MSHRs have taken
        ("come", "i8"),  # the MSHR whose line has come in this cycle, with values; or NONE
        ("in_flight", OCCUPANCY),  # MSHRs
        ("stats", L1_STATISTICS),
        ("bucket", "i4", (BUCKETS,)),  # MSHRs by line
        ("entries", MSHR, (MAX_MSHRS,)),
        ("lines", "i8", (MAX_L1_LINES + MAX_TEXTURE_LINES,)),  # see ``tags.py``; those of textures last
        ("hits", ANSWER, (RETURNS,)),
        ("token", "i4", (MAX_MSHRS * MAX_MERGES,)),  # of the loads that wait, by MSHR
        ("share", SHARE),
    ]
)


@inline
def set_index(l1, line):
    """The set of a line."""
    return hashed(l1.index, l1.set_bits, line) & (l1.sets - 1)


@jit
def l1_reset(l1, config, answers):
    """Empty the cache and its statistics; nothing may be in flight. It gives at most ``answers`` per cycle."""
    l1.line_bytes = config.l1.line_bytes
    l1.line_shift = ctz(config.l1.line_bytes)
    l1.sector_shift = ctz(config.l2.sector_bytes)
    l1.sets = config.l1.sets
    l1.set_bits = ctz(config.l1.sets)
    l1.index = config.l1.index
    l1.ways = config.l1.ways
    l1.texture_sets = config.texture_cache.sets
    l1.texture_ways = config.texture_cache.ways
    l1.mshrs = config.l1.mshrs
    l1.merges = config.l1.merges
    l1.queue = config.l1.queue
    l1.alone = config.l2.data == 0
    l1.hit_delay = config.l1.latency - FRONT_END - BACK_END
    l1.ring = 32
    while l1.ring < answers * (l1.hit_delay + 32):
        l1.ring *= 2
    l1.refusal = 0
    l1.refused_at = 0
    l1.hit_first = 0
    l1.hit_last = 0
    l1.filled = 0
    l1.turn = 0
    l1.passed_on = NONE
    l1.come = NONE
    clear(l1.in_flight)
    clear(l1.stats)
    clear(l1.share)
    for bucket in range(BUCKETS):
        l1.bucket[bucket] = 0
    for place in range(l1.sets * l1.ways + l1.texture_sets * l1.texture_ways):
        l1.lines[place] = 0
    l1.free = 1
    for index in range(l1.mshrs):
        l1.entries[index].next = index + 2 if index + 1 < l1.mshrs else 0
        l1.entries[index].listed = 0


@inline
def _set(l1, line):
    """Where the words of a line's set begin."""
    if line & TEXTURE_LINE:
        return l1.sets * l1.ways + (line & (l1.texture_sets - 1)) * l1.texture_ways
    return set_index(l1, line) * l1.ways


@inline
def _ways(l1, line):
    """How many words the set has."""
    return l1.texture_ways if line & TEXTURE_LINE else l1.ways


@inline
def named_for(kind, line):
    """The number of a line in the cache in which a kind of access looks it up."""
    return line | TEXTURE_LINE if kind == TEXTURE_LOAD else line


@inline
def _find(l1, line):
    return find(l1.lines, _set(l1, line), _ways(l1, line), line)


@inline
def _bucket(line):
    """The bucket of a line. Columns of a matrix have lines far apart, so the higher bits count too."""
    return (line ^ line >> 6 ^ line >> 12) & (BUCKETS - 1)


@inline
def _pending(l1, line, low, high):
    """The MSHR of a line of which these bytes are on their way, or -1."""
    index = l1.bucket[_bucket(line)] - 1
    while index >= 0:
        entry = l1.entries[index]
        if entry.line == line and low & ~entry.asked.low | high & ~entry.asked.high == 0:
            break
        index = entry.next - 1
    return index


@inline
def _unlist(l1, index):
    """Take an MSHR out of its bucket: no access finds it any more."""
    entry = l1.entries[index]
    bucket = _bucket(entry.line)
    entry.listed = 0
    before = l1.bucket[bucket] - 1
    if before == index:
        l1.bucket[bucket] = entry.next
        return
    while l1.entries[before].next != index + 1:
        before = l1.entries[before].next - 1
    l1.entries[before].next = entry.next


@inline
def _allocate(l1, line, now):
    """A free MSHR for a line; there is one."""
    index = l1.free - 1
    entry = l1.entries[index]
    l1.free = entry.next
    entry.line = line
    entry.tokens = 0
    entry.drained = 0
    entry.fills = 0
    entry.dirty = 0
    entry.listed = 0
    enter(l1.in_flight, now)
    return index


@inline
def _wait(l1, index, token):
    """A load waits for the line of an MSHR."""
    entry = l1.entries[index]
    l1.token[index * l1.merges + entry.tokens] = token
    entry.tokens += 1
    l1.stats.tokens_in += 1


@inline
def _request(l1, port, now, kind, line, low, high, size, lanes, entry):
    """Send a packet, and count it."""
    line &= ~TEXTURE_LINE
    send_request(port, now, kind, line << l1.line_shift, low, high, size, lanes, entry)
    l1.stats.requests_out += 1
    if kind != READ:
        l1.stats.bytes_out += size
    if l1.contents != 0 and is_global(line << l1.line_shift):
        sent(memory_at(port.memory), port, line << l1.line_shift)


@inline
def _refuse(l1, port, now, code):
    l1.refusal = code
    l1.refused_at = now
    port.full = code == QUEUE_FULL
    port.early |= i64(port.full) & i64(port.ahead != 0)
    return code


@jit
def _forget(l1, line):
    """Let a line leave, and do not fill it if it is on its way. Returns whether it was there."""
    there = False
    place = _find(l1, line)
    if place >= 0:
        there = l1.lines[place] & RESERVED == 0
        drop(l1.lines, _set(l1, line), l1.ways, place)
    passed = _pending(l1, line, i64(0), i64(0))
    while passed >= 0:
        l1.entries[passed].fills = 0
        _unlist(l1, passed)
        passed = _pending(l1, line, i64(0), i64(0))
    return there


@inline
def _write_through(l1, port, now, kind, line, low, high, size, lanes, token):
    """A global store or an atomic."""
    if kind == ATOMIC_ACCESS and l1.free == 0:
        return _refuse(l1, port, now, NO_MSHR)
    if port.requests.count >= l1.queue:
        return _refuse(l1, port, now, QUEUE_FULL)
    l1.stats.store_evictions += 1 if _forget(l1, line) else 0
    if kind == STORE:
        l1.stats.stores += 1
        counted = i64(line << l1.line_shift < CONTEXTS_PHYSICAL)
        port.stores[port.grid] += counted
        _request(l1, port, now, WRITE, line, low, high, size, counted, 0)
        return STORED
    entry = _allocate(l1, line, now)
    _wait(l1, entry, token)
    l1.stats.atomics += 1
    _request(l1, port, now, ATOMIC, line, low, high, size, lanes, entry)
    return MISS


@inline
def _count_load(l1, kind):
    if kind == LOAD or kind == TEXTURE_LOAD:
        l1.stats.loads += 1
    elif kind == LOAD_BYPASS:
        l1.stats.bypass_loads += 1
    elif kind == LOCAL_LOAD or kind == LOCAL_LAST:
        l1.stats.local_loads += 1
    else:
        l1.stats.local_stores += 1


@inline
def _hit(l1, port, now, kind, line, place, token):
    word = l1.lines[place]
    if kind == LOCAL_STORE:
        word |= DIRTY
    else:
        if l1.hit_last - l1.hit_first == l1.ring:
            return _refuse(l1, port, now, RETURN_FULL)
        answer = l1.hits[l1.hit_last & (l1.ring - 1)]
        answer.ready = now + l1.hit_delay
        answer.token = token
        l1.hit_last += 1
        l1.stats.tokens_in += 1
    use(l1.lines, _set(l1, line), place, word)
    _count_load(l1, kind)
    l1.stats.hits += 1
    return STORED if kind == LOCAL_STORE else HIT


@inline
def _way(l1, line, place):
    """The way of the line at a place of a set, where another one comes; or a way that no line of the set has."""
    first = _set(l1, line)
    if l1.lines[place] != 0:
        return l1.lines[place] & WAY
    taken = i64(0)
    for other in range(first, first + _ways(l1, line)):
        if l1.lines[other] != 0:
            taken |= i64(1) << (l1.lines[other] & WAY)
    return ctz(~taken)


@inline
def contents_of(l1, line):
    """Host address of the bytes of a line that is there."""
    place = _find(l1, line)
    return l1.contents + (_set(l1, line) + (l1.lines[place] & WAY)) * LINE_BYTES


@inline
def brought_of(l1, index):
    """Host address of the bytes that the read of an MSHR has taken."""
    return l1.brought + index * LINE_BYTES


@inline
def _renew(l1, port, index):
    """A load past the L1 joins a read: it gets what memory has now, if a slice has looked the read up before."""
    if not is_global(l1.entries[index].line << l1.line_shift):
        return
    if port.ahead != 0:
        port.renew[port.renewed] = index
        port.renewed += 1
    else:
        l1_renew(l1, port, index)


@inline
def l1_renew(l1, port, index):
    """A read takes its line anew."""
    address = i64(l1.entries[index].line << l1.line_shift)
    copy_line(brought_of(l1, index), in_memory(memory_at(port.memory), address), l1.line_bytes)


@inline
def _merge(l1, port, now, kind, index, token):
    entry = l1.entries[index]
    if kind == LOCAL_STORE:
        entry.dirty = 1
    else:
        if entry.tokens == l1.merges:
            return _refuse(l1, port, now, NO_MERGE)
        _wait(l1, index, token)
    if entry.fills:
        place = _find(l1, entry.line)
        use(l1.lines, _set(l1, entry.line), place, l1.lines[place])
    if l1.contents != 0 and kind == LOAD_BYPASS:
        _renew(l1, port, index)
    _count_load(l1, kind)
    l1.stats.merges += 1
    return STORED if kind == LOCAL_STORE else MERGED


@inline
def _miss(l1, port, now, kind, line, low, high, size, token):
    fetch = kind != LOCAL_STORE or size < l1.line_bytes
    if fetch and l1.free == 0:
        return _refuse(l1, port, now, NO_MSHR)
    packets = 1 if fetch else 0
    place, old = -1, 0
    if kind != LOAD_BYPASS and kind != LOCAL_LAST:
        place = victim(l1.lines, _set(l1, line), _ways(l1, line))
        if place < 0:
            return _refuse(l1, port, now, NO_WAY)
        old = l1.lines[place]
        packets += 1 if old & DIRTY else 0
    if port.requests.count + packets > l1.queue:
        return _refuse(l1, port, now, QUEUE_FULL)
    stats = l1.stats
    if old != 0:
        stats.evictions += 1
        if old & DIRTY:
            stats.write_backs += 1
            whole_low, whole_high = span(i64(0), l1.line_bytes)
            _request(l1, port, now, WRITE, line_of(old), whole_low, whole_high, l1.line_bytes, 0, 0)
    if place >= 0:
        way = _way(l1, line, place) if l1.contents != 0 else i64(0)
        use(l1.lines, _set(l1, line), place, named(line) | way | (RESERVED if fetch else DIRTY))
    _count_load(l1, kind)
    stats.misses += 1
    if not fetch:
        return STORED
    index = _allocate(l1, line, now)
    entry = l1.entries[index]
    bucket = _bucket(line)
    entry.next = l1.bucket[bucket]
    l1.bucket[bucket] = index + 1
    entry.listed = 1
    entry.fills = place >= 0
    entry.asked.low = low
    entry.asked.high = high
    stats.fetches += 1
    _request(l1, port, now, READ, line, low, high, count_of(low, high), i64(kind == LOAD_BYPASS), index)
    if kind == LOCAL_STORE:
        entry.dirty = 1
        return STORED
    _wait(l1, index, token)
    return MISS


@inline
def l1_access(l1, port, config, now, kind, address, low, high, size, lanes, token, grid):
    """Offer a grid's next access, one line. Returns HIT, MISS, MERGED or STORED, or the reason of a refusal.

    ``address`` is any byte of the line, ``low`` and ``high`` are those that it accesses (``masks.py``), ``size`` the
    bytes of data of a store or an atomic, ``lanes`` for an atomic the most lanes on one address; :func:`l1_answer`
    gives ``token`` back when the data are there. A refused access is offered again, in the next cycle or when
    :func:`l1_wake` says that it may succeed: the cycles in between count as stalls either way.
    """
    port.grid = grid
    if grid != 0:
        exclude(addressof(l1.share), addressof(l1.stats), SHARE_WORDS)
    code = _access(l1, port, now, kind, address, low, high, size, lanes, token)
    if grid != 0:
        include(addressof(l1.share), addressof(l1.stats), SHARE_WORDS)
    return code


@inline
def _access(l1, port, now, kind, address, low, high, size, lanes, token):
    """The same, of whichever grid."""
    if l1.refusal != 0:
        l1.stats.stalls[-1 - l1.refusal] += now - l1.refused_at
        l1.refusal = 0
        l1.refused_at = 0
        port.full = 0
    line = named_for(kind, address >> l1.line_shift)
    if kind == LOCAL_DROP:
        _forget(l1, line)
        l1.stats.local_drops += 1
        return STORED
    if kind == STORE or kind == ATOMIC_ACCESS:
        return _write_through(l1, port, now, kind, line, low, high, size, lanes, token)
    code = _load(l1, port, now, kind, line, low, high, size, token)
    if kind == LOCAL_LAST and code >= 0:
        _forget(l1, line)
    return code


@inline
def _load(l1, port, now, kind, line, low, high, size, token):
    """A load, a texture fetch, or a store to local memory."""
    if kind == LOAD_BYPASS:
        low, high = bytes_of(sectors_of(low, high, l1.sector_shift), l1.sector_shift)
    else:
        place = _find(l1, line)
        if place >= 0 and l1.lines[place] & RESERVED == 0:
            return _hit(l1, port, now, kind, line, place, token)
        low, high = span(i64(0), l1.line_bytes)
    entry = i64(-1) if kind == LOAD_BYPASS and l1.alone != 0 else _pending(l1, line, low, high)
    if entry >= 0:
        return _merge(l1, port, now, kind, entry, token)
    return _miss(l1, port, now, kind, line, low, high, size, token)


@inline
def _received(l1, packet, now):
    """Count a reply."""
    l1.stats.replies_in += 1
    l1.stats.bytes_in += packet.bytes
    if packet.kind == READ:
        l1.stats.round_trip += now - packet.born


@inline
def _brought(l1, index, kind):
    """A reply has brought the values of a line."""
    entry = l1.entries[index]
    if kind == READ and is_global(entry.line << l1.line_shift):
        l1.come = index
        if entry.fills:
            copy_line(contents_of(l1, entry.line), brought_of(l1, index), l1.line_bytes)


@inline
def _fill(l1, port, now):
    """Take a reply: its line is there, its loads can be answered."""
    memory = memory_at(port.memory)
    packet_index = accept_reply(memory, port, now)
    packet = packet_of(memory, packet_index)
    index = packet.entry
    leave(port.flight, now, packet.born)
    if packet.kind == WRITE:  # has reached the L2
        keep(memory, port, packet_index)
        return
    if index >= MAX_MSHRS:
        l1.passed_on = index
        keep(memory, port, packet_index)
        return
    entry = l1.entries[index]
    leave(l1.in_flight, now, packet.born)
    if packet.grid != 0:
        exclude(addressof(l1.share), addressof(l1.stats), SHARE_WORDS)
    _received(l1, packet, now)
    if packet.grid != 0:
        include(addressof(l1.share), addressof(l1.stats), SHARE_WORDS)
    keep(memory, port, packet_index)
    if entry.listed:
        _unlist(l1, index)
    if entry.fills:
        place = _find(l1, entry.line)
        l1.lines[place] = l1.lines[place] & ~RESERVED | (DIRTY if entry.dirty else 0)
    if l1.contents != 0:
        _brought(l1, index, packet.kind)
    if entry.tokens == 0:  # fetched for a local store alone
        entry.next = l1.free
        l1.free = index + 1
        return
    entry.next = 0
    if l1.filled == 0:
        l1.filled = index + 1
    else:
        l1.entries[l1.filled_last - 1].next = index + 1
    l1.filled_last = index + 1


@jit
def l1_invalidate(l1):
    """Let global lines leave: no load finds or joins what was asked for before."""
    for first in range(0, l1.sets * l1.ways, l1.ways):
        place = first
        while place < first + l1.ways and l1.lines[place] != 0:
            if is_global(line_of(l1.lines[place]) << l1.line_shift):
                drop(l1.lines, first, l1.ways, place)
            else:
                place += 1
    for index in range(l1.mshrs):
        entry = l1.entries[index]
        if entry.listed and is_global(entry.line << l1.line_shift):
            entry.fills = 0
            _unlist(l1, index)


@inline
def _answer_fill(l1):
    """The next load of the first filled MSHR, which is free after its last one."""
    index = l1.filled - 1
    entry = l1.entries[index]
    token = l1.token[index * l1.merges + entry.drained]
    entry.drained += 1
    if entry.drained == entry.tokens:
        l1.filled = entry.next
        entry.next = l1.free
        l1.free = index + 1
    return token


@inline
def l1_fill(l1, port, now):
    """Accept a reply, if one is there. That of another cache is passed on: its requests name no MSHR of the L1."""
    if port.reply_ready <= now:
        _fill(l1, port, now)


@jit
def l1_holds(l1, line):
    """Whether a load of the line would hit."""
    place = _find(l1, line)
    return place >= 0 and l1.lines[place] & RESERVED == 0


@inline
def _hit_is_ready(l1, now):
    return l1.hit_first != l1.hit_last and l1.hits[l1.hit_first & (l1.ring - 1)].ready <= now


@inline
def l1_answer(l1, now):
    """The token of an access that is done, or -1."""
    hit = _hit_is_ready(l1, now)
    if l1.filled != 0 and not (hit and l1.turn):
        l1.turn = 1
        token = _answer_fill(l1)
    elif hit:
        l1.turn = 0
        token = l1.hits[l1.hit_first & (l1.ring - 1)].token
        l1.hit_first += 1
    else:
        return -1
    l1.stats.tokens_out += 1
    return token


@inline
def l1_peek(l1, now):
    """What :func:`l1_answer` would return, without effect."""
    hit = _hit_is_ready(l1, now)
    if l1.filled != 0 and not (hit and l1.turn):
        index = l1.filled - 1
        return i64(l1.token[index * l1.merges + l1.entries[index].drained])
    return i64(l1.hits[l1.hit_first & (l1.ring - 1)].token) if hit else i64(-1)


@inline
def l1_wake(l1, port, config, now):
    """The next cycle after ``now`` in which :func:`l1_fill` or :func:`l1_answer` has something to do, or NEVER.

    An access that was refused may succeed after such a step, or, if the queue was full, in a cycle that ``sm_wake``
    names.
    """
    if l1.filled != 0:
        return now + 1
    wake = port.reply_ready
    if l1.hit_first != l1.hit_last:
        wake = min(wake, l1.hits[l1.hit_first & (l1.ring - 1)].ready)
    return max(wake, now + 1)
