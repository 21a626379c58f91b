"""Golden model of ``rtl/warppool/instruction_queues.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, jit, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS

MAX_DEPTH = 16

PORTS = ports("warppool.instruction_queues")
INSTRUCTION = PORTS["i"]["enter"]["payload"]
STATE = record(
    [
        ("entry", INSTRUCTION, (MAX_WARPS * MAX_DEPTH,)),  # queue after queue
        ("head", "i8", (MAX_WARPS,)),  # by queue
        ("count", "i8", (MAX_WARPS,)),  # instructions in the queue
        ("waiting", "i8"),  # queues that have instructions
        ("queues", "i8"),  # parameter
        ("warps_per_queue", "i8"),  # parameter
        ("depth", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Entries are memory: unseen until they are written."""
    clear(io.o)
    for queue in range(state.queues):
        state.head[queue] = 0
        state.count[queue] = 0
        io.o.free[queue] = state.depth
    state.waiting = 0


@jit
def _resize(state, io, queue, change):
    """A queue grows by ``change`` instructions, or shrinks."""
    count = state.count[queue] + change
    state.count[queue] = count
    io.o.free[queue] = state.depth - count
    bit = i64(1) << queue
    state.waiting = state.waiting | bit if count != 0 else state.waiting & ~bit


@jit
def _pop(state, io, port):
    """The first instruction of the lowest queue goes to a coalescer."""
    queue = ctz(state.waiting)
    head = state.head[queue]
    assign(io.o.instruction[port].payload, state.entry[queue * state.depth + head])
    io.o.instruction[port].valid = 1
    state.head[queue] = head + 1 if head + 1 < state.depth else 0
    _resize(state, io, queue, -1)


@jit
def _enter(state, io):
    """The instruction offered goes behind the others of its queue."""
    instruction = io.i.enter.payload
    queue = i64(instruction.warp) // state.warps_per_queue
    tail = state.head[queue] + state.count[queue]
    if tail >= state.depth:
        tail -= state.depth
    assign(state.entry[queue * state.depth + tail], instruction)
    _resize(state, io, queue, 1)


@jit
def step(state, io):
    """One clock edge."""
    queued = state.waiting != 0
    for port in range(state.coalescers):
        if io.i.instruction[port].ready != 0:
            if io.o.instruction[port].valid != 0:
                io.o.instruction[port].valid = 0
            elif queued:
                _pop(state, io, port)
                queued = False
    if io.i.enter.valid != 0:
        _enter(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    if io.i.enter.valid != 0:
        return i64(0)
    for port in range(state.coalescers):
        if io.i.instruction[port].ready != 0 and (io.o.instruction[port].valid != 0 or state.waiting != 0):
            return i64(0)
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
