"""Golden model of ``rtl/lsu/intra_warp_coalescer.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import addressof, assign, clear, ctz, i64, jit, lanes_equal, record, slots
from lockstep.models.time import NEVER
from lockstep.spec.mapping import Mapping

SINGLE, BROADCAST, CONSECUTIVE, RANGE, RANDOM = (int(mapping) for mapping in Mapping)
LANES = 32

PORTS = ports("lsu.intra_warp_coalescer")
ENTRY = record(
    [
        ("address", "u4", (LANES,)),  # first: the entry's address is theirs
        ("mask", "i8"),
        ("pending", "i8"),  # lanes that no line has taken yet
        ("size", "i8"),
        ("store", "i8"),
        ("atomic", "i8"),
        ("bypass", "i8"),
        ("warp", "i8"),
        ("ticket", "i8"),
    ]
)
STATE = record(
    [
        ("entry", ENTRY, (2,)),
        ("head", "i8"),  # entry being served
        ("count", "i8"),  # entries in use
        ("lanes", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Entries are memory: unseen until they are written."""
    clear(io.o)
    io.o.request.ready = 1
    state.head = 0
    state.count = 0


@jit
def _present(state, io, entry):
    """Put the next line of an instruction into the output register, unless it must wait for a thread-map entry."""
    shift, unit = i64(io.i.line_shift), max(entry.size, 2)
    thread = ctz(entry.pending)
    number = i64(entry.address[thread]) >> shift
    first = i64(entry.address[thread]) >> unit  # the first lane's word, counted from address 0
    addresses = addressof(entry)
    mask = lanes_equal(addresses, shift, 0, number) & entry.pending
    same = lanes_equal(addresses, unit, 0, first)
    run = lanes_equal(addresses, unit, 1, first - thread)
    words = i64(1) << shift - unit  # in a line
    word = first & words - 1
    end = min(i64(state.lanes), thread + words - word)
    span = (i64(1) << end) - (i64(1) << thread)

    if mask & mask - 1 == 0:
        mapping = SINGLE
    elif mask & ~run == 0 and word == thread and mask == entry.mask:
        mapping = CONSECUTIVE
    elif mask & ~same == 0 and mask == entry.mask:
        mapping = BROADCAST
    elif mask & ~run == 0 and mask == entry.mask & span:
        mapping = RANGE
    else:
        mapping = RANDOM
    line = io.o.line.payload
    # The free entries were counted before the line that leaves now took one.
    if mapping == RANDOM and entry.store | entry.atomic == 0:
        leaving = io.o.line.valid & (line.mapping == RANDOM) & (line.store | line.atomic == 0)
        if i64(io.i.map_free) <= i64(leaving):
            return False

    if mapping == RANDOM:
        for lane in range(state.lanes):
            line.words[lane] = (i64(entry.address[lane]) >> unit) & (words - 1)
    elif line.mapping == RANDOM:
        for lane in range(state.lanes):
            line.words[lane] = 0
    entry.pending &= ~mask
    assign(line, entry)
    line.number = number
    line.mask = mask
    line.last = entry.pending == 0
    line.mapping = mapping
    line.thread = thread
    line.word = word
    return True


@jit
def step(state, io):
    """One clock edge."""
    accepted = io.i.request.valid & io.o.request.ready != 0
    if io.o.line.valid == 0 or io.i.line.ready != 0:
        presented = False
        if state.count != 0:
            entry = state.entry[state.head]
            presented = _present(state, io, entry)
            if presented and entry.pending == 0:
                state.head ^= 1
                state.count -= 1
        io.o.line.valid = presented
    if accepted and io.i.request.payload.mask != 0:
        request = io.i.request.payload
        entry = state.entry[state.head + state.count & 1]
        assign(entry, request)
        entry.pending = entry.mask
        state.count += 1
    io.o.request.ready = state.count < 2
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held. A wait for the thread-map table counts as work."""
    if io.i.request.valid & io.o.request.ready != 0:
        return i64(0)
    if io.o.line.valid != 0:
        return i64(0) if io.i.line.ready != 0 else i64(NEVER)
    return i64(0) if state.count != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
