"""Proofs about the staging unit: any legal traffic on three registers of one bank with two lines."""

from __future__ import annotations

from itertools import combinations

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import popcount
from lockstep.rtl.regless._bank import Bank
from lockstep.rtl.regless.operand_staging_unit import OperandStagingUnit
from lockstep.spec.register_regions import Entry
from lockstep.spec.regless.parameters import FIRST_RELEASED, POISON, Request
from lockstep.verif.formal import Proof

LINES, WARPS = 2, 3  # a register for each warp, so that an answer's warp tells whose it is


class Traffic(Elaboratable):
    """Regions and a compressor, in as many states as the ports tell; one register is followed with its values.

    A register is *started* from its preload to the answer, *held* while a region has it, *asked* and *reserved* between
    the request for its line and its write, and *read* while an access to it is under way.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = OperandStagingUnit(lanes=1, warps=WARPS, registers=1, banks=1, lines=LINES)
        [preload], [access], [write] = dut.preload, dut.access, dut.write
        [answered], [operand] = dut.answered, dut.operand
        request, fill, finish = dut.request, dut.fill, dut.finish
        for port in preload.p, access.p, write.payload, fill.p:
            m.d.comb += [Assume(port.warp < WARPS), Assume(port.number == 0)]
        m.d.comb += [Assume(finish.p.warp < WARPS), Assume(preload.p.action != Entry.NONE)]

        begins, uses = preload.valid & preload.ready, access.valid & access.ready
        ends = finish.valid & finish.ready
        invalidates = preload.p.action == Entry.INVALIDATE
        started, held, asked, reserved, read = (
            Signal(WARPS, name=name) for name in ("started", "held", "asked", "reserved", "read")
        )
        last, dying, due = Signal(WARPS, name="last"), Signal(WARPS, name="dying"), Signal(WARPS, name="due")
        idle, lines = ~(started | asked | reserved | read), Signal(range(WARPS + 2))
        takes_line = preload.valid & ~invalidates
        new = access.valid & access.p.result & ~held.bit_select(access.p.warp, 1)
        m.d.comb += lines.eq(popcount((held | started & ~dying)[:WARPS]) + takes_line + new)

        def of(mask: Value, port: object) -> Value:
            return mask.bit_select(port.warp, 1)  # type: ignore[attr-defined]

        m.d.comb += [
            Assume(lines <= LINES),
            Assume(~preload.valid | of(idle & ~held, preload.p)),
            Assume(~access.valid | of(idle, access.p) & (access.p.result | of(held, access.p))),
            Assume(~access.valid | ~preload.valid | (access.p.warp != preload.p.warp)),
            Assume(~write.valid | of(reserved, write.payload)),
            Assume(~fill.valid | of(due, fill.p)),
            Assume(~finish.valid | of(idle & ~held, finish.p)),
            Assume(~finish.valid | ~preload.valid | (finish.p.warp != preload.p.warp)),
            Assume(~finish.valid | ~access.valid | (finish.p.warp != access.p.warp)),
        ]
        fetches = (request.p.kind == Request.FETCH) | (request.p.kind == Request.FETCH_LAST)
        for r in range(WARPS):
            begun, used = begins & (preload.p.warp == r), uses & (access.p.warp == r)
            told = operand.valid & (operand.payload.warp == r)
            done, written = answered.valid & (answered.payload.warp == r), write.valid & (write.payload.warp == r)
            with m.If(begun):
                m.d.sync += [started[r].eq(1), dying[r].eq(invalidates)]
            with m.If(done):
                m.d.comb += Assert(started[r])
                m.d.sync += [started[r].eq(0), dying[r].eq(0), held[r].eq(~dying[r])]
            with m.If(used):
                m.d.sync += [asked[r].eq(access.p.result), read[r].eq(~access.p.result), held[r].eq(1)]
                m.d.sync += last[r].eq(access.p.flags[0])
            with m.If(told):
                m.d.comb += Assert(Mux(operand.payload.result, asked[r], read[r]))
                m.d.sync += [asked[r].eq(0), read[r].eq(0), reserved[r].eq(asked[r])]
                with m.If(~operand.payload.result & last[r]):
                    m.d.sync += held[r].eq(0)
            with m.If(written):
                m.d.sync += reserved[r].eq(0)
                with m.If(write.payload.flags[0]):
                    m.d.sync += held[r].eq(0)
            with m.If(request.valid & request.ready & fetches & (request.p.warp == r)):
                m.d.comb += Assert(started[r] & ~due[r])
                m.d.sync += due[r].eq(1)
            with m.If(fill.valid & fill.ready & (fill.p.warp == r)):
                m.d.sync += due[r].eq(0)

        self.follow(m, dut, ends)
        self.lists(m, dut, held)
        return m

    def follow(self, m: Module, dut: OperandStagingUnit, ends: Value) -> None:
        """The values of register 0."""
        [access], [write], [operand], [answered], [preload] = (
            dut.access,
            dut.write,
            dut.operand,
            dut.answered,
            dut.preload,
        )
        request, fill, finish = dut.request, dut.fill, dut.finish
        newest, known, fresh = Signal(32), Signal(), Signal()
        below, copy, erases, dies, held = Signal(32), Signal(), Signal(), Signal(), Signal()
        mine = (request.valid & request.ready) & (request.p.warp == 0)
        value = Mux(copy, below, POISON)
        fetched = Signal(32)
        with m.If(mine):
            with m.If(request.p.kind == Request.STORE):
                m.d.comb += Assert(~known | (newest == request.p.words[0]))
                m.d.sync += [below.eq(request.p.words[0]), copy.eq(1)]
            with m.Elif((request.p.kind == Request.FETCH) | (request.p.kind == Request.FETCH_LAST)):
                m.d.comb += Assert(~known | (newest == value))
                m.d.sync += [fetched.eq(value), newest.eq(value), known.eq(1)]
            with m.If((request.p.kind != Request.STORE) & (request.p.kind != Request.FETCH)):
                m.d.sync += copy.eq(0)
        # Values are moved and not looked at, so one bit of them is enough beside poison.
        m.d.comb += [
            Assume(fill.p.words[0] == Mux(fill.valid & (fill.p.warp == 0), fetched, 0)),
            Assume(write.payload.words[0] <= 1),
        ]
        with m.If(preload.valid & preload.ready & (preload.p.warp == 0)):
            m.d.sync += dies.eq(preload.p.action == Entry.INVALIDATE)
        with m.If(answered.valid & (answered.payload.warp == 0)):
            m.d.comb += Assert(dies | known)
            m.d.sync += held.eq(~dies)
            with m.If(dies):
                m.d.sync += known.eq(0)
        with m.If(access.valid & access.ready & (access.p.warp == 0)):
            m.d.sync += [erases.eq(access.p.flags.all()), held.eq(1)]
            with m.If(access.p.result & ~held):
                m.d.sync += fresh.eq(1)
        with m.If(operand.valid & (operand.payload.warp == 0) & ~operand.payload.result):
            m.d.comb += Assert(known & (operand.payload.words[0] == newest))
            with m.If(erases):
                m.d.sync += known.eq(0)
        released = write.payload.flags[0]
        with m.If(write.valid & (write.payload.warp == 0)):
            m.d.sync += [fresh.eq(0), known.eq(~write.payload.flags.all())]
            with m.If(write.payload.mask):
                m.d.sync += newest.eq(write.payload.words[0])
            with m.Elif(fresh):
                m.d.sync += newest.eq(POISON)
            with m.If(released):
                m.d.sync += held.eq(0)
        last = Signal()
        with m.If(access.valid & access.ready & (access.p.warp == 0)):
            m.d.sync += last.eq(access.p.flags[0])
        with m.If(operand.valid & (operand.payload.warp == 0) & ~operand.payload.result & last):
            m.d.sync += held.eq(0)
        with m.If(ends & (finish.p.warp == 0)):
            m.d.sync += known.eq(0)
        filled = Signal()
        with m.If(fill.valid & fill.ready & (fill.p.warp == 0)):
            m.d.sync += filled.eq(1)
        m.d.comb += [
            Cover(filled & operand.valid & (operand.payload.warp == 0) & ~operand.payload.result),
            Cover(mine & (request.p.kind == Request.STORE)),
        ]

    def lists(self, m: Module, dut: OperandStagingUnit, held: Signal) -> None:
        """The lines, and their lists."""
        [bank], [access], [preload] = dut.banks, [dut.banks[0].access.o], [dut.banks[0].preload.o]
        for oldest, line in (access, bank.accessed), (preload, bank.preloaded):
            found = bank.valid & Cat(tag.warp == oldest.p.warp for tag in bank.tag)
            m.d.comb += Assert(~oldest.valid | (line == found))
        m.d.comb += [
            Assert(dut.room == (dut.queue.count + dut.entering < 2)),
            Assert(~(bank.valid.all() & (bank.tag[0].warp == bank.tag[1].warp))),
            Assert((bank.held & ~bank.valid) == 0),
            Assert(popcount(bank.valid & bank.held) <= popcount(held) + LINES),
        ]
        # A dirty line that no region has stays, or leaves by a store, an invalidation, or its warp's end.
        was, old = Signal(LINES), Array(Signal(2, name=f"old_{k}") for k in range(LINES))
        reason = Signal(LINES)
        finish = dut.finish
        for k, tag in enumerate(bank.tag):
            invalidated = preload.valid & preload.ready & (preload.p.action == Entry.INVALIDATE)
            excused = finish.valid & finish.ready & (finish.p.warp == tag.warp)
            excused |= invalidated & (preload.p.warp == tag.warp)
            m.d.sync += [was[k].eq(bank.valid[k] & ~bank.held[k] & bank.dirty[k]), old[k].eq(tag.warp)]
            m.d.sync += reason[k].eq(excused)
            stays = bank.valid[k] & (tag.warp == old[k]) & (bank.dirty[k])
            stored = dut.entering & (dut.entry.kind == Request.STORE) & (dut.entry.warp == old[k])
            m.d.comb += Assert(~was[k] | stays | stored | reason[k])
        m.d.comb += Cover(Cat(was).all() & access.valid)


class Order(Elaboratable):
    """A bank of four lines that keeps the order in which they were released; anything happens to it."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = Bank(lanes=1, warps=1, registers=4, lines=4, leaves=FIRST_RELEASED)
        some, first = Signal(4), Signal(4)
        m.d.comb += first.eq(dut.first_released(some))
        m.d.comb += Assert(~some.any() | (popcount(first) == 1) & ((first & ~some) == 0))
        for a, b, c in combinations(range(4), 3):  # no three of them go round
            round_, back = dut.earlier[b][a] & dut.earlier[c][b], ~dut.earlier[b][a] & ~dut.earlier[c][b]
            m.d.comb += Assert(~(round_ & ~dut.earlier[c][a]) & ~(back & dut.earlier[c][a]))
        return m


PROOFS = {
    "values stay": Proof(
        Traffic, "bmc", 8,
        "any traffic within the contract: what is read or stored is what was written last (a fill and "
        "its read need more cycles); no register has two lines, and the lines that are found early are those; what is "
        "answered was asked; a dirty line leaves by a store, an invalidation or its warp's end alone: 3 registers, 2 "
        "lines, 1 lane",
        long=True,
    ),
    "one line was released first": Proof(
        Order, "prove", 1, "of any of four lines, exactly one was released before the others, whatever happens to them"
    ),
    "a value is filled and read, and stored": Proof(Traffic, "cover", 12, "each by itself; dirty lines alone"),
}  # fmt: skip
