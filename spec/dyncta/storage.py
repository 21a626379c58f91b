"""The storage that section 4.3 of Kayiran et al. names for an SM: two counters."""

from __future__ import annotations

from lockstep.spec.dyncta.parameters import COUNTER_BITS, LIMITER
from lockstep.spec.storage import Storage, Structure

STORAGE = Storage("Kayiran et al., section 4.3", (
    Structure(
        "C_idle, C_mem", LIMITER, COUNTER_BITS, 2,
        "Beside the counters the block has what the section does not count: the cycle of the window, the limit and the "
        "most CTAs, which CTAs are there and which of two came first, and a flip-flop at each of the two inputs that "
        "are counted.",
    ),
))  # fmt: skip
