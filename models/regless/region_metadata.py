"""Golden model of ``rtl/regless/region_metadata.py``, which documents the block."""

from __future__ import annotations

from lockstep.models.blocks import ports
from lockstep.models.jit import clear, i64, inline, jit, record, slots
from lockstep.models.masks import next_after
from lockstep.models.time import NEVER
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.register_regions import (
    ENTRIES,
    ENTRY_BITS,
    FLAGS_SLOTS,
    HEADER_ENTRIES,
    HEADER_ENTRIES_SHIFT,
    HEADER_USAGE_BITS,
    REGISTER_BITS,
    SINGLE_COUNT_BITS,
    SINGLE_COUNT_SHIFT,
    SINGLE_ENTRIES,
    SINGLE_ENTRIES_SHIFT,
    SINGLE_USAGE_BITS,
    SINGLE_USAGE_SHIFT,
    SLOT_BITS,
    Entry,
    Kind,
)
from lockstep.spec.regless.parameters import MAX_WORDS

PORTS = ports("regless.region_metadata")

PHASES = 4
BETWEEN, ANNOUNCED, STARTED, RUNNING = range(PHASES)
HEADER, MORE, FLAGS, SINGLE = (int(kind) for kind in Kind)
NONE = int(Entry.NONE)

WORD = record([("payload", "i8"), ("slots", "i8"), ("kind", "i8")])
WARP = record(
    [
        ("phase", "i8"),
        ("word", WORD, (MAX_WORDS,)),  # the oldest first
        ("count", "i8"),
        ("at", "i8"),  # slots of the first word that have been taken
        ("left", "i8"),  # slots of the region that have not
    ]
)
STATE = record(
    [
        ("warp", WARP, (MAX_WARPS,)),
        ("those", "i8", (PHASES,)),  # the warps in each phase, ...
        ("worded", "i8"),  # ... that have words, ...
        ("room", "i8"),  # ... and that have room for more
        ("looked", "i8"),  # whether a word is looked at ...
        ("announces", "i8"),  # ... for its region's sake
        ("of", "i8"),  # whose word that is, or was
        ("entry", "i8", (ENTRIES,)),  # to be sent, or 0
        ("entries_of", "i8"),
        ("ends", "i8"),  # with these entries
        ("warps", "i8"),  # parameters
        ("banks", "i8"),
        ("words", "i8"),
    ]
)


@jit
def reset(state, io):
    """The state and the outputs after reset."""
    clear(io.o)
    clear(io.c)
    for phase in range(PHASES):
        state.those[phase] = 0
    state.those[BETWEEN] = -1
    state.room = 0
    for w in range(state.warps):
        clear(state.warp[w])
        _hold(state, i64(w), i64(0))
    state.looked = 0
    state.announces = 0
    state.of = 0
    for k in range(ENTRIES):
        state.entry[k] = 0
    state.ends = 0
    _show(state, io)


@jit
def _field(word, shift, bits):
    return (word >> shift) & ((i64(1) << bits) - 1)


@jit
def comb(state, io):
    """Whether a region ends with what issues."""
    issue, last = io.i.issue, io.c.last
    clear(last)
    if issue.valid != 0 and state.warp[issue.payload.warp].left == issue.payload.slots:
        last.valid = 1
        last.payload.warp = issue.payload.warp
    return i64(0)


@inline
def _become(state, w, new):
    """A warp's next phase."""
    bit = i64(1) << w
    state.those[state.warp[w].phase] &= ~bit
    state.those[new] |= bit
    state.warp[w].phase = new


@inline
def _hold(state, w, count):
    """So many words of a warp are stored."""
    bit = i64(1) << w
    state.warp[w].count = count
    state.worded = i64(state.worded) & ~bit
    state.room = i64(state.room) & ~bit
    if count != 0:
        state.worded |= bit
    if count < state.words:
        state.room |= bit


@jit
def _leave(state, w, words):
    """The oldest words leave."""
    warp = state.warp[w]
    _hold(state, w, i64(warp.count) - words)
    for k in range(warp.count):
        warp.word[k].payload = warp.word[k + words].payload
        warp.word[k].slots = warp.word[k + words].slots
        warp.word[k].kind = warp.word[k + words].kind


@jit
def _issue(state, io):
    """Give what issues its flags."""
    flags, issue = io.o.flags, io.i.issue
    clear(flags)
    if issue.valid == 0:
        return
    w, count = i64(issue.payload.warp), i64(issue.payload.slots)
    warp = state.warp[w]
    flags.valid = 1
    flags.payload.warp = w
    for k in range(count):
        word, slot = divmod(i64(warp.at) + k, FLAGS_SLOTS)
        flags.payload.slots[k] = _field(i64(warp.word[word].payload), SLOT_BITS * slot, SLOT_BITS)
    warp.at += count
    warp.left -= count
    if warp.left == 0:
        _leave(state, w, (i64(warp.at) + FLAGS_SLOTS - 1) // FLAGS_SLOTS)
        warp.at = 0
        _become(state, w, BETWEEN)
    elif warp.at >= FLAGS_SLOTS:
        _leave(state, w, i64(1))
        warp.at -= FLAGS_SLOTS


@jit
def _send(state, io):
    """Entries are transferred: one to a bank. Returns whether none is left."""
    sent = io.o.sent
    clear(sent)
    entries, remaining = i64(0), False
    for b in range(state.banks):
        if io.o.preload[b].valid & io.i.preload[b].ready != 0:
            k = _entry_for(state, b)
            state.entry[k] = 0
            entries += 1
    for k in range(ENTRIES):
        remaining |= state.entry[k] != 0
    if entries != 0 or (state.ends != 0 and not remaining):
        sent.valid = 1
        sent.payload.warp = state.entries_of
        sent.payload.entries = entries
        sent.payload.last = state.ends != 0 and not remaining
    if not remaining:
        state.ends = 0
    return not remaining


@jit
def _entry_for(state, bank):
    """The first entry that goes to a bank; -1 if there is none."""
    for k in range(ENTRIES):
        register = _field(i64(state.entry[k]), 0, REGISTER_BITS)
        if state.entry[k] != 0 and (i64(state.entries_of) + register) % i64(state.banks) == bank:
            return i64(k)
    return i64(-1)


@jit
def _take(state, count, shift, word):
    """The entries of a word are to be sent."""
    for k in range(count):
        entry = _field(word, shift + ENTRY_BITS * k, ENTRY_BITS)
        state.entry[k] = entry if entry >> REGISTER_BITS != NONE else i64(0)


@jit
def _open(state):
    """Take the entries of the word that was looked at."""
    warp = state.warp[state.of]
    payload, kind = i64(warp.word[0].payload), i64(warp.word[0].kind)
    flagged = kind == FLAGS or kind == SINGLE
    state.entries_of = state.of
    if kind == HEADER:
        _take(state, HEADER_ENTRIES, HEADER_ENTRIES_SHIFT, payload)
    elif kind == MORE:
        _take(state, ENTRIES, 0, payload)
    elif kind == SINGLE:
        _take(state, SINGLE_ENTRIES, SINGLE_ENTRIES_SHIFT, payload)
    state.ends = flagged or state.entry[HEADER_ENTRIES - 1 if kind == HEADER else ENTRIES - 1] == 0
    if state.ends != 0:
        _become(state, i64(state.of), RUNNING)
    if not flagged:
        _leave(state, i64(state.of), i64(1))


@jit
def _next(state, wanted):
    """The next warp in turn with a word that is to be looked at; -1 if there is none."""
    started = i64(state.those[STARTED])
    if state.looked != 0:
        started &= ~(i64(1) << i64(state.of))
    there = (i64(state.those[BETWEEN]) & wanted | started) & i64(state.worded)
    return i64(next_after(there, i64(state.of))) if there != 0 else i64(-1)


@jit
def _look(state, io, sent):
    """Go on with the word that was looked at, and look at the next."""
    chosen = _next(state, i64(io.i.wanted))
    if state.looked != 0 and state.announces != 0:
        warp = state.warp[state.of]
        single = warp.word[0].kind == SINGLE
        count = _field(i64(warp.word[0].payload), SINGLE_COUNT_SHIFT, SINGLE_COUNT_BITS) + 1
        warp.left = count if single else i64(warp.word[0].slots)
    elif state.looked != 0:
        if not sent:
            return
        _open(state)
    state.looked = chosen >= 0
    if chosen >= 0:
        state.of = chosen
        state.announces = state.warp[chosen].phase == BETWEEN
        if state.announces != 0:
            _become(state, chosen, ANNOUNCED)


@jit
def _show(state, io):
    """The outputs of the next cycle."""
    io.o.room = state.room
    region = io.o.region
    clear(region)
    if state.looked != 0 and state.announces != 0:
        word = state.warp[state.of].word[0]
        region.valid = 1
        region.payload.warp = state.of
        for b in range(state.banks):
            if word.kind == SINGLE:
                usage = _field(i64(word.payload), SINGLE_USAGE_SHIFT + SINGLE_USAGE_BITS * b, SINGLE_USAGE_BITS)
            else:
                usage = _field(i64(word.payload), HEADER_USAGE_BITS * b, HEADER_USAGE_BITS)
            region.payload.usage[b] = usage
    for b in range(state.banks):
        clear(io.o.preload[b])
    for k in range(ENTRIES - 1, -1, -1):  # the first that goes to a bank is the one that it sees
        if state.entry[k] != 0:
            register = _field(i64(state.entry[k]), 0, REGISTER_BITS)
            preload = io.o.preload[(i64(state.entries_of) + register) % i64(state.banks)]
            preload.valid = 1
            preload.payload.warp = state.entries_of
            preload.payload.number = register
            preload.payload.action = i64(state.entry[k]) >> REGISTER_BITS


@jit
def step(state, io):
    """One clock edge."""
    i = io.i
    sent = _send(state, io)
    if i.start.valid != 0:
        _become(state, i64(i.start.payload.warp), STARTED)
    _look(state, io, sent)
    _issue(state, io)
    if i.word.valid != 0:
        payload = i.word.payload
        warp = state.warp[payload.warp]
        word = warp.word[warp.count]
        word.payload = payload.word.payload
        word.slots = payload.word.slots
        word.kind = payload.word.kind
        _hold(state, i64(payload.warp), i64(warp.count) + 1)
    if i.flush.valid != 0:
        _hold(state, i64(i.flush.payload.warp), i64(0))
    _show(state, io)
    return i64(0)


@jit
def idle(state, io):
    """Steps that change nothing while these inputs are held."""
    i, o = io.i, io.o
    if i.word.valid | i.flush.valid | i.start.valid | i.issue.valid != 0:
        return i64(0)
    if o.sent.valid | o.flags.valid | o.region.valid != 0:
        return i64(0)
    for b in range(state.banks):
        if o.preload[b].valid & i.preload[b].ready != 0:
            return i64(0)
    waits = False
    for b in range(state.banks):
        waits |= o.preload[b].valid != 0
    if state.ends != 0 and not waits:
        return i64(0)
    if state.looked != 0:
        return i64(NEVER) if waits else i64(0)
    return i64(0) if _next(state, i64(i.wanted)) >= 0 else i64(NEVER)


SLOTS = slots(STATE, PORTS, comb=comb, step=step, idle=idle)
