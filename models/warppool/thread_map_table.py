"""Golden model of ``rtl/warppool/thread_map_table.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, jit, popcount, record, slots, without_lowest
from lockstep.models.time import NEVER
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import LANES, MAX_MAPS
from lockstep.spec.warppool.parameters import MAP_PER, MAX_COALESCERS

RANDOM = int(Mapping.RANDOM)
PER_LOAD = MAP_PER.index("load")
NONE = -1

PORTS = ports("warppool.thread_map_table")
ENTRY = record(
    [
        ("map", PORTS["c"]["map"]),  # the mask: of the one line
        ("thread", "u1", (LANES,)),  # by load: of each lane's line, and its own of a lane that is in none
    ]
)
STATE = record(
    [
        ("entry", ENTRY, (MAX_MAPS,)),
        ("due", "i8", (MAX_MAPS,)),  # results that each entry waits for
        ("open", "i8", (MAX_COALESCERS,)),  # the entry of the load whose further lines come from a coalescer, or NONE
        ("used", "i8"),  # the entries in use
        ("spare", "i8"),  # how many are known to be free: what is released is a cycle later
        ("lanes", "i8"),  # parameter
        ("entries", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
        ("map_per", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state after reset. The entries are memory: unseen unless in use."""
    for index in range(state.entries):
        state.due[index] = 0
    for k in range(state.coalescers):
        state.open[k] = NONE
    state.used = 0
    state.spare = state.entries


@jit
def _releases(result):
    p = result.payload
    return result.valid & result.ready != 0 and p.mapping == RANDOM and p.atomic == 0


@jit
def _free(state):
    """The entries that are not in use."""
    return ~state.used & (i64(1) << state.entries) - 1


@jit
def _admit(state, io):
    """The entries of the lines presented."""
    free, spare = _free(state), state.spare
    for k in range(state.coalescers):
        line = io.i.line[k]
        entry = i64(0)
        admitted = True
        if line.valid != 0 and line.payload.mapping == RANDOM:
            if state.open[k] != NONE:
                entry = state.open[k]
            else:
                admitted = spare > 0
                spare -= 1
                if free != 0:
                    entry = ctz(free)
                    free = without_lowest(free)
        io.c.admits[k] = admitted
        io.c.entry[k] = entry


@jit
def comb(state, io):
    """The entries of the lines presented, and the map looked up."""
    _admit(state, io)
    index = i64(io.i.lookup.entry)
    found = io.c.map
    if (state.used >> index) & 1 == 0:
        clear(found)
        return i64(0)
    entry = state.entry[index]
    assign(found, entry.map)
    if state.map_per == PER_LOAD:
        mask = i64(0)
        for lane in range(state.lanes):
            mask |= i64(entry.thread[lane] == io.i.lookup.thread) << lane
        found.mask = mask
    return i64(0)


@jit
def _take(state, k, index, line):
    """A random line of a coalescer goes into an entry, which may have others of its load."""
    entry, others = state.entry[index], state.open[k] != NONE
    state.due[index] += 1
    if state.map_per != PER_LOAD:
        assign(entry.map, line)
        return
    for lane in range(state.lanes):
        inside = (i64(line.mask) >> lane) & 1 != 0
        if inside or not others:
            entry.thread[lane] = line.thread if inside else lane
            entry.map.words[lane] = line.words[lane]
    state.open[k] = index


@jit
def _used(state):
    """The entries that wait for lines or results."""
    used = i64(0)
    for index in range(state.entries):
        used |= i64(state.due[index] != 0) << index
    for k in range(state.coalescers):
        if state.open[k] != NONE:
            used |= i64(1) << state.open[k]
    return used


@jit
def step(state, io):
    """One clock edge."""
    if idle(state, io) != 0:
        return i64(0)
    state.spare = popcount(_free(state))
    for k in range(state.coalescers):
        line = io.i.line[k]
        if line.valid & line.ready != 0:
            if line.payload.mapping == RANDOM:
                state.spare -= state.open[k] == NONE
                _take(state, k, i64(io.c.entry[k]), line.payload)
            if line.payload.last != 0:
                state.open[k] = NONE
    if _releases(io.i.result):
        state.due[i64(io.i.result.payload.word)] -= 1
    state.used = _used(state)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    for k in range(state.coalescers):
        line = io.i.line[k]
        if line.valid & line.ready != 0 and (line.payload.mapping == RANDOM or state.open[k] != NONE):
            return i64(0)
    return i64(0) if _releases(io.i.result) or state.spare != popcount(_free(state)) else i64(NEVER)


SLOTS = slots(STATE, PORTS, step=step, comb=comb, idle=idle)
