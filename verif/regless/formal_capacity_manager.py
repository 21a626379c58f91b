"""Proofs about the capacity manager: any traffic within the contract, from a reset on and without end.

What is assumed of the inputs follows from the ports alone (:class:`Traffic`). What is asserted beside the claims are
the invariants by which induction succeeds: how the block's state follows from its past, and what is on the stack.
"""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.regless.capacity_manager import CapacityManager, Warp
from lockstep.verif.formal import Proof


class Traffic:
    """What the ports have told of a warp, and what they may tell."""

    def __init__(self, m: Module, dut: CapacityManager, w: int, entries: int, lines: int) -> None:
        def of_warp(port: object) -> Value:
            return port.valid & (port.payload.warp == w)  # type: ignore[attr-defined]

        there, begun, awaits, complete = (Signal(name=f"{n}_{w}") for n in ("there", "begun", "awaits", "complete"))
        to_send, owed = (Signal(range(entries + 1), name=f"{n}_{w}") for n in ("to_send", "owed"))
        banks = range(len(dut.reserved))
        to_reserve, to_write = (
            [Signal(range(lines + 1), name=f"{n}_{w}_{b}") for b in banks] for n in ("to_reserve", "to_write")
        )
        begin, region, sent, last, delivered = (
            of_warp(port) for port in (dut.begin, dut.region, dut.sent, dut.last, dut.delivered)
        )
        sends = Mux(sent, dut.sent.payload.entries, 0)
        answers = sum(of_warp(port) for port in dut.answered)
        m.d.comb += [
            Assume(~begin | ~there),
            Assume(~region | dut.wanted[w]),
            Assume(~last | dut.active[w]),
            Assume(~delivered | awaits),
            Assume(~sent | begun & ~complete & (dut.sent.payload.entries <= to_send)),
            Assume(answers <= owed),
        ]
        m.d.sync += [
            there.eq(there & ~dut.ended[w] | begin),
            begun.eq(begun & ~region | dut.start.valid & (dut.start.payload.warp == w)),
            awaits.eq(awaits & ~delivered | last),
            complete.eq(complete & ~region | sent & dut.sent.payload.last),
            to_send.eq(Mux(region, entries, to_send - sends)),
            owed.eq(owed + sends - answers),
        ]
        for b in banks:
            reserved, written = of_warp(dut.reserved[b]), of_warp(dut.written[b])
            usage = dut.region.payload.usage[(b - w) % len(banks)]
            m.d.comb += [
                Assume(~reserved | (dut.active[w] | awaits) & (to_reserve[b] != 0)),
                Assume(~written | (to_write[b] != 0)),
                Assume(~region | (usage <= lines)),
            ]
            m.d.sync += [
                to_write[b].eq(to_write[b] + reserved - written),
                to_reserve[b].eq(Mux(region, usage, Mux(delivered, 0, to_reserve[b] - reserved))),
            ]
        self.there, self.begun, self.awaits, self.complete, self.owed = there, begun, awaits, complete, owed
        self.to_reserve, self.to_write = to_reserve, to_write


class Regions(Elaboratable):
    """The block with any traffic, and what always holds."""

    def __init__(
        self, warps: int = 2, patience: int = 15, banks: int = 1, lines: int = 3, entries: int = 1
    ) -> None:
        self.warps, self.patience, self.lines, self.entries = warps, patience, lines, entries
        self.dut = CapacityManager(warps=warps, registers=entries, banks=banks, lines=lines, patience=patience)
        self.places = [self.dut.stack.read_port(domain="comb") for _ in range(warps)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        self.traffic = [Traffic(m, dut, w, self.entries, self.lines) for w in range(self.warps)]
        for w, traffic in enumerate(self.traffic):
            self._claims(m, w, traffic)
            self._follows(m, w, traffic)
        used = self._conserved(m)
        self._on_stack(m)
        # While no region has lines, the next warp fits: it starts, and so do those that need none, one by one.
        waits = Signal(range(self.warps + 1))
        nobody = (dut.depth != 0) & (used == 0)
        m.d.sync += waits.eq(Mux(nobody, waits + 1, 0))
        m.d.comb += [Assert(waits + dut.depth <= self.warps), Cover(dut.ended[0]), Cover(dut.active.all())]
        return m

    def _claims(self, m: Module, w: int, traffic: Traffic) -> None:
        """What the contract promises of a warp."""
        dut = self.dut
        starts = dut.start.valid & (dut.start.payload.warp == w)
        m.d.comb += [
            Assert(~starts | traffic.there & ~traffic.begun & (Cat(traffic.to_write) == 0)),
            Assert(~dut.active[w] | traffic.complete & (traffic.owed == 0)),
            Assert(~dut.wanted[w] | traffic.there),
            Assert(~dut.ended[w] | traffic.there & (Cat(traffic.to_write) == 0) & (traffic.owed == 0)),
        ]

    def _follows(self, m: Module, w: int, traffic: Traffic) -> None:
        """How the state of a warp follows from what the ports have told."""
        dut, state = self.dut, self.dut.state[w]
        starts = dut.start.valid & (dut.start.payload.warp == w)
        absent, unknown, waits, preloads, active, drains = (
            state == Warp.ABSENT, state == Warp.UNKNOWN, (state == Warp.KNOWN) | (state == Warp.STACKED),
            state == Warp.PRELOADING, state == Warp.ACTIVE, state == Warp.DRAINING,
        )  # fmt: skip
        collected, told = dut.collected[w], dut.told[w]
        announced = waits | drains & told
        m.d.comb += [
            Assert(state <= Warp.DRAINING),
            Assert(traffic.there == (~absent | dut.ended[w])), Assert(~dut.ended[w] | absent),
            Assert(traffic.complete == dut.complete[w]), Assert(traffic.owed == dut.due[w]),
            Assert(preloads | (traffic.owed == 0)),
            Assert(traffic.awaits == (drains & ~collected)),
            Assert(~collected | drains), Assert(~told | drains & collected & ~dut.ends[w]),
            Assert(~starts | preloads & ~traffic.begun & ~traffic.complete),
            Assert(~preloads | (traffic.begun ^ starts)),
            Assert(~announced | ~traffic.begun & ~traffic.complete),
            Assert(~(active | drains & ~told) | traffic.begun & traffic.complete),
            Assert(~(absent | unknown) | (traffic.begun == traffic.complete)),
        ]  # fmt: skip
        for need, pending, to_reserve, to_write in zip(
            dut.need[w], dut.pending[w], traffic.to_reserve, traffic.to_write, strict=True
        ):
            m.d.comb += [
                Assert(to_write == pending), Assert(active | drains | (pending == 0)),
                Assert(absent | unknown | (need <= self.lines)),
                Assert(~(waits | preloads | drains & told) | (to_reserve == need)),
                Assert(~(active | drains & ~collected) | (to_reserve + to_write <= need)),
                Assert(~(absent | unknown | drains & collected & ~told) | (to_reserve == 0)),
            ]  # fmt: skip

    def _conserved(self, m: Module) -> Value:
        """What is free and what regions have is all there is: no line is promised twice, lost or given back twice.

        Gives the lines that regions have in any bank.
        """
        dut, used = self.dut, Signal(16)
        held: list[Value] = []
        for b, free in enumerate(dut.free):
            own = Signal(16, name=f"held_{b}")
            has = [(state >= Warp.PRELOADING) & (state <= Warp.DRAINING) for state in dut.state]
            m.d.comb += own.eq(
                sum(
                    Mux(has[w], Mux(dut.collected[w], dut.pending[w][b], dut.need[w][b]), 0) for w in range(self.warps)
                )
            )
            m.d.comb += [Assert(own + free == self.lines), Assert(free <= self.lines)]
            held.append(own)
        m.d.comb += used.eq(sum(held))
        return used

    def _on_stack(self, m: Module) -> None:
        """The ring holds each warp whose state is STACKED once, and the next one and its needs are known."""
        dut, warps = self.dut, self.warps
        stacked = [state == Warp.STACKED for state in dut.state]
        self.entry = [Signal(range(warps), name=f"entry_{i}") for i in range(warps)]  # from the bottom
        self.full = [Signal(name=f"full_{i}") for i in range(warps)]
        for i, (place, entry, full) in enumerate(zip(self.places, self.entry, self.full, strict=True)):
            m.d.comb += [
                place.addr.eq(Mux(dut.bottom + i >= warps, dut.bottom + i - warps, dut.bottom + i)),
                entry.eq(place.data), full.eq(i < dut.depth),
                Assert(~full | (entry < warps) & Array(stacked)[entry]),
                *(Assert(~full | (entry != below)) for below in self.entry[:i]),
            ]  # fmt: skip
        top = Array([Const(0), *self.entry])[dut.depth]
        past = dut.bottom + dut.depth
        m.d.comb += [
            Assert(dut.bottom < warps), Assert(dut.end < warps), Assert(dut.came < warps), Assert(dut.depth <= warps),
            Assert(dut.end == Mux(past >= warps, past - warps, past)), Assert(dut.depth == sum(stacked)),
            Assert(dut.starts <= self.patience), Assert((dut.depth != 0) | (dut.starts == 0)),
            Assert(dut.overdue == (dut.starts == self.patience if self.patience else Const(0))),
            Assert(dut.nearly == (dut.starts == self.patience - 1 if self.patience else Const(0))),
            Assert((dut.depth == 0) | (dut.candidate == Mux(dut.overdue, self.entry[0], top))),
            *(
                Assert((dut.depth == 0) | (needs == Array(own[b] for own in dut.need)[dut.candidate]))
                for b, needs in enumerate(dut.needs)
            ),
        ]  # fmt: skip


class Order(Regions):
    """Also: which of the warps on the stack starts."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, warps = self.dut, self.warps
        stacked = Cat(state == Warp.STACKED for state in dut.state)
        belows = []
        most = self.patience or 2
        for w in range(warps):
            below = Signal(warps, name=f"below_{w}")
            passed, above = Signal(range(most + 2), name=f"passed_{w}"), Signal(name=f"above_{w}")
            at_bottom = stacked[w] & ~(stacked & below).any()
            m.d.comb += above.eq(dut.start.valid & ~below.bit_select(dut.start.payload.warp, 1))
            m.d.sync += [
                below.eq(Mux(stacked[w], stacked & below, stacked)),
                passed.eq(Mux(at_bottom, passed + (above & (passed <= most)), 0)),
            ]
            belows.append(below)
            for i in range(warps):
                under = sum((1 << self.entry[j] for j in range(i)), Const(0))
                m.d.comb += Assert(~(self.full[i] & (self.entry[i] == w)) | ((below & stacked) == under))
            if self.patience:
                m.d.comb += [
                    Assert(passed <= self.patience),
                    Assert(~(self.full[0] & (self.entry[0] == w)) | (passed + above <= dut.starts)),
                ]
            m.d.comb += Cover(passed == most)
        if not self.patience:
            for w, below in enumerate(belows):
                m.d.comb += Assert(~dut.start.valid | ~stacked[w] | ~below.bit_select(dut.start.payload.warp, 1))
            m.d.comb += Cover(dut.start.valid & stacked.any())
        return m


PROOFS = {
    "lines are conserved, and nobody waits for what nobody has": Proof(
        Regions, "prove", 2,
        "free lines and those of regions are all, so counters stay in range, and what is reserved is given back once; "
        "while no region has lines, the next warp starts; none is active before its entries are answered, or ends or "
        "goes on before its results are written: 2 warps, 3 lines",
    ),
    "also with several banks": Proof(
        partial(Regions, warps=3, patience=2, banks=2, lines=3, entries=3), "prove", 2,
        "the same, with events of both banks in a cycle: 3 warps, 2 banks of 3 lines, regions of 3 entries",
        long=True,
    ),
    "nobody at the bottom is passed more often than patience says": Proof(
        partial(Order, 3, 2), "prove", 2,
        "while a warp is at the bottom of the stack, at most as many as patience says start from above: 3 warps, 3 "
        "lines, patience 2",
        long=True,
    ),
    "the top of the stack starts": Proof(
        partial(Order, 3, 0), "prove", 2,
        "without patience, no warp starts while one is there that came later: 3 warps, 3 lines",
        long=True,
    ),
    "without patience, others may pass again and again": Proof(
        partial(Order, 3, 0), "cover", 26, "a warp starts before others; each warp is passed twice at the bottom",
        long=True,
    ),
    "warps run together, and end": Proof(
        Regions, "cover", 16, "both warps are active; a warp ends"
    ),
}  # fmt: skip
