"""The path of a GPU without mechanisms: queue, one intra-warp coalescer, L1.

The head of the queue enters the coalescer, which gives one line per cycle; the L1 accepts or refuses it in the same
cycle, and a refused line is offered again. Everything is in order.

Where half-warps are coalesced, each half enters the coalescer by itself. A segment of theirs has 32 bytes for accesses
of a byte, 64 for two bytes, and 128 for more, but at most a line; a line of several goes to the L1 segment by segment.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, assign, call, ctz, i64, inline, jit, lanes_equal, pointer_to, record, slot
from lockstep.models.lsu import intra_warp_coalescer
from lockstep.models.lsu.clients import next_answer, offer
from lockstep.models.lsu.faults import fail
from lockstep.models.lsu.queue import offered, take_head
from lockstep.models.lsu.tokens import FIRST_HALF, answered, bytes_of, is_store
from lockstep.models.lsu.unit import LSU, accepted
from lockstep.models.memory.fabric import PORT
from lockstep.models.memory.l1 import ATOMIC_ACCESS, LOAD_BYPASS
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, HALF_WARP, TICKETS

SEGMENT = 5  # log2 of its bytes, for accesses of a byte

STATE = record(
    [
        ("presented", "i8"),  # lanes of the head of the queue that are on the coalescer's input, ...
        ("behind", "i8"),  # ... and those that come after them
        ("intra_warp_coalescer", instance("lsu.intra_warp_coalescer", intra_warp_coalescer.STATE)),
    ]
)

at_state, at_lsu, at_port, at_config = pointer_to(STATE), pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def reset(path, config):
    """No instruction on its way through the coalescer."""
    path.presented = 0
    path.behind = 0
    io = path.intra_warp_coalescer.io
    intra_warp_coalescer.reset(path.intra_warp_coalescer.state, io)
    io.i.line_shift = ctz(i64(config.l1.line_bytes))
    io.i.request.valid = 0


@jit
def _segment(lsu, number, lanes):
    """Of a token's lanes that share a line, those that share the segment of the lowest."""
    token = lsu.token[number]
    shift = min(SEGMENT + i64(token.size), i64(lsu.l1.line_shift))
    return lanes_equal(addressof(token), shift, 0, i64(token.address[ctz(lanes)]) >> shift) & lanes


@inline
def send(lsu, port, config, number, line, lanes, now):
    """Offer a line to the L1, which answers with its token; returns whether it was accepted, with all its segments.

    If not, and nothing was refused, there are more of them.
    """
    last = True
    if config.core.coalescing == HALF_WARP:
        left = lanes & i64(lsu.token[number].unsent)
        lanes = _segment(lsu, number, left)
        last = lanes == left
    low, high = bytes_of(lsu, number, lanes)
    code = offer(lsu, port, config, number, line, lanes, low, high, now, number)
    if code < 0:
        return False
    if not is_store(lsu.token[number].kind):
        lsu.token[number].lines += 1
    if accepted(lsu, number, lanes, line, code):
        answered(lsu, number, now)
    return last


@inline
def _present(token, number, lanes, request):
    """Put lanes of an instruction on the coalescer's input, where they hold until they are accepted."""
    assign(request, token)
    request.mask = lanes
    request.warp = number // TICKETS
    request.ticket = number % TICKETS
    request.store = is_store(token.kind)
    request.atomic = token.kind == ATOMIC_ACCESS
    request.bypass = token.kind == LOAD_BYPASS


@inline
def _next_lanes(path, config):
    """Present the lanes of an instruction that are behind, or the first half-warp of them."""
    behind = i64(path.behind)
    halved = config.core.coalescing == HALF_WARP and behind & FIRST_HALF != 0
    path.presented = behind & FIRST_HALF if halved else behind
    path.behind = behind & ~path.presented


@inline
def coalesce(path, lsu, config, now):
    """A cycle of the coalescer, which takes the head of the queue. Returns whether it did anything.

    Its ``line.ready`` has been set.
    """
    coalescer = path.intra_warp_coalescer
    io, binding = coalescer.io, coalescer.binding
    valid = offered(lsu, now)
    if valid and path.presented == 0:
        number = i64(lsu.queue.entry[lsu.queue.head].token)
        if path.behind == 0:
            path.behind = lsu.token[number].mask
        _next_lanes(path, config)
        _present(lsu.token[number], number, i64(path.presented), io.i.request.payload)
    io.i.request.valid = valid
    different = call(binding.comb, binding.handle, addressof(io))
    lsu.queue.occupied = io.c.request.ready == 0
    if call(binding.idle, binding.handle, addressof(io)) != 0:
        return False
    if valid and io.c.request.ready != 0:
        path.presented = 0
        if path.behind == 0:
            take_head(lsu, now)
    different |= call(binding.step, binding.handle, addressof(io))
    if different != 0:
        fail(lsu, Fault.DIFFERENCE, i64(0))
    return True


@inline
def step(path, lsu, port, config, now):
    """One core cycle."""
    number = next_answer(lsu, port, config, now, lsu.writable != 0)
    if number >= 0:
        answered(lsu, number, now)
    io = path.intra_warp_coalescer.io
    lsu.gates.entered = 0
    io.i.line.ready = 1
    more = False  # segments of a line, the last of which has not been refused
    if io.o.line.valid != 0:
        line = io.o.line.payload
        number = i64(line.warp) * TICKETS + i64(line.ticket)
        io.i.line.ready = send(lsu, port, config, number, i64(line.number), i64(line.mask), now)
        more = io.i.line.ready == 0 and lsu.refused == 0
    lsu.path.wake = now + 1 if coalesce(path, lsu, config, now) or more else i64(NEVER)


@slot
def reset_slot(path, lsu):
    reset(at_state(path), at_config(at_lsu(lsu).config))
    return i64(0)


@slot
def step_slot(path, lsu):
    unit = at_lsu(lsu)
    step(at_state(path), unit, at_port(unit.port), at_config(unit.config), i64(unit.now))
    return i64(0)


TENANTS = {"path": {"reset": reset_slot, "step": step_slot}}
