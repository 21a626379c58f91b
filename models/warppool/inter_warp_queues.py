"""Golden model of ``rtl/warppool/inter_warp_queues.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, i64, jit, record, slots
from lockstep.models.memory.index import hashed
from lockstep.models.time import NEVER
from lockstep.spec.mapping import Mapping
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_SLOTS, MAX_TAGS

RANDOM = int(Mapping.RANDOM)

PORTS = ports("warppool.inter_warp_queues")
SLOT = PORTS["o"]["request"]["payload"]["slots"].base
LINE = record([("key", "i8"), ("queue", "i8"), ("slot", SLOT)])  # key: the line's number, then bypass in bit 0
STATE = record(
    [
        ("valid", "i8"),  # mask of tags
        ("key", "i8", (MAX_TAGS,)),
        ("count", "i8", (MAX_TAGS,)),  # slots of a tag
        ("slot", SLOT, (MAX_TAGS * MAX_SLOTS,)),
        ("line", LINE, (MAX_COALESCERS * 2,)),  # two per port
        ("head", "i8", (MAX_COALESCERS,)),  # the older of them
        ("waiting", "i8", (MAX_COALESCERS,)),  # lines of the port
        ("budget", "i8"),  # tags that may be allocated
        ("queues", "i8"),  # parameter
        ("tags", "i8"),  # parameter
        ("merges", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
        ("index", "i8"),  # parameter
        ("set_bits", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Tags and lines are memory: unseen until they are written."""
    clear(io.o)
    state.valid = 0
    state.budget = 0
    for k in range(state.coalescers):
        state.head[k] = 0
        state.waiting[k] = 0
        io.o.line[k].ready = 1


@jit
def _insert(state, k, tag, allocated):
    """Move port k's head to a tag."""
    line = state.line[2 * k + state.head[k]]
    if allocated:
        state.valid |= i64(1) << tag
        state.key[tag] = line.key
        state.count[tag] = 0
    assign(state.slot[tag * MAX_SLOTS + state.count[tag]], line.slot)
    state.count[tag] += 1
    state.head[k] ^= 1
    state.waiting[k] -= 1


@jit
def _pop(state, request, tag):
    """Move a tag to the output register."""
    count = state.count[tag]
    for i in range(count):
        assign(request.slots[i], state.slot[tag * MAX_SLOTS + i])
    for i in range(count, i64(request.count)):
        clear(request.slots[i])
    request.number = state.key[tag] >> 1
    request.bypass = state.key[tag] & 1
    request.count = count
    state.valid &= ~(i64(1) << tag)


@jit
def _enter(state, k, line, map_entry):
    """Put a line into port k's buffer."""
    entry = state.line[2 * k + (state.head[k] + state.waiting[k] & 1)]
    number = i64(line.number)
    entry.key = number << 1 | i64(line.bypass)
    entry.queue = hashed(state.index, state.set_bits, number) & state.queues - 1
    assign(entry.slot, line)
    if line.mapping == RANDOM:
        entry.slot.word = map_entry
    state.waiting[k] += 1


@jit
def _find(state, line):
    """The tag that a line belongs to, else the lowest free one; -1 if that tag is full, or none is free."""
    free = i64(-1)
    first = line.queue * state.tags
    for tag in range(first, first + state.tags):
        if state.valid >> tag & 1 == 0:
            if free < 0:
                free = tag
        elif state.key[tag] == line.key:
            return tag if state.count[tag] < state.merges else i64(-1)
    return free


@jit
def _decide(state, io):
    """What the ports insert in the next cycle."""
    taken, budget = i64(0), state.budget  # less what the heads of the ports below may take
    for k in range(state.coalescers):
        insert = io.o.insert[k]
        tag = i64(-1)
        if state.waiting[k] != 0:
            line = state.line[2 * k + state.head[k]]
            if taken >> line.queue & 1 == 0:
                tag = _find(state, line)
            taken |= i64(1) << line.queue
            if tag >= 0:
                allocated = state.valid >> tag & 1 ^ 1
                if allocated <= budget:
                    insert.valid = 1
                    insert.payload.tag = tag
                    insert.payload.warp = line.slot.warp
                    insert.payload.allocated = allocated
                else:
                    tag = i64(-1)
            budget = max(budget - 1, i64(0))
        if tag < 0 and insert.valid != 0:
            clear(insert)


@jit
def step(state, io):
    """One clock edge."""
    allocations = i64(0)
    for k in range(state.coalescers):
        insert = io.o.insert[k]
        if insert.valid != 0:
            _insert(state, k, i64(insert.payload.tag), insert.payload.allocated != 0)
            allocations += i64(insert.payload.allocated)
    io.o.request.valid = io.i.pop.valid
    if io.i.pop.valid != 0:
        _pop(state, io.o.request.payload, i64(io.i.pop.payload.tag))
    for k in range(state.coalescers):
        if io.i.line[k].valid & io.o.line[k].ready != 0:
            _enter(state, k, io.i.line[k].payload, io.i.map_entry[k])
        io.o.line[k].ready = state.waiting[k] < 2
    state.budget = min(i64(io.i.room) - allocations, state.coalescers)
    _decide(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held: for ever, or none."""
    if (io.i.pop.valid | io.o.request.valid) != 0 or state.budget != min(i64(io.i.room), state.coalescers):
        return i64(0)
    for k in range(state.coalescers):
        if io.o.insert[k].valid != 0 or io.i.line[k].valid & io.o.line[k].ready != 0:
            return i64(0)
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
