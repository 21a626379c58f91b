"""The queue of memory instructions: they wait in their operand collectors, and start in the order of their issue.

One starts after the other. Those of the scratchpad and of constants start when the unit's register is free, and keep it
for as long as their lanes conflict (:func:`start_near`); the path takes the others (:func:`offered`,
:func:`take_head`).
"""

from __future__ import annotations

from lockstep.models.execution.isa import LANES
from lockstep.models.jit import ctz, i64, inline, jit, record
from lockstep.models.memory.l1 import NONE
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_COLLECTORS

ENTRIES = MAX_COLLECTORS
NEAR = -1  # in the place of a token: an instruction that is done without the path

WAITING = record(
    [
        ("token", "i8"),  # or NEAR
        ("at", "i8"),  # cycle in which its sources are there
        ("cycles", "i8"),  # for which it has the register
        ("latency", "i8"),  # cycles from its start to the result of lanes that the path does not answer; 0: none
        ("lines", "i8"),  # of constants that it needs ...
        ("found", "i8"),  # ... and that have been looked up
        ("incomplete", "i8"),  # its place among the accesses that wait for lines, or NONE
        ("warp", "i8"),
        ("pc", "i8"),
    ]
)

QUEUE = record(
    [
        ("head", "i8"),
        ("count", "i8"),
        ("collecting", "i8"),  # instructions that hold a collector, and wait for sources that come afterwards
        ("free", "i8"),  # cycle from which the register takes another instruction ...
        ("occupied", "i8"),  # ... if the path does not hold it up, ...
        ("stuck", "i8"),  # ... nor the constant cache
        ("entry", WAITING, (ENTRIES,)),
        ("constant_line", "i8", (ENTRIES, LANES)),  # that each of them needs
    ]
)


@inline
def lsu_full(lsu, config, granted):
    """Whether there is no collector for a further instruction, beside those granted in this cycle."""
    return lsu.queue.count + lsu.queue.collecting + granted >= config.core.collectors_lsu


@inline
def queue_memory(lsu, token, ready, cycles, latency, warp, pc):
    """Queue an instruction: its token, or NEAR, and the rest of :data:`WAITING`."""
    queue = lsu.queue
    waiting = queue.entry[(queue.head + queue.count) % ENTRIES]
    waiting.token = token
    waiting.at = ready
    waiting.cycles = cycles
    waiting.latency = latency
    waiting.warp = warp
    waiting.pc = pc
    waiting.lines = 0
    queue.count += 1


@inline
def queue_constants(lsu, context, shift):
    """Note which lines of constants the instruction that was queued last needs."""
    queue = lsu.queue
    place = (queue.head + queue.count - 1) % ENTRIES
    waiting = queue.entry[place]
    waiting.found = 0
    waiting.incomplete = NONE
    left = i64(context.touched)
    while left != 0:
        line = i64(context.address[ctz(left)]) >> shift
        queue.constant_line[place, waiting.lines] = line
        waiting.lines += 1
        for lane in range(context.lanes):
            if i64(context.address[lane]) >> shift == line:
                left &= ~(i64(1) << lane)


@inline
def head_start(lsu):
    """The cycle in which the head of the queue may start, if the register is not occupied then."""
    queue = lsu.queue
    return max(i64(queue.entry[queue.head].at), i64(queue.free))


@inline
def for_path(lsu):
    """Whether the queue has a head that the path is to take."""
    queue = lsu.queue
    return queue.count > 0 and queue.entry[queue.head].token != NEAR


@inline
def offered(lsu, now):
    """Whether the path may take the head of the queue."""
    return for_path(lsu) and head_start(lsu) <= now


@inline
def near_start(lsu):
    """The cycle in which the head of the queue starts without the path, or NEVER if that is not known."""
    queue = lsu.queue
    if queue.count == 0 or queue.entry[queue.head].token != NEAR or queue.occupied | queue.stuck != 0:
        return i64(NEVER)
    return head_start(lsu)


@inline
def _remove_head(queue, now):
    queue.free = now + queue.entry[queue.head].cycles
    queue.head = (queue.head + 1) % ENTRIES
    queue.count -= 1


@inline
def take_head(lsu, now):
    """The path takes the head of the queue, which starts; returns its token."""
    queue, gates = lsu.queue, lsu.gates
    waiting = queue.entry[queue.head]
    number = i64(waiting.token)
    if waiting.latency != 0:
        lsu.token[number].ready = now - 1 + waiting.latency
    gates.staged[waiting.warp // gates.cohort_warps] -= 1
    _remove_head(queue, now)
    return number


@jit
def start_near(lsu, now):
    """The head of the queue starts without the path; returns the cycle in which its result is there."""
    queue = lsu.queue
    done = now - 1 + queue.entry[queue.head].latency
    _remove_head(queue, now)
    return done
