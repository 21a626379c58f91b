"""The path of a GPU without mechanisms: queue, one intra-warp coalescer, L1.

The head of the queue enters the coalescer, which gives one line per cycle; the L1 accepts or refuses it in the same
cycle, and a refused line is offered again. Everything is in order.
"""

from __future__ import annotations

from lockstep.models.blocks import instance
from lockstep.models.execution.isa import Fault
from lockstep.models.jit import addressof, assign, call, ctz, i64, inline, jit, pointer_to, record, slot
from lockstep.models.lsu import intra_warp_coalescer
from lockstep.models.lsu.clients import next_answer, offer
from lockstep.models.lsu.faults import fail
from lockstep.models.lsu.queue import offered, take_head
from lockstep.models.lsu.tokens import answered, bytes_of, is_store
from lockstep.models.lsu.unit import LSU, accepted
from lockstep.models.memory.fabric import PORT
from lockstep.models.memory.l1 import ATOMIC_ACCESS, LOAD_BYPASS
from lockstep.models.time import NEVER
from lockstep.spec.parameters import CONFIG, TICKETS

STATE = record(
    [
        ("presented", "i8"),  # the head of the queue is on the coalescer's input
        ("intra_warp_coalescer", instance("lsu.intra_warp_coalescer", intra_warp_coalescer.STATE)),
    ]
)

at_state, at_lsu, at_port, at_config = pointer_to(STATE), pointer_to(LSU), pointer_to(PORT), pointer_to(CONFIG)


@jit
def reset(path, config):
    """No instruction on its way through the coalescer."""
    path.presented = 0
    io = path.intra_warp_coalescer.io
    intra_warp_coalescer.reset(path.intra_warp_coalescer.state, io)
    io.i.line_shift = ctz(i64(config.l1.line_bytes))
    io.i.request.valid = 0


@inline
def send(lsu, port, config, number, line, lanes, now):
    """Offer a line to the L1, which answers with its token; returns whether it was accepted."""
    low, high = bytes_of(lsu, number, lanes)
    code = offer(lsu, port, config, number, line, lanes, low, high, now, number)
    if code < 0:
        return False
    if not is_store(lsu.token[number].kind):
        lsu.token[number].lines += 1
    if accepted(lsu, number, lanes, line, code):
        answered(lsu, number, now)
    return True


@inline
def _present(token, number, request):
    """Put an instruction on the coalescer's input, where it holds until it is accepted."""
    assign(request, token)
    request.warp = number // TICKETS
    request.ticket = number % TICKETS
    request.store = is_store(token.kind)
    request.atomic = token.kind == ATOMIC_ACCESS
    request.bypass = token.kind == LOAD_BYPASS


@inline
def coalesce(path, lsu, now):
    """A cycle of the coalescer, which takes the head of the queue. Returns whether it did anything.

    Its ``line.ready`` has been set.
    """
    coalescer = path.intra_warp_coalescer
    io, binding = coalescer.io, coalescer.binding
    valid = offered(lsu, now)
    if valid and path.presented == 0:
        path.presented = 1
        number = i64(lsu.queue.entry[lsu.queue.head].token)
        _present(lsu.token[number], number, io.i.request.payload)
    io.i.request.valid = valid
    different = call(binding.comb, binding.handle, addressof(io))
    lsu.queue.occupied = io.c.request.ready == 0
    if call(binding.idle, binding.handle, addressof(io)) != 0:
        return False
    if valid and io.c.request.ready != 0:
        path.presented = 0
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
    if io.o.line.valid != 0:
        line = io.o.line.payload
        number = i64(line.warp) * TICKETS + i64(line.ticket)
        io.i.line.ready = send(lsu, port, config, number, i64(line.number), i64(line.mask), now)
    lsu.path.wake = now + 1 if coalesce(path, lsu, now) else i64(NEVER)


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
