"""Knows which CTAs of an SM share with each other, and which CTA of each pair owns: beside the warp schedulers.

Jatala et al., sections 5 and 6. There an owner is a CTA that another one waits for, and hands over when it ends. Here
the older CTA owns at first, and a CTA becomes owner too when it takes its pair's first lock: else it might hold a lock
as a non-owner whose loads dynamic warp execution forbids, while the owner waits for the lock.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.spec.parameters import MAX_CTAS
from lockstep.spec.sharing.parameters import pairs_of


class ShareOwner(wiring.Component):
    """Follows the CTAs of all pairs: which are there, which is older and which owns.

    A pair has two places for CTAs, its sides 0 and 1. Of a pair with one CTA, that one is older and owns. Of a pair
    with two, the one that came first is older, side 0 if they came together. The older one owns at first. When a CTA
    ends, the other one owns, also if a new CTA takes the place at once: the new one is younger and does not own. While
    exactly one CTA holds a lock, ownership goes to it; with none or both it stays where it is. Both can hold locks only
    without the rule against deadlock. Locks of a CTA that ends no longer count.

    Latency: one cycle, from a start, a finish or a lock to the outputs. In the same cycle, a finish comes before a
    start. After reset there is no CTA.

    The state is four flip-flops per pair, 16 for 8 CTAs, and nothing else. For an SM of T CTAs and W warps, the paper's
    section 6 counts 1 + T * ceil(log2(T + 1)) + 2W bits for the same: 129 for 8 CTAs and 48 warps.

    The environment starts a CTA only where there is none, or where one finishes in the same cycle, finishes none that
    is not there, and reports no locks of one that is not there.

    Parameters
    ----------
    ctas : int
        CTAs of the SM, 1 to 32. There is a pair for every two of them, and at least one.

    Members
    -------
    start : In, one mask of pairs per side
        A CTA has been placed there in this cycle.
    finish : In, one mask of pairs per side
        The CTA there has ended in this cycle.
    holds : In, one mask of pairs per side
        The CTA there holds a lock of its pair.
    present : Out, one mask of pairs per side
        There is a CTA.
    owner : Out, one bit per pair
        The side of the CTA that owns; 0 if the pair has none.
    older : Out, one bit per pair
        The side of the CTA that came first; 0 if the pair has none.
    sharing : Out
        The SM is in sharing mode: some pair has two CTAs.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"ctas": MAX_CTAS}

    def __init__(self, *, ctas: int = 8) -> None:
        if not 1 <= ctas <= MAX_CTAS:
            raise ValueError(f"ctas must be 1 to {MAX_CTAS}, not {ctas}")
        self._pairs = pairs = pairs_of(ctas)
        super().__init__(
            {
                "start": In(pairs).array(2),
                "finish": In(pairs).array(2),
                "holds": In(pairs).array(2),
                "present": Out(pairs).array(2),
                "owner": Out(pairs),
                "older": Out(pairs),
                "sharing": Out(1),
            }
        )

    @property
    def pairs(self) -> int:
        return self._pairs

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stays = [Signal(self.pairs, name=f"stays_{side}") for side in range(2)]
        both, first, taken = Signal(self.pairs), Signal(self.pairs), Signal(self.pairs)
        m.d.comb += [
            *(stays[side].eq(self.present[side] & ~self.finish[side]) for side in range(2)),
            both.eq(stays[0] & stays[1]),
            # The side of the CTA that stays, or of the one that comes; of no meaning where two stay.
            first.eq(~stays[0] & (stays[1] | self.start[1] & ~self.start[0])),
            taken.eq(self.holds[0] ^ self.holds[1]),
            self.sharing.eq((self.present[0] & self.present[1]).any()),
        ]
        m.d.sync += [
            *(self.present[side].eq(stays[side] | self.start[side]) for side in range(2)),
            self.older.eq(both & self.older | ~both & first),
            self.owner.eq(both & (taken & self.holds[1] | ~taken & self.owner) | ~both & first),
        ]
        return m
