"""Proofs about the thread-map table, at a reduced size: two banks of two entries, two lanes."""

from __future__ import annotations

from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Module, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.warppool.thread_map_table import ThreadMapTable
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof

BANKS, SIZE, LANES = 2, 2, 2
ENTRIES = BANKS * SIZE


class Kept(Elaboratable):
    """What each entry should keep, beside the table, under any lines and results that the protocol allows.

    The entry looked up walks round, so that each is seen every ``ENTRIES`` cycles, which is what induction needs; the
    table itself does not depend on it.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ThreadMapTable(lanes=LANES, entries=ENTRIES, coalescers=BANKS)
        used = Signal(ENTRIES)
        kept = Array(Signal(dut.map.shape(), name=f"kept_{entry}") for entry in range(ENTRIES))
        walk = Signal(range(ENTRIES))
        m.d.sync += walk.eq(walk + 1)
        m.d.comb += dut.lookup.eq(walk)

        result = dut.result.payload
        random, releases = result.mapping == Mapping.RANDOM, Signal()
        m.d.comb += releases.eq(dut.result.valid & dut.result.ready & random & ~result.atomic)
        for mapping in [result.mapping, *(line.payload.mapping for line in dut.line)]:
            m.d.comb += Assume(Value.cast(mapping) <= Mapping.RANDOM)
        m.d.comb += Assume(~releases | (result.word < ENTRIES) & used.bit_select(result.word, 1))
        with m.If(releases):
            m.d.sync += used.bit_select(result.word[:2], 1).eq(0)

        takes = Signal(BANKS)
        for k, line in enumerate(dut.line):
            p = line.payload
            entry = dut.entry[k][:2]
            m.d.comb += [
                takes[k].eq(line.valid & line.ready & (p.mapping == Mapping.RANDOM)),
                Assume(~takes[k] | (dut.free[k] != 0) & p.mask.any()),
                Assert(dut.free[k] == SIZE - popcount(used[k * SIZE : (k + 1) * SIZE])),
                Assert(dut.entry[k] // SIZE == k),
                Assert(~takes[k] | ~used.bit_select(entry, 1)),
            ]
            with m.If(takes[k]):
                m.d.sync += used.bit_select(entry, 1).eq(1)
                m.d.sync += [kept[entry].mask.eq(p.mask), kept[entry].words.eq(p.words)]

        with m.If(used.bit_select(walk, 1)):
            m.d.comb += [Assert(Value.cast(dut.map) == Value.cast(kept[walk])), Assert(dut.map.mask.any())]
        with m.Else():
            m.d.comb += Assert(Value.cast(dut.map) == 0)
        m.d.comb += [Cover(used.all() & releases), Cover(takes.all() & releases)]
        return m


PROOFS = {
    "entries are exclusive, counted and kept": Proof(
        Kept, "prove", ENTRIES + 1,
        "no entry is taken while in use; the free ones are counted; one in use shows what its line stored, "
        "one that is not shows zeros: 2 banks of 2 entries, 2 lanes",
    ),
    "every entry can be in use": Proof(
        Kept, "cover", 6, "all entries in use and one released; both coalescers take one while another is released"
    ),
}  # fmt: skip
