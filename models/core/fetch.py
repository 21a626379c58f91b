"""Instruction fetch: each warp has a buffer, filled round robin over the warps with room in theirs.

A fetch takes instructions of one line of the instruction cache. One that misses is done again when the line is there.
So is one of instructions that name words of the constant bank as operands, until the constant cache has their lines.

A kernel's metadata words stand in front of the instructions that they belong to, as long as an instruction each. They
are fetched with these, and lie in the buffer until a mechanism takes them out (:func:`take_word`), which decodes them:
nothing issues for them.
"""

from __future__ import annotations

from lockstep.models.core.scoreboard import refresh
from lockstep.models.core.state import instruction_of
from lockstep.models.execution.isa import Flag
from lockstep.models.jit import ctz, i64, inline, jit, without_lowest, words_i32
from lockstep.models.memory.read_cache import FOUND, REFUSED, arrived, look_up, look_up_begins, look_up_ends
from lockstep.spec.parameters import MAX_WARPS


@jit
def want_fetch(sm, config, slot):
    """Ask for a fetch if the warp has room, and instructions left."""
    warp = sm.warps[slot]
    if (
        (i64(sm.fetching) >> slot) & 1 == 0
        and warp.buffered + warp.words + config.core.fetch_width <= config.core.instruction_buffer
        and warp.pc + warp.buffered < warp.length
    ):
        sm.want_fetch = i64(sm.want_fetch) | (i64(1) << slot)


@jit
def flush(sm, config, slot):
    """The warp jumped: drop what was fetched and what is on its way."""
    warp = sm.warps[slot]
    warp.buffered = 0
    warp.words = 0
    warp.fetched_words = 0
    sm.flushed = i64(sm.flushed) | (i64(1) << slot)
    warp.epoch += 1
    forget_fetches(sm, i64(1) << slot)
    want_fetch(sm, config, slot)


@jit
def forget_fetches(sm, slots):
    """Nobody waits for what these warps have asked for, nor for their metadata words."""
    sm.worded = i64(sm.worded) & ~slots
    sm.want_fetch = i64(sm.want_fetch) & ~slots
    sm.fetching = i64(sm.fetching) & ~slots
    sm.refetch = i64(sm.refetch) & ~slots
    sm.refused_fetch = i64(sm.refused_fetch) & ~slots
    sm.lacking = i64(sm.lacking) & ~slots
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
            if warp.words_to != 0:
                _keep_words(sm, warp, slot, i64(sm.fetch[k].size), i64(sm.fetch[k].words))
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


@inline
def _lacks_constants(sm, port, warp, slot, pc, size, now):
    """Look up the operands from the constant bank of what is fetched. Returns whether it has to wait for one."""
    cache, bit = sm.constants, i64(1) << slot
    first = (i64(sm.lacking) & bit) == 0
    found = i64(0)
    for k in range(pc, pc + size):
        instruction = instruction_of(warp, k)
        if instruction.flags & Flag.CONSTANT == 0:
            continue
        if cache.finite != 0 and look_up(cache, port, instruction.offset >> cache.line_shift, now) != FOUND:
            cache.stats.misses += 1 if first else 0
            sm.lacking = i64(sm.lacking) | bit
            return True
        found += 1
    cache.stats.hits += found if first else found - 1
    sm.lacking = i64(sm.lacking) & ~bit
    return False


@jit
def line_of_constants(sm, config):
    """A line of constants has come: those whose operands lack one fetch again."""
    slots = i64(sm.lacking)
    sm.fetching = i64(sm.fetching) & ~slots
    while slots != 0:
        want_fetch(sm, config, ctz(slots))
        slots = without_lowest(slots)


# ------------------------------------------------------------------------------------------------------ metadata words


@inline
def _words_to(warp, pc):
    """Metadata words up to an instruction, from the kernel's begin."""
    return i64(words_i32(i64(warp.words_to) + 4 * pc, 1)[0]) if pc >= 0 else i64(0)


@inline
def _place(warp, pc):
    """Where the next fetch begins, in instructions and words from the kernel's begin; ``pc``: its next instruction."""
    return pc + _words_to(warp, pc - 1) + warp.fetched_words


@inline
def _words_of(warp, pc, count):
    """The metadata words among the ``count`` instructions and words of a fetch."""
    end = _place(warp, pc) + count
    size = i64(0)
    while pc + size < warp.length and pc + size + _words_to(warp, pc + size) < end:
        size += 1
    return count - size


@jit
def _keep_words(sm, warp, slot, size, words):
    """Metadata words have come in a fetch with ``size`` instructions."""
    pc = i64(warp.pc) + i64(warp.buffered)
    end = _place(warp, pc) + size + words
    if words != 0:
        if warp.words == 0:
            warp.first_word = _place(warp, pc) - pc
        warp.words += words
        sm.worded = i64(sm.worded) | (i64(1) << slot)
    warp.fetched_words = end - (pc + size) - _words_to(warp, pc + size - 1)


@jit
def take_word(sm, config, slot):
    """Take a metadata word out of a warp's buffer, the oldest; returns which one of the kernel's it is."""
    warp = sm.warps[slot]
    word = i64(warp.first_word)
    warp.first_word += 1
    warp.words -= 1
    if warp.words == 0:
        sm.worded = i64(sm.worded) & ~(i64(1) << slot)
    want_fetch(sm, config, slot)
    return word


# ------------------------------------------------------------------------------------------------------------ requests


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
        warp, grid = sm.warps[slot], (i64(sm.second) >> slot) & 1
        pc = i64(warp.pc) + i64(warp.buffered)
        place, end = pc, i64(warp.length)
        if warp.words_to != 0:
            place = _place(warp, pc)
            end += _words_to(warp, end - 1)
        size = min(i64(config.core.fetch_width), end - place)
        if sm.code.finite != 0:
            width = i64(config.instruction_cache.instruction_bytes)
            address = i64(warp.code_address) + place * width
            line = address >> sm.code.line_shift
            look_up_begins(sm.code, port, grid)
            misses = _misses(sm, config, port, slot, line, now)
            look_up_ends(sm.code, port)
            if misses:
                continue
            size = min(size, ((line + 1 << sm.code.line_shift) - address) // width)
        words = _words_of(warp, pc, size) if warp.words_to != 0 else i64(0)
        look_up_begins(sm.constants, port, grid)
        lacks = _lacks_constants(sm, port, warp, slot, pc, size - words, now)
        look_up_ends(sm.constants, port)
        if lacks:
            continue
        fetch = sm.fetch[(i64(sm.fetch_head) + i64(sm.fetch_count)) % i64(sm.fetch_entries)]
        fetch.time = now + i64(config.core.fetch_latency)
        fetch.warp = slot
        fetch.epoch = warp.epoch
        fetch.words = words
        fetch.size = size - words
        sm.fetch_count += 1
