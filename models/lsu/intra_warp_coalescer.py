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
STATE = record(
    [
        ("entry", ENTRY, (2,)),  # in turn: that of the instruction served, and that of the line found, if it is another
        ("serves", "i8"),  # the instruction served
        ("here", "i8"),  # the lanes of the line that is found next, 0 if none is pending
        ("found", "i8"),  # the lanes of the line found last, until it goes to the output register
        ("found_in", "i8"),  # its entry
        ("lanes", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Entries are memory: unseen until they are written."""
    clear(io.o)
    state.serves = 0
    state.entry[0].pending = 0
    state.here = 0
    state.found = 0


@inline
def _look(state, io):
    """Which of the pending lanes are in the line of the lowest."""
    entry, shift = state.entry[state.serves], i64(io.i.line_shift)
    state.here = 0
    if entry.pending != 0:
        number = i64(entry.address[ctz(entry.pending)]) >> shift
        state.here = lanes_equal(addressof(entry), shift, 0, number) & entry.pending


@inline
def _present(state, io):
    """Map the line found, and put it into the output register."""
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


@inline
def _moves(state, io):
    """Whether the line found, if any, makes room for another."""
    return state.found == 0 or io.o.line.valid == 0 or io.i.line.ready != 0


@jit
def comb(state, io):
    """Ready for an instruction: none is served, or its last line is found in this cycle."""
    pending = state.entry[state.serves].pending
    io.c.request.ready = pending == 0 or (pending == state.here and _moves(state, io))
    return i64(0)


@jit
def step(state, io):
    """One clock edge."""
    finds = state.here != 0 and _moves(state, io)
    if io.o.line.valid == 0 or io.i.line.ready != 0:
        io.o.line.valid = state.found != 0
        if state.found != 0:
            _present(state, io)
            state.found = 0
    if finds:
        state.found = state.here
        state.found_in = state.serves
        state.entry[state.serves].pending &= ~state.here
    accepted = io.i.request.valid & io.c.request.ready != 0
    if accepted:
        state.serves = 1 - state.found_in
        entry = state.entry[state.serves]
        assign(entry, io.i.request.payload)
        entry.pending = entry.mask
    if finds or accepted:
        _look(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    if io.i.request.valid & io.c.request.ready != 0:
        return i64(0)
    if io.o.line.valid != 0 and io.i.line.ready == 0:
        return i64(0) if state.found == 0 and state.here != 0 else i64(NEVER)
    return i64(0) if io.o.line.valid | state.found | state.here != 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
