"""What is proved of ``warppool.load_store_order``, for any warp of two, with two coalescers and two merged requests.

The environment's side of the contract is one count per kind of thing that can be on the way, for the warp looked at.
"""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Signal, signed

from lockstep.rtl.bits import popcount
from lockstep.rtl.warppool.load_store_order import LoadStoreOrder
from lockstep.verif.formal import Proof

WARPS, COALESCERS, MERGES = 2, 2, 2
INSTRUCTIONS, REQUESTS = 3, 3  # of a warp, on the way at once
LIMIT = INSTRUCTIONS + REQUESTS


class Warp(Elaboratable):
    """The block in an environment that sends on nothing but what has entered, seen from one arbitrary warp.

    ``scheduled``: instructions enter only when the block allows it.
    """

    def __init__(self, scheduled: bool = False) -> None:
        self.scheduled = scheduled
        self.loads = Signal(range(INSTRUCTIONS + 1))  # whose last line has not left its coalescer
        self.ordered = Signal(range(INSTRUCTIONS + 1))  # stores and atomics whose last line the L1 has not got
        self.requests = Signal(range(REQUESTS + 1))  # lines of loads that have left a coalescer, not sent
        self.known = Signal(range(LIMIT + 1))  # all of it, with what entered and without what left in the cycle before
        self.last_was_load = Signal()
        self.counter = Signal(range(LIMIT + 1))  # the block's
        self.drained, self.load_ready = Signal(), Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = LoadStoreOrder(warps=WARPS, coalescers=COALESCERS, merges=MERGES, limit=LIMIT)
        # Some warp, always the same.
        warp, before, began = Signal(range(WARPS)), Signal(range(WARPS)), Signal()
        m.d.sync += [before.eq(warp), began.eq(1)]
        m.d.comb += Assume(~began | (warp == before))

        enter, enter_load = Signal(), Signal()
        m.d.comb += [
            enter.eq(dut.enter.bit_select(warp, 1)),
            enter_load.eq(dut.enter_load.bit_select(warp, 1)),
            self.counter.eq(Cat(vector.bit_select(warp, 1) for vector in dut.count)),
            self.drained.eq(dut.drained.bit_select(warp, 1)),
            self.load_ready.eq(dut.load_ready.bit_select(warp, 1)),
        ]
        lines, lasts = Signal(COALESCERS), Signal(COALESCERS)  # of the warp's loads
        for port, line in enumerate(dut.line):
            payload = line.payload
            load = line.valid & line.ready & (payload.warp == warp)
            m.d.comb += [lines[port].eq(load), lasts[port].eq(load & payload.last)]
        access, sent, done = dut.access, Signal(MERGES), Signal()
        payload = access.payload
        load = ~payload.store & ~payload.atomic
        for slot in range(MERGES):
            here = (slot < payload.count) & (payload.warps[slot] == warp)
            m.d.comb += sent[slot].eq(access.valid & access.ready & load & here)
        m.d.comb += done.eq(access.valid & access.ready & ~load & payload.last & (payload.warps[0] == warp))

        left, requests = Signal.like(self.loads), Signal(range(REQUESTS + COALESCERS + 1))
        m.d.comb += [
            left.eq(popcount(lasts)),
            requests.eq(self.requests + popcount(lines) - popcount(sent)),
            Assume((dut.enter_load & ~dut.enter) == 0),
            Assume(~enter | (self.loads + self.ordered < INSTRUCTIONS)),
            Assume(popcount(lines) <= self.loads),  # each coalescer has an instruction of its own
            Assume(payload.count <= MERGES),
            Assume(popcount(sent) <= self.requests),
            Assume(requests <= REQUESTS),
            Assume(~done | (self.ordered != 0)),
        ]
        total, change = Signal.like(self.known), Signal(signed(len(dut.change)))
        counted = self.counter + dut.entered.bit_select(warp, 1)
        m.d.comb += [
            total.eq(self.loads + self.ordered + self.requests),
            change.eq(Cat(vector.bit_select(warp, 1) for vector in dut.change)),
        ]
        m.d.sync += [
            self.known.eq(total + enter),
            self.loads.eq(self.loads + enter_load - left),
            self.ordered.eq(self.ordered + (enter & ~enter_load) - done),
            self.requests.eq(requests),
        ]
        with m.If(enter):
            m.d.sync += self.last_was_load.eq(enter_load)
        if self.scheduled:
            with m.If(enter):
                m.d.comb += Assume((enter_load & self.load_ready) | self.drained)
        m.d.comb += [
            Assert(self.loads + self.ordered <= INSTRUCTIONS),
            Assert(counted == self.known),
            Assert(counted + change == total),
        ]
        return m


class Drained(Warp):
    """The outputs say what the counter stands for."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        nothing = (self.loads == 0) & (self.ordered == 0) & (self.requests == 0)
        m.d.comb += [
            Assert(self.drained == (self.known == 0)),
            Assert(~self.drained | nothing),
            Assert(self.load_ready == (self.drained | self.last_was_load)),
        ]
        return m


class Ordered(Warp):
    """A store or atomic is on the way alone."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        others = (self.loads != 0) | (self.requests != 0)
        m.d.comb += [
            Assert((self.ordered == 0) | ~others),
            Assert(self.ordered <= 1),
            # Inductive with: what is on the way is of the kind that entered last.
            Assert((self.ordered == 0) | ~self.last_was_load),
            Assert(~others | self.last_was_load),
            Assert(~self.drained | ((self.ordered == 0) & ~others)),
            Assert(self.load_ready == (self.drained | self.last_was_load)),
        ]
        return m


class Full(Warp):
    """The most is on the way, and all of it is sent."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        been = Signal()
        with m.If(self.counter == LIMIT):
            m.d.sync += been.eq(1)
        m.d.comb += Cover(been & self.drained)
        return m


_SIZE = "2 warps, 2 coalescers, 2 merges, limit 6"
PROOFS = {
    "counters": Proof(Warp, "prove", 1, f"a counter is what is on the way: no under- or overflow; {_SIZE}"),
    "drained": Proof(Drained, "prove", 1, f"drained exactly a cycle after all that entered was sent; {_SIZE}"),
    "order": Proof(
        lambda: Ordered(scheduled=True), "prove", 1, f"what overtakes, and is overtaken, is a load; {_SIZE}"
    ),
    "limit": Proof(Full, "cover", 14, f"a counter reaches the limit, and 0 again; {_SIZE}"),
}
