"""Instruction fetch: each warp has a buffer, filled round robin over the warps with room in theirs.

A fetch takes instructions of one line of the instruction cache. One that misses is done again when the line is there.
"""

from __future__ import annotations

from lockstep.models.core.scoreboard import refresh
from lockstep.models.jit import ctz, i64, inline, jit, without_lowest
from lockstep.models.memory.read_cache import FOUND, REFUSED, arrived, look_up
from lockstep.spec.parameters import MAX_WARPS


@jit
def want_fetch(sm, config, slot):
    """Ask for a fetch if the warp has room, and instructions left."""
    warp = sm.warps[slot]
    if (
        (i64(sm.fetching) >> slot) & 1 == 0
        and warp.buffered + config.core.fetch_width <= config.core.instruction_buffer
        and warp.pc + warp.buffered < warp.length
    ):
        sm.want_fetch = i64(sm.want_fetch) | (i64(1) << slot)


@jit
def flush(sm, config, slot):
    """The warp jumped: drop what was fetched and what is on its way."""
    warp = sm.warps[slot]
    warp.buffered = 0
    warp.epoch += 1
    forget_fetches(sm, i64(1) << slot)
    want_fetch(sm, config, slot)


@jit
def forget_fetches(sm, slots):
    """Nobody waits for what these warps have asked for."""
    sm.want_fetch = i64(sm.want_fetch) & ~slots
    sm.fetching = i64(sm.fetching) & ~slots
    sm.refetch = i64(sm.refetch) & ~slots
    sm.refused_fetch = i64(sm.refused_fetch) & ~slots
    for k in range(sm.code.mshrs):
        sm.code.entry[k].waiting = i64(sm.code.entry[k].waiting) & ~slots


@jit
def deliver_fetches(sm, config, now):
    """Put what has arrived into the buffers."""
    while sm.fetch_count > 0 and sm.fetch[sm.fetch_head].time <= now:
        k = i64(sm.fetch_head)
        slot = i64(sm.fetch[k].warp)
        warp = sm.warps[slot]
        if warp.epoch == sm.fetch[k].epoch:
            was_empty = warp.buffered == 0
            sm.fetching = i64(sm.fetching) & ~(i64(1) << slot)
            warp.buffered += sm.fetch[k].size
            if was_empty:
                refresh(sm, config, slot)
            want_fetch(sm, config, slot)
        sm.fetch_head = (k + 1) % i64(sm.fetch_entries)
        sm.fetch_count -= 1


@inline
def _misses(sm, config, port, slot, line, now):
    """Look up the line of a warp's fetch. Returns whether it has to wait for it."""
    cache, bit = sm.code, i64(1) << slot
    found = look_up(cache, port, line, now)
    first = (i64(sm.refetch) & bit) == 0
    if found == FOUND:
        sm.refetch = i64(sm.refetch) & ~bit
        cache.stats.hits += 1 if first else 0
        return False
    cache.stats.misses += 1 if first else 0
    sm.refetch = i64(sm.refetch) | bit
    if found == REFUSED:
        sm.refused_fetch = i64(sm.refused_fetch) | bit
    else:
        cache.entry[found].waiting = i64(cache.entry[found].waiting) | bit
    return True


@jit
def line_of_code(sm, config, identity):
    """A line has come: those who miss it, or missed an MSHR, fetch again."""
    slots = i64(arrived(sm.code, identity)) | i64(sm.refused_fetch)
    sm.refused_fetch = 0
    sm.fetching = i64(sm.fetching) & ~slots
    while slots != 0:
        want_fetch(sm, config, ctz(slots))
        slots = without_lowest(slots)


@jit
def request_fetches(sm, config, port, now):
    """Start this cycle's fetches."""
    for _ in range(config.core.fetches):
        want = i64(sm.want_fetch)
        if want == 0:
            return
        above = want & (i64(-1) << i64(sm.fetch_pointer))
        slot = ctz(above if above != 0 else want)
        sm.want_fetch = want & ~(i64(1) << slot)
        sm.fetching = i64(sm.fetching) | (i64(1) << slot)
        sm.fetch_pointer = (slot + 1) % MAX_WARPS
        warp = sm.warps[slot]
        pc = i64(warp.pc) + i64(warp.buffered)
        size = min(i64(config.core.fetch_width), i64(warp.length) - pc)
        if sm.code.finite != 0:
            width = i64(config.instruction_cache.instruction_bytes)
            address = i64(warp.code_address) + pc * width
            line = address >> sm.code.line_shift
            if _misses(sm, config, port, slot, line, now):
                continue
            size = min(size, ((line + 1 << sm.code.line_shift) - address) // width)
        fetch = sm.fetch[(i64(sm.fetch_head) + i64(sm.fetch_count)) % i64(sm.fetch_entries)]
        fetch.time = now + i64(config.core.fetch_latency)
        fetch.warp = slot
        fetch.epoch = warp.epoch
        fetch.size = size
        sm.fetch_count += 1
