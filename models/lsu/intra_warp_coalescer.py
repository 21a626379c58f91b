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
ENTRIES = 3  # one served, one waiting, and that of the line found, which may have been served
STATE = record(
    [
        ("entry", ENTRY, (ENTRIES,)),  # circularly
        ("head", "i8"),  # entry being served
        ("count", "i8"),  # entries being served or waiting
        ("found", "i8"),  # the lanes of the line found last, until it goes to the output register
        ("found_in", "i8"),  # its entry
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
    state.found = 0
    state.waits = 0


@jit
def _find(state, io):
    """Find the next line of the instruction that is served."""
    entry, shift = state.entry[state.head], i64(io.i.line_shift)
    number = i64(entry.address[ctz(entry.pending)]) >> shift
    state.found = lanes_equal(addressof(entry), shift, 0, number) & entry.pending
    state.found_in = state.head
    entry.pending &= ~state.found
    if entry.pending == 0:
        state.head = (state.head + 1) % ENTRIES
        state.count -= 1


@jit
def _present(state, io):
    """Map the line found, and put it into the output register. Whether it must wait for a thread-map entry there."""
    entry, mask, line = state.entry[state.found_in], state.found, io.o.line.payload
    shift, unit, thread = i64(io.i.line_shift), max(entry.size, 2), ctz(mask)
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
    line.number = i64(entry.address[thread]) >> shift
    line.mask = mask
    line.last = entry.pending == 0
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
        if state.found != 0:
            state.waits = _present(state, io)
            io.o.line.valid = state.waits == 0
            state.found = 0
        else:
            io.o.line.valid = 0
    if state.found == 0 and state.count != 0:
        _find(state, io)
    if accepted and io.i.request.payload.mask != 0:
        request = io.i.request.payload
        entry = state.entry[(state.head + state.count) % ENTRIES]
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
        return i64(0) if state.found == 0 and state.count != 0 else i64(NEVER)
    return i64(0) if io.o.line.valid | state.found | state.count != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
