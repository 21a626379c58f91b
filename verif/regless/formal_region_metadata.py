"""Proofs about the metadata: any words of any regions, of which one register and one slot are followed."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.regless.region_metadata import PLACES, RegionMetadata
from lockstep.spec.register_regions import (
    ENTRIES,
    ENTRY_BITS,
    FLAGS_SLOTS,
    HEADER_ENTRIES,
    HEADER_USAGE_BITS,
    INSTRUCTION_SLOTS,
    MAX_SLOTS,
    REGISTER_BITS,
    SINGLE_COUNT_BITS,
    SINGLE_COUNT_SHIFT,
    SINGLE_USAGE_SHIFT,
    SLOT_BITS,
    Entry,
    Kind,
)
from lockstep.verif.formal import Proof

WARPS, BANKS, WORDS = 2, 2, 2


class Regions(Elaboratable):
    """Each warp gets the words of a region, and those of the next when it has issued that one.

    ``entries``: any one register of a warp is followed until its region runs; else any one slot, in regions without
    entries. The register and the slot are free, and do not change.
    """

    def __init__(self, *, entries: bool) -> None:
        self.entries = entries

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = RegionMetadata(warps=WARPS, registers=4, banks=BANKS, words=WORDS)
        for w in range(WARPS):
            self.follow(m, dut, w)
        m.d.comb += Assume(~dut.flush.valid)
        # What is presented to a bank stays.
        for bank, port in enumerate(dut.preload):
            refused, was = Signal(name=f"refused_{bank}"), Signal.like(Value.cast(port.p), name=f"was_{bank}")
            m.d.sync += [refused.eq(port.valid & ~port.ready), was.eq(port.p)]
            m.d.comb += Assert(~refused | port.valid & (Value.cast(port.p) == was))
        return m

    def follow(self, m: Module, dut: RegionMetadata, w: int) -> None:
        """The region of a warp: its words are in order, and so is what becomes of it."""

        def own(port: object) -> Value:
            return port.valid & (port.payload.warp == w)  # type: ignore[attr-defined]

        given, announced, started, running = (
            Signal(name=f"{name}_{w}") for name in ("given", "announced", "started", "running")
        )
        flagged, due = Signal(name=f"flagged_{w}"), Signal(2, name=f"due_{w}")  # words with flags: some; to come
        closed, found = Signal(name=f"closed_{w}"), self.entries_of(m, dut.word.payload.word, w)  # no more ENTRIES come
        slots, taken = Signal(range(MAX_SLOTS + 1), name=f"slots_{w}"), Signal(range(MAX_SLOTS + 1), name=f"taken_{w}")
        word, comes = dut.word.payload.word, own(dut.word)
        header, single, flags = (word.kind == kind for kind in (Kind.HEADER, Kind.SINGLE, Kind.FLAGS))
        first, complete = header | single, given & (due == 0)
        single_slots = word.payload[SINGLE_COUNT_SHIFT:][:SINGLE_COUNT_BITS] + 1
        m.d.comb += [
            Assume(~comes | dut.room[w] & Mux(given, ~complete & ~first & (flags | ~closed), first)),
            Assume(~(comes & header) | (word.slots != 0) & (word.slots <= FLAGS_SLOTS * WORDS)),
            Assume(~dut.wanted[w] | ~announced),
            Assume(~own(dut.start) | announced & ~started),
            Assert(dut.count[w] <= WORDS),
        ]
        with m.If(comes):
            m.d.sync += closed.eq(Mux(header, found[HEADER_ENTRIES - 1], found[-1])[REGISTER_BITS:] == Entry.NONE)
        with m.If(comes & first):
            m.d.sync += [given.eq(1), flagged.eq(0), taken.eq(0), slots.eq(Mux(single, single_slots, word.slots))]
            m.d.sync += due.eq(Mux(single, 0, Mux(word.slots > FLAGS_SLOTS, 2, 1)))
        with m.Elif(comes & flags):
            m.d.sync += [flagged.eq(1), due.eq(due - 1)]

        usage, issues, count = Signal(HEADER_USAGE_BITS, name=f"usage_{w}"), own(dut.issue), dut.issue.payload.slots
        ends, sent = Signal(name=f"ends_{w}"), own(dut.sent)
        m.d.comb += [
            Assume(~issues | running & complete & (count != 0) & (count <= INSTRUCTION_SLOTS)),
            Assume(~issues | (taken + count <= slots)),
            ends.eq(issues & (taken + count == slots)),
            Assert(own(dut.last) == ends),
            Assert(~sent | started & ~running),
        ]
        with m.If(comes & first):
            m.d.sync += usage.eq(Mux(single, word.payload[SINGLE_USAGE_SHIFT], word.payload[:HEADER_USAGE_BITS]))
        with m.If(own(dut.region)):
            m.d.comb += Assert(given & ~announced & (dut.region.payload.usage[0] == usage))
            m.d.sync += announced.eq(1)
        with m.If(own(dut.start)):
            m.d.sync += started.eq(1)
        with m.If(sent & dut.sent.payload.last):
            m.d.sync += running.eq(1)
        with m.If(issues):
            m.d.sync += taken.eq(taken + count)
        with m.If(ends):
            m.d.sync += [given.eq(0), announced.eq(0), started.eq(0), running.eq(0)]

        if self.entries:
            m.d.comb += Assume(~issues)
            self.follow_register(m, dut, w, comes, first, found, started & ~running)
        else:
            m.d.comb += [Assume(~comes | (entry == 0)) for entry in found]
            self.follow_slot(m, dut, w, comes & (single | flags), flagged, issues, taken)

    def follow_register(
        self, m: Module, dut: RegionMetadata, w: int, comes: Value, first: Value, entries: list[Signal], starts: Value
    ) -> None:
        """Its entry, of which a region has one at most, is sent once, and to its bank."""
        number, action = Signal(2, name=f"number_{w}"), Signal(Entry, name=f"action_{w}")
        sent = Signal(name=f"sent_{w}")
        named, transfers = Signal(ENTRIES, name=f"named_{w}"), Signal(BANKS, name=f"transfers_{w}")
        mine = Cat((entry[:REGISTER_BITS] == number) & (entry[REGISTER_BITS:] != Entry.NONE) for entry in entries)
        m.d.comb += [
            named.eq(Mux(comes, mine, 0)),
            Assume(number == self.constant(m, number, f"number_{w}")),
            Assume((named & (named - 1)) == 0),
            Assume(~named.any() | first | (action == Entry.NONE)),
        ]
        with m.If(comes & first):
            m.d.sync += [action.eq(Entry.NONE), sent.eq(0)]
        for entry, one in zip(entries, named, strict=True):
            m.d.comb += Assume(~comes | (entry[:REGISTER_BITS] < 4))
            with m.If(one):
                m.d.sync += action.eq(entry[REGISTER_BITS:])
        for bank, port in enumerate(dut.preload):
            m.d.comb += transfers[bank].eq(port.valid & port.ready & (port.p.warp == w) & (port.p.number == number))
            with m.If(transfers[bank]):
                m.d.comb += [Assert(starts & ~sent & (port.p.action == action)), Assert((number + w)[0] == bank)]
                m.d.sync += sent.eq(1)
        last = dut.sent.valid & dut.sent.payload.last & (dut.sent.payload.warp == w)
        m.d.comb += [
            Assert(~transfers.all()),
            Assert(~last | (sent == (action != Entry.NONE))),
            Cover(last & sent),
        ]

    def follow_slot(
        self, m: Module, dut: RegionMetadata, w: int, comes: Value, second: Value, issues: Value, taken: Value
    ) -> None:
        """Its flags come with the instruction that has it."""
        slot, value = Signal(range(FLAGS_SLOTS * WORDS), name=f"slot_{w}"), Signal(SLOT_BITS, name=f"value_{w}")
        known, asked = Signal(SLOT_BITS, name=f"known_{w}"), Signal(name=f"asked_{w}")
        offset = Signal(range(INSTRUCTION_SLOTS), name=f"offset_{w}")
        word, flags, behind = dut.word.payload.word, dut.flags, taken + dut.issue.payload.slots
        m.d.comb += Assume(slot == self.constant(m, slot, f"slot_{w}"))
        for half, here in enumerate((~second, second)):
            mine = (slot >= FLAGS_SLOTS * half) & (slot < FLAGS_SLOTS * (half + 1))
            with m.If(comes & here & mine):
                m.d.sync += value.eq(word.payload.word_select((slot - FLAGS_SLOTS * half)[:4], SLOT_BITS))
        m.d.sync += [
            asked.eq(issues & (slot >= taken) & (slot < behind)), offset.eq(slot - taken), known.eq(value),
        ]  # fmt: skip
        with m.If(asked):
            m.d.comb += Assert(flags.valid & (flags.payload.warp == w))
            m.d.comb += [Assert((offset != k) | (seen == known)) for k, seen in enumerate(flags.payload.slots)]
        m.d.comb += [Cover(asked & second), Cover(asked & ~second)]

    @staticmethod
    def constant(m: Module, free: Signal, name: str) -> Value:
        """What a free signal was in the first cycle."""
        begun, was = Signal(name=f"{name}_begun"), Signal(free.shape(), name=f"{name}_was")
        m.d.sync += [begun.eq(1), was.eq(Mux(begun, was, free))]
        return Mux(begun, was, free)

    @staticmethod
    def entries_of(m: Module, word: object, w: int) -> list[Signal]:
        """The entries of a word; 0 where it has none."""
        payload, kind = word.payload, word.kind  # type: ignore[attr-defined]
        found = []
        for k in range(ENTRIES):
            entry: Value = 0
            for own, (count, shift) in PLACES.items():
                if k < count:
                    entry = Mux(kind == own, payload[shift + ENTRY_BITS * k :][:ENTRY_BITS], entry)
            found.append(Signal(ENTRY_BITS, name=f"entry_{w}_{k}"))
            m.d.comb += found[-1].eq(entry)
        return found


PROOFS = {
    "entries are sent once": Proof(
        partial(Regions, entries=True), "bmc", 10,
        "any regions: the usage that is announced is the header's; of any register, its entry is sent "
        "once, to its bank, before the last is said to be sent; what a bank refuses stays: 2 warps, 2 banks, 2 places",
        long=True,
    ),
    "flags come with their instruction": Proof(
        partial(Regions, entries=False), "bmc", 11,
        "any regions without entries: of any slot, the flags come with its instruction; the last "
        "instruction of a region is told: 2 warps, 2 places",
        long=True,
    ),
    "a register is followed": Proof(partial(Regions, entries=True), "cover", 12, "its entry is sent", long=True),
    "a slot is followed": Proof(partial(Regions, entries=False), "cover", 14, "in the first word, and in the second"),
}  # fmt: skip
