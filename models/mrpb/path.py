"""The path with MRPB: queue, one intra-warp coalescer, a queue of requests per group of warps, L1.

Memory request prioritisation buffer (Jia et al., HPCA 2014), as Kloosterman's thesis compares with it (section 3.4.1):
the buffer reorders requests, and does not bypass the cache. It drains one group until that is empty, then the lowest
that is not. A warp's requests stay in order; its stores, barriers and fences wait until they have left.
"""

from __future__ import annotations

from lockstep.models.jit import ctz, i64, jit, pointer_to, record, slot
from lockstep.models.lsu import path
from lockstep.models.lsu.clients import next_answer
from lockstep.models.lsu.path import coalesce, send
from lockstep.models.lsu.tokens import answered
from lockstep.models.lsu.unit import LSU
from lockstep.models.memory.fabric import PORT
from lockstep.models.time import NEVER
from lockstep.spec.mrpb import MAX_REQUESTS, Mrpb
from lockstep.spec.parameters import CONFIG, MAX_WARPS, TICKETS, layout

REQUEST = record([("line", "i8"), ("lanes", "i8"), ("token", "i8")])

STATE = record(
    [
        ("mrpb", layout(Mrpb)),
        ("coalescing", path.STATE),
        ("filled", "i8"),  # queues that are not empty
        ("draining", "i8"),  # the queue that was drained last
        ("head", "i4", (MAX_WARPS,)),
        ("count", "i4", (MAX_WARPS,)),
        ("queue", REQUEST, (MAX_WARPS * MAX_REQUESTS,)),
    ]
)

at_state, at_lsu, at_port, at_config = pointer_to(STATE), pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def reset(buffer, lsu, config):
    """Empty queues, and nothing before them."""
    path.reset(buffer.coalescing, config)
    lsu.path.reorders = 1
    buffer.filled = 0
    buffer.draining = 0
    for queue in range(MAX_WARPS):
        buffer.head[queue] = 0
        buffer.count[queue] = 0


@jit
def _drain(buffer, lsu, port, config, now):
    """Offer the next request to the L1. Returns whether it was accepted."""
    if (buffer.filled >> buffer.draining) & 1 == 0:
        buffer.draining = ctz(i64(buffer.filled))
    group = i64(buffer.draining)
    request = buffer.queue[group * MAX_REQUESTS + buffer.head[group]]
    if not send(lsu, port, config, i64(request.token), i64(request.line), i64(request.lanes), now):
        return False
    buffer.head[group] = (buffer.head[group] + 1) % MAX_REQUESTS
    buffer.count[group] -= 1
    if buffer.count[group] == 0:
        buffer.filled &= ~(i64(1) << group)
    return True


@jit
def _push(buffer, line):
    """Take the coalescer's line. Returns whether there was room."""
    group = i64(line.warp) // buffer.mrpb.warps_per_queue
    if buffer.count[group] >= buffer.mrpb.requests:
        return False
    request = buffer.queue[group * MAX_REQUESTS + (buffer.head[group] + buffer.count[group]) % MAX_REQUESTS]
    request.token = i64(line.warp) * TICKETS + i64(line.ticket)
    request.line = line.number
    request.lanes = line.mask
    buffer.count[group] += 1
    buffer.filled |= i64(1) << group
    return True


@jit
def step(buffer, lsu, port, config, now):
    """One core cycle."""
    number = next_answer(lsu, port, config, now, lsu.writable != 0)
    if number >= 0:
        answered(lsu, number, now)
    io = buffer.coalescing.intra_warp_coalescer.io
    lsu.gates.entered = 0
    work = buffer.filled != 0 and (_drain(buffer, lsu, port, config, now) or lsu.refused == 0)
    io.i.line.ready = 1
    if io.o.line.valid != 0:
        io.i.line.ready = _push(buffer, io.o.line.payload)
    if coalesce(buffer.coalescing, lsu, config, now) or work:
        lsu.path.wake = now + 1
    else:
        lsu.path.wake = NEVER
    lsu.gates.drained = ~lsu.gates.unsent


@slot
def reset_slot(buffer, lsu):
    unit = at_lsu(lsu)
    reset(at_state(buffer), unit, at_config(unit.config))
    return i64(0)


@slot
def step_slot(buffer, lsu):
    unit = at_lsu(lsu)
    step(at_state(buffer), unit, at_port(unit.port), at_config(unit.config), i64(unit.now))
    return i64(0)


TENANTS = {"path": {"reset": reset_slot, "step": step_slot}}
