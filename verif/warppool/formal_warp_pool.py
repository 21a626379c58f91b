"""Proofs about the joined unit, at the smallest size at which two warps merge: two instructions, two coalescers.

With one coalescer the second instruction's lines come too late to merge with the first one's.

Everything is free but for the protocol: their kinds, what they access, when the L1 answers, when it and the register
file take what they are offered. The blocks have proofs without bound of their own; what these add is the wires between
them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.warppool.warp_pool import WarpPool
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import FERMI
from lockstep.verif.formal import Proof

LANES, WARPS, TICKETS, MERGES, METADATA = 2, 2, 1, 2, 2
SIZES = dict(
    lanes=LANES, warps=WARPS, tickets=TICKETS, warps_per_queue=1, depth=1, queues=2, tags=1, merges=MERGES, maps=2,
    index=FERMI, set_bits=1, metadata=METADATA, quantum=64, store_wait=2, map_per=0,
)  # fmt: skip
LINE_SHIFT, WORD_BITS = 5, 3
ENTERING, END = 2, 22  # cycles in which instructions enter; after which all must have ended
ADDRESSES = LINE_SHIFT + 1  # bits of an address that are free: two lines


class Followed(Elaboratable):
    """An instruction, any one: its lines are sent once, and until all are, its warp is not drained.

    A load's and an atomic's lanes are written once, a load's with their words; a store's never. Every instruction has a
    name of its own, so that what bears the name of the one that is followed is its. With one coalescer there are loads
    alone.
    """

    make = WarpPool

    def __init__(self, coalescers: int) -> None:
        self.coalescers = coalescers

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = self.make(**SIZES, coalescers=self.coalescers)
        enter, access, answer, result = dut.enter, dut.access, dut.answer, dut.result
        m.d.comb += dut.line_shift.eq(LINE_SHIFT)

        # The load/store unit: an instruction is issued when it enters, if its warp may.
        new, named = enter.payload, Signal(WARPS * TICKETS)  # names that were given away
        name = Signal(range(WARPS * TICKETS))
        offered, cycle = Signal(), Signal(range(END + 1))
        with m.If(cycle < END):
            m.d.sync += cycle.eq(cycle + 1)
        aside = new.store | new.atomic
        allowed = Mux(aside, dut.drained, dut.load_ready).bit_select(new.warp, 1)
        fields = ("mask", "bypass", "warp", *(("store", "atomic") if self.coalescers > 1 else ()))
        m.d.comb += [
            enter.valid.eq(offered & (cycle < ENTERING)),
            dut.issue.eq(enter.valid << new.warp),
            dut.issue_load.eq((enter.valid & ~aside) << new.warp),
            name.eq(new.warp * TICKETS + new.ticket),
            *(new[field].eq(Signal.like(new[field], name=field)) for field in fields),
            new.size.eq(2),
            Assume(new.mask != 0),
            Assume(new.store + new.atomic + new.bypass < 2),
            Assume(~enter.valid | allowed & (Array(dut.free)[new.warp] != 0)),
            Assume(~enter.valid | ~named.bit_select(name, 1)),
        ]
        for k, port in enumerate(dut.address):
            m.d.comb += [
                whole.eq(Signal(ADDRESSES - 2, name=f"free_{k}_{lane}") << 2) for lane, whole in enumerate(port)
            ]
        with m.If(enter.valid):
            m.d.sync += named.bit_select(name, 1).eq(1)

        # The L1: it answers what it has, an atomic with its lanes.
        inside = Signal(METADATA)
        reply = Array(Signal(LANES, name=f"reply_{k}") for k in range(METADATA))
        sent = access.valid & access.ready
        m.d.comb += [
            Assume(~answer.valid | inside.bit_select(answer.p.id, 1)),
            answer.p.id.eq(Signal.like(answer.p.id, name="answered")),
            answer.p.mask.eq(reply[answer.p.id]),
            answer.p.atomic.eq(reply[answer.p.id] != 0),
        ]
        with m.If(answer.valid & answer.ready):
            m.d.sync += inside.bit_select(answer.p.id, 1).eq(0)
        with m.If(sent & ~access.p.store):
            m.d.comb += Assert(~inside.bit_select(access.p.id, 1))
            m.d.sync += [
                inside.bit_select(access.p.id, 1).eq(1),
                reply[access.p.id].eq(Mux(access.p.atomic, access.p.mask, 0)),
            ]
        self.inside, self.cycle = inside, cycle

        # The instruction that is followed.
        choose, followed, known = Signal(), Signal(), Signal()
        warp, ticket, mask = Signal.like(new.warp), Signal.like(new.ticket), Signal(LANES)
        address = [Signal(ADDRESSES, name=f"address_{lane}") for lane in range(LANES)]
        self.store, self.atomic = store, atomic = Signal(name="is_store"), Signal(name="is_atomic")
        with m.If(enter.valid & choose & ~followed):
            m.d.sync += [followed.eq(1), warp.eq(new.warp), ticket.eq(new.ticket), mask.eq(new.mask)]
            m.d.sync += [store.eq(new.store), atomic.eq(new.atomic)]
        for asked, given in zip(dut.generate, dut.address, strict=True):
            mine = followed & asked.valid & (asked.payload.warp == warp) & (asked.payload.ticket == ticket)
            with m.If(mine & ~known):
                m.d.sync += [known.eq(1), *(a.eq(b) for a, b in zip(address, given, strict=True))]
            m.d.comb += [Assume(~(mine & known) | (a == b)) for a, b in zip(address, given, strict=True)]

        gone, done = Signal(LANES), Signal(LANES)
        leaving: Value = Const(0, LANES)
        for j, slot in enumerate(access.p.slots):
            its = followed & sent & (j < access.p.count) & (slot.warp == warp) & (slot.ticket == ticket)
            lanes = Cat((a >> LINE_SHIFT) == access.p.number for a in address) & mask
            m.d.comb += [
                Assert(~its | known & (lanes != 0) & (lanes & gone == 0)),
                Assert(~its | (access.p.store == store) & (access.p.atomic == atomic)),
            ]
            with m.If(its & (store | atomic)):
                m.d.comb += Assert((access.p.mask == lanes) & (access.p.last == (gone | lanes == mask)))
            leaving = leaving | Mux(its, lanes, 0)
        m.d.sync += gone.eq(gone | leaving)
        m.d.comb += Assert(~followed | (gone == mask) | ~dut.drained.bit_select(warp, 1))

        written = followed & result.valid & (result.p.warp == warp) & (result.p.ticket == ticket)
        lanes, words = self.decoded(m, result.p, mask)
        with m.If(written):
            m.d.comb += Assert(~store & (result.p.atomic == atomic))
            m.d.comb += Assert((lanes != 0) & (lanes & ~gone == 0) & (lanes & done == 0))
            for lane in range(LANES):
                m.d.comb += Assert(atomic | ~lanes[lane] | (words[lane] == address[lane][2:LINE_SHIFT]))
            with m.If(result.ready):
                m.d.sync += done.eq(done | lanes)
        self.complete = followed & (Mux(store, gone, done) == mask)
        self.lost = followed & (Mux(store, gone, done) != mask)
        self.check(m)
        return m

    def decoded(self, m: Module, result: Any, mask: Value) -> tuple[Value, list[Value]]:
        """Lanes and their words, by the mapping; an atomic's lanes."""
        lanes, words = Signal(LANES), [Signal(5, name=f"word_{lane}") for lane in range(LANES)]
        with m.If(result.atomic):
            m.d.comb += lanes.eq(result.mask)
        with m.Else(), m.Switch(result.mapping):
            with m.Case(Mapping.SINGLE):
                m.d.comb += [lanes.eq(1 << result.thread), *(w.eq(result.word) for w in words)]
            with m.Case(Mapping.BROADCAST):
                m.d.comb += [lanes.eq(mask), *(w.eq(result.word) for w in words)]
            with m.Case(Mapping.CONSECUTIVE):
                m.d.comb += [lanes.eq(mask), *(w.eq(lane) for lane, w in enumerate(words))]
            with m.Case(Mapping.RANGE):
                for lane, word in enumerate(words):
                    place = result.word + lane - result.thread
                    here = mask[lane] & (lane >= result.thread) & (place < 1 << WORD_BITS)
                    m.d.comb += [lanes[lane].eq(here), word.eq(place)]
            with m.Default():
                m.d.comb += [lanes.eq(result.mask), *(a.eq(b) for a, b in zip(words, result.words, strict=True))]
        return lanes, words

    def check(self, m: Module) -> None:
        """What else to prove."""


class Ends(Followed):
    """When all take what they are offered, every lane is written in the end."""

    def check(self, m: Module) -> None:
        dut = self.dut
        with m.If(self.cycle >= ENTERING):
            m.d.comb += [
                Assume(dut.access.ready & dut.result.ready),
                Assume(dut.answer.valid == self.inside.any()),
            ]
        m.d.comb += Assert((self.cycle < END) | ~self.lost)


class Reached(Followed):
    """That the environment leaves room for what matters."""

    def check(self, m: Module) -> None:
        access, merged = self.dut.access.p, Signal()
        both = access.slots[0].warp != access.slots[1].warp
        with m.If(self.dut.access.valid & (access.count == 2) & both & (access.slots[1].mapping == Mapping.RANDOM)):
            m.d.sync += merged.eq(1)
        m.d.comb += Cover(merged & self.complete)


class ReachedAside(Followed):
    """That a store and an atomic, of several lines, end beside another instruction in the other coalescer."""

    def check(self, m: Module) -> None:
        dut = self.dut
        used = Signal(self.coalescers)
        m.d.sync += used.eq(used | Cat(port.valid for port in dut.generate))
        partly = self.dut.access.valid & ~self.dut.access.p.last & (self.dut.access.p.store | self.dut.access.p.atomic)
        lines = Signal()
        with m.If(partly & dut.access.ready):
            m.d.sync += lines.eq(1)
        m.d.comb += [Cover(used.all() & lines & self.complete & kind) for kind in (self.store, self.atomic)]


_SIZE = (
    "2 lanes, 2 warps, 1 ticket, 2 tags of 2 slots, 2 thread maps, 2 metadata entries, 2 lines; both enter in the "
    "first two cycles"
)


def _proof(kind: type[Followed], coalescers: int, mode: Literal["bmc", "cover"], depth: int, doc: str) -> Proof:
    long = coalescers == 2 or kind is Ends
    return Proof(partial(kind, coalescers), mode, depth, f"{doc}; coalescers: {coalescers}, {_SIZE}", long=long)


PROOFS = {
    "one writeback per lane": _proof(
        Followed, 1, "bmc", 14, "a load's lanes: each line sent once, then written once, right words"
    ),
    "all ends": _proof(
        Ends, 1, "bmc", END + 1, f"every lane of a load is written by cycle {END} when nobody makes it wait"
    ),
    "two coalescers": _proof(
        Followed, 2, "bmc", 14,
        "loads, stores and atomics: each line sent once, as what it is, with its lanes, the last one as the last; a "
        "load's and an atomic's lanes written once, right words",
    ),
    "two coalescers, all ends": _proof(
        Ends, 2, "bmc", END + 1, f"every load, store and atomic has ended by cycle {END} when nobody makes it wait"
    ),
    "two coalescers, merged": _proof(
        Reached, 2, "cover", 16, "a load of random mapping merges with another warp's and ends"
    ),
    "two coalescers, reached": _proof(
        ReachedAside, 2, "cover", 16, "a store and an atomic of two lines end beside another instruction"
    ),
}  # fmt: skip
