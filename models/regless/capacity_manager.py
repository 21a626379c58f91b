"""Golden model of ``rtl/regless/capacity_manager.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, ctz, i64, inline, jit, record, slots, without_lowest
from lockstep.models.masks import next_after
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.register_regions import BANKS

PORTS = ports("regless.capacity_manager")

STATES = 7
ABSENT, UNKNOWN, KNOWN, STACKED, PRELOADING, ACTIVE, DRAINING = range(STATES)

WARP = record(
    [
        ("state", "i8"),
        ("due", "i8"),  # entries that were sent and are not answered
        ("complete", "i8"),  # all entries were sent
        ("need", "i8", (BANKS,)),  # lines that its region has, until it is delivered, or that the next one will have
        ("pending", "i8", (BANKS,)),  # results to be written ...
        ("results", "i8"),  # ... to all banks
        ("collected", "i8"),  # the last instruction has its operands
        ("told", "i8"),  # and the next region is known
        ("ends", "i8"),  # with this region
    ]
)
STATE = record(
    [
        ("warp", WARP, (MAX_WARPS,)),
        ("those", "i8", (STATES,)),  # the warps in each state
        ("following", "i8"),  # those that drain, and whose next region may be announced
        ("loaded", "i8"),  # those of whose region all entries were sent, and are answered, ...
        ("drained", "i8"),  # ... and those whose region has all its operands, and has written all its results
        ("free", "i8", (BANKS,)),
        ("stack", "i8", (MAX_WARPS,)),  # from the bottom on
        ("depth", "i8"),
        ("starts", "i8"),  # from the top, while others were below
        ("came", "i8"),  # to the stack, last
        ("warps", "i8"),  # parameters
        ("banks", "i8"),
        ("lines", "i8"),
        ("patience", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    for w in range(state.warps):
        clear(state.warp[w])
    for k in range(STATES):
        state.those[k] = 0
    state.following = 0
    state.loaded = 0
    state.drained = 0
    for b in range(state.banks):
        state.free[b] = state.lines
    for k in range(MAX_WARPS):
        state.stack[k] = 0
    state.depth = 0
    state.starts = 0
    state.came = state.warps - 1


@inline
def _become(state, w, new):
    """A warp's next state."""
    bit = i64(1) << w
    state.those[state.warp[w].state] &= ~bit
    state.those[new] |= bit
    state.warp[w].state = new


@inline
def _overdue(state):
    """Whether the warp at the bottom is next."""
    return state.patience != 0 and state.starts == state.patience


@jit
def _start(state, io):
    """Let the warp that is next start, if its region fits. Returns whether it does."""
    start = io.o.start
    clear(start)
    if state.depth == 0:
        return False
    overdue = _overdue(state)
    place = i64(0) if overdue else i64(state.depth) - 1
    chosen = i64(state.stack[place])
    warp = state.warp[chosen]
    for b in range(BANKS):
        if warp.need[b] > state.free[b]:
            return False
    for b in range(BANKS):
        state.free[b] -= warp.need[b]
    state.starts = 0 if overdue or state.depth == 1 or state.patience == 0 else state.starts + 1
    state.depth -= 1
    for k in range(place, state.depth):
        state.stack[k] = state.stack[k + 1]
    state.stack[state.depth] = 0
    _become(state, chosen, PRELOADING)
    start.valid = 1
    start.payload.warp = chosen
    return True


@jit
def _come(state, io):
    """Let a warp come to the stack."""
    known = i64(state.those[KNOWN]) & ~i64(io.i.barred)
    if known == 0:
        return
    w = i64(next_after(known, i64(state.came)))
    _become(state, w, STACKED)
    state.came = w
    state.stack[state.depth] = w
    state.depth += 1


@jit
def _give_back(state, warp):
    """Of a region that has issued everything, all lines but those that are to be written."""
    for b in range(BANKS):
        state.free[b] += warp.need[b] - warp.pending[b]


@inline
def _set(mask, w, value):
    return mask & ~(i64(1) << w) | i64(value) << w


@inline
def _expect(state, w, entries, complete):
    """More entries of a warp's region are due, or fewer."""
    warp = state.warp[w]
    warp.due += entries
    warp.complete |= complete
    state.loaded = _set(i64(state.loaded), w, warp.complete != 0 and warp.due == 0)


@inline
def _drain(state, w, results):
    """More results of a warp's region are to be written, or fewer."""
    warp = state.warp[w]
    warp.results += results
    state.drained = _set(i64(state.drained), w, warp.collected != 0 and warp.results == 0)


@inline
def _hear_banks(state, i):
    """What the banks say: entries are answered, results have a line, or are written."""
    answered, reserved, written = i64(0), i64(0), i64(0)
    for b in range(BANKS):
        answered |= i64(i.answered[b].valid) << b
        reserved |= i64(i.reserved[b].valid) << b
        written |= i64(i.written[b].valid) << b
    while answered != 0:
        _expect(state, i64(i.answered[ctz(answered)].payload.warp), i64(-1), i64(0))
        answered = without_lowest(answered)
    while reserved != 0:
        b = ctz(reserved)
        reserved = without_lowest(reserved)
        w = i64(i.reserved[b].payload.warp)
        state.warp[w].pending[b] += 1
        _drain(state, w, i64(1))
    while written != 0:
        b = ctz(written)
        written = without_lowest(written)
        w = i64(i.written[b].payload.warp)
        warp = state.warp[w]
        warp.pending[b] -= 1
        _drain(state, w, i64(-1))
        if warp.collected != 0:
            state.free[b] += 1


@jit
def step(state, io):
    """One clock edge."""
    i = io.i
    if not _start(state, io):
        _come(state, io)
    if i.sent.valid != 0:
        _expect(state, i64(i.sent.payload.warp), i64(i.sent.payload.entries), i64(i.sent.payload.last))
    _hear_banks(state, i)
    if i.delivered.valid != 0:
        w = i64(i.delivered.payload.warp)
        state.warp[w].collected = 1
        _give_back(state, state.warp[w])
        _drain(state, w, i64(0))
        if state.warp[w].ends == 0:
            state.following |= i64(1) << w
    if i.begin.valid != 0:
        _become(state, i64(i.begin.payload.warp), UNKNOWN)
    if i.region.valid != 0:
        region = i.region.payload
        w = i64(region.warp)
        warp = state.warp[w]
        if warp.state == DRAINING:
            warp.told = 1
            state.following &= ~(i64(1) << w)
        else:
            _become(state, w, KNOWN)
        warp.due = 0
        warp.complete = 0
        _expect(state, w, i64(0), i64(0))
        for b in range(state.banks):
            warp.need[(b + w) % i64(state.banks)] = region.usage[b]
    if i.last.valid != 0:
        warp = state.warp[i.last.payload.warp]
        _become(state, i64(i.last.payload.warp), DRAINING)
        warp.ends = i.last.payload.end
    ended, drained = i64(0), i64(state.those[DRAINING]) & i64(state.drained)
    state.following &= ~drained
    while drained != 0:
        w = ctz(drained)
        drained = without_lowest(drained)
        warp = state.warp[w]
        warp.collected = 0
        _drain(state, w, i64(0))
        if warp.ends != 0:
            ended |= i64(1) << w
            _become(state, w, i64(ABSENT))
        else:
            _become(state, w, i64(KNOWN if warp.told != 0 else UNKNOWN))
        warp.told = 0
    left = i64(state.those[PRELOADING]) & i64(state.loaded)
    while left != 0:
        _become(state, ctz(left), ACTIVE)
        left = without_lowest(left)
    io.o.wanted = state.those[UNKNOWN] | state.following
    io.o.active = state.those[ACTIVE]
    io.o.ended = ended
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    i, o = io.i, io.o
    busy = i64(i.begin.valid | i.region.valid | i.sent.valid | i.last.valid | i.delivered.valid)
    busy |= i64(o.start.valid) | i64(o.ended)
    for b in range(BANKS):
        busy |= i.answered[b].valid | i.reserved[b].valid | i.written[b].valid
    if busy != 0:
        return i64(0)
    if i64(state.those[KNOWN]) & ~i64(i.barred) != 0:
        return i64(0)
    if state.depth == 0:
        return i64(NEVER)
    chosen = i64(state.stack[0 if _overdue(state) else state.depth - 1])
    for b in range(BANKS):
        if state.warp[chosen].need[b] > state.free[b]:
            return i64(NEVER)
    return i64(0)


SLOTS = slots(STATE, PORTS, step=step, idle=idle)
