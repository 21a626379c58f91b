"""Golden model of ``rtl/regless/operand_staging_unit.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import assign, clear, ctz, i64, inline, jit, record, slots, u32, without_lowest
from lockstep.models.masks import next_after
from lockstep.models.time import NEVER
from lockstep.spec.parameters import LANES, MAX_WARPS
from lockstep.spec.register_regions import BANKS, ERASE, LAST, Entry
from lockstep.spec.regless.parameters import IN_TURN, MAX_BANK_LINES, MAX_REGISTERS, POISON, Request

PORTS = ports("regless.operand_staging_unit")
ACCESS, PRELOAD, REQUEST = (
    PORTS[side][name].base["payload"] for side, name in (("i", "access"), ("i", "preload"), ("o", "request"))
)
DEPTH = 2  # of the buffers
PATIENCE = 7
WORDS = MAX_BANK_LINES // 64  # of a mask of a bank's lines

NOTHING, WRITE, FILL, OPERAND, BEGIN = range(5)
"""What a bank looks at."""
PRELOAD_LAST, INVALIDATE = int(Entry.PRELOAD_LAST), int(Entry.INVALIDATE)
FETCH, FETCH_LAST, STORE, DROP, FINISH = (int(kind) for kind in Request)

FREE = -1
"""The tag of a line without a register."""

LINE = record(
    [
        ("tag", "i4"),
        ("held", "i1"),  # allocated to a region
        ("dirty", "i1"),
        ("fresh", "i1"),  # reserved, and without a value
    ]
)
VALUE = record([("words", "u4", (LANES,))])
BANK = record(
    [
        ("access", ACCESS, (DEPTH,)),
        ("accesses", "i8"),
        ("preload", PRELOAD, (DEPTH,)),
        ("preloads", "i8"),
        ("first", "i8"),  # of its lines
        ("free", "i8", (WORDS,)),  # its lists, as masks of its lines: those without a register, ...
        ("clean", "i8", (WORDS,)),  # ... that another register can take ...
        ("dirty", "i8", (WORDS,)),  # ... and that must be stored before
        ("turn", "i8"),  # which of its lines leaves next, if its list has it
        ("waited", "i8"),  # cycles, of the preload
        ("looks", "i8"),  # in this cycle, or since it waits: at what ...
        ("place", "i8"),  # ... at which line, -1 if there is none with the tag
        ("sends", "i8"),  # ... what it asks the compressor, -1 for nothing
    ]
)
STATE = record(
    [
        ("bank", BANK, (BANKS,)),
        ("line", LINE, (BANKS * MAX_BANK_LINES,)),  # all lines of a bank, then all of the next
        ("value", VALUE, (BANKS * MAX_BANK_LINES,)),  # of each line
        ("released", "i8", (BANKS * MAX_BANK_LINES,)),  # of each line: which release was its last, ...
        ("releases", "i8"),  # ... of so many
        ("place", "i2", (MAX_WARPS * MAX_REGISTERS,)),  # by tag: its line, or -1
        ("shown", "i8"),  # banks with a valid operand, ...
        ("told", "i8"),  # ... that answer an entry of a region, ...
        ("loaded", "i8"),  # ... with accesses or preloads, ...
        ("waiting", "i8"),  # ... whose preload had not the way to the compressor, which is all that they look at
        ("last", "i8"),  # the bank that had the way to the compressor
        ("entering", "i8"),  # the entry enters the queue
        ("entry", REQUEST),
        ("queue", REQUEST, (DEPTH,)),
        ("queued", "i8"),
        ("lanes", "i8"),  # parameters
        ("banks", "i8"),
        ("lines", "i8"),
        ("leaves", "i8"),
    ]
)


@jit
def _rest(bank):
    bank.looks = NOTHING
    bank.place = -1
    bank.sends = -1


@jit
def reset(state, io):
    """The state and the outputs after reset. Values are memory: unseen until they are written."""
    clear(io.o)
    for b in range(state.banks):
        bank = state.bank[b]
        bank.first = b * state.lines
        for k in range(bank.first, bank.first + state.lines):
            line = state.line[k]
            line.tag = FREE
            line.held = 0
            line.dirty = 0
            line.fresh = 0
            _list(state, bank, k)
        bank.accesses = 0
        bank.preloads = 0
        bank.turn = 0
        bank.waited = 0
        _rest(bank)
        io.o.access[b].ready = 1
        io.o.preload[b].ready = 1
    for tag in range(MAX_WARPS * MAX_REGISTERS):
        state.place[tag] = -1
    state.releases = 0
    state.shown = 0
    state.told = 0
    state.loaded = 0
    state.waiting = 0
    state.last = 0
    state.entering = 0
    state.queued = 0
    io.o.finish.ready = 1


@inline
def _bank_of(state, payload):
    return (i64(payload.warp) + i64(payload.number)) % i64(state.banks)


@jit
def comb(state, io):
    """``fill.ready``: a bank with a write takes no fill."""
    io.c.fill.ready = io.i.write[_bank_of(state, io.i.fill.payload)].valid == 0
    return i64(0)


@inline
def _tag(warp, number):
    return i64(warp) * MAX_REGISTERS + i64(number)


@inline
def _find(state, payload):
    """The line of a register; -1 if it has none."""
    return i64(state.place[_tag(payload.warp, payload.number)])


@inline
def _list(state, bank, place):
    """A line has changed: it is in the list of its bank that it belongs to."""
    line, at = state.line[place], place - i64(bank.first)
    word, bit = at >> 6, i64(1) << (at & 63)
    bank.free[word] &= ~bit
    bank.clean[word] &= ~bit
    bank.dirty[word] &= ~bit
    if line.tag == FREE:
        bank.free[word] |= bit
    elif line.held == 0:
        if line.dirty == 0:
            bank.clean[word] |= bit
        else:
            bank.dirty[word] |= bit


@inline
def _free(state, bank, place):
    """A line's register is gone."""
    line = state.line[place]
    line.held = 0
    if line.tag != FREE:
        state.place[line.tag] = -1
        line.tag = FREE
    _list(state, bank, place)


@inline
def _pass_on(state, bank, place):
    """The line after this one is the next in turn."""
    after = place + 1 - i64(bank.first)
    bank.turn = after if after < state.lines else 0


@inline
def _first(state, bank, lines, start):
    """The first of some lines of a bank from line ``start`` on, circularly; -1 if there is none."""
    words = (i64(state.lines) + 63) >> 6
    word = start >> 6
    left = i64(lines[word]) & (i64(-1) << (start & 63))
    for _ in range(words):
        if left != 0:
            break
        word = word + 1 if word + 1 < words else i64(0)
        left = i64(lines[word])
    return i64(bank.first) + 64 * word + ctz(left) if left != 0 else i64(-1)


@inline
def _leaving(state, bank, lines):
    """Of some lines of a bank, the one that leaves before the others; -1 if there is none."""
    found = _first(state, bank, lines, i64(bank.turn))
    if state.leaves == IN_TURN:
        return found
    for word in range((i64(state.lines) + 63) >> 6):
        left = i64(lines[word])
        while left != 0:
            place = i64(bank.first) + 64 * word + ctz(left)
            left = without_lowest(left)
            if state.released[place] < state.released[found]:
                found = place
    return found


@inline
def _room_in(state, bank):
    """The line that a new register would take; -1 if a dirty one must leave first."""
    place = _first(state, bank, bank.free, i64(0))
    return place if place >= 0 else _leaving(state, bank, bank.clean)


@jit
def _look(state, io, b, filled, room):
    """Choose what a bank does in this cycle; nothing changes yet. ``filled``: the bank of the fill."""
    bank = state.bank[b]
    _rest(bank)
    if io.i.write[b].valid != 0:
        bank.looks = WRITE
        bank.place = _find(state, io.i.write[b].payload)
        return
    if b == filled:
        bank.looks = FILL
        bank.place = _find(state, io.i.fill.payload)
        return
    overdue = bank.waited == PATIENCE and room
    if bank.accesses != 0 and not (overdue and bank.preloads != 0):
        access = bank.access[0]
        bank.looks = OPERAND
        bank.place = _find(state, access)
        if bank.place < 0 and access.result != 0 and _room_in(state, bank) < 0:
            bank.sends = STORE
        return
    if bank.preloads == 0:
        return
    preload = bank.preload[0]
    bank.looks = BEGIN
    bank.place = _find(state, preload)
    if preload.action == INVALIDATE:
        bank.sends = DROP
    elif bank.place >= 0:
        if preload.action == PRELOAD_LAST:
            bank.sends = DROP
    elif _room_in(state, bank) < 0:
        bank.sends = STORE
    else:
        bank.sends = FETCH_LAST if preload.action == PRELOAD_LAST else FETCH


@jit
def _enter(state, kind, warp, number):
    """What enters the queue to the compressor in the next cycle."""
    clear(state.entry)
    state.entry.kind = kind
    state.entry.warp = warp
    state.entry.number = number
    state.entering = 1


@jit
def _store(state, bank):
    """A dirty line leaves."""
    place = _leaving(state, bank, bank.dirty)
    tag = i64(state.line[place].tag)
    _enter(state, STORE, tag // MAX_REGISTERS, tag % MAX_REGISTERS)
    assign(state.entry, state.value[place])
    _free(state, bank, place)


@jit
def _allocate(state, bank, warp, number):
    """A line for a register that has none."""
    place = _room_in(state, bank)
    line = state.line[place]
    if line.tag != FREE:
        state.place[line.tag] = -1
    line.tag = _tag(warp, number)
    state.place[line.tag] = place
    line.held = 1
    line.dirty = 0
    line.fresh = 0
    _list(state, bank, place)
    _pass_on(state, bank, place)
    return line


@jit
def _used(state, bank, place, flags):
    """The region's last use of a line, if the flags say so."""
    if flags & LAST == 0:
        return
    state.line[place].held = 0
    state.releases += 1
    state.released[place] = state.releases
    if flags & ERASE != 0:
        _free(state, bank, place)
    else:
        _list(state, bank, place)


@inline
def _found(bank):
    """The place that was found; any other for a register that is not here, which is an error of the environment."""
    return i64(bank.place) if bank.place >= 0 else i64(bank.first)


@jit
def _write(state, bank, payload):
    place = _found(bank)
    line, value, mask = state.line[place], state.value[place], i64(payload.mask)
    if mask == (i64(1) << i64(state.lanes)) - 1:
        assign(value, payload)
    else:
        for lane in range(state.lanes):
            if (mask >> lane) & 1 != 0:
                value.words[lane] = payload.words[lane]
            elif line.fresh != 0:
                value.words[lane] = u32(POISON)
    line.fresh = 0
    line.dirty = 1
    _used(state, bank, place, i64(payload.flags))


@jit
def _operand(state, io, b):
    """An access is done, unless it has no line."""
    bank = state.bank[b]
    access, operand = bank.access[0], io.o.operand[b]
    if bank.sends >= 0:
        return
    state.shown |= i64(1) << b
    operand.valid = 1
    assign(operand.payload, access)
    if access.result != 0:
        if bank.place < 0:
            _allocate(state, bank, i64(access.warp), i64(access.number)).fresh = 1
        else:
            line = state.line[bank.place]
            line.fresh |= 1 - line.held
            line.held = 1
            _list(state, bank, i64(bank.place))
    else:
        assign(operand.payload, state.value[_found(bank)])
        _used(state, bank, _found(bank), i64(access.flags))
    bank.accesses -= 1
    assign(bank.access[0], bank.access[1])


@inline
def _answer(state, io, b, warp):
    """An entry of a warp's region is done."""
    state.told |= i64(1) << b
    io.o.answered[b].valid = 1
    io.o.answered[b].payload.warp = warp


@jit
def _begin(state, io, b, granted):
    """An entry of a region is done, or on its way; what has to be sent has the way."""
    bank = state.bank[b]
    preload = bank.preload[0]
    if (bank.sends >= 0 and not granted) or bank.sends == STORE:
        return
    warp, number = i64(preload.warp), i64(preload.number)
    if bank.sends >= 0:
        _enter(state, i64(bank.sends), warp, number)
    if bank.place >= 0:
        if preload.action == INVALIDATE:
            _free(state, bank, i64(bank.place))
        else:
            line = state.line[bank.place]
            line.held = 1
            line.dirty |= preload.action == PRELOAD_LAST
            _list(state, bank, i64(bank.place))
    elif preload.action != INVALIDATE:
        _allocate(state, bank, warp, number).dirty = preload.action == PRELOAD_LAST
    if bank.place >= 0 or preload.action == INVALIDATE:
        _answer(state, io, b, warp)
    bank.preloads -= 1
    bank.waited = 0
    assign(bank.preload[0], bank.preload[1])


@jit
def _do(state, io, b, granted):
    """What a bank looks at."""
    bank = state.bank[b]
    if bank.preloads == 0:
        bank.waited = 0
    elif bank.looks != BEGIN and bank.waited < PATIENCE:
        bank.waited += 1
    if bank.looks == WRITE:
        _write(state, bank, io.i.write[b].payload)
    elif bank.looks == FILL:
        assign(state.value[bank.place], io.i.fill.payload)
        _answer(state, io, b, i64(io.i.fill.payload.warp))
    elif bank.looks == OPERAND:
        _operand(state, io, b)
    elif bank.looks == BEGIN:
        _begin(state, io, b, granted)
    if granted and bank.sends == STORE:
        _store(state, bank)


@jit
def _finish(state, warp):
    for number in range(MAX_REGISTERS):
        place = i64(state.place[_tag(warp, number)])
        if place >= 0:
            _free(state, state.bank[place // i64(state.lines)], place)
    state.waiting = 0  # there may be room now
    _enter(state, FINISH, warp, i64(0))


@jit
def _queue(state, io):
    """The queue to the compressor."""
    if io.o.request.valid & io.i.request.ready != 0:
        state.queued -= 1
        assign(state.queue[0], state.queue[1])
    if state.entering != 0:
        assign(state.queue[state.queued], state.entry)
        state.queued += 1
        state.entering = 0


@inline
def _clear_answers(state, io):
    """What was said in the last cycle."""
    left = i64(state.shown)
    while left != 0:
        clear(io.o.operand[ctz(left)])
        left = without_lowest(left)
    left = i64(state.told)
    while left != 0:
        clear(io.o.answered[ctz(left)])
        left = without_lowest(left)
    state.shown = 0
    state.told = 0


@inline
def _load(state, io, b):
    """A bank takes an access and a preload, if it has room."""
    bank = state.bank[b]
    if io.i.access[b].valid & io.o.access[b].ready != 0:
        assign(bank.access[bank.accesses], io.i.access[b].payload)
        bank.accesses += 1
    if io.i.preload[b].valid & io.o.preload[b].ready != 0:
        assign(bank.preload[bank.preloads], io.i.preload[b].payload)
        bank.preloads += 1
    io.o.access[b].ready = bank.accesses < DEPTH
    io.o.preload[b].ready = bank.preloads < DEPTH
    bit = i64(1) << b
    state.loaded &= ~bit
    if bank.accesses + bank.preloads != 0:
        state.loaded |= bit
    if bank.accesses != 0:
        state.waiting &= ~bit


@jit
def step(state, io):
    """One clock edge."""
    room = state.queued + state.entering < DEPTH
    finishes = room and io.i.finish.valid != 0
    filled = _bank_of(state, io.i.fill.payload) if io.i.fill.valid != 0 else i64(-1)
    writes, loads = i64(0), i64(0)
    for b in range(BANKS):
        writes |= i64(io.i.write[b].valid) << b
        loads |= i64(io.i.access[b].valid | io.i.preload[b].valid) << b
    if filled >= 0:
        writes |= i64(1) << filled
    sending = i64(state.waiting) & ~writes
    busy = i64(state.loaded) & ~sending | writes
    left = busy
    while left != 0:
        b = ctz(left)
        left = without_lowest(left)
        _look(state, io, b, filled, room)
        if state.bank[b].sends >= 0:
            sending |= i64(1) << b
    _clear_answers(state, io)
    _queue(state, io)
    granted = i64(-1)
    if room and io.i.finish.valid == 0 and sending != 0:
        granted = i64(next_after(sending, i64(state.last)))
        state.last = granted
        busy |= i64(1) << granted
        sending &= ~(i64(1) << granted)
    state.waiting = sending
    left = busy
    while left != 0:
        _do(state, io, ctz(left), ctz(left) == granted)
        left = without_lowest(left)
    if finishes:
        _finish(state, i64(io.i.finish.payload.warp))
    left = busy | loads
    while left != 0:
        _load(state, io, ctz(left))
        left = without_lowest(left)
    if state.queued != 0:
        assign(io.o.request.payload, state.queue[0])
    elif io.o.request.valid != 0:
        clear(io.o.request.payload)
    io.o.request.valid = state.queued != 0
    io.o.finish.ready = state.queued + state.entering < DEPTH
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    if state.entering != 0 or io.i.fill.valid != 0 or io.o.request.valid & io.i.request.ready != 0:
        return i64(0)
    if io.i.finish.valid & io.o.finish.ready | state.loaded & ~state.waiting | state.shown | state.told != 0:
        return i64(0)
    if state.waiting != 0 and state.queued < DEPTH:
        return i64(0)
    taken = i64(0)
    for b in range(BANKS):
        taken |= io.i.access[b].valid & io.o.access[b].ready | io.i.preload[b].valid & io.o.preload[b].ready
        taken |= io.i.write[b].valid
    return i64(NEVER) if taken == 0 else i64(0)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
