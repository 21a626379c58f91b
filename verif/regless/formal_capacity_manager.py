"""Proofs about the capacity manager: two warps, one bank of three lines, any traffic within the contract."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.regless.capacity_manager import CapacityManager, Warp
from lockstep.verif.formal import Proof

WARPS, LINES = 2, 3


class Regions(Elaboratable):
    """What is assumed of the inputs follows from the ports alone: each warp is followed here beside the block."""

    def __init__(self, warps: int = WARPS, patience: int = 15) -> None:
        self.warps, self.patience = warps, patience
        self.dut = CapacityManager(warps=warps, registers=1, banks=1, lines=LINES, patience=patience)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        [reserved], [written], [answered] = dut.reserved, dut.written, dut.answered
        events = dut.begin, dut.region, dut.sent, dut.last, dut.delivered, reserved, written, answered
        held: list[Value] = []
        for w in range(self.warps):
            begin, region, sent, last, delivered, reserves, writes, answers = (
                port.valid & (port.payload.warp == w) for port in events
            )
            there, begun, owed, awaits = (Signal(name=f"{n}_{w}") for n in ("there", "begun", "owed", "awaits"))
            entry, complete = Signal(name=f"entry_{w}"), Signal(name=f"complete_{w}")  # to come; all were sent
            may, pending = Signal(3, name=f"may_{w}"), Signal(3, name=f"written_{w}")  # results: to reserve, to write
            m.d.comb += [
                Assume(~begin | ~there),
                Assume(~region | dut.wanted[w]),
                Assume(~last | dut.active[w]),
                Assume(~delivered | awaits),
                Assume(~reserves | (dut.active[w] | awaits) & (may != 0)),
                Assume(~writes | (pending != 0)),
                Assume(~sent | begun & ~complete & (dut.sent.payload.entries <= entry)),
                Assume(~answers | owed),
                Assume(~region | (dut.region.payload.usage[0] <= LINES)),
            ]
            with m.If(begin | dut.ended[w]):
                m.d.sync += there.eq(begin)
            with m.If(dut.start.valid & (dut.start.payload.warp == w)):
                m.d.comb += Assert(there & ~begun & (pending == 0))
                m.d.sync += begun.eq(1)
            with m.If(region):
                m.d.sync += [begun.eq(0), entry.eq(1), complete.eq(0)]
            with m.If(sent):
                m.d.sync += [entry.eq(entry & (dut.sent.payload.entries == 0)), complete.eq(dut.sent.payload.last)]
            with m.If(answers | sent):
                m.d.sync += owed.eq(Mux(sent, dut.sent.payload.entries, 0))
            with m.If(last | delivered):
                m.d.sync += awaits.eq(last)
            m.d.sync += pending.eq(pending + reserves - writes)
            m.d.sync += may.eq(Mux(region, dut.region.payload.usage[0], Mux(delivered, 0, may - reserves)))

            state = dut.state[w]
            starts = (state == Warp.PRELOADING) | (state == Warp.ACTIVE) | (state == Warp.DRAINING)
            held.append(Mux(starts, Mux(dut.collected[w], dut.pending[w][0], dut.need[w][0]), 0))
            m.d.comb += [
                Assert(state <= Warp.DRAINING),
                Assert(~dut.active[w] | complete & ~owed),
                Assert(pending == dut.pending[w][0]),
                Assert(~starts | dut.collected[w] | (pending <= dut.need[w][0])),
                Assert(starts | (pending == 0)),
                Assert(~dut.wanted[w] | there),
                Assert(~dut.ended[w] | (there & (pending == 0) & ~owed)),
            ]
        # What is free and what regions have is all there is, so no line is promised twice, lost or given back twice.
        lines = Signal(6)
        m.d.comb += [lines.eq(sum(held, dut.free[0])), Assert(lines == LINES), Assert(dut.free[0] <= LINES)]
        # If the next warp does not fit, a region runs, which gives lines back: they do not wait for one another. While
        # no region has lines, those that need none start one by one.
        stacked = Cat(state == Warp.STACKED for state in dut.state)
        waits = Signal(range(self.warps + 1))
        m.d.comb += Assert(dut.depth == sum(stacked))
        nobody = (dut.depth != 0) & (lines - dut.free[0] == 0)
        m.d.sync += waits.eq(Mux(nobody, Mux(waits == self.warps, waits, waits + 1), 0))
        m.d.comb += Assert(waits < self.warps)
        m.d.comb += [Cover(dut.ended[0]), Cover(dut.active.all())]
        return m


class Order(Regions):
    """Also: which of the warps on the stack starts."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        stacked = Cat(state == Warp.STACKED for state in dut.state)
        for w in range(self.warps):
            started = dut.start.valid & (dut.start.payload.warp == w)
            below, passed = Signal(self.warps, name=f"below_{w}"), Signal(2, name=f"passed_{w}")
            m.d.sync += below.eq(Mux(stacked[w], stacked & below, stacked))
            above = dut.start.valid & ~below.bit_select(dut.start.payload.warp, 1)
            m.d.sync += passed.eq(Mux(stacked[w] & ~(stacked & below).any(), passed + (above & (passed != 3)), 0))
            if self.patience:
                m.d.comb += Assert(passed <= self.patience)
            else:
                m.d.comb += [
                    Assert(~(started & stacked.any()) | (dut.came == w)),
                    Cover(started & stacked.any()), Cover(passed == 2),
                ]  # fmt: skip
        return m


PROOFS = {
    "lines are conserved, and nobody waits for what nobody has": Proof(
        Regions, "bmc", 13,
        "in 13 cycles of any traffic within the contract: free lines and those of regions are all, so counters stay in "
        "range, and what is reserved is given back once; while no region has lines, the next warp starts; none is "
        "active before its entries are answered, or ends or goes on before its results are written: 2 warps, 3 lines",
    ),
    "nobody at the bottom is passed more often than patience says": Proof(
        partial(Order, 3, 1), "bmc", 16,
        "in 16 cycles of the same traffic, with patience 1: while a warp is at the bottom of the stack, at most one "
        "starts from above: 3 warps, 3 lines",
        long=True,
    ),
    "the top of the stack starts": Proof(
        partial(Order, 3, 0), "bmc", 16,
        "in 16 cycles of the same traffic, without patience: the warp that starts is the last that came to the stack, "
        "if others are there: 3 warps, 3 lines",
        long=True,
    ),
    "without patience, others may pass again and again": Proof(
        partial(Order, 3, 0), "cover", 26, "a warp starts before others; each warp is passed twice at the bottom",
        long=True,
    ),
    "warps run together, and end": Proof(Regions, "cover", 16, "both warps are active; a warp ends"),
}  # fmt: skip
