"""The path with MRPB: queue, one intra-warp coalescer, a queue of requests per group of warps, L1.

Memory request prioritisation buffer (Jia et al., HPCA 2014), as Kloosterman's thesis compares with it (section 3.4.1):
the buffer reorders requests, and does not bypass the cache. It drains one group until that is empty, then the lowest
that is not. A warp's requests stay in order; its stores, barriers and fences wait until they have left.
"""

from __future__ import annotations

from lockstep.models.blocks import FOREVER
from lockstep.models.core.lsu import LSU, answered
from lockstep.models.jit import ctz, i64, jit, pointer_to, slot
from lockstep.models.memory.fabric import PORT
from lockstep.models.memory.l1 import l1_step
from lockstep.models.paths.baseline import coalesce, send
from lockstep.spec.parameters import CONFIG, MAX_GROUP_QUEUE, TICKETS

at_lsu, at_port, at_config = pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def _drain(lsu, port, config, now):
    """Offer the next request to the L1. Returns whether it was accepted."""
    buffer = lsu.mrpb
    if (buffer.filled >> buffer.draining) & 1 == 0:
        buffer.draining = ctz(i64(buffer.filled))
    group = i64(buffer.draining)
    request = buffer.queue[group * MAX_GROUP_QUEUE + buffer.head[group]]
    if not send(lsu, port, config, i64(request.token), i64(request.line), i64(request.lanes), now):
        return False
    buffer.head[group] = (buffer.head[group] + 1) % MAX_GROUP_QUEUE
    buffer.count[group] -= 1
    if buffer.count[group] == 0:
        buffer.filled &= ~(i64(1) << group)
    return True


@jit
def _push(lsu, config, line):
    """Take the coalescer's line. Returns whether there was room."""
    buffer = lsu.mrpb
    group = i64(line.warp) // config.mrpb.warps_per_queue
    if buffer.count[group] >= config.mrpb.requests:
        return False
    request = buffer.queue[group * MAX_GROUP_QUEUE + (buffer.head[group] + buffer.count[group]) % MAX_GROUP_QUEUE]
    request.token = i64(line.warp) * TICKETS + i64(line.ticket)
    request.line = line.number
    request.lanes = line.mask
    buffer.count[group] += 1
    buffer.filled |= i64(1) << group
    return True


@jit
def step(lsu, port, config, now):
    """One core cycle."""
    number = i64(l1_step(lsu.l1, port, config, now, True))
    if number >= 0:
        answered(lsu, number, now)
    io = lsu.intra_warp_coalescer.io
    lsu.entered = 0
    work = lsu.mrpb.filled != 0 and _drain(lsu, port, config, now)
    io.i.line.ready = 1
    if io.o.line.valid != 0:
        io.i.line.ready = _push(lsu, config, io.o.line.payload)
    if coalesce(lsu, now) or work:
        lsu.path_wake = now + 1
    else:
        lsu.path_wake = FOREVER
    lsu.drained = ~lsu.unsent


@slot
def step_slot(lsu, port):
    unit = at_lsu(lsu)
    step(unit, at_port(port), at_config(unit.config), i64(unit.now))
    return i64(0)
