"""Registers numbered by their first use: unrolled and reordered declarations, Jatala et al., section 5.2.

Of a warp that shares registers, those with low numbers are its own, and those with high numbers need a lock. So the
registers that the code names first get the lowest numbers, and a warp without the lock runs as far as it can.
"""

from __future__ import annotations

from itertools import chain

from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.passes.places import named, reorder


def renumber(draft: Draft) -> None:
    """Give the registers of a kernel new places, in the order in which the code names them. Predicates stay."""
    reorder(draft, chain.from_iterable(named(draft).values()))
