"""New places for the registers of a kernel, in an order that a pass has chosen.

The places of 32 bits are renumbered, each with all values that the allocation has put there. They move in twos: the
two places of a 64-bit value stay together, and the other places form couples in the order given. Twos follow each other
in that order too. So a 64-bit value keeps an even place, and the number of registers stays the same: if it is odd, one
place has no partner, the one that comes last, and goes to the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from lockstep.sim.compile.ptx.draft import Draft
from lockstep.sim.compile.ptx.micro import NONE


def reorder(draft: Draft, order: Iterable[int]) -> None:
    """Number places by their ``order``, those that it leaves out last. Predicates stay."""
    order = dict.fromkeys(chain(order, range(draft.kernel.registers)))
    values = zip(draft.physical, draft.code.bits, strict=False)  # the last registers may have no place
    twos: dict[int, tuple[int, ...]] = {}
    for even in {place for place, bits in values if bits == 64 and place != NONE}:
        twos[even] = twos[even + 1] = even, even + 1
    singles = [place for place in order if place not in twos]
    for couple in zip(singles[::2], singles[1::2], strict=False):
        twos |= dict.fromkeys(couple, couple)
    paired = dict.fromkeys(chain.from_iterable(twos.get(place, ()) for place in order))
    new = {place: number for number, place in enumerate(paired | order)}
    draft.physical = [
        place if place == NONE or draft.code.bits[register] == 1 else new[place]
        for register, place in enumerate(draft.physical)
    ]


def named(draft: Draft) -> dict[int, tuple[int, ...]]:
    """The registers that the code names, in the order in which it does, sources before results, with their places."""
    found: dict[int, tuple[int, ...]] = {}
    for micro in draft.code.list:
        for register in (*micro.registers_read(), *micro.registers_written()):
            bits = draft.code.bits[register]
            if bits != 1:
                place = draft.physical[register]
                found[register] = (place, place + 1) if bits == 64 else (place,)
    return found
