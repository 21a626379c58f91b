"""How the words of a cache line map to the threads of a load (Kloosterman's thesis, section 3.3.6, figure 3.8)."""

from __future__ import annotations

from enum import IntEnum

LINE_WORDS = 32  # of 4 bytes, in the longest line
REGISTERS = 4  # of 32 bits, which the widest access fills in a lane


class Mapping(IntEnum):
    """The thread map of one line. Which lanes take part follows from it and the instruction's active lanes.

    Words are counted in the access width, but at least 4 bytes: a byte's place in its word is in the load's own entry.
    """

    SINGLE = 0  # one lane, one word
    BROADCAST = 1  # all active lanes, the same word
    CONSECUTIVE = 2  # all active lanes, lane l takes word l
    RANGE = 3  # the active lanes from a first one on, consecutive words, until the warp or the line ends
    RANDOM = 4  # anything else: a word per lane, kept in the thread-map table
