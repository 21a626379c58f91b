"""Accesses to constants and kernel parameters: their lines are looked up when they start."""

from __future__ import annotations

from lockstep.models.jit import ctz, i64, inline, jit
from lockstep.models.memory.l1 import NONE
from lockstep.models.memory.read_cache import FOUND, REFUSED, look_up, look_up_begins, look_up_ends


@jit
def constants_looked_up(sm, port, now):
    """Look up the lines of the access at the head of the queue, which is about to start, from where it stopped.

    Returns false if the constant cache takes no further miss; then the unit is stuck until a line comes.
    """
    slot = i64(sm.lsu.queue.entry[sm.lsu.queue.head].warp)
    look_up_begins(sm.constants, port, (i64(sm.second) >> slot) & 1)
    done = _looked_up(sm, port, now)
    look_up_ends(sm.constants, port)
    return done


@inline
def _looked_up(sm, port, now):
    """The same, of whichever grid."""
    lsu, cache = sm.lsu, sm.constants
    waiting = lsu.queue.entry[lsu.queue.head]
    if cache.finite == 0:
        cache.stats.hits += i64(waiting.lines)
        return True
    while waiting.found < waiting.lines:
        known = waiting.incomplete != NONE
        if not known and i64(sm.incomplete) == -1:
            lsu.queue.stuck = 1
            return False
        found = look_up(cache, port, i64(lsu.queue.constant_line[lsu.queue.head, waiting.found]), now)
        if found == REFUSED:
            lsu.queue.stuck = 1
            return False
        if found == FOUND:
            cache.stats.hits += 1
        else:
            if not known:
                waiting.incomplete = _place(sm)
            cache.stats.misses += 1
            cache.entry[found].waiting = i64(cache.entry[found].waiting) | i64(1) << i64(waiting.incomplete)
            sm.constant[waiting.incomplete].left += 1
        waiting.found += 1
    return True


@jit
def _place(sm):
    """A place for an access that waits for lines; there is one."""
    place = ctz(~i64(sm.incomplete))
    sm.incomplete = i64(i64(sm.incomplete) | i64(1) << place)
    sm.constant[place].left = 1
    return place
