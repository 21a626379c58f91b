"""Marks in the compiled code: which part of the model is at work. ``lockstep bench --profile`` samples them.

They are compiled in only where ``LOCKSTEP_MARKS`` is set in the environment (``models/cache.py`` keeps that code
apart); everywhere else a mark is no instruction. A mark is one store into a word of the process, and costs less than
a nanosecond.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from lockstep.models import cache
from lockstep.models.jit import COMPILED, i64, inline


class Part(IntEnum):
    """What the time of a launch goes into."""

    HOST = 0  # Python, before and after the compiled run
    LOOP = 1  # which SM is due, sleeping, counting of cycles
    DISPATCH = 2  # of CTAs
    SCOREBOARD = 3  # what is written back, and what each warp waits for
    FETCH = 4  # instructions, and the caches of instructions and constants
    SCHEDULERS = 5
    ISSUE = 6  # lanes, sources, pipelines, control flow
    EXECUTION = 7  # values
    TRACE = 8  # where a replayed warp goes
    LSU = 9  # queue, tokens
    PATH = 10  # from the LSU to the L1: a coalescer, or what has taken its place
    L1 = 11
    MECHANISMS = 12  # tenants of the SM's frame
    NETWORKS = 13  # between the SMs and the L2
    L2 = 14
    DRAM = 15


MARKED = COMPILED and cache.is_set("LOCKSTEP_MARKS")
COUNT = 1 + len(Part)
WORDS = np.zeros(COUNT, np.int64)
"""The part that is at work, and how often each was when :func:`sample` was called."""

if MARKED:
    from lockstep.models.jit import put, slot, symbol, words_i64  # type: ignore[attr-defined]

    _words = symbol("lockstep_marks", WORDS.ctypes.data)

    @inline
    def mark(part):
        """A part begins. Returns the part before, as which the caller may go on."""
        return put(_words(), i64(part))

    @slot
    def sample(_signal, _what):
        """Count the part that is at work; a signal calls this."""
        words = words_i64(_words(), COUNT)
        words[1 + i64(words[0])] += 1
        return i64(0)

else:

    @inline
    def mark(_part):
        """Nothing."""
        return 0
