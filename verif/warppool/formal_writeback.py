"""Proofs about writeback, at a reduced size: two slots per answer, two lanes."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data

from lockstep.rtl.warppool.writeback import Writeback
from lockstep.spec.mapping import Mapping
from lockstep.verif.formal import Proof

MERGES = 2


class Numbered(Elaboratable):
    """Answers under any back-pressure. Their slots carry running numbers in ``word``, and the answer's in ``ticket``.

    An answer with an even number is a load's, with an odd one an atomic's; ``mask`` is the number too.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = Writeback(lanes=2, warps=1, tickets=4, merges=MERGES)
        result = dut.result.p

        # The next answer, and the one whose slots are shown. Slots beyond its count are free variables.
        answer, shown = Signal(2), Signal(2)
        entering, base, count, chosen = Signal(5), Signal(5), Signal(range(MERGES + 1)), Signal(range(MERGES + 1))
        accept, leave = dut.answer.valid & dut.answer.ready, dut.result.valid & dut.result.ready
        m.d.comb += [
            Assume((chosen >= 1) & (chosen <= MERGES)),
            dut.answer.p.atomic.eq(answer[0]),
            dut.answer.p.mask.eq(answer),
            Assume(dut.slots.count == count),
        ]
        for i, slot in enumerate(dut.slots.slots):
            m.d.comb += Assume(Value.cast(slot.mapping) <= Mapping.RANDOM)
            m.d.comb += Assume((i >= count) | (slot.word == (base + i)[:5]) & (slot.ticket == shown))
        with m.If(accept):
            m.d.sync += [
                answer.eq(answer + 1), shown.eq(answer), base.eq(entering), count.eq(chosen),
                entering.eq(entering + chosen),
            ]  # fmt: skip

        # Where every slot is: in the output register, in the buffer, or arriving.
        leaving = Signal(5)
        with m.If(leave):
            m.d.sync += leaving.eq(leaving + 1)
        m.d.comb += Assert(~dut.result.valid | (result.word == leaving) & self.owned(result, result.ticket))
        first, kept = Signal(5), dut.left.slots
        m.d.comb += first.eq(leaving + dut.result.valid)
        with m.If(dut.buffered):
            m.d.comb += Assert((dut.left.count >= 1) & (dut.left.count <= MERGES))
            for i in range(MERGES):
                same = (kept[i].word == (first + i)[:5]) & (kept[i].ticket == kept[0].ticket)
                m.d.comb += Assert((i >= dut.left.count) | same)
            m.d.comb += [Assert(dut.buffer.atomic == kept[0].ticket[0]), Assert(dut.buffer.mask == kept[0].ticket)]
        behind = (first + Mux(dut.buffered, dut.left.count, 0))[:5]
        with m.If(dut.arriving):
            m.d.comb += Assert((base == behind) & (count >= 1) & (count <= MERGES))
            m.d.comb += [Assert(dut.arrived.atomic == shown[0]), Assert(dut.arrived.mask == shown)]
        m.d.comb += Assert(entering == (behind + Mux(dut.arriving, count, 0))[:5])
        m.d.comb += Assert(dut.answer.ready == ~(dut.arriving & dut.buffered))

        # A result holds, and one cycle without a result empties everything that had arrived.
        started, waited, held = Signal(), Signal(), Signal(result.shape())
        work = Signal()
        m.d.sync += [started.eq(1), waited.eq(dut.result.valid & ~dut.result.ready), held.eq(result)]
        m.d.sync += work.eq(dut.arriving | dut.buffered)
        with m.If(started & waited):
            m.d.comb += Assert(dut.result.valid & (Value.cast(result) == Value.cast(held)))
        with m.If(started & ~waited):
            m.d.comb += Assert(dut.result.valid == work)
        m.d.comb += [Cover(~dut.answer.ready & leave), Cover(leaving == 5)]
        return m

    @staticmethod
    def owned(result: data.View, answer: Value) -> Value:
        """The result says what its answer did."""
        return (result.atomic == answer[0]) & (result.mask == Mux(answer[0], answer, 0))


PROOFS = {
    "every slot leaves once, in order": Proof(
        Numbered, "prove", 2,
        "the slots of all answers leave in the order of their numbers, with their answer's lanes, none lost or twice, "
        "under any back-pressure; a result holds; no cycle is lost while there is a slot: 2 slots per answer, 2 lanes",
    ),
    "answers wait and flow": Proof(
        Numbered, "cover", 9, "a full buffer while results leave; five results in nine cycles"
    ),
}  # fmt: skip
