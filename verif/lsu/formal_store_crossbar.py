"""Properties of the store crossbar, proved at two and three lanes."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.lsu.line_crossbar import LineCrossbar
from lockstep.rtl.lsu.store_crossbar import StoreCrossbar
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof
from lockstep.verif.lsu.lines import one_size


def any_stores(m: Module, dut: StoreCrossbar) -> Value:
    """Stores of every width, to lines of one size; returns the bits of an address that say where one begins in it."""
    m.d.comb += [Assume(one_size(m, dut.line_shift)), Assume(dut.store.payload.size <= 4)]
    inside = Signal(7)
    m.d.comb += inside.eq((1 << dut.line_shift) - (1 << dut.store.payload.size))
    return inside


class HighestLane(Elaboratable):
    """Any store, and any byte of the line: the highest lane whose access covers it, and that lane's byte."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = StoreCrossbar(lanes=3)
        store, write = dut.store.payload, dut.write.payload
        inside = any_stores(m, dut)
        byte, coming, moving = Signal(7), Signal(7), Signal(7)  # the byte looked at, as its store passes
        stored, of_access, lane = Signal(), Signal(4), Signal(2)
        value, due = Signal(9), Signal(2)  # with its enable
        m.d.sync += [coming.eq(byte), moving.eq(coming), due.eq(Cat(dut.store.valid, due)), stored.eq(0)]
        for k, place in enumerate(store.place):
            distance = byte - (place & inside)
            with m.If(store.mask[k] & (distance >= 0) & (distance < (1 << store.size))):
                m.d.sync += [stored.eq(1), of_access.eq(distance), lane.eq(k)]
        registers = [Cat(row[k] for row in dut.registers).word_select(of_access, 8) for k in range(dut.lanes)]
        chosen = Mux(lane[1], registers[2], Mux(lane[0], registers[1], registers[0]))
        m.d.sync += value.eq(Mux(stored, Cat(chosen, 1), 0))
        found = Cat(Value.cast(write.line).word_select(moving, 8), Value.cast(write.bytes).bit_select(moving, 1))
        m.d.comb += [Assert(dut.write.valid == due[1]), Assert(~due[1] | (found == value))]
        return m


class LoadedAgain(Elaboratable):
    """The line goes to the line crossbar, which gives each lane what it stored, or what a higher lane stored there."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = StoreCrossbar(lanes=2)
        m.submodules.back = back = LineCrossbar(lanes=2, warps=1, tickets=1)
        store, load, write = dut.store.payload, back.load.payload, back.write.payload
        inside = any_stores(m, dut)
        values = [Signal(128, name=f"values_{lane}") for lane in range(2)]
        lost, moves, size, due = Signal(), Signal(), Signal(3), Signal()
        m.d.sync += [
            back.load.valid.eq(dut.store.valid),
            load.mapping.eq(Mapping.RANDOM),
            load.mask.eq(store.mask),
            load.size.eq(store.size),
            load.sign.eq(0),
            *(word.eq((place & inside) >> Mux(store.size > 2, store.size, 2)[:3])
              for word, place in zip(load.words, store.place, strict=True)),
            *(offset.eq(place & inside) for offset, place in zip(load.offset, store.place, strict=True)),
            lost.eq(store.mask.all() & (store.place[0] & inside == store.place[1] & inside)),
            moves.eq(back.load.valid),
            size.eq(load.size),
            due.eq(moves),
        ]  # fmt: skip
        m.d.comb += [back.line_shift.eq(dut.line_shift), back.line.eq(dut.write.payload.line)]
        bits = Signal(128)
        m.d.comb += bits.eq((1 << (8 << load.size)) - 1)
        kept, taken = [Signal(128, name=f"kept_{lane}") for lane in range(2)], Signal(2)
        m.d.sync += taken.eq(load.mask)
        for lane in range(2):
            own = Cat(row[lane] for row in dut.registers)
            highest = Cat(row[1] for row in dut.registers)
            m.d.sync += [
                kept[lane].eq(Mux(lost, highest, own) & bits),
                values[lane].eq(Mux(taken[lane], kept[lane], 0)),
            ]
        m.d.comb += [Assert(back.write.valid == due)]
        m.d.comb += [Assert(~due | (Cat(row[k] for row in write.registers) == values[k])) for k in range(2)]
        return m


class EverythingHappens(Elaboratable):
    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = StoreCrossbar(lanes=3)
        any_stores(m, dut)
        written = Value.cast(dut.write.payload.bytes)
        m.d.comb += [
            Cover(dut.write.valid & (written == 7)),
            Cover(dut.write.valid & written[-1]),
            Cover(dut.write.valid & (written[:48] == (1 << 48) - 1)),
            Cover(dut.write.valid & dut.store.valid),
        ]
        return m


PROOFS = {
    "every byte is that of the highest lane that stores it": Proof(
        HighestLane, "prove", 3, "and no other is stored, two cycles after the store: 3 lanes, any store, any byte",
        long=True,
    ),
    "a load gets back what was stored": Proof(
        LoadedAgain, "bmc", 6, "through the line crossbar: 2 lanes, any stores, the highest lane's where both store",
        long=True,
    ),
    "everything can happen": Proof(EverythingHappens, "cover", 4, "single bytes, the last byte, rows, without a gap"),
}
