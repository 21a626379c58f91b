"""Timed events of one SM: a wheel of buckets, one per core cycle, with the events of a bucket in a linked list.

An event releases what an instruction holds in the scoreboard, or lets a blocked warp go on (``pc`` = UNBLOCK). The
order of events inside a cycle has no effect, since each only clears bits.
"""

from __future__ import annotations

from lockstep.models.jit import ctz, i64, jit, record
from lockstep.models.time import NEVER

WHEEL = 1024  # buckets; later events wait in their bucket for another turn
EVENTS = 2048  # in flight at once; an SM that runs short stops issuing
RESERVE = 200  # what a step schedules is less: an instruction per scheduler, a barrier's waiters, completed accesses
UNBLOCK = -1

EVENT = record(
    [
        ("time", "i8"),
        ("next", "i4"),
        ("warp", "i4"),
        ("pc", "i4"),
    ]
)

EVENT_WHEEL = record(
    [
        ("count", "i8"),
        ("free", "i4"),  # first of the free list
        ("occupied", "i8", (WHEEL // 64,)),  # one bit per bucket that is not empty
        ("head", "i4", (WHEEL,)),
        ("event", EVENT, (EVENTS,)),
    ]
)


@jit
def reset_events(wheel):
    wheel.count = 0
    wheel.free = 0
    for b in range(WHEEL // 64):
        wheel.occupied[b] = 0
    for b in range(WHEEL):
        wheel.head[b] = -1
    for e in range(EVENTS):
        wheel.event[e].next = e + 1 if e + 1 < EVENTS else -1


@jit
def schedule(wheel, time, warp, pc):
    """An event at ``time``, which lies in the future."""
    e = i64(wheel.free)
    wheel.free = wheel.event[e].next
    bucket = time % WHEEL
    wheel.event[e].next = wheel.head[bucket]
    wheel.head[bucket] = e
    wheel.event[e].warp = warp
    wheel.event[e].pc = pc
    wheel.event[e].time = time
    wheel.occupied[bucket >> 6] = i64(i64(wheel.occupied[bucket >> 6]) | i64(1) << (bucket & 63))
    wheel.count += 1


@jit
def take(wheel, now):
    """Unlink and return an event that is due at ``now``, or -1. The caller reads it before the next ``schedule``."""
    bucket = now % WHEEL
    if (wheel.occupied[bucket >> 6] >> (bucket & 63)) & 1 == 0:
        return i64(-1)
    previous = i64(-1)
    e = i64(wheel.head[bucket])
    while e >= 0:
        following = i64(wheel.event[e].next)
        if wheel.event[e].time == now:
            if previous < 0:
                wheel.head[bucket] = following
            else:
                wheel.event[previous].next = following
            if wheel.head[bucket] < 0:
                wheel.occupied[bucket >> 6] = i64(i64(wheel.occupied[bucket >> 6]) & ~(i64(1) << (bucket & 63)))
            wheel.event[e].next = wheel.free
            wheel.free = e
            wheel.count -= 1
            return e
        previous = e
        e = following
    return i64(-1)


@jit
def next_event(wheel, now):
    """A cycle after ``now`` before which no event is due: exact within the wheel's span, early beyond it."""
    if wheel.count == 0:
        return i64(NEVER)
    start = (now + 1) % WHEEL
    word = start >> 6
    bits = i64(wheel.occupied[word]) & (i64(-1) << (start & 63))
    for _ in range(WHEEL // 64 + 1):
        if bits != 0:
            bucket = (word << 6) + ctz(bits)
            return now + 1 + (bucket - start) % WHEEL
        word = (word + 1) % (WHEEL // 64)
        bits = i64(wheel.occupied[word])
    return i64(NEVER)
