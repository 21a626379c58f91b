"""Scratchpad timing: how many cycles the banks need for one access of a warp.

Bank ``w mod banks`` holds word ``w``, of 4 or 8 bytes. In one cycle a bank gives one word, to every lane that wants it.
A request covers as many lanes as the banks can serve at best: with 32 banks of 4 bytes a whole warp for accesses of up
to 4 bytes, a half-warp for 8 and a quarter-warp for 16 bytes, as the CUDA programming guide says; with 16 banks a
half-warp for 4 bytes. A request takes as many cycles as the most different words that it has in one bank. Stores to one
word do not conflict. Atomics do: they are performed one after the other, so every lane counts.

With ``scratchpad.broadcasts = "one"`` a request is for four bytes (``bank_bytes``) of as many lanes as there are banks,
and is served in steps, as the programming guide says of compute capability 1.x: a step gives the word of the lowest
lane that is left to all lanes that want it, and each other bank serves one lane.
"""

from __future__ import annotations

from lockstep.models.execution.isa import LANES
from lockstep.models.execution.operands import ALL, scratch_address
from lockstep.models.jit import ctz, i64, jit, lanes_equal, popcount, u32, without_lowest, words_i64, words_u32
from lockstep.spec.parameters import ONE_WORD


@jit
def _request_degree(x, lanes, banks, shift, words, atomic):
    """Cycles of one request: a chain of different words per bank, as long as needed."""
    first = words_i64(scratch_address(x, 1), LANES)  # head of each bank's chain
    following = words_i64(scratch_address(x, 2), LANES)
    word = words_i64(scratch_address(x, 3), LANES)
    power = banks & (banks - 1) == 0
    for bank in range(banks):
        first[bank] = -1
    degree = i64(1)
    entries = i64(0)
    while lanes != 0:
        start = x.address[ctz(lanes)] >> shift
        lanes = without_lowest(lanes)
        for this in range(start, start + words):
            bank = this & (banks - 1) if power else this % banks
            length = i64(1)
            entry = i64(first[bank])
            while entry >= 0 and (atomic or word[entry] != this):
                length += 1
                entry = i64(following[entry])
            if entry < 0:
                word[entries] = this
                following[entries] = first[bank]
                first[bank] = entries
                entries += 1
                degree = max(degree, length)
    return degree


@jit
def _words_degree(x, lanes, banks, shift):
    """Cycles of one request of single words: its different words, found one by one, counted per bank."""
    where = scratch_address(x, 1)
    word = words_u32(where, LANES)
    count = words_u32(scratch_address(x, 2), LANES)
    for lane in range(x.lanes):
        word[lane] = u32(i64(x.address[lane]) >> shift)
        count[lane] = u32(0)
    degree = i64(1)
    while lanes != 0:
        this = i64(word[ctz(lanes)])
        lanes &= ~lanes_equal(where, 0, 0, this)
        bank = this % banks
        count[bank] = u32(i64(count[bank]) + 1)
        degree = max(degree, i64(count[bank]))
    return degree


@jit
def _steps(x, lanes, banks, shift, offset):
    """Cycles of one request of single words, at an offset from those of the addresses, of which one is broadcast."""
    cycles = i64(0)
    while lanes != 0:
        broadcast = (i64(x.address[ctz(lanes)]) >> shift) + offset
        busy = i64(0)  # banks
        rest = lanes
        while rest != 0:
            lane = ctz(rest)
            rest = without_lowest(rest)
            word = (i64(x.address[lane]) >> shift) + offset
            bank = i64(1) << word % banks
            if word == broadcast or busy & bank == 0:
                lanes &= ~(i64(1) << lane)
            busy |= bank
        cycles += 1
    return cycles


@jit
def _one_broadcast(x, banks, bank_bytes, size):
    """Cycles of an access, a request for each group of as many lanes as there are banks and each word of a lane."""
    shift = i64(2 if bank_bytes == 4 else 3)
    cycles = i64(0)
    for first in range(0, LANES, banks):
        group = i64(x.touched_shared) & ((i64(1) << banks) - 1) << first
        for offset in range(max(size >> shift, 1)):
            cycles += _steps(x, group, banks, shift, i64(offset))
    return max(cycles, i64(1))


@jit
def _degree(x, banks, bank_bytes, size, atomic):
    lanes = x.touched_shared
    shift = 2 if bank_bytes == 4 else 3
    words = max(size >> shift, 1)
    width = min(max(banks // words, 1), LANES)  # lanes in one request
    requests = (LANES + width - 1) // width
    address = x.address
    if lanes == ALL and banks % words == 0 and (size >= bank_bytes or not atomic):
        # A full warp on consecutive places has no conflict.
        gaps = address[0] & (size - 1)
        for lane in range(x.lanes):
            gaps |= address[lane] - address[0] - lane * size
        if gaps == 0:
            return i64(requests)
    if requests == 1 and banks == LANES and lanes != 0:
        # Nor have lanes of which no two use one bank, or which all use one word.
        leader = address[ctz(lanes)] >> shift
        used = i64(0)
        others = i64(0)
        for lane in range(x.lanes):
            inside = (lanes >> lane) & 1
            used |= inside << ((address[lane] >> shift) & (LANES - 1))
            others |= ((address[lane] >> shift) ^ leader) & -inside
        if (others == 0 and not atomic) or popcount(used) == popcount(lanes):
            return i64(1)
    cycles = i64(0)
    for request in range(requests):
        group = lanes & (((1 << width) - 1) << (request * width))
        if group != 0 and words == 1 and not atomic:
            cycles += _words_degree(x, group, banks, shift)
        elif group != 0:
            cycles += _request_degree(x, group, banks, shift, words, atomic)
    return max(cycles, i64(1))


@jit
def conflict_degree(x, banks, bank_bytes, broadcasts, bytes_, vec):
    """Cycles in which the scratchpad serves a load or a store of the lanes ``touched_shared``, at least 1.

    Each lane accesses ``vec`` elements of ``bytes_`` bytes at ``address``. The operand scratch of the context is used.
    """
    if broadcasts == ONE_WORD:
        return _one_broadcast(x, banks, bank_bytes, bytes_ * vec)
    return _degree(x, banks, bank_bytes, bytes_ * vec, i64(0))


@jit
def atomic_degree(x, banks, bank_bytes, bytes_):
    """The same for an atomic: as many cycles as the most lanes that use one bank."""
    return _degree(x, banks, bank_bytes, bytes_, i64(1))


@jit
def least_degree(x, banks):
    """Cycles of an access without conflicts: one for each group of as many lanes as there are banks."""
    cycles = i64(0)
    for first in range(0, LANES, banks):
        cycles += i64(i64(x.touched_shared) >> first & (i64(1) << banks) - 1 != 0)
    return max(cycles, i64(1))
