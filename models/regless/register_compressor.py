"""Golden model of ``rtl/regless/register_compressor.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, i64, jit, record, slots, u32
from lockstep.models.time import NEVER
from lockstep.spec.parameters import LANES, MAX_WARPS
from lockstep.spec.regless.parameters import (
    BY_WARP,
    MAX_LINES,
    MAX_LOOSE,
    MAX_REGISTERS,
    PER_LINE,
    POISON,
    Access,
    Request,
    State,
)  # fmt: skip

PORTS = ports("regless.register_compressor")
ACCESS = PORTS["o"]["access"]["payload"]
QUEUE = 4
ROOM = 3  # for all that a request sends

IDLE, LOOK, READ, WRITE, INSTALL, EXPAND = range(6)
FETCH, FETCH_LAST, STORE, DROP, FETCH_LINE, STORE_LINE = (int(kind) for kind in Access)
ASK_LAST, ASK_STORE, ASK_DROP, FINISH = (int(kind) for kind in Request if kind != Request.FETCH)
NONE, RAW, CONSTANT, STRIDE_1, STRIDE_4, HALF_1, HALF_4 = (int(state) for state in State)

LINE = record(
    [
        ("group", "i8"),
        ("valid", "i8"),
        ("dirty", "i8"),
        ("pending", "i8"),  # it has been fetched, and is not here
        ("present", "i8", (PER_LINE,)),
        ("words", "u4", (2 * PER_LINE,)),
    ]
)
STATE = record(
    [
        ("code", "u1", (MAX_WARPS, MAX_REGISTERS)),  # the state of each register
        ("stored", "u1", (MAX_WARPS * MAX_REGISTERS,)),  # by group: the L1 has its line, though perhaps an old one
        ("line", LINE, (MAX_LINES,)),
        ("turn", "i8"),  # the place that a line takes next
        ("loose", "i8"),  # fetches without a place that are not answered
        ("queue", ACCESS, (QUEUE,)),
        ("queued", "i8"),
        ("step", "i8"),
        ("kind", "i8"),  # the request or answer that is served ...
        ("warp", "i8"),
        ("register", "i8"),
        ("group", "i8"),  # its compressed line ...
        ("slot", "i8"),  # ... and its place there
        ("pattern", "i8"),
        ("expand", "i8"),
        ("install", "i8"),
        ("words", "u4", (LANES,)),
        ("fetched", "u4", (2 * PER_LINE,)),
        ("value", "u4", (2,)),
        ("lanes", "i8"),  # parameters
        ("warps", "i8"),
        ("registers", "i8"),
        ("lines", "i8"),
        ("per_line", "i8"),
        ("compressed_by", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    for warp in range(MAX_WARPS):
        for register in range(MAX_REGISTERS):
            state.code[warp, register] = NONE
    for group in range(MAX_WARPS * MAX_REGISTERS):
        state.stored[group] = 0
    for k in range(MAX_LINES):
        clear(state.line[k])
    state.turn = 0
    state.loose = 0
    state.queued = 0
    state.step = IDLE
    io.o.answer.ready = 1


@jit
def comb(state, io):
    """``request.ready``: an answer goes first."""
    room = state.queued + ROOM <= QUEUE and state.loose != MAX_LOOSE
    io.c.request.ready = state.step == IDLE and room and io.i.answer.valid == 0
    return i64(0)


# ------------------------------------------------------------------------------------------------------------- patterns


@jit
def _follows(state, first, lanes, stride):
    """Whether ``lanes`` words from ``first`` on have this stride."""
    for lane in range(lanes):
        if state.words[first + lane] != u32(i64(state.words[first]) + lane * stride):
            return False
    return True


@jit
def pattern_of(state):
    """The first pattern of the words that are held; RAW if they have none. Leaves their value."""
    lanes = i64(state.lanes)
    half = (lanes + 1) // 2
    state.value[0] = state.words[0]
    state.value[1] = state.words[half if half < lanes else 0]
    for pattern, stride in ((CONSTANT, 0), (STRIDE_1, 1), (STRIDE_4, 4)):
        if _follows(state, 0, lanes, stride):
            return pattern
    for pattern, stride in ((HALF_1, 1), (HALF_4, 4)):
        if _follows(state, 0, half, stride) and _follows(state, half, lanes - half, stride):
            return pattern
    return RAW


@jit
def _word(state, lane):
    """A lane of the value that is expanded."""
    half = (i64(state.lanes) + 1) // 2
    pattern = i64(state.pattern)
    stride = 4 if pattern == STRIDE_4 or pattern == HALF_4 else i64(pattern != CONSTANT)
    return i64(state.value[lane // half]) + lane % half * stride


# -------------------------------------------------------------------------------------------------------------- actions


@jit
def _send(state, kind, warp, register, group):
    """Put an access into the queue; returns it."""
    entry = state.queue[state.queued]
    state.queued += 1
    clear(entry)
    entry.kind = kind
    entry.warp = warp
    entry.number = register
    entry.group = group
    return entry


@jit
def _send_held(state, kind):
    return _send(state, kind, i64(state.warp), i64(state.register), i64(state.group))


@jit
def _store(state):
    """Store the register as it is."""
    entry = _send_held(state, STORE)
    for lane in range(state.lanes):
        entry.words[lane] = state.words[lane]
    state.code[state.warp, state.register] = RAW
    state.step = IDLE


@jit
def _find(state):
    """The place of the line of what is held; -1 if it has none."""
    for k in range(state.lines):
        line = state.line[k]
        if line.valid != 0 and line.group == state.group:
            return i64(k)
    return i64(-1)


@jit
def _victim(state):
    """The place that the line would take; -1 if all wait for theirs."""
    lines = i64(state.lines)
    for k in range(lines):
        place = (i64(state.turn) + k) % lines
        if state.line[place].pending == 0:
            return place
    return i64(-1)


@jit
def _leave(state, line):
    """Store a line; then the step goes on."""
    entry = _send(state, STORE_LINE, i64(0), i64(0), i64(line.group))
    for k in range(2 * i64(state.per_line)):
        entry.words[k] = line.words[k]
    state.stored[line.group] = 1
    line.valid = 0
    line.dirty = 0


@jit
def _take(state, place, pending, dirty):
    line = state.line[place]
    clear(line)
    line.group = state.group
    line.valid = 1
    line.pending = pending
    line.dirty = dirty
    if pending == 0:
        for k in range(PER_LINE):
            line.present[k] = 1
    state.turn = (place + 1) % i64(state.lines)


# ---------------------------------------------------------------------------------------------------------------- steps


@jit
def group_and_slot(state, warp, register):
    """The compressed line of a register and its place there."""
    index = register * i64(state.warps) + warp
    if state.compressed_by == BY_WARP:
        index = warp * i64(state.registers) + register
    return index // i64(state.per_line), index % i64(state.per_line)


@jit
def _hold(state, warp, register):
    """The register that is served, and where it is compressed."""
    state.warp = warp
    state.register = register
    state.group, state.slot = group_and_slot(state, warp, register)


@jit
def _begin(state, io):
    answer, request = io.i.answer, io.i.request
    if answer.valid & io.o.answer.ready != 0:
        payload = answer.payload
        if payload.line == 0:
            fill = io.o.fill
            fill.valid = 1
            assign(fill.payload, payload)
            return
        _hold(state, i64(payload.warp), i64(payload.number))
        state.pattern = payload.pattern
        state.expand = payload.expand
        state.install = payload.install
        for k in range(2 * i64(state.per_line)):
            state.fetched[k] = payload.words[k]
        state.step = INSTALL
    elif request.valid & io.c.request.ready != 0:
        payload = request.payload
        if payload.kind == FINISH:
            for register in range(MAX_REGISTERS):
                state.code[payload.warp, register] = NONE
            return
        state.kind = payload.kind
        _hold(state, i64(payload.warp), i64(payload.number))
        for lane in range(state.lanes):
            state.words[lane] = payload.words[lane]
        state.step = LOOK


@jit
def _look(state, io, vacant):
    code = i64(state.code[state.warp, state.register])
    state.pattern = code
    if state.kind == ASK_STORE:
        pattern = pattern_of(state) if state.lines != 0 else RAW
        if pattern == RAW:
            _store(state)
            return
        if code == RAW:
            _send_held(state, DROP)
        state.pattern = pattern
        state.step = WRITE
        return
    if state.kind == ASK_DROP:
        if code == RAW:
            _send_held(state, DROP)
        state.code[state.warp, state.register] = NONE
        state.step = IDLE
        return
    if code == NONE:
        if vacant:
            fill = io.o.fill
            fill.valid = 1
            fill.payload.warp = state.warp
            fill.payload.number = state.register
            for lane in range(state.lanes):
                fill.payload.words[lane] = u32(POISON)
            state.step = IDLE
        return
    state.step = READ
    if code == RAW:
        _send_held(state, FETCH_LAST if state.kind == ASK_LAST else FETCH)
        state.step = IDLE
    if state.kind == ASK_LAST:
        state.code[state.warp, state.register] = NONE


@jit
def _read(state):
    place, slot = _find(state), i64(state.slot)
    if place >= 0 and state.line[place].present[slot] != 0:
        for k in range(2):
            state.value[k] = state.line[place].words[2 * slot + k]
        state.step = EXPAND
        return
    free = _victim(state)
    if place < 0 and free >= 0 and state.line[free].valid & state.line[free].dirty != 0:
        _leave(state, state.line[free])
        return
    entry = _send_held(state, FETCH_LINE)
    entry.pattern = state.pattern
    entry.expand = 1
    if place < 0 and free >= 0:
        entry.install = 1
        _take(state, free, 1, 0)
    else:
        state.loose += 1
    state.step = IDLE


@jit
def _write(state):
    place, slot = _find(state), i64(state.slot)
    if place < 0:
        place = _victim(state)
        if place < 0:
            _store(state)
            return
        if state.line[place].valid & state.line[place].dirty != 0:
            _leave(state, state.line[place])
            return
        stored = i64(state.stored[state.group])
        _take(state, place, stored, 1)
        if stored != 0:
            _send_held(state, FETCH_LINE).install = 1
    line = state.line[place]
    for k in range(2):
        line.words[2 * slot + k] = state.value[k]
    line.present[slot] = 1
    line.dirty = 1
    state.code[state.warp, state.register] = state.pattern
    state.step = IDLE


@jit
def _install(state):
    slot = i64(state.slot)
    if state.install != 0:
        line = state.line[_find(state)]
        line.pending = 0
        for k in range(state.per_line):
            if line.present[k] == 0:
                line.words[2 * k] = state.fetched[2 * k]
                line.words[2 * k + 1] = state.fetched[2 * k + 1]
                line.present[k] = 1
    else:
        state.loose -= 1
    for k in range(2):
        state.value[k] = state.fetched[2 * slot + k]
    state.step = EXPAND if state.expand != 0 else IDLE


@jit
def step(state, io):
    """One clock edge."""
    fill, access = io.o.fill, io.o.access
    vacant = fill.valid == 0
    if io.i.fill.ready != 0:
        fill.valid = 0
    if access.valid & io.i.access.ready != 0:
        state.queued -= 1
        for k in range(state.queued):
            assign(state.queue[k], state.queue[k + 1])
    if state.step == IDLE:
        _begin(state, io)
    elif state.step == LOOK:
        _look(state, io, vacant)
    elif state.step == READ:
        _read(state)
    elif state.step == WRITE:
        _write(state)
    elif state.step == INSTALL:
        _install(state)
    elif vacant:
        fill.valid = 1
        fill.payload.warp = state.warp
        fill.payload.number = state.register
        for lane in range(state.lanes):
            fill.payload.words[lane] = u32(_word(state, lane))
        state.step = IDLE
    if state.queued != 0:
        assign(access.payload, state.queue[0])
    elif access.valid != 0:
        clear(access.payload)
    access.valid = state.queued != 0
    io.o.answer.ready = state.step == IDLE and fill.valid == 0
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    waits = io.o.fill.valid != 0 and io.i.fill.ready == 0
    if state.step == EXPAND and waits and io.o.access.valid & io.i.access.ready == 0:
        return i64(NEVER)
    if state.step != IDLE:
        return i64(0)
    if io.i.answer.valid & io.o.answer.ready != 0 or io.i.request.valid & io.c.request.ready != 0:
        return i64(0)
    if io.o.fill.valid & io.i.fill.ready != 0 or io.o.access.valid & io.i.access.ready != 0:
        return i64(0)
    return i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
