"""The tags of a set-associative cache with LRU replacement, as the L1 and the slices of the L2 keep them.

A line of the cache is one word, whose number is 0 while it is invalid. The words of a set stand in the order of their
last use. A set is known by its ``first`` word, a line in it by its *place*, both counted from the cache's first word.
"""

from lockstep.models.jit import inline
from lockstep.models.memory.masks import SECTORS

# Bits 0-5: the way that holds the line, where the cache keeps more about it by way; 6-9: its dirty sectors, or all four
# bits; 12-19: the MSHR of a reserved line, where the cache looks it up there; from 20: the line's number plus 1.
WAY, OWNERS = 0x3F, 0xFF
SECTOR, OWNER, NUMBER = 6, 12, 20
DIRTY = (1 << SECTORS) - 1 << SECTOR
COMPLETE = 1 << 10  # all its bytes are valid, where the cache has incomplete lines
RESERVED = 1 << 11  # on its way


@inline
def named(line):
    """The word of a line, without any flag."""
    return (line + 1) << NUMBER


@inline
def line_of(word):
    """The line that a word names; -1: none."""
    return (word >> NUMBER) - 1


@inline
def find(words, first, ways, line):
    """The place of a line, also of one that is on its way, or -1."""
    for place in range(first, first + ways):
        if words[place] >> NUMBER == line + 1:
            return place
    return -1


@inline
def use(words, first, place, word):
    """Make a word the most recently used of its set, in place of the one at ``place``."""
    while place > first:
        words[place] = words[place - 1]
        place -= 1
    words[first] = word


@inline
def drop(words, first, ways, place):
    """Invalidate the word at a place: it is the first to be replaced."""
    last = first + ways - 1
    while place < last:
        words[place] = words[place + 1]
        place += 1
    words[last] = 0


@inline
def victim(words, first, ways):
    """The place of the least recently used line of a set that can go, or -1."""
    place = first + ways - 1
    while place >= first and words[place] & RESERVED:
        place -= 1
    return place if place >= first else -1
