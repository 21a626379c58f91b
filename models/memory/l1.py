"""The L1 data cache of one SM: one access and one answer per core cycle.

* Global loads: LRU, a miss reserves its way at once, allocates an MSHR and sends a request; further loads of the line
  merge into the MSHR. ``LOAD_BYPASS`` (``.cg``, volatile, and all global loads when ``l1.data`` is 0) uses the MSHRs
  but neither looks up nor fills the cache.
* Global stores: write-through, no allocate; a hit line is evicted. A line on its way is not filled when a store passes
  it, and later loads fetch it anew, behind the store.
* Atomics go to the L2 like stores, hold an MSHR of their own until the reply, and evict as stores do.
* Local memory: write-back, write-allocate. A store of a whole line needs no fetch; of a part, it fetches the line. Dirty
  lines die with their threads: the cache is invalidated at a launch.

An access that finds no MSHR, no merge slot, no way that could be evicted or no room in the queue to the crossbar is
refused and changes nothing. Replies are always accepted, so nothing can block for ever. The answer's port gives one
token per core cycle: hits ``l1.latency`` after issue, the loads that a fill serves one after the other; when both are
ready they alternate.
"""

from lockstep.models.jit import inline, jit, record
from lockstep.models.memory.crossbar import accept_reply
from lockstep.models.memory.fabric import (
    ATOMIC,
    FOREVER,
    OCCUPANCY,
    READ,
    REQUESTS,
    WRITE,
    enter,
    give,
    leave,
    memory_at,
    packet_of,
    push,
    take,
    wake_up,
)
from lockstep.models.memory.timing import BACK_END, FRONT_END
from lockstep.models.parameters import MAX_L1_LINES, MAX_MERGES, MAX_MSHRS

# Kinds of access.
LOAD, STORE, ATOMIC_ACCESS, LOAD_BYPASS, LOCAL_LOAD, LOCAL_STORE = range(6)

# What becomes of an access: its code. Refusals are negative.
HIT, MISS, MERGED, STORED = range(4)
NO_MSHR, NO_MERGE, QUEUE_FULL, NO_WAY, RETURN_FULL = range(-1, -6, -1)


REFUSALS = ("mshrs", "merges", "queue", "ways", "return")  # the refusals, as ``stats.stalls`` counts them

BUCKETS = MAX_MSHRS
RETURNS = 8192  # room for hits on their way: the largest latency, and as many that wait for the port
RESERVED = 1 << 62  # the LRU stamp of a way whose line is on its way

L1_STATISTICS = record(
    [
        ("loads", "i8"),  # accesses by kind, one per line
        ("stores", "i8"),
        ("atomics", "i8"),
        ("bypass_loads", "i8"),
        ("local_loads", "i8"),
        ("local_stores", "i8"),
        ("hits", "i8"),  # of loads and of local stores
        ("misses", "i8"),
        ("merges", "i8"),
        ("evictions", "i8"),  # valid lines that made room for another
        ("write_backs", "i8"),  # dirty ones among them
        ("store_evictions", "i8"),  # valid lines that a global store or an atomic hit
        ("stalls", "i8", (len(REFUSALS),)),  # core cycles in which the LSU's access was refused
        ("fetches", "i8"),  # lines asked for
        ("requests_out", "i8"),  # packets to the crossbar
        ("bytes_out", "i8"),  # data in them
        ("replies_in", "i8"),
        ("bytes_in", "i8"),
        ("round_trip", "i8"),  # sum over fetches: core cycles from the request to the reply (KA's lat_rt)
        ("tokens_in", "i8"),  # accesses that get an answer
        ("tokens_out", "i8"),
    ]
)

L1 = record(
    [
        ("line_shift", "i8"),  # the configuration, as the functions below use it
        ("line_bytes", "i8"),
        ("sets", "i8"),
        ("ways", "i8"),
        ("mshrs", "i8"),
        ("merges", "i8"),
        ("queue", "i8"),
        ("data", "i8"),
        ("hit_delay", "i8"),
        ("clock", "i8"),  # LRU time: one per access that touches a line
        ("refusal", "i8"),  # code of the access that waits; 0: none
        ("refused_at", "i8"),
        ("hit_first", "i8"),  # hits on their way, a ring
        ("hit_last", "i8"),
        ("free", "i4"),  # MSHRs as 1 + index; 0: none. Free ones ...
        ("filled", "i4"),  # ... those whose line is there, with loads to answer
        ("filled_last", "i4"),
        ("turn", "i4"),  # the port's last answer was a fill's
        ("in_flight", OCCUPANCY),  # MSHRs
        ("stats", L1_STATISTICS),
        ("line", "i8", (MAX_MSHRS,)),
        ("next", "i4", (MAX_MSHRS,)),  # in the list of free or filled ones, or in its bucket
        ("way", "i4", (MAX_MSHRS,)),  # 1 + index of the reserved line; 0: none
        ("tokens", "i4", (MAX_MSHRS,)),  # loads that wait for the line
        ("drained", "i4", (MAX_MSHRS,)),  # of them, those that were answered
        ("dirty_fill", "i4", (MAX_MSHRS,)),  # a local store has written to the line
        ("listed", "i4", (MAX_MSHRS,)),  # further accesses to the line find this MSHR
        ("bucket", "i4", (BUCKETS,)),  # MSHRs by line
        ("tag", "i8", (MAX_L1_LINES,)),  # line number, -1: invalid
        ("stamp", "i8", (MAX_L1_LINES,)),
        ("dirty", "u1", (MAX_L1_LINES,)),
        ("hit_ready", "i8", (RETURNS,)),
        ("hit_token", "i4", (RETURNS,)),
        ("token", "i4", (MAX_MSHRS * MAX_MERGES,)),
    ]
)


@inline
def set_index(l1, line):
    """The set of a line: its number modulo the sets."""
    return line & (l1.sets - 1)


@jit
def l1_reset(l1, config):
    """Empty the cache and its statistics; nothing may be in flight."""
    l1.line_bytes = config.l1.line_bytes
    shift = 0
    while 1 << shift < config.l1.line_bytes:
        shift += 1
    l1.line_shift = shift
    l1.sets = config.l1.sets
    l1.ways = config.l1.ways
    l1.mshrs = config.l1.mshrs
    l1.merges = config.l1.merges
    l1.queue = config.l1.queue
    l1.data = config.l1.data
    l1.hit_delay = config.l1.latency - FRONT_END - BACK_END
    l1.clock = 0
    l1.refusal = 0
    l1.refused_at = 0
    l1.hit_first = 0
    l1.hit_last = 0
    l1.filled = 0
    l1.filled_last = 0
    l1.turn = 0
    l1.free = 1
    for entry in range(l1.mshrs):
        l1.next[entry] = entry + 2 if entry + 1 < l1.mshrs else 0
    for bucket in range(BUCKETS):
        l1.bucket[bucket] = 0
    for way in range(l1.sets * l1.ways):
        l1.tag[way] = -1
        l1.stamp[way] = 0
        l1.dirty[way] = 0
    _clear_statistics(l1)


@inline
def _clear_statistics(l1):
    occupancy, stats = l1.in_flight, l1.stats
    occupancy.count = occupancy.changed = occupancy.entered = occupancy.integral = occupancy.residence = 0
    stats.loads = stats.stores = stats.atomics = stats.bypass_loads = stats.local_loads = stats.local_stores = 0
    stats.hits = stats.misses = stats.merges = stats.evictions = stats.write_backs = stats.store_evictions = 0
    stats.fetches = stats.requests_out = stats.bytes_out = stats.replies_in = stats.bytes_in = stats.round_trip = 0
    stats.tokens_in = stats.tokens_out = 0
    for reason in range(len(stats.stalls)):
        stats.stalls[reason] = 0


@inline
def _find(l1, line):
    """The way that holds a line, or -1."""
    first = set_index(l1, line) * l1.ways
    for way in range(first, first + l1.ways):
        if l1.tag[way] == line:
            return way
    return -1


@inline
def _oldest(l1, line):
    """The way that a line would take: the least recently used one of its set."""
    first = set_index(l1, line) * l1.ways
    victim = first
    for way in range(first + 1, first + l1.ways):
        if l1.stamp[way] < l1.stamp[victim]:
            victim = way
    return victim


@inline
def _touch(l1, way):
    l1.clock += 1
    l1.stamp[way] = l1.clock


@inline
def _pending(l1, line):
    """The MSHR of a line that is on its way, or -1."""
    entry = l1.bucket[line & (BUCKETS - 1)] - 1
    while entry >= 0 and l1.line[entry] != line:
        entry = l1.next[entry] - 1
    return entry


@inline
def _unlist(l1, entry):
    """Take an MSHR out of its bucket: no access finds it any more."""
    bucket = l1.line[entry] & (BUCKETS - 1)
    l1.listed[entry] = 0
    if l1.bucket[bucket] == entry + 1:
        l1.bucket[bucket] = l1.next[entry]
        return
    before = l1.bucket[bucket] - 1
    while l1.next[before] != entry + 1:
        before = l1.next[before] - 1
    l1.next[before] = l1.next[entry]


@inline
def _allocate(l1, line, now):
    """A free MSHR for a line; there is one."""
    entry = l1.free - 1
    l1.free = l1.next[entry]
    l1.line[entry] = line
    l1.way[entry] = 0
    l1.tokens[entry] = 0
    l1.drained[entry] = 0
    l1.dirty_fill[entry] = 0
    l1.listed[entry] = 0
    enter(l1.in_flight, now)
    return entry


@inline
def _wait(l1, entry, token):
    """A load waits for the line of an MSHR."""
    l1.token[entry * l1.merges + l1.tokens[entry]] = token
    l1.tokens[entry] += 1
    l1.stats.tokens_in += 1


@inline
def _request(l1, port, now, kind, line, size, lanes, entry):
    """Queue a packet to the crossbar, which sees it from the next cycle on.

    The slice follows from the address: chunks of ``dram.interleave`` bytes go to the slices in turn, and slice ``s``
    belongs to channel ``s mod channels``, so that consecutive chunks are on different channels.
    """
    memory = memory_at(port.memory)
    address = line << l1.line_shift
    chunk = address >> memory.chunk_shift
    local = chunk // memory.slices
    index = take(memory)
    packet = packet_of(memory, index)
    packet.slice = chunk - local * memory.slices
    packet.address = (local << memory.chunk_shift) + address - (chunk << memory.chunk_shift)
    packet.kind = kind
    packet.bytes = size
    packet.lanes = lanes
    packet.sm = port.sm
    packet.entry = entry
    packet.ready = now + 1
    packet.born = now
    if port.requests.head == 0:
        wake_up(memory, REQUESTS + port.group, now + 1)
    push(memory, port.requests, index)
    enter(memory.flight, now)
    l1.stats.requests_out += 1
    l1.stats.bytes_out += size if kind != READ else 0


@inline
def _refuse(l1, port, now, code):
    l1.refusal = code
    l1.refused_at = now
    port.full = code == QUEUE_FULL
    return code


@inline
def _write_through(l1, port, now, kind, line, size, lanes, token):
    """A global store or an atomic."""
    if kind == ATOMIC_ACCESS and l1.free == 0:
        return _refuse(l1, port, now, NO_MSHR)
    if port.requests.count >= l1.queue:
        return _refuse(l1, port, now, QUEUE_FULL)
    way = _find(l1, line)
    if way >= 0:
        l1.tag[way] = -1
        l1.stamp[way] = 0
        l1.dirty[way] = 0
        l1.stats.store_evictions += 1
    passed = _pending(l1, line)
    if passed >= 0:
        _unlist(l1, passed)
        if l1.way[passed] != 0:
            l1.stamp[l1.way[passed] - 1] = 0
            l1.way[passed] = 0
    if kind == STORE:
        l1.stats.stores += 1
        _request(l1, port, now, WRITE, line, size, 0, 0)
        return STORED
    entry = _allocate(l1, line, now)
    _wait(l1, entry, token)
    l1.stats.atomics += 1
    _request(l1, port, now, ATOMIC, line, size, lanes, entry)
    return MISS


@inline
def _count_load(l1, kind):
    if kind == LOAD:
        l1.stats.loads += 1
    elif kind == LOAD_BYPASS:
        l1.stats.bypass_loads += 1
    elif kind == LOCAL_LOAD:
        l1.stats.local_loads += 1
    else:
        l1.stats.local_stores += 1


@inline
def _hit(l1, port, now, kind, way, token):
    if kind == LOCAL_STORE:
        l1.dirty[way] = 1
    else:
        if l1.hit_last - l1.hit_first == RETURNS:
            return _refuse(l1, port, now, RETURN_FULL)
        slot = l1.hit_last & (RETURNS - 1)
        l1.hit_ready[slot] = now + l1.hit_delay
        l1.hit_token[slot] = token
        l1.hit_last += 1
        l1.stats.tokens_in += 1
    _touch(l1, way)
    _count_load(l1, kind)
    l1.stats.hits += 1
    return STORED if kind == LOCAL_STORE else HIT


@inline
def _merge(l1, port, now, kind, entry, token):
    if kind == LOCAL_STORE:
        l1.dirty_fill[entry] = 1
    else:
        if l1.tokens[entry] == l1.merges:
            return _refuse(l1, port, now, NO_MERGE)
        _wait(l1, entry, token)
    _count_load(l1, kind)
    l1.stats.merges += 1
    return STORED if kind == LOCAL_STORE else MERGED


@inline
def _miss(l1, port, now, kind, line, size, token):
    fetch = kind != LOCAL_STORE or size < l1.line_bytes
    if fetch and l1.free == 0:
        return _refuse(l1, port, now, NO_MSHR)
    packets = 1 if fetch else 0
    victim = -1
    if kind != LOAD_BYPASS:
        victim = _oldest(l1, line)
        if l1.stamp[victim] == RESERVED:
            return _refuse(l1, port, now, NO_WAY)
        packets += 1 if l1.dirty[victim] else 0
    if port.requests.count + packets > l1.queue:
        return _refuse(l1, port, now, QUEUE_FULL)
    if victim >= 0 and l1.tag[victim] >= 0:
        l1.stats.evictions += 1
        if l1.dirty[victim]:
            l1.stats.write_backs += 1
            l1.dirty[victim] = 0
            _request(l1, port, now, WRITE, l1.tag[victim], l1.line_bytes, 0, 0)
        l1.tag[victim] = -1
    _count_load(l1, kind)
    l1.stats.misses += 1
    if fetch:
        entry = _allocate(l1, line, now)
        bucket = line & (BUCKETS - 1)
        l1.next[entry] = l1.bucket[bucket]
        l1.bucket[bucket] = entry + 1
        l1.listed[entry] = 1
        if victim >= 0:
            l1.way[entry] = victim + 1
            l1.stamp[victim] = RESERVED
        if kind == LOCAL_STORE:
            l1.dirty_fill[entry] = 1
        else:
            _wait(l1, entry, token)
        l1.stats.fetches += 1
        _request(l1, port, now, READ, line, l1.line_bytes, 0, entry)
    else:
        l1.tag[victim] = line
        l1.dirty[victim] = 1
        _touch(l1, victim)
    return STORED if kind == LOCAL_STORE else MISS


@jit
def l1_access(l1, port, config, now, kind, address, size, lanes, token):
    """Offer the LSU's next access, one line. Returns HIT, MISS, MERGED or STORED, or the reason of a refusal.

    ``address`` is any byte of the line, ``size`` the bytes written or operated on, ``lanes`` for an atomic the most
    lanes on one address; :func:`l1_step` gives ``token`` back when the data are there. A refused access is offered
    again, in the next cycle or when :func:`l1_wake` says that it may succeed: the cycles in between count as stalls
    either way.
    """
    if l1.refusal != 0:
        l1.stats.stalls[-1 - l1.refusal] += now - l1.refused_at
        l1.refusal = 0
        port.full = 0
        memory_at(port.memory).sm_wake[port.sm] = port.reply_ready
    line = address >> l1.line_shift
    if kind == LOAD and l1.data == 0:
        kind = LOAD_BYPASS
    if kind == STORE or kind == ATOMIC_ACCESS:
        return _write_through(l1, port, now, kind, line, size, lanes, token)
    if kind != LOAD_BYPASS:
        way = _find(l1, line)
        if way >= 0:
            return _hit(l1, port, now, kind, way, token)
    entry = _pending(l1, line)
    if entry >= 0:
        return _merge(l1, port, now, kind, entry, token)
    return _miss(l1, port, now, kind, line, size, token)


@inline
def _fill(l1, port, now):
    """Take a reply: its line is there, its loads can be answered."""
    memory = memory_at(port.memory)
    index = accept_reply(memory, port, now)
    packet = packet_of(memory, index)
    entry = packet.entry
    leave(memory.flight, now, packet.born)
    leave(l1.in_flight, now, packet.born)
    l1.stats.replies_in += 1
    l1.stats.bytes_in += packet.bytes
    if packet.kind == READ:
        l1.stats.round_trip += now - packet.born
    give(memory, index)
    if l1.listed[entry]:
        _unlist(l1, entry)
    way = l1.way[entry] - 1
    if way >= 0:
        l1.tag[way] = l1.line[entry]
        l1.dirty[way] = l1.dirty_fill[entry]
        _touch(l1, way)
    if l1.tokens[entry] == 0:  # fetched for a local store alone
        l1.next[entry] = l1.free
        l1.free = entry + 1
        return
    l1.next[entry] = 0
    if l1.filled == 0:
        l1.filled = entry + 1
    else:
        l1.next[l1.filled_last - 1] = entry + 1
    l1.filled_last = entry + 1


@inline
def _answer_fill(l1):
    """The next load of the first filled MSHR, which is free after its last one."""
    entry = l1.filled - 1
    token = l1.token[entry * l1.merges + l1.drained[entry]]
    l1.drained[entry] += 1
    if l1.drained[entry] == l1.tokens[entry]:
        l1.filled = l1.next[entry]
        l1.next[entry] = l1.free
        l1.free = entry + 1
    return token


@jit
def l1_step(l1, port, config, now):
    """Accept a reply and give an answer, if they are due. Returns the token of the access that is done, or -1."""
    if port.reply_ready <= now:
        _fill(l1, port, now)
    hit = l1.hit_first != l1.hit_last and l1.hit_ready[l1.hit_first & (RETURNS - 1)] <= now
    if l1.filled != 0 and not (hit and l1.turn):
        l1.turn = 1
        token = _answer_fill(l1)
    elif hit:
        l1.turn = 0
        token = l1.hit_token[l1.hit_first & (RETURNS - 1)]
        l1.hit_first += 1
    else:
        return -1
    l1.stats.tokens_out += 1
    return token


@jit
def l1_wake(l1, port, config, now):
    """The next cycle after ``now`` in which :func:`l1_step` has something to do, or FOREVER.

    An access that was refused may succeed after such a step, or, if the queue was full, in a cycle that ``sm_wake``
    names.
    """
    if l1.filled != 0:
        return now + 1
    wake = port.reply_ready
    if l1.hit_first != l1.hit_last:
        wake = min(wake, l1.hit_ready[l1.hit_first & (RETURNS - 1)])
    return max(wake, now + 1)
