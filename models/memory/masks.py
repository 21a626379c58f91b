"""Masks of the bytes of a line, of at most 128: a word each for its first 64 bytes and for the others, signed.

Sectors are parts of ``1 << shift`` bytes, at least 32; a mask of them has a bit for each, of at most :data:`SECTORS`.
"""

from lockstep.models.jit import ctz, i64, inline, popcount, record, without_lowest

BYTES = record([("low", "i8"), ("high", "i8")])
SECTORS = 4


@inline
def ones(count):
    """The lowest bits of a word, all 64 of them at most."""
    return i64(-1) if count >= 64 else (i64(1) << max(count, 0)) - 1


@inline
def span(first, count):
    """The bytes from ``first`` on."""
    end = first + count
    return ones(end) & ~ones(first), ones(end - 64) & ~ones(first - 64)


@inline
def sectors_of(low, high, shift):
    """The sectors in which a byte lies."""
    found = i64(0)
    for k in range(128 >> shift):
        of_low, of_high = span(k << shift, 1 << shift)
        if low & of_low | high & of_high != 0:
            found |= 1 << k
    return found


@inline
def bytes_of(sectors, shift):
    """The bytes of sectors."""
    low = high = i64(0)
    while sectors != 0:
        of_low, of_high = span(ctz(sectors) << shift, 1 << shift)
        sectors = without_lowest(sectors)
        low |= of_low
        high |= of_high
    return low, high


@inline
def count_of(low, high):
    """How many bytes there are."""
    return popcount(low) + popcount(high)
