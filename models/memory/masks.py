"""Masks of the bytes of a line, of at most 128: a word each for its first 64 bytes and for the others, signed.

Sectors are parts of ``1 << shift`` bytes, at least 32; a mask of them has a bit for each, of at most :data:`SECTORS`.
"""

from lockstep.models.jit import i64, inline, popcount, record

BYTES = record([("low", "i8"), ("high", "i8")])
SECTORS = 4
HALF = 0xFFFF_FFFF


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
    if shift >= 7:
        return i64(low | high != 0)
    if shift == 6:
        return i64(low != 0) | i64(high != 0) << 1
    halves = i64(low & HALF != 0) | i64(low & ~HALF != 0) << 1
    return halves | i64(high & HALF != 0) << 2 | i64(high & ~HALF != 0) << 3


@inline
def bytes_of(sectors, shift):
    """The bytes of sectors."""
    if shift >= 7:
        return -(sectors & 1), -(sectors & 1)
    if shift == 6:
        return -(sectors & 1), -(sectors >> 1 & 1)
    low = HALF & -(sectors & 1) | ~HALF & -(sectors >> 1 & 1)
    return low, HALF & -(sectors >> 2 & 1) | ~HALF & -(sectors >> 3 & 1)


@inline
def block_of(low, high):
    """The smallest aligned block, of 32, 64 or 128 bytes, in which some bytes lie."""
    if low != 0 and high != 0:
        return i64(-1), i64(-1)
    word = low | high
    lower, upper = word & HALF != 0, word & ~HALF != 0
    block = (HALF if lower else i64(0)) | (~HALF if upper else i64(0))
    return (block, i64(0)) if low != 0 else (i64(0), block)


@inline
def count_of(low, high):
    """How many bytes there are."""
    return popcount(low) + popcount(high)
