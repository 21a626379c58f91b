"""Instruction fetch: each warp has a buffer, filled round robin over the warps with room in theirs."""

from __future__ import annotations

from lockstep.models.core.scoreboard import refresh
from lockstep.models.core.state import grid_of
from lockstep.models.jit import ctz, i64, jit
from lockstep.spec.parameters import MAX_WARPS


@jit
def want_fetch(sm, launch, config, slot):
    """Ask for a fetch if the warp has room, and instructions left."""
    warp = sm.warps[slot]
    if (
        (i64(sm.fetching) >> slot) & 1 == 0
        and warp.buffered + config.core.fetch_width <= config.core.instruction_buffer
        and warp.pc + warp.buffered < grid_of(sm, launch, slot).length
    ):
        sm.want_fetch = i64(sm.want_fetch) | (i64(1) << slot)


@jit
def flush(sm, launch, config, slot):
    """The warp jumped: drop what was fetched and what is on its way."""
    warp = sm.warps[slot]
    warp.buffered = 0
    warp.epoch += 1
    sm.fetching = i64(sm.fetching) & ~(i64(1) << slot)
    want_fetch(sm, launch, config, slot)


@jit
def deliver_fetches(sm, launch, config, now):
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
                refresh(sm, launch, config, slot)
            want_fetch(sm, launch, config, slot)
        sm.fetch_head = (k + 1) % i64(sm.fetch_entries)
        sm.fetch_count -= 1


@jit
def request_fetches(sm, launch, config, now):
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
        fetch = sm.fetch[(i64(sm.fetch_head) + i64(sm.fetch_count)) % i64(sm.fetch_entries)]
        fetch.time = now + i64(config.core.fetch_latency)
        fetch.warp = slot
        fetch.epoch = warp.epoch
        left = i64(grid_of(sm, launch, slot).length) - i64(warp.pc) - i64(warp.buffered)
        fetch.size = min(i64(config.core.fetch_width), left)
        sm.fetch_count += 1
