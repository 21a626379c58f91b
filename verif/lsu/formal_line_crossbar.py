"""Properties of the line crossbar, proved at two lanes, since no lane depends on another."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data

from lockstep.rtl.lsu.intra_warp_coalescer import IntraWarpCoalescer
from lockstep.rtl.lsu.line_crossbar import LineCrossbar
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof
from lockstep.verif.lsu.formal_intra_warp_coalescer import decoded
from lockstep.verif.lsu.lines import one_size

LANES = 2


class Moved(Elaboratable):
    """Any load, whose bytes are cut out of its line as a number: shifted by its address, and cut to its width."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = LineCrossbar(lanes=LANES, warps=2, tickets=2)
        load, write = dut.load.payload, dut.write.payload
        coming, moving, due = Signal(load.shape()), Signal(), Signal()
        m.d.sync += [coming.eq(load), moving.eq(dut.load.valid), due.eq(moving)]
        lanes, values = Signal(LANES), [Signal(128, name=f"value_{lane}") for lane in range(LANES)]
        source = Signal(data.StructLayout({"warp": 1, "ticket": 1}))
        m.d.comb += [
            Assume(one_size(m, dut.line_shift)),
            Assume((load.size <= 4) & (Value.cast(load.mapping) <= Mapping.RANDOM)),
        ]
        with m.If(moving):
            m.d.sync += [source.warp.eq(coming.warp), source.ticket.eq(coming.ticket)]
            for lane in range(LANES):
                taken, value = self.expected(m, coming, dut.line, dut.line_shift, lane)
                m.d.sync += [lanes[lane].eq(taken), values[lane].eq(Mux(taken, value, 0))]
        m.d.comb += [
            Assert(dut.write.valid == due),
            Assert(Cat(write.warp, write.ticket) == Value.cast(source)),
            Assert(write.lanes == lanes),
            *(Assert(Cat(row[lane] for row in write.registers) == values[lane]) for lane in range(LANES)),
        ]
        return m

    @staticmethod
    def expected(m: Module, load: data.View, line: data.View, line_shift: Value, lane: int) -> tuple[Value, Value]:
        """Whether a lane takes part, and its bytes."""
        unit = Mux(load.size > 2, load.size, 2)[:3]  # log2 of the bytes of a word
        taken, word = decoded(m, load, load.active, load.size, line_shift, lane)
        narrow = Mux(load.size == 0, load.offset[lane], Mux(load.size == 1, load.offset[lane] & 2, 0))
        byte = ((word << unit) & 127) + narrow
        found = (Value.cast(line) >> (byte << 3))[:128]
        sign = load.sign
        cut = Signal(128, name=f"cut_{lane}")
        with m.Switch(load.size):
            with m.Case(0):
                m.d.comb += cut.eq(Cat(found[:8], (sign & found[7]).replicate(24)))
            with m.Case(1):
                m.d.comb += cut.eq(Cat(found[:16], (sign & found[15]).replicate(16)))
            with m.Case(2):
                m.d.comb += cut.eq(found[:32])
            with m.Case(3):
                m.d.comb += cut.eq(found[:64])
            with m.Default():
                m.d.comb += cut.eq(found)
        return taken, cut


class FromAddresses(Elaboratable):
    """The coalescer before it, and a memory in which every word of four bytes holds its own address.

    So the value that arrives at a lane is the address that it asked for.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.coalescer = coalescer = IntraWarpCoalescer(lanes=LANES, warps=1, tickets=1)
        m.submodules.dut = dut = LineCrossbar(lanes=LANES, warps=1, tickets=1)
        request, line, load = coalescer.request.p, coalescer.line, dut.load.payload
        asked, size, busy = Signal(request.address.shape()), Signal(3), Signal()
        active = Signal(LANES)
        m.d.comb += [
            Assume(one_size(m, coalescer.line_shift)),
            dut.line_shift.eq(coalescer.line_shift),
            Assume((request.size >= 2) & (request.size <= 4)),
            *(Assume((address & ((1 << request.size) - 1)[:4]) == 0) for address in request.address),
            Assume(~request.store & ~request.atomic),
            coalescer.request.valid.eq(~busy),
            line.ready.eq(1),
            dut.load.valid.eq(line.valid),
            *(load[name].eq(getattr(line.p, name)) for name in ("mapping", "thread", "word", "mask", "words")),
            load.active.eq(active),
            load.size.eq(size),
        ]
        with m.If(~busy):  # one instruction: the load's entry is not looked up
            m.d.sync += [busy.eq(1), asked.eq(request.address), size.eq(request.size), active.eq(request.mask)]
        number = Signal(line.p.number.shape())
        m.d.sync += number.eq(line.p.number)
        first = (number << dut.line_shift)[:32]
        m.d.comb += [word.eq(first + 4 * k) for k, word in enumerate(dut.line)]
        write, written = dut.write.payload, Signal(LANES)
        with m.If(dut.write.valid):
            m.d.sync += written.eq(written | write.lanes)
            m.d.comb += Assert((write.lanes & (written | ~active)) == 0)
        for lane in range(LANES):
            with m.If(dut.write.valid & write.lanes[lane]):
                m.d.comb += [
                    Assert(row[lane] == Mux(k < (1 << size) >> 2, (asked[lane] + 4 * k)[:32], 0))
                    for k, row in enumerate(write.registers)
                ]
        cycles = Signal(4)
        m.d.sync += cycles.eq(cycles + 1)
        m.d.comb += Assert((cycles != 9) | (written == active))
        return m


class EverythingHappens(Elaboratable):
    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = LineCrossbar(lanes=LANES, warps=2, tickets=2)
        load = dut.load.payload
        m.d.comb += Assume(dut.line_shift == 7)
        m.d.comb += [Cover(dut.write.valid & dut.write.payload.lanes.all() & (load.mapping == k)) for k in Mapping]
        m.d.comb += Cover(dut.write.valid & dut.load.valid)
        return m


PROOFS = {
    "every lane gets the bytes of its word": Proof(
        Moved, "prove", 3, "as its mapping, size and sign say, two cycles after the load: 2 lanes, any load, any line",
        long=True,
    ),
    "every lane gets what is at its address": Proof(
        FromAddresses, "bmc", 11, "with the coalescer before it: any addresses of one instruction, 4 to 16 bytes",
        long=True,
    ),
    "everything can happen": Proof(EverythingHappens, "cover", 4, "writes of all mappings, and without a gap: 2 lanes"),
}
