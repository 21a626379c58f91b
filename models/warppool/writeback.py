"""Golden model of ``rtl/warppool/writeback.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import FOREVER, ports
from lockstep.models.jit import i64, jit, pointer_to, record, slot
from lockstep.models.warppool.slots import SLOT, copy
from lockstep.spec.warppool.parameters import MAX_SLOTS

PORTS = ports("warppool.writeback")
ANSWER = record([("mask", "u4"), ("atomic", "u1")])
STATE = record(
    [
        ("slots", SLOT, (MAX_SLOTS,)),  # of the answer in the buffer
        ("count", "i8"),  # of the slots
        ("next", "i8"),  # the first of them that has not left
        ("answer", ANSWER, (2,)),  # in the buffer, and arriving
        ("buffered", "i8"),
        ("arriving", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Answers and slots are memory: unseen until they are written."""
    state.buffered = 0
    state.arriving = 0
    io.o.answer.ready = 1
    io.o.result.valid = 0
    result = io.o.result.payload
    result.warp = 0
    result.ticket = 0
    result.mapping = 0
    result.thread = 0
    result.word = 0
    result.atomic = 0
    result.mask = 0


@jit
def _present(io, source, answer):
    result = io.o.result.payload
    result.warp = source.warp
    result.ticket = source.ticket
    result.mapping = source.mapping
    result.thread = source.thread
    result.word = source.word
    result.atomic = answer.atomic
    result.mask = answer.mask if answer.atomic else 0
    io.o.result.valid = 1


@jit
def step(state, io):
    """One clock edge."""
    accepted = io.i.answer.valid & io.o.answer.ready != 0
    vacant = io.o.result.valid == 0 or io.i.result.ready != 0
    if vacant:
        io.o.result.valid = 0
    if state.buffered:
        if vacant:
            _present(io, state.slots[state.next], state.answer[0])
            state.next += 1
            state.buffered = state.next < state.count
    elif state.arriving:
        state.arriving = 0
        if vacant:
            _present(io, io.i.slots.slots[0], state.answer[1])
        state.next = i64(vacant)
        state.count = io.i.slots.count
        if state.next < state.count:
            state.buffered = 1
            state.answer[0].atomic = state.answer[1].atomic
            state.answer[0].mask = state.answer[1].mask
            for i in range(state.next, state.count):
                copy(io.i.slots.slots[i], state.slots[i])
    if accepted:
        state.arriving = 1
        state.answer[1].atomic = io.i.answer.payload.atomic
        state.answer[1].mask = io.i.answer.payload.mask
    io.o.answer.ready = state.arriving & state.buffered == 0


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    if io.i.answer.valid & io.o.answer.ready != 0:
        return i64(0)
    if io.o.result.valid == 0:
        return i64(0) if state.arriving | state.buffered else i64(FOREVER)
    if io.i.result.ready != 0 or state.arriving > state.buffered:
        return i64(0)
    return i64(FOREVER)


@jit
def skip(state, io, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""


at_state, at_ports = pointer_to(STATE), pointer_to(PORTS)


@slot
def step_slot(state, io):
    step(at_state(state), at_ports(io))
    return i64(0)


@slot
def idle_slot(state, io):
    return idle(at_state(state), at_ports(io))


@slot
def skip_slot(state, steps):
    return i64(0)


SLOTS = {"step": step_slot, "idle": idle_slot, "skip": skip_slot}
