"""Proofs about the joined shard: one warp with two registers, any words, accesses and L1 within the contract."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Signal

from lockstep.rtl.regless.regless_shard import ReglessShard
from lockstep.spec.register_regions import SINGLE_ENTRIES_SHIFT, Entry, Kind
from lockstep.spec.regless.parameters import BY_NUMBER, IN_TURN
from lockstep.verif.formal import Proof


class Shard(Elaboratable):
    """Regions of one word, one after another, of one slot each; the L1 accepts everything, and answers nothing yet.

    Nobody has written a register, so a preload is answered with poison and needs no L1.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = ReglessShard(
            lanes=1, warps=1, registers=2, banks=1, lines=2, words=2, patience=15, leaves=IN_TURN,
            compressor_lines=1, per_line=1, compressed_by=BY_NUMBER,
        )  # fmt: skip
        word, issue = dut.word, dut.issue
        begun, given, closing = Signal(), Signal(), Signal()
        entry = word.payload.word.payload[SINGLE_ENTRIES_SHIFT:]
        usage = word.payload.word.payload[4 * 6]
        m.d.comb += [Assume(port.payload.warp == 0) for port in (dut.begin, word, issue, dut.delivered)]
        m.d.comb += [
            Assume(~dut.begin.valid | ~begun),
            Assume(~word.valid | dut.room[0] & begun & ~given),
            Assume(word.payload.word.kind == Kind.SINGLE),
            Assume(word.payload.word.payload[52:] == 0),  # one slot
            Assume(entry[:8] < 2),
            Assume((entry[8:10] == Entry.NONE) | (entry[8:10] == Entry.PRELOAD)),
            Assume(entry[10:20] == 0),
            Assume(usage == (entry[8:10] != Entry.NONE)),
            Assume(~issue.valid | dut.active[0] & (issue.payload.slots == 1)),
            Assume(~dut.flush.valid & ~dut.reserved[0].valid & ~dut.write[0].valid & ~dut.access[0].valid),
            Assume(~dut.answer.valid & dut.request.ready & ~dut.finish.valid & ~dut.barred),
            Assume(dut.delivered.valid == closing),
        ]
        m.d.sync += closing.eq(dut.last.valid)
        with m.If(dut.begin.valid):
            m.d.sync += begun.eq(1)
        with m.If(word.valid):
            m.d.sync += given.eq(1)
        with m.If(dut.last.valid):
            m.d.sync += given.eq(0)
        # A region of one slot ends with the instruction that issues, and runs within a number of cycles.
        m.d.comb += [Assert(dut.last.valid == issue.valid), Assert(~dut.request.valid)]
        waits = Signal(range(32))
        m.d.sync += waits.eq(0)
        with m.If(given & ~dut.active[0] & ~closing):
            m.d.sync += waits.eq(waits + 1)
        m.d.comb += Assert(waits < 17)
        m.d.comb += [Cover(dut.ended[0]), Cover(issue.valid & ~issue.payload.end & (entry[8] == 1))]
        return m


PROOFS = {
    "a region starts in time": Proof(
        Shard, "bmc", 20,
        "regions of one slot, with an entry or none, whose lines are free: the warp is active at most "
        "16 cycles after the word, and the instruction that issues is the region's last: 1 warp, 2 registers",
        long=True,
    ),
    "a region with an entry ends": Proof(Shard, "cover", 24, "an instruction issues; the warp ends"),
}  # fmt: skip
