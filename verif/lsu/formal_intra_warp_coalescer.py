"""Properties of the intra-warp coalescer, proved at two and three lanes: they do not depend on the number of lanes."""

from __future__ import annotations

from functools import partial
from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.lsu.intra_warp_coalescer import SIZES, IntraWarpCoalescer
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof
from lockstep.verif.lsu.lines import one_size


def decoded(
    m: Module, line: Any, active: Value, size: Value, line_shift: Value, lane: int
) -> tuple[Signal, Signal]:
    """Whether a mapping, with the active lanes of its load, names a lane; and its word, counted in the access width."""
    words = (Const(1, 8) << line_shift) >> Mux(size > 2, size, 2)[:3]  # in a line
    ahead = lane - line.thread  # negative before the first lane
    with_first = line.word + ahead
    taken, word = Signal(name=f"taken_{lane}"), Signal(5, name=f"word_{lane}")
    with m.Switch(line.mapping):
        with m.Case(Mapping.SINGLE):
            m.d.comb += [word.eq(line.word), taken.eq(ahead == 0)]
        with m.Case(Mapping.BROADCAST):
            m.d.comb += [word.eq(line.word), taken.eq(active[lane])]
        with m.Case(Mapping.CONSECUTIVE):
            m.d.comb += [word.eq(lane), taken.eq(active[lane])]
        with m.Case(Mapping.RANGE):
            m.d.comb += [word.eq(with_first), taken.eq(active[lane] & (ahead >= 0) & (with_first < words))]
        with m.Default():
            m.d.comb += [word.eq(line.words[lane]), taken.eq(line.mask[lane])]
    return taken, word


class Property(Elaboratable):
    """The coalescer with free inputs, but for a line size that stays, and flags of what happens in the cycle."""

    def __init__(self, lanes: int) -> None:
        self.dut = IntraWarpCoalescer(lanes=lanes, warps=2, tickets=2)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        m.d.comb += Assume(one_size(m, dut.line_shift))
        self.specify(m, dut.request.valid & dut.request.ready, dut.line.valid & dut.line.ready)
        return m

    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        raise NotImplementedError


class LineHolds(Property):
    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        line = self.dut.line
        before, waits = Signal(len(Value.cast(line.payload))), Signal()
        m.d.sync += [before.eq(line.payload), waits.eq(line.valid & ~line.ready)]
        with m.If(waits):
            m.d.comb += Assert(line.valid & (Value.cast(line.payload) == before))


class LanesAreConserved(Property):
    """Lanes that went in and did not come out are those still pending and those of the two lines on their way."""

    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        dut, lanes = self.dut, self.dut.lanes
        line, found = dut.line, dut._found
        inside = Signal(range(3 * lanes + 1))
        came = Mux(enters, popcount(dut.request.p.mask), 0)
        gone = Mux(leaves, popcount(line.p.mask), 0)
        lines = [Mux(line.valid, line.p.mask, 0), Mux(dut._found_valid, found.here, 0)]
        m.d.sync += inside.eq(inside + came - gone)
        m.d.comb += [
            Assert(inside == popcount(Cat(dut._pending, lines))),
            Assert(inside + came >= gone),
            Assert(~line.valid | line.p.mask.any()),
            Assert(~dut._found_valid | found.here.any()),
        ]


class ReadyIsRight(Property):
    """An instruction is accepted as soon as no lane of the one before will be pending, and not before."""

    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        dut = self.dut
        known, was_ready = Signal(), Signal()
        m.d.sync += [known.eq(~enters), was_ready.eq(dut.request.ready)]
        m.d.comb += Assert(~known | (was_ready == (dut._pending == 0)))


class LinesAreRight(Property):
    """Follows one instruction, any one, from its addresses to what its lines say of them."""

    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        request, line, shift = self.dut.request.p, self.dut.line, self.dut.line_shift
        address, size = Signal(request.address.shape()), Signal(3)
        active, sent, known = Signal(self.dut.lanes), Signal(self.dut.lanes), Signal()
        m.d.comb += [
            Assume(request.size <= SIZES[-1]),
            Assume(~(enters & request.warp & known)),  # its warp has one instruction
            *(Assume((each & ((1 << request.size) - 1)[:4]) == 0) for each in request.address),
        ]
        with m.If(enters & request.warp):
            m.d.sync += [address.eq(request.address), size.eq(request.size), active.eq(request.mask), known.eq(1)]
        unit = Mux(size > 2, size, 2)[:3]
        own = line.valid & line.p.warp
        with m.If(leaves & own):
            m.d.sync += sent.eq(sent | line.p.mask)
        left, here = Signal(self.dut.lanes), Signal(self.dut.lanes)
        m.d.comb += [
            left.eq(active & ~sent),
            here.eq(left & Cat((each >> shift) == line.p.number for each in address)),
        ]
        with m.If(own):
            m.d.comb += [
                Assert(known & (line.p.mask == here) & here.any()),
                Assert((here & (1 << line.p.thread)[: len(here)]) == (left & (~left + 1)[: len(left)])),
                Assert(line.p.last == (here == left)),
            ]
            for lane, each in enumerate(address):
                taken, word = decoded(m, line.p, active, size, shift, lane)
                in_line = (each & ((1 << shift) - 1)[:7]) >> unit
                m.d.comb += [Assert(taken == here[lane]), Assert(~taken | (word == in_line))]


class EverythingHappens(Property):
    def specify(self, m: Module, enters: Value, leaves: Value) -> None:
        line = self.dut.line
        m.d.comb += [Cover(leaves & (line.p.mapping == mapping)) for mapping in Mapping]
        m.d.comb += [Cover(leaves & ~line.p.last), Cover(self.dut.request.valid & ~self.dut.request.ready)]
        ends = Signal(2)
        m.d.sync += ends.eq(Cat(leaves & line.p.last, ends))
        m.d.comb += Cover(ends.all() & leaves & line.p.last)


PROOFS = {
    "a presented line holds": Proof(partial(LineHolds, 2), "prove", 2, "2 lanes"),
    "no lane is lost or invented": Proof(partial(LanesAreConserved, 2), "prove", 1, "2 lanes"),
    "ready as the last line is found": Proof(
        partial(ReadyIsRight, 3), "prove", 2, "exactly when no lane will be pending, any addresses: 3 lanes"
    ),
    "a line says where its lanes' words are": Proof(
        partial(LinesAreRight, 3), "bmc", 7, "number, lanes, mapping, order and last line, any addresses: 3 lanes",
        long=True,
    ),
    "everything can happen": Proof(
        partial(EverythingHappens, 3), "cover", 8, "3 lanes: all mappings, back-pressure, instructions without a gap"
    ),
}
