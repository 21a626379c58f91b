"""Warps and regions of RegLess, from issue's side: when they begin, what is decoded for them, and when they end."""

from __future__ import annotations

from lockstep.models.core.fetch import take_word
from lockstep.models.core.frame import reserve_scratchpad
from lockstep.models.core.state import instruction_of, may_touch_scratchpad
from lockstep.models.jit import addressof, ctz, i64, inline, without_lowest, words_i32, words_u64
from lockstep.models.masks import next_after
from lockstep.spec.register_regions import KIND_BITS, KIND_SHIFT, PAYLOAD_BITS, SLOTS_BITS, SLOTS_SHIFT


@inline
def warps_of(slots, schedulers):
    """Warp slots of a shard, as its warps."""
    warps = i64(0)
    while slots != 0:
        warps |= i64(1) << ctz(slots) // schedulers
        slots = without_lowest(slots)
    return warps


@inline
def slots_of(warps, k, schedulers):
    """The warp slots of warps of a shard."""
    slots = i64(0)
    while warps != 0:
        slots |= i64(1) << ctz(warps) * schedulers + k
        warps = without_lowest(warps)
    return slots


@inline
def announce_region(state, sm, queues, w, k, schedulers):
    """A warp's next region is known. If it accesses the scratchpad, what that needs must be reserved before it starts.

    Otherwise a warp that waits for its CTA's partner would keep lines that the partner needs to make progress.
    """
    bit = i64(1) << w
    queues.announced |= bit
    if sm.frame.claims != 0 and _touches_scratchpad(state, sm.warps[w * schedulers + k]):
        queues.unreserved |= bit


@inline
def _touches_scratchpad(state, warp):
    """Whether the region that begins with a warp's next instruction may access the scratchpad."""
    pc, found = i64(warp.pc), False
    while not found and pc < warp.length:
        found = may_touch_scratchpad(instruction_of(warp, pc))
        pc += 1
        if pc < warp.length and words_i32(i64(state.tables.regions_first) + 4 * pc, 1)[0] >= 0:
            return found
    return found


@inline
def reserve_scratchpads(sm, queues, left, k, schedulers):
    """Reserve what the regions of some warps need for their accesses to the scratchpad, where that is possible."""
    while left != 0:
        w = ctz(left)
        left = without_lowest(left)
        if reserve_scratchpad(sm.frame, addressof(sm), w * schedulers + k):
            queues.unreserved &= ~(i64(1) << w)


@inline
def drop_words(sm, queues, md, k, schedulers):
    """Warps have jumped: what has been decoded for them is dropped, of one warp in a cycle."""
    jumped = i64(sm.flushed) & i64(sm.partition[k])
    if jumped != 0:
        sm.flushed = i64(sm.flushed) & ~jumped
        queues.flushes |= warps_of(jumped, schedulers)
    md.i.flush.valid = i64(queues.flushes != 0)
    if queues.flushes != 0:
        md.i.flush.payload.warp = ctz(i64(queues.flushes))


@inline
def close_region(state, queues, cm, k, schedulers, now):
    """A region has issued everything, and has all operands: its warp's jump, if there is one, is known."""
    cm.i.delivered.valid = 0
    left = i64(queues.closing) & ~without_lowest(i64(queues.flushes))
    while left != 0:
        w = ctz(left)
        left = without_lowest(left)
        if state.waiting[w * schedulers + k].count == 0:
            cm.i.delivered.valid = 1
            cm.i.delivered.payload.warp = w
            queues.closing &= ~(i64(1) << w)
            ends = i64(queues.ending) & i64(1) << w
            queues.ending &= ~ends
            if queues.owed[w] != 0:
                queues.draining |= i64(1) << w & ~ends
            elif ends == 0:
                state.counts.held_cycles += now + 1
            return


@inline
def decode_word(state, sm, config, queues, md, k, schedulers):
    """Take a metadata word out of a warp's buffer, of one warp in a cycle, in turn."""
    md.i.word.valid = 0
    if md.o.room != queues.room:
        queues.roomy ^= slots_of(i64(md.o.room ^ queues.room), k, schedulers)
        queues.room = md.o.room
    there = i64(sm.worded) & i64(sm.partition[k]) & i64(queues.roomy) & ~slots_of(i64(queues.flushes), k, schedulers)
    if there != 0:
        chosen = i64(next_after(there, i64(queues.decoded)))
        word = i64(take_word(sm, config, chosen))
        value = i64(words_u64(i64(state.tables.regions_words) + 8 * word, 1)[0])
        queues.decoded = chosen
        queues.word = word
        state.counts.words += 1
        md.i.word.valid = 1
        payload = md.i.word.payload
        payload.warp = chosen // schedulers
        payload.word.payload = value & ((1 << PAYLOAD_BITS) - 1)
        payload.word.slots = (value >> SLOTS_SHIFT) & ((1 << SLOTS_BITS) - 1)
        payload.word.kind = (value >> KIND_SHIFT) & ((1 << KIND_BITS) - 1)
    queues.flushes = without_lowest(i64(queues.flushes)) if queues.flushes != 0 else i64(0)


@inline
def place_warps(queues, cm, osu):
    """Warps begin and end; one begins when the one before it in its slot is finished."""
    queues.ended |= cm.o.ended
    osu.i.finish.valid = i64(queues.ended != 0)
    if queues.ended != 0:
        osu.i.finish.payload.warp = ctz(i64(queues.ended))
        if osu.o.finish.ready != 0:
            gone = i64(1) << i64(osu.i.finish.payload.warp)
            queues.ended &= ~gone
            queues.present &= ~gone
    begins = i64(queues.begins) & ~i64(queues.present)
    cm.i.begin.valid = i64(begins != 0)
    if begins != 0:
        bit = i64(1) << ctz(begins)
        cm.i.begin.payload.warp = ctz(begins)
        queues.begins &= ~bit
        queues.present |= bit
