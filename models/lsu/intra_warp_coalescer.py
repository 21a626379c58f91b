"""Golden model of ``rtl/lsu/intra_warp_coalescer.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import addressof, assign, clear, ctz, i64, inline, jit, lanes_equal, record, slots
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
FOUND = record(
    [
        ("valid", "i8"),  # it is not in the output register yet
        ("entry", "i8"),  # its instruction
        ("number", "i8"),
        ("thread", "i8"),  # its first lane
        ("mask", "i8"),
        ("last", "i8"),
    ]
)
STATE = record(
    [
        ("entry", ENTRY, (3,)),  # circularly: that of the line found outlasts its service
        ("head", "i8"),  # entry being served
        ("count", "i8"),  # entries being served or waiting
        ("found", FOUND),  # the line found last
        ("waits", "i8"),  # the line in the output register, for an entry of the thread-map table
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
    state.found.valid = 0
    state.waits = 0


@jit
def _find(state, io):
    """Find the next line of the instruction that is served."""
    entry, found = state.entry[state.head], state.found
    shift = i64(io.i.line_shift)
    found.valid = 1
    found.entry = state.head
    found.thread = ctz(entry.pending)
    found.number = i64(entry.address[found.thread]) >> shift
    found.mask = lanes_equal(addressof(entry), shift, 0, found.number) & entry.pending
    entry.pending &= ~found.mask
    found.last = entry.pending == 0
    if entry.pending == 0:
        state.head = _after(state.head)
        state.count -= 1


@inline
def _after(entry):
    return entry + 1 if entry < 2 else i64(0)


@jit
def _present(state, io):
    """Map the line found, and put it into the output register. Whether it must wait for a thread-map entry there."""
    found, line = state.found, io.o.line.payload
    entry = state.entry[found.entry]
    shift, unit, thread, mask = i64(io.i.line_shift), max(entry.size, 2), found.thread, found.mask
    first = i64(entry.address[thread]) >> unit  # the first lane's word, counted from address 0
    addresses = addressof(entry)
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
    # The free entries were counted before the line that leaves now took one.
    leaving = io.o.line.valid & (line.mapping == RANDOM) & (line.store | line.atomic == 0)
    waits = mapping == RANDOM and entry.store | entry.atomic == 0 and i64(io.i.map_free) <= i64(leaving)

    if mapping == RANDOM:
        for lane in range(state.lanes):
            line.words[lane] = (i64(entry.address[lane]) >> unit) & (words - 1)
    elif line.mapping == RANDOM:
        for lane in range(state.lanes):
            line.words[lane] = 0
    assign(line, entry)
    line.number = found.number
    line.mask = mask
    line.last = found.last
    line.mapping = mapping
    line.thread = thread
    line.word = word
    return waits


@jit
def step(state, io):
    """One clock edge."""
    accepted = io.i.request.valid & io.o.request.ready != 0
    if state.waits != 0:
        if io.i.map_free != 0:
            state.waits = 0
            io.o.line.valid = 1
    elif io.o.line.valid == 0 or io.i.line.ready != 0:
        if state.found.valid != 0:
            state.waits = _present(state, io)
            io.o.line.valid = state.waits == 0
            state.found.valid = 0
        else:
            io.o.line.valid = 0
    if state.found.valid == 0 and state.count != 0:
        _find(state, io)
    if accepted and io.i.request.payload.mask != 0:
        request = io.i.request.payload
        place = state.head
        for _ in range(state.count):
            place = _after(place)
        entry = state.entry[place]
        assign(entry, request)
        entry.pending = entry.mask
        state.count += 1
    io.o.request.ready = state.count < 2
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held. A wait for the thread-map table counts as work."""
    if io.i.request.valid & io.o.request.ready != 0 or state.waits != 0:
        return i64(0)
    if io.o.line.valid != 0 and io.i.line.ready == 0:
        return i64(0) if state.found.valid == 0 and state.count != 0 else i64(NEVER)
    return i64(0) if io.o.line.valid | state.found.valid | state.count != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
