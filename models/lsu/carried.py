"""Values that memory instructions carry between registers, lines and requests, where lines have values.

A token has :data:`~lockstep.models.memory.values.CARRIED_WORDS` rows of a word for each lane: what a store writes, from
the lowest byte on; the operands of an atomic, two rows each, and then its results; what a load has been given. They are
those of its *late* lanes, which access global memory. The others have theirs at issue.
"""

from __future__ import annotations

from lockstep.models.core.frame import TOKENS as CLIENT_TOKENS
from lockstep.models.execution.isa import LANES
from lockstep.models.jit import (
    addressof,
    ctz,
    i64,
    inline,
    jit,
    popcount,
    u32,
    u64,
    without_lowest,
    words_u32,
    words_u64,
)
from lockstep.models.lsu.performed import counter_of
from lockstep.models.lsu.tokens import is_run, lanes_of_line
from lockstep.models.memory import l1 as L1
from lockstep.models.memory.fabric import memory_at
from lockstep.models.memory.values import CARRIED_WORDS, LINE_BYTES, cargo_of, copy_line, in_memory, is_global, recall
from lockstep.spec.mapping import LINE_WORDS

ROW_BYTES = 4 * LANES
FEW = 8  # lanes, for which a loop over all of them takes longer
_TOKEN_BYTES = CARRIED_WORDS * ROW_BYTES


@inline
def rows_of(lsu, number):
    """Host address of a token's rows."""
    return i64(lsu.carried) + number * _TOKEN_BYTES


@inline
def row_of(lsu, number, row):
    """A row of a token."""
    return words_u32(rows_of(lsu, number) + row * ROW_BYTES, LANES)


@inline
def answer_bytes(lsu, identity):
    """Host address of the line that answers an access of a path that moves lines itself."""
    return i64(lsu.answers) + identity * LINE_BYTES


@inline
def _copy_run(to, first, words, at, count):
    """Copy words that lie together, from place ``at`` to place ``first`` on."""
    for k in range(count):
        to[first + k] = words[at + k]


@inline
def _take_few(lsu, token, number, lanes, words, last):
    """The same, lane by lane, of elements of at least four bytes."""
    rows = words_u32(rows_of(lsu, number), CARRIED_WORDS * LANES)
    count = i64(token.bytes) >> 2
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        first = i64(token.address[lane]) >> 2
        for k in range(count):
            rows[k * LANES + lane] = words[first + k & last]


@jit
def take_from_line(lsu, number, lanes, where):
    """Give some late lanes of a load their bytes of a line."""
    token = lsu.token[number]
    lanes &= i64(token.late)
    words = words_u32(where, LINE_WORDS)
    last = (i64(lsu.l1.line_bytes) >> 2) - 1
    size = i64(token.bytes)
    if size >= 4:
        if size == 4 and lanes != 0 and is_run(token, lanes):
            first = ctz(lanes)
            at = i64(token.address[first]) >> 2 & last
            _copy_run(row_of(lsu, number, i64(0)), first, words, at, popcount(lanes))
            return
        if popcount(lanes) <= FEW:
            _take_few(lsu, token, number, lanes, words, last)
            return
        for k in range(size >> 2):
            row = row_of(lsu, number, k)
            for lane in range(LANES):
                word = words[(i64(token.address[lane]) >> 2) + k & last]
                row[lane] = word if (lanes >> lane) & 1 else row[lane]
        return
    row = row_of(lsu, number, i64(0))
    for lane in range(LANES):
        address = i64(token.address[lane])
        word = u32(i64(words[address >> 2 & last]) >> 8 * (address & 3))
        row[lane] = word if (lanes >> lane) & 1 else row[lane]


@jit
def _put_in_line(lsu, number, lanes, words):
    """Write what some lanes of a store carry into a line, the highest lane last."""
    token = lsu.token[number]
    size, within = i64(token.bytes), i64(lsu.l1.line_bytes) - 1
    keep = (i64(1) << 8 * min(size, i64(4))) - 1
    first = row_of(lsu, number, i64(0))
    if size == 4 and is_run(token, lanes):
        lane = ctz(lanes)
        _copy_run(words, (i64(token.address[lane]) & within) >> 2, first, lane, popcount(lanes))
        return
    while lanes != 0:
        lane = ctz(lanes)
        lanes = without_lowest(lanes)
        at = i64(token.address[lane]) & within
        if size < 4:
            left = 8 * (at & 3)
            words[at >> 2] = u32(i64(words[at >> 2]) & ~(keep << left) | (i64(first[lane]) & keep) << left)
        else:
            for k in range(size >> 2):
                words[(at >> 2) + k] = row_of(lsu, number, k)[lane]


@jit
def _is_stale(lsu, memory, line, where):
    """Whether a line has other bytes than memory has now."""
    here = words_u64(where, LINE_WORDS // 2)
    there = words_u64(in_memory(memory, line << lsu.l1.line_shift), LINE_WORDS // 2)
    different = u64(0)
    for k in range(i64(lsu.l1.line_bytes) >> 3):
        different |= here[k] ^ there[k]
    return different != 0


@jit
def _count_stale(lsu, port, number, line, where):
    """Count a hit that gives the lanes of a load other bytes than memory has now.

    What memory has now is not known where the SM is stepped ahead of it: the hit is noted, to be looked at again.
    """
    lanes = i64(lsu.token[number].late) & lanes_of_line(lsu, number, line)
    stale = i64(_gives_others(lsu, memory_at(port.memory), number, line, lanes, where))
    lsu.counts.stale += stale
    if port.ahead != 0:
        hit = lsu.noted.hit[lsu.noted.count]
        hit.cycle = lsu.now
        hit.number = number
        hit.line = line
        hit.lanes = lanes
        hit.where = where
        hit.stale = stale
        lsu.noted.count += 1


@jit
def count_stale_again(lsu, port, hit):
    """Count a noted hit anew: the memory system has come to its cycle."""
    args = i64(hit.number), i64(hit.line), i64(hit.lanes), i64(hit.where)
    lsu.counts.stale += i64(_gives_others(lsu, memory_at(port.memory), *args)) - i64(hit.stale)


@jit
def _gives_others(lsu, memory, number, line, lanes, where):
    """Whether a line gives some lanes of a load other bytes than memory has now."""
    token = lsu.token[number]
    if popcount(lanes) > FEW and not _is_stale(lsu, memory, line, where):
        return False
    size, within = i64(token.bytes), i64(lsu.l1.line_bytes) - 1
    keep = (i64(1) << 8 * min(size, i64(4))) - 1
    here = words_u32(where, LINE_WORDS)
    there = words_u32(in_memory(memory, line << lsu.l1.line_shift), LINE_WORDS)
    while lanes != 0:
        at = i64(token.address[ctz(lanes)]) & within
        lanes = without_lowest(lanes)
        different = i64(0)
        for k in range((size + 3) >> 2):
            different |= i64(here[(at >> 2) + k]) ^ i64(there[(at >> 2) + k])
        if (different >> 8 * (at & 3)) & keep != 0 or (size > 4 and different != 0):
            return True
    return False


@jit
def accepted_line(lsu, port, number, line, lanes, code, identity):
    """The L1 has accepted the line of some lanes of a token: move the values that can be moved now."""
    token, memory = lsu.token[number], memory_at(port.memory)
    kind = i64(token.kind)
    if kind == L1.TEXTURE_LOAD or not is_global(line << lsu.l1.line_shift):
        return
    if code == L1.HIT:
        where = L1.contents_of(lsu.l1, line)
        if lsu.path.delivers != 0:
            copy_line(answer_bytes(lsu, identity), where, lsu.l1.line_bytes)
        else:
            take_from_line(lsu, number, lanes, where)
        _count_stale(lsu, port, number, line, where)
        return
    index = i64(port.requests.tail)
    if kind == L1.STORE:
        if token.late == 0:  # of a surface: memory has it since its issue
            recall(memory, port, index)
            return
        cargo = cargo_of(memory, index)
        _put_in_line(lsu, number, lanes, cargo.words)
        cargo.counter = counter_of(lsu.performed, i64(token.epoch))
    elif kind == L1.ATOMIC_ACCESS:
        cargo = cargo_of(memory, index)
        cargo.instruction = token.instruction
        cargo.addresses = addressof(token)
        cargo.operands = rows_of(lsu, number)
        cargo.lanes = lanes


@jit
def line_has_come(lsu):
    """A line has come for the accesses that wait for an MSHR: give those their bytes."""
    index = i64(lsu.l1.come)
    lsu.l1.come = L1.NONE
    entry = lsu.l1.entries[index]
    where = L1.brought_of(lsu.l1, index)
    for k in range(entry.tokens):
        identity = i64(lsu.l1.token[index * lsu.l1.merges + k])
        if identity >= CLIENT_TOKENS:
            continue
        if lsu.path.delivers != 0:
            copy_line(answer_bytes(lsu, identity), where, lsu.l1.line_bytes)
        else:
            take_from_line(lsu, identity, lanes_of_line(lsu, identity, i64(entry.line)), where)
