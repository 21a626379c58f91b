"""Golden model of ``rtl/warppool/writeback.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, i64, jit, record, slots
from lockstep.models.time import NEVER

PORTS = ports("warppool.writeback")
ANSWER = PORTS["i"]["answer"]["payload"]
STATE = record(
    [
        ("left", PORTS["i"]["slots"]),  # of the answer in the buffer
        ("next", "i8"),  # the first slot of them that has not left
        ("answer", ANSWER, (2,)),  # in the buffer, and arriving
        ("buffered", "i8"),
        ("arriving", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Answers and slots are memory: unseen until they are written."""
    clear(io.o)
    io.o.answer.ready = 1
    state.buffered = 0
    state.arriving = 0


@jit
def _present(io, source, answer):
    result = io.o.result.payload
    assign(result, source)
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
            _present(io, state.left.slots[state.next], state.answer[0])
            state.next += 1
            state.buffered = state.next < state.left.count
    elif state.arriving:
        state.arriving = 0
        if vacant:
            _present(io, io.i.slots.slots[0], state.answer[1])
        state.next = i64(vacant)
        if state.next < io.i.slots.count:
            state.buffered = 1
            assign(state.answer[0], state.answer[1])
            assign(state.left, io.i.slots)
    if accepted:
        state.arriving = 1
        assign(state.answer[1], io.i.answer.payload)
    io.o.answer.ready = state.arriving & state.buffered == 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    if io.i.answer.valid & io.o.answer.ready != 0:
        return i64(0)
    if io.o.result.valid == 0:
        return i64(0) if state.arriving | state.buffered else i64(NEVER)
    if io.i.result.ready != 0 or state.arriving > state.buffered:
        return i64(0)
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
