"""Golden model of ``rtl/warppool/request_selector.py``, which documents the block.

Where the hardware compares two bits of all warps in a cycle, the model finds the lines of the lowest warp in the first
cycle of a search and then waits; where the hardware keeps who is second and third, the model looks for them.
"""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, clz64, ctz, i64, inline, jit, record, slots
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.warppool.parameters import MAX_COALESCERS, MAX_TAGS, PIPELINE

PORTS = ports("warppool.request_selector")
REQUEST = PORTS["o"]["access"]["payload"]
STORE = PORTS["i"]["store"].base["payload"]
INSERTED = record([("valid", "i8"), ("allocated", "i8"), ("position", "i8"), ("warp", "i8")])
STATE = record(
    [
        ("tag_at", "i8", (MAX_TAGS,)),  # by position
        ("position_of", "i8", (MAX_TAGS,)),  # by tag
        ("lowest", "i8", (MAX_TAGS,)),  # the lowest warp in the tag at a position
        ("inserted", INSERTED, (MAX_COALESCERS,)),  # in the cycle before: their warps are written now
        ("searched", "i8"),  # cycles of the search for the lowest warp
        ("search", "i8"),  # cycles that it takes
        ("found", "i8"),  # what is left of what it finds: mask of positions
        ("found_warp", "i8"),  # their warp
        ("least", "i8"),  # the lowest warp inserted since it began
        ("lowered", "i8"),  # a warp was, in the cycle before
        ("choice", "i8"),  # the position with the lowest warp, -1 if it is not known
        ("waiting", "i8"),  # mask of positions
        ("head", "i8"),
        ("used", "i8"),  # positions from the head to the tail
        ("position", "i8"),  # that of the pop of this cycle, if there is one
        ("popped", "i8"),  # a pop in the cycle before: its request arrives
        ("store", STORE, (MAX_COALESCERS * 2,)),  # two per port
        ("first", "i8", (MAX_COALESCERS,)),  # the older of them
        ("stores", "i8", (MAX_COALESCERS,)),  # of the port
        ("waited", "i8", (MAX_COALESCERS,)),  # cycles for which the first has waited, at most store_wait
        ("taken", "i8"),  # the port whose store is taken in this cycle; -1 if none is
        ("last", "i8"),  # port of the last store taken
        ("load_next", "i8"),  # an overdue store went, and no load since
        ("behind", REQUEST, (PIPELINE - 1,)),  # the output queue behind access
        ("count", "i8"),  # of the output queue, access included
        ("reserved", "i8"),  # loads and atomics on their way
        ("metadata_left", "i8"),
        ("cycle", "i8"),  # of the quantum
        ("lookup", "i8"),  # what the L1 said of a load in the cycle before, as it changes the margin
        ("margin", "i8"),  # loads of the quantum that used the L1, less 100 times those that hit, less one
        ("warps", "i8"),  # parameter
        ("tags", "i8"),  # parameter
        ("coalescers", "i8"),  # parameter
        ("quantum", "i8"),  # parameter
        ("store_wait", "i8"),  # parameter
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset. Memories stay: unseen until they are written."""
    clear(io.o)
    io.o.room = state.tags
    for port in range(state.coalescers):
        io.o.store[port].ready = 1
        state.first[port] = state.stores[port] = state.waited[port] = 0
        state.inserted[port].valid = 0
    bits = 64 - clz64(state.warps - 1 | 1)
    state.search = (bits + 1) // 2 + 2
    state.waiting = state.head = state.used = state.position = state.popped = state.searched = state.lowered = 0
    state.choice = state.taken = -1
    state.last = state.load_next = state.count = state.reserved = state.metadata_left = 0
    state.cycle = state.lookup = 0
    state.margin = -1


@inline
def _put_load(request, target):
    clear(target)
    assign(target, request)


@inline
def _put_store(store, target):
    clear(target)
    assign(target, store)
    target.store = store.atomic == 0
    target.count = 1
    assign(target.slots[0], store)


@inline
def _oldest(state, mask):
    """The first position of a mask from the head on, circularly; the mask is not empty."""
    ahead = mask & (i64(-1) << state.head)
    return ctz(ahead) if ahead != 0 else ctz(mask)


@inline
def _by_warp(state, io):
    """Whether a load goes by its warp: where only one waits, or no position is free, the head does."""
    return io.o.policy != 0 and io.o.room != 0 and state.waiting & i64(state.waiting - 1) != 0


@inline
def _seen(state):
    """What a search that begins in this cycle sees: what waits and was neither found already nor inserted just now."""
    seen = i64(state.waiting)
    if state.choice >= 0:
        seen = i64(seen & ~(i64(1) << state.choice))
    for port in range(state.coalescers):
        line = state.inserted[port]
        if line.valid & line.allocated != 0:
            seen = i64(seen & ~(i64(1) << line.position))
    return seen


@inline
def _search(state, io):
    """A cycle of the search for the lowest warp, as things were before this clock edge."""
    pops = io.o.pop.valid != 0
    if io.o.policy == 0 or (pops and not _by_warp(state, io)):
        state.searched = 0
        state.choice = -1
        return
    lower = state.lowered != 0
    if state.searched == state.search:
        lower |= state.least < state.found_warp
        if pops or state.choice < 0:
            state.choice = _oldest(state, state.found)
            state.found = i64(state.found & ~(i64(1) << state.choice))
            if state.found == 0:
                state.searched = 0
    else:
        seen = _seen(state)
        if pops:
            state.choice = -1
        if state.searched != 0:
            state.searched += 1
        elif seen != 0:
            state.found = _lowest(state, seen)
            state.found_warp = state.lowest[ctz(state.found)]
            state.least = MAX_WARPS
            state.searched = 1
    if lower:
        state.searched = 0


@inline
def _lowest(state, mask):
    """The positions of a mask with the lowest warp."""
    found, lowest = i64(0), i64(MAX_WARPS)
    while mask != 0:
        position = ctz(mask)
        mask = i64(mask & ~(i64(1) << position))
        if state.lowest[position] < lowest:
            found, lowest = i64(0), state.lowest[position]
        if state.lowest[position] == lowest:
            found = i64(found | i64(1) << position)
    return found


@inline
def _lower(state):
    """The warps of the lines inserted in the cycle before, and whether one was lowered."""
    state.lowered = 0
    for port in range(state.coalescers):
        line = state.inserted[port]
        if line.valid != 0:
            state.least = min(state.least, line.warp)
        if line.valid == 0 or state.waiting & (i64(1) << line.position) == 0:
            continue
        if line.allocated != 0:
            state.lowest[line.position] = line.warp
        elif line.warp < state.lowest[line.position]:
            state.lowest[line.position] = line.warp
            state.lowered = 1


@inline
def _pop(state):
    """The position popped in this cycle no longer waits; those before the next one that does are free again."""
    state.waiting &= ~(i64(1) << state.position)
    head = (state.head + state.used) % state.tags
    passed = state.used
    if state.waiting != 0:
        head = _oldest(state, state.waiting)
        passed = (head - state.head) % state.tags
    state.head = head
    state.used -= passed


@inline
def _insert(state, io, port):
    """A line; returns the positions that it takes."""
    insert, line = io.i.insert[port], state.inserted[port]
    line.valid = insert.valid
    if insert.valid == 0:
        return i64(0)
    tag = i64(insert.payload.tag)
    line.allocated = insert.payload.allocated
    line.warp = insert.payload.warp
    if line.allocated == 0:
        line.position = state.position_of[tag]
        return i64(0)
    position = (state.head + state.used) % state.tags
    state.used += 1
    state.tag_at[position] = tag
    state.position_of[tag] = position
    state.waiting |= i64(1) << position
    line.position = position
    return i64(1)


@inline
def _wait(state, io, port):
    """A port's first store waits or goes, and another enters."""
    if state.taken == port:
        state.waited[port] = 0
        state.first[port] ^= 1
        state.stores[port] -= 1
    elif state.stores[port] != 0 and state.waited[port] < state.store_wait:
        state.waited[port] += 1
    if io.i.store[port].valid & io.o.store[port].ready != 0:
        assign(state.store[2 * port + (state.first[port] + state.stores[port] & 1)], io.i.store[port].payload)
        state.stores[port] += 1
    io.o.store[port].ready = state.stores[port] < 2


@inline
def _leave(state, io):
    """A request goes to the L1: count it, and present the next one."""
    access = io.o.access.payload
    if access.store == 0:
        state.reserved -= 1
        if access.atomic | access.bypass == 0:
            state.lookup = 1 if io.i.miss != 0 else -99
    state.count -= 1
    if state.count > 0:
        assign(access, state.behind[0])
    for i in range(1, state.count):
        assign(state.behind[i - 1], state.behind[i])


@inline
def _choose(state, io):
    """The action of the next cycle."""
    stores, overdue = i64(0), i64(0)
    for port in range(state.coalescers):
        if state.stores[port] != 0:
            store = state.store[2 * port + state.first[port]]
            if state.metadata_left != 0 or store.atomic == 0:
                stores |= i64(1) << port
                if state.waited[port] == state.store_wait:
                    overdue |= i64(1) << port
    state.taken = -1
    io.o.overdue = 0
    io.o.pop.valid = 0
    by_warp = _by_warp(state, io)
    waits = state.choice >= 0 if by_warp else state.waiting != 0
    state.position = state.choice if by_warp else state.head
    io.o.pop.payload.tag = state.tag_at[state.position] if waits else i64(0)
    if state.popped + state.count == PIPELINE:
        return
    load = state.metadata_left != 0 and waits
    if overdue != 0 and not (load and state.load_next != 0):
        io.o.overdue = 1
        stores = overdue
    elif load:
        io.o.pop.valid = 1
        return
    if stores != 0:
        after = stores & (i64(-2) << state.last)
        state.taken = ctz(after) if after != 0 else ctz(stores)


@jit
def step(state, io):
    """One clock edge."""
    _search(state, io)
    _lower(state)
    free = state.tags - state.used
    new = i64(0)  # the action of this cycle is a load or an atomic
    popped = i64(io.o.pop.valid)
    if popped != 0:
        new = i64(1)
        state.load_next = 0
        _pop(state)
    for port in range(state.coalescers):
        free -= _insert(state, io, port)
    state.margin += state.lookup
    state.lookup = 0
    reserved = state.reserved
    if io.o.access.valid & io.i.access.ready != 0:
        _leave(state, io)
    if io.i.request.valid != 0:
        if state.count == 0:
            _put_load(io.i.request.payload, io.o.access.payload)
        else:
            _put_load(io.i.request.payload, state.behind[state.count - 1])
        state.count += 1
    if state.taken >= 0:
        store = state.store[2 * state.taken + state.first[state.taken]]
        new = i64(store.atomic)
        state.last = state.taken
        if io.o.overdue != 0:
            state.load_next = 1
        if state.count == 0:
            _put_store(store, io.o.access.payload)
        else:
            _put_store(store, state.behind[state.count - 1])
        state.count += 1
    for port in range(state.coalescers):
        _wait(state, io, port)
    state.reserved += new
    state.metadata_left = i64(io.i.metadata_free) > reserved + new
    state.popped = popped

    state.cycle += 1
    if state.cycle == state.quantum:
        if state.margin >= 0:
            io.o.policy ^= 1
        state.cycle = 0
        state.margin = -1
    io.o.access.valid = state.count != 0
    io.o.room = free
    _choose(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing but the quantum's cycle and the stores' waits while these inputs are held."""
    if io.o.pop.valid | state.popped | state.lowered | (io.o.access.valid & io.i.access.ready) != 0:
        return i64(0)
    if state.lookup != 0:
        return i64(0)
    if (i64(io.i.metadata_free) > state.reserved) != (state.metadata_left != 0):
        return i64(0)
    if io.o.policy == 0:
        if state.choice >= 0 or state.searched != 0:
            return i64(0)
    elif state.searched == 0:
        if _seen(state) != 0:
            return i64(0)
    elif state.searched != state.search or state.choice < 0 or state.least < state.found_warp:
        return i64(0)
    if state.taken >= 0:
        return i64(0)
    for port in range(state.coalescers):
        # A store that is overdue has no more right to go than before as long as nothing can go.
        if io.i.insert[port].valid | state.inserted[port].valid != 0:
            return i64(0)
        if io.i.store[port].valid & io.o.store[port].ready != 0:
            return i64(0)
    return state.quantum - 1 - state.cycle


@jit
def skip(state, steps):
    """Pass over ``steps`` idle cycles, at most :func:`idle`."""
    state.cycle += steps
    for port in range(state.coalescers):
        if state.stores[port] != 0:
            state.waited[port] = min(state.waited[port] + steps, state.store_wait)
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle, skip=skip)
