"""Registers numbered as the PTX declares them: what Jatala et al., section 5.2, begin with.

A place holds several values, so it stands where the first of them that the code names is declared. Compilers declare
registers by their types, so code that starts with addresses may name high numbers first. Registers that the PTX does
not declare, those of spill code among them, follow by their first use.
"""

from __future__ import annotations

from itertools import chain

from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.passes.places import named, reorder


def renumber(draft: Draft) -> None:
    """Give the registers of a kernel new places, in the order in which the PTX declares them. Predicates stay."""
    places, declared = named(draft), draft.code.declared
    known = sorted((register for register in places if register in declared), key=declared.__getitem__)
    reorder(draft, chain.from_iterable(places[register] for register in (*known, *places)))
