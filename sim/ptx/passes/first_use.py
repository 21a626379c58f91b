"""Registers numbered by their first use: unrolled and reordered declarations, Jatala et al., section 5.2.

Of a warp that shares registers, those with low numbers are its own, and those with high numbers need a lock. So the
registers that the code names first get the lowest numbers, and a warp without the lock runs as far as it can.

The places of 32 bits are renumbered, each with all values that the allocation has put there. They move in twos: the
two places of a 64-bit value stay together, and the other places form couples in the order of their first use. Twos
follow each other in that order too. So a 64-bit value keeps an even place, and the number of registers stays the same:
if it is odd, one place has no partner, the one that is named last, and goes to the end.
"""

from __future__ import annotations

from itertools import chain

from lockstep.sim.ptx.draft import Draft
from lockstep.sim.ptx.micro import NONE


def renumber(draft: Draft) -> None:
    """Give the registers of a kernel new places, in the order in which the code names them. Predicates stay."""
    order = _by_first_use(draft)
    values = zip(draft.physical, draft.code.bits, strict=False)  # the last registers may have no place
    twos: dict[int, tuple[int, ...]] = {}
    for even in {place for place, bits in values if bits == 64 and place != NONE}:
        twos[even] = twos[even + 1] = even, even + 1
    singles = [place for place in order if place not in twos]
    for couple in zip(singles[::2], singles[1::2], strict=False):
        twos |= dict.fromkeys(couple, couple)
    paired = dict.fromkeys(chain.from_iterable(twos.get(place, ()) for place in order))
    new = {place: number for number, place in enumerate(paired | dict.fromkeys(order))}
    draft.physical = [
        place if place == NONE or draft.code.bits[register] == 1 else new[place]
        for register, place in enumerate(draft.physical)
    ]


def _by_first_use(draft: Draft) -> list[int]:
    """All places, in the order in which the code names them, sources before results; then those that it never names."""
    bits = draft.code.bits
    found: dict[int, None] = {}
    for micro in draft.code.list:
        for register in (*micro.registers_read(), *micro.registers_written()):
            if bits[register] != 1:
                place = draft.physical[register]
                found |= dict.fromkeys((place, place + 1) if bits[register] == 64 else (place,))
    return list(found | dict.fromkeys(range(draft.kernel.registers)))
