"""Proofs about the metadata table, at a reduced size: three entries of two slots."""

from __future__ import annotations

from amaranth.hdl import Array, Assert, Assume, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.warppool.mshr_metadata import MshrMetadata
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof

ENTRIES, MERGES = 3, 2


class Kept(Elaboratable):
    """What each entry should keep and which ones are in use, beside the table, under all requests and answers.

    Further read ports of its two memories show their contents, which induction needs.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dut = MshrMetadata(lanes=1, warps=2, tickets=1, entries=ENTRIES, merges=MERGES)
        m.submodules.dut = inner = dut.elaborate(platform)
        used = Signal(ENTRIES)
        kept = Array(Signal(dut.slots.shape(), name=f"kept_{entry}") for entry in range(ENTRIES))
        access, answer = dut.access.payload, dut.answer.payload
        allocates, answers = Signal(), Signal()
        m.d.comb += [
            allocates.eq(dut.access.valid & dut.access.ready & ~access.store),
            answers.eq(dut.answer.valid & dut.answer.ready),
            Assume(~allocates | (dut.free != 0)),
            Assume(~answers | (answer.id < ENTRIES) & used.bit_select(answer.id, 1)),
            Assume((access.count >= 1) & (access.count <= MERGES)),
            *(Assume(Value.cast(slot.mapping) <= Mapping.RANDOM) for slot in access.slots),
        ]

        # An entry that is allocated is not in use, and the free ones are counted.
        m.d.comb += [
            Assert(dut.free == ENTRIES - popcount(used)),
            Assert(Mux(dut.free == 0, dut.id == 0, (dut.id < ENTRIES) & ~used.bit_select(dut.id, 1))),
        ]
        with m.If(answers):
            m.d.sync += used.bit_select(answer.id, 1).eq(0)
        with m.If(allocates):
            m.d.sync += [used.bit_select(dut.id, 1).eq(1), kept[dut.id].eq(Value.cast(access)[1:])]

        # An answer shows what its request stored, until the next.
        shown = Signal(dut.slots.shape())
        with m.If(answers):
            m.d.sync += shown.count.eq(kept[answer.id].count)
            for i in range(MERGES):
                valid = i < kept[answer.id].count
                m.d.sync += shown.slots[i].eq(Mux(valid, Value.cast(kept[answer.id].slots[i]), 0))
        m.d.comb += Assert(Value.cast(dut.slots) == Value.cast(shown))

        # The queue's places between its ends hold the entries that are not in use; until then a place holds itself.
        unused: Value = Const(0, ENTRIES)
        held = Signal(ENTRIES)
        for place in range(ENTRIES):
            port = inner.submodules.queue.read_port(domain="comb")
            ahead = Mux(place < dut.head, place + ENTRIES - dut.head, place - dut.head)
            entry = Mux(dut.reused | (place < dut.head), port.data, place)
            m.d.comb += port.addr.eq(place)
            m.d.comb += held[place].eq(ahead < dut.free)
            unused |= Mux(held[place], 1 << entry, 0)
        distance = Mux(dut.tail < dut.head, dut.tail + ENTRIES - dut.head, dut.tail - dut.head)
        m.d.comb += [
            Assert((dut.head < ENTRIES) & (dut.tail < ENTRIES) & (distance == dut.free % ENTRIES)),
            Assert(dut.reused | (dut.free == ENTRIES - dut.head + dut.tail)),
            Assert(unused == ~used),
        ]
        for entry in range(ENTRIES):
            port = inner.submodules.table.read_port(domain="comb")
            m.d.comb += port.addr.eq(entry)
            m.d.comb += Assert(~used[entry] | (Value.cast(port.data) == Value.cast(kept[entry])))

        seen = Signal(ENTRIES)  # entries that were allocated with the queue read from its memory
        with m.If(allocates & dut.reused):
            m.d.sync += seen.bit_select(dut.id, 1).eq(1)
        m.d.comb += [Cover(dut.free == 0), Cover(allocates & answers & dut.reused), Cover(seen.all())]
        return m


PROOFS = {
    "entries are exclusive, counted and kept": Proof(
        Kept, "prove", 2,
        "an entry that is allocated is not in use; free and used ones are all; each answer brings once what its "
        "request stored, and the slots beyond its count as zeros: 3 entries of 2 slots",
    ),
    "the queue of free entries wraps": Proof(
        Kept, "cover", 10, "no entry free; one allocated while one is answered; every entry allocated again"
    ),
}  # fmt: skip
