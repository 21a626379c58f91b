"""A read-only cache of one SM, for instructions or for constants: LRU, and misses go to the L2 through the SM's port.

A miss takes an MSHR and asks for the line, and for the next ones if the cache prefetches; whoever looks it up meanwhile
joins. The line is entered when it arrives, and those who wait for it, a mask of the cache's user, look it up again.
"""

from lockstep.models.jit import addressof, clear, ctz, inline, record
from lockstep.models.memory.fabric import READ, memory_at
from lockstep.models.memory.interconnect import send_request
from lockstep.models.memory.masks import span
from lockstep.models.memory.tags import find, named, use
from lockstep.models.share import exclude, include, words_of
from lockstep.spec.parameters import MAX_MSHRS, MAX_READ_LINES, MAX_READ_MSHRS

FOUND, REFUSED = -1, -2  # what a look-up may return instead of an MSHR
CODE, CONSTANTS = MAX_MSHRS, MAX_MSHRS + MAX_READ_MSHRS  # their first MSHRs, as packets name them beside the L1's

READ_STATISTICS = record([(name, "i8") for name in ("hits", "misses", "requests", "bytes_in")])

READ_WORDS = words_of(READ_STATISTICS)

READ_MSHR = record(
    [
        ("used", "i8"),
        ("line", "i8"),
        ("waiting", "i8"),
        ("grid", "i8"),  # that has asked
    ]
)

READ_CACHE = record(
    [
        ("finite", "i8"),  # 0: everything hits, and nobody looks anything up
        ("line_shift", "i8"),
        ("line_bytes", "i8"),
        ("sets", "i8"),
        ("ways", "i8"),
        ("mshrs", "i8"),
        ("prefetch", "i8"),
        ("first", "i8"),  # CODE or CONSTANTS
        ("stats", READ_STATISTICS),
        ("share", READ_STATISTICS),
        ("entry", READ_MSHR, (MAX_READ_MSHRS,)),
        ("lines", "i8", (MAX_READ_LINES,)),  # see ``tags.py``
    ]
)


@inline
def read_cache_reset(cache, section, prefetch, first):
    """Take over the description, with no look-up on its way; the lines stay."""
    cache.finite = section.mode
    cache.line_bytes = section.line_bytes
    cache.line_shift = ctz(section.line_bytes)
    cache.sets = section.sets
    cache.ways = section.ways
    cache.mshrs = section.mshrs
    cache.prefetch = prefetch
    cache.first = first
    clear(cache.stats)
    clear(cache.share)
    for k in range(MAX_READ_MSHRS):
        clear(cache.entry[k])


@inline
def invalidate(cache):
    """Drop all lines."""
    for place in range(cache.sets * cache.ways):
        cache.lines[place] = 0


@inline
def look_up_begins(cache, port, grid):
    """What is looked up from now on is a grid's."""
    port.grid = grid
    if grid != 0:
        exclude(addressof(cache.share), addressof(cache.stats), READ_WORDS)


@inline
def look_up_ends(cache, port):
    """What was looked up is counted."""
    if port.grid != 0:
        include(addressof(cache.share), addressof(cache.stats), READ_WORDS)


@inline
def _first_of_set(cache, line):
    return (line & (cache.sets - 1)) * cache.ways


@inline
def _pending(cache, line):
    """The MSHR of a line, or FOUND if there is none."""
    for k in range(cache.mshrs):
        if cache.entry[k].used != 0 and cache.entry[k].line == line:
            return k
    return FOUND


@inline
def _ask(cache, port, line, now):
    """Ask the L2 for a line; returns its MSHR, or REFUSED."""
    for k in range(cache.mshrs):
        entry = cache.entry[k]
        if entry.used == 0:
            entry.used = 1
            entry.line = line
            entry.waiting = 0
            entry.grid = port.grid
            cache.stats.requests += 1
            address = line << cache.line_shift
            low, high = span(address & memory_at(port.memory).line_bytes - 1, cache.line_bytes)
            send_request(port, now, READ, address, low, high, cache.line_bytes, 0, cache.first + k)
            return k
    return REFUSED


@inline
def look_up(cache, port, line, now):
    """Returns FOUND, the MSHR in which the line is waited for, or REFUSED: no MSHR is free.

    It is one of the grid ``port.grid``; whoever counts what becomes of it does so between :func:`look_up_begins` and
    :func:`look_up_ends`.
    """
    first = _first_of_set(cache, line)
    place = find(cache.lines, first, cache.ways, line)
    if place >= 0:
        use(cache.lines, first, place, cache.lines[place])
        return FOUND
    k = _pending(cache, line)
    if k >= 0:
        return k
    k = _ask(cache, port, line, now)
    for ahead in range(1, cache.prefetch + 1):
        following = line + ahead
        if find(cache.lines, _first_of_set(cache, following), cache.ways, following) < 0:
            if _pending(cache, following) == FOUND:
                _ask(cache, port, following, now)
    return k


@inline
def arrived(cache, identity):
    """Enter the line that a packet has brought; returns who waits for it."""
    entry = cache.entry[identity - cache.first]
    first = _first_of_set(cache, entry.line)
    use(cache.lines, first, first + cache.ways - 1, named(entry.line))
    entry.used = 0
    cache.stats.bytes_in += cache.line_bytes
    if entry.grid != 0:
        cache.share.bytes_in += cache.line_bytes
    return entry.waiting
