"""Keeps the metadata words of a shard's warps, and tells the other blocks what they say when its time has come.

Kloosterman's thesis, section 4.5.4, and the metadata store of section 4.5. ``spec/register_regions.py`` has the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from lockstep.rtl.bits import index_of, lowest, next_after, popcount, select
from lockstep.rtl.regless._layouts import METADATA, check, preload_of, region_of, sent_of
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.register_regions import (
    BANKS,
    ENTRIES,
    ENTRY_BITS,
    FLAGS_SLOTS,
    HEADER_ENTRIES,
    HEADER_ENTRIES_SHIFT,
    HEADER_USAGE_BITS,
    INSTRUCTION_SLOTS,
    MAX_SLOTS,
    REGISTER_BITS,
    SINGLE_COUNT_BITS,
    SINGLE_COUNT_SHIFT,
    SINGLE_ENTRIES,
    SINGLE_ENTRIES_SHIFT,
    SINGLE_USAGE_SHIFT,
    SLOT_BITS,
    Entry,
    Kind,
)
from lockstep.spec.regless.parameters import MAX_REGISTERS, MAX_WORDS, WORDS

PLACES = {
    Kind.HEADER: (HEADER_ENTRIES, HEADER_ENTRIES_SHIFT),
    Kind.ENTRIES: (ENTRIES, 0),
    Kind.SINGLE: (SINGLE_ENTRIES, SINGLE_ENTRIES_SHIFT),
}
"""How many entries a word has, and the lowest bit of the first."""


class Phase(IntEnum):
    """What happens to the first word of a warp."""

    BETWEEN = 0  # it is announced when the warp wants a region
    ANNOUNCED = 1
    STARTED = 2  # its entries are sent
    RUNNING = 3  # its flags go to what issues


class RegionMetadata(wiring.Component):
    """A queue of metadata words for each warp. The first word is of the warp's current region, or of its next.

    When a warp is ``wanted`` and its next region's first word is there, the ``region`` is announced. After its
    ``start`` the words leave the queue one by one as their entries are sent, each to its bank, the entries of a word at
    the same time to different banks, up to a word that has room for one more, or the first with flags. Words with flags
    stay until what has issued has taken all slots of them. Words are stored in order while there is ``room``, also
    those of regions behind; a region with more words than places comes as its entries leave.

    Latency: from ``word`` to ``region`` 2 cycles, from ``start`` to ``preload`` 2; a word follows in the next cycle, or
    in the second if it is of the same warp. ``sent`` is seen one cycle after the transfers, ``flags`` one after
    ``issue``. Payloads are zero while they are not valid.

    The environment gives words in the order of ``spec/register_regions.py``, of warps with ``room``; starts regions
    that were announced, and issues as many slots as they have when their last entry has been ``sent`` and all their
    words are there; it flushes a warp that has issued all of its region, or does so in this cycle, and gives it no word
    then.

    Parameters
    ----------
    warps : int
        Warps of the shard.
    registers : int
        Registers of a warp.
    banks : int
        1, 2, 4 or 8. A register is in bank (warp + number) mod banks.
    words : int
        Places for words of each warp: 2, 4, 8 or 16, and no fewer than the words with flags that a region has.

    Members
    -------
    room : Out, one bit per warp
        Warps of which a word can be taken.
    word : In, event
        A metadata word of ``warp``, without its mark.
    flush : In, event
        ``warp`` has jumped or ended: words of the regions behind are dropped.
    wanted : In, one bit per warp
        Warps whose next region may be announced.
    region : Out, event
        The next region of ``warp``, and its ``usage``.
    start : In, event
        The region of ``warp`` has its lines.
    preload : Out, stream, one per bank
        ``action`` (:class:`Entry`) on a register.
    sent : Out, event
        So many ``entries`` of ``warp`` were transferred in the last cycle; with ``last``, all of its region have been.
    issue : In, event
        An instruction of ``warp`` issues, which has ``slots``.
    last : Out, event
        It is the last one of its region.
    flags : Out, event
        The slots of the instruction that has issued; those that it does not have are zero.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "registers": MAX_REGISTERS, "banks": BANKS, "words": MAX_WORDS}

    def __init__(self, *, warps: int = 16, registers: int = 255, banks: int = BANKS, words: int = WORDS) -> None:
        check(dict(warps=warps, registers=registers, banks=banks, words=words), self.LARGEST)
        if banks & (banks - 1):
            raise ValueError(f"banks must be a power of two, not {banks}")
        if words == 1 or words & (words - 1):
            raise ValueError(f"words must be a power of two from 2 on, not {words}")
        self.combinational: Mapping[str, tuple[str, ...]] = {"last": ("issue",)}
        number = {"warp": bits_for(warps - 1)}
        warp = data.StructLayout(number)
        slots = data.ArrayLayout(SLOT_BITS, INSTRUCTION_SLOTS)
        super().__init__(
            {
                "room": Out(warps, init=(1 << warps) - 1),
                "word": In(event(data.StructLayout({**number, "word": METADATA}))),
                "flush": In(event(warp)),
                "wanted": In(warps),
                "region": Out(event(region_of(warps, banks))),
                "start": In(event(warp)),
                "preload": Out(stream.Signature(preload_of(warps, registers))).array(banks),
                "sent": Out(event(sent_of(warps))),
                "issue": In(event(data.StructLayout({**number, "slots": range(INSTRUCTION_SLOTS + 1)}))),
                "last": Out(event(warp)),
                "flags": Out(event(data.StructLayout({**number, "slots": slots}))),
            }
        )
        self.words = words
        # The state; proofs speak of it. Places with an even number are in one memory, those with an odd one in another.
        self.phase = [Signal(Phase, name=f"phase_{w}") for w in range(warps)]
        self.first = [Signal(range(words), name=f"first_{w}") for w in range(warps)]
        self.count = [Signal(range(words + 1), name=f"count_{w}") for w in range(warps)]
        self.at = [Signal(range(FLAGS_SLOTS), name=f"at_{w}", reset_less=True) for w in range(warps)]
        self.left = [Signal(range(MAX_SLOTS + 1), name=f"left_{w}", reset_less=True) for w in range(warps)]
        self.store = [Memory(shape=METADATA, depth=warps * words // 2, init=[]) for _ in range(2)]
        # The word that was looked at, and what is still to be sent of the one before.
        self.looked, self.announces, self.looked_odd = (Signal(name=n) for n in ("looked", "announces", "looked_odd"))
        self.looked_warp = Signal(bits_for(warps - 1))
        self.pending, self.ends = Signal(ENTRIES, name="pending"), Signal(name="ends")
        entry = data.StructLayout({"number": bits_for(registers - 1), "action": Entry})
        self.entries = Signal(data.ArrayLayout(entry, ENTRIES), reset_less=True)
        bank = unsigned(exact_log2(banks))
        self.entry_banks = Signal(data.ArrayLayout(bank, ENTRIES), reset_less=True)  # to which the entries go
        self.entries_warp = Signal(bits_for(warps - 1), reset_less=True)
        # What has issued.
        self.issued, self.issued_odd = Signal(name="issued"), Signal(name="issued_odd", reset_less=True)
        self.issued_warp = Signal(bits_for(warps - 1), reset_less=True)
        self.issued_at = Signal(range(FLAGS_SLOTS), reset_less=True)
        self.issued_slots = Signal(range(INSTRUCTION_SLOTS + 1), reset_less=True)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.even, m.submodules.odd = self.store
        count = len(self.phase)

        def named(port: object, name: str) -> Signal:
            """One-hot: the warp of an event."""
            warp = Signal(count, name=name)
            m.d.comb += warp.eq(Mux(port.valid, 1 << port.payload.warp, 0))  # type: ignore[attr-defined]
            return warp

        told, flushed = named(self.word, "told"), named(self.flush, "flushed")
        starts, issues = named(self.start, "starts"), named(self.issue, "issues")
        announced, leaves, ends = self._look(m, starts)
        finishes, shift = self._issue(m, issues)
        for w, phase in enumerate(self.phase):
            first, length = self.first[w], self.count[w]
            taken = Signal(2, name=f"taken_{w}")
            m.d.comb += [self.room[w].eq(length != self.words), taken.eq(Mux(issues[w], shift, leaves[w]))]
            m.d.sync += first.eq(first + taken)
            m.d.sync += length.eq(Mux(flushed[w], 0, length + told[w] - taken))
            with m.If(announced[w]):
                m.d.sync += phase.eq(Phase.ANNOUNCED)
            with m.If(starts[w]):
                m.d.sync += phase.eq(Phase.STARTED)
            with m.If(ends[w]):
                m.d.sync += phase.eq(Phase.RUNNING)
            with m.If(finishes[w]):
                m.d.sync += phase.eq(Phase.BETWEEN)

        # A word that comes is behind the others.
        places = [(first + length)[: len(first)] for first, length in zip(self.first, self.count, strict=True)]
        place = Signal.like(self.first[0], name="place")
        m.d.comb += place.eq(select(told, places))
        for odd, memory in enumerate(self.store):
            write = memory.write_port()
            m.d.comb += [
                write.addr.eq(Cat(place[1:], self.word.payload.warp)),
                write.data.eq(self.word.payload.word),
                write.en.eq(self.word.valid & (place[0] == odd)),
            ]
        return m

    def _look(self, m: Module, starts: Signal) -> tuple[Signal, Signal, Signal]:
        """Look at the first word of a warp that needs it: announce its region, or send its entries.

        One-hot: the warp whose region is announced; whose word has no flags, and leaves; whose entries end.
        """
        count, of = len(self.phase), self.looked_warp
        own, following, announced, leaves, ends = (
            Signal(count, name=name) for name in ("own", "following", "announced", "leaves", "entries_end")
        )
        candidates, free, place = Signal(count), Signal(name="free"), Signal.like(self.first[0], name="looked_place")
        between = Cat(phase == Phase.BETWEEN for phase in self.phase) & self.wanted
        started = (Cat(phase == Phase.STARTED for phase in self.phase) | starts) & ~own
        sent, remaining = self._send(m), Signal(ENTRIES, name="remaining")
        m.d.comb += [
            own.eq(Mux(self.looked, 1 << of, 0)),
            remaining.eq(self.pending & ~sent),
            free.eq(~self.looked | self.announces | (remaining == 0)),
            candidates.eq(Cat(length != 0 for length in self.count) & (between | started)),
            following.eq(next_after(candidates, of)),
            announced.eq(Mux(free, following & between, 0)),
            place.eq(select(following, self.first)),
        ]
        number, chooses = index_of(following), free & following.any()
        with m.If(free):
            m.d.sync += self.looked.eq(following.any())
        with m.If(chooses):
            m.d.sync += [of.eq(number), self.announces.eq((following & between).any()), self.looked_odd.eq(place[0])]
        reads = [memory.read_port() for memory in self.store]
        for odd, read in enumerate(reads):
            m.d.comb += [read.addr.eq(Cat(place[1:], number)), read.en.eq(chooses & (place[0] == odd))]

        word, single, region = Signal(METADATA, name="looked_word"), Signal(name="single"), self.region
        m.d.comb += [
            word.eq(Mux(self.looked_odd, reads[1].data, reads[0].data)),
            single.eq(word.kind == Kind.SINGLE),
            region.valid.eq(self.looked & self.announces),
        ]
        with m.If(region.valid):
            m.d.comb += region.payload.warp.eq(of)
            for bank, usage in enumerate(region.payload.usage):
                mine = word.payload.word_select(bank, HEADER_USAGE_BITS)
                m.d.comb += usage.eq(Mux(single, word.payload[SINGLE_USAGE_SHIFT + bank], mine))
        slots = Mux(single, word.payload[SINGLE_COUNT_SHIFT:][:SINGLE_COUNT_BITS] + 1, word.slots)
        for w, (at, left) in enumerate(zip(self.at, self.left, strict=True)):
            with m.If(region.valid & own[w]):
                m.d.sync += [at.eq(0), left.eq(slots)]

        entering, flagged, is_last = Signal(name="entering"), Signal(name="flagged"), Signal(name="has_last_entries")
        entries = Signal(self.entries.shape(), name="looked_entries")
        in_last = [Value.cast(entries[count - 1].action) for count in (HEADER_ENTRIES, ENTRIES)]
        m.d.comb += [
            entering.eq(self.looked & ~self.announces & (remaining == 0)),
            flagged.eq((word.kind == Kind.FLAGS) | single),
            is_last.eq(flagged | (Mux(word.kind == Kind.HEADER, *in_last) == Entry.NONE)),
            leaves.eq(Mux(entering & ~flagged, own, 0)),
            ends.eq(Mux(entering & is_last, own, 0)),
        ]
        for k, entry in enumerate(entries):
            places = {kind: shift + ENTRY_BITS * k for kind, (count, shift) in PLACES.items() if k < count}
            kinds = Cat(word.kind == kind for kind in places)
            for into, offset in ((entry.number, 0), (Value.cast(entry.action), REGISTER_BITS)):
                own = [word.payload[place + offset :][: len(into)] for place in places.values()]
                m.d.comb += into.eq(select(kinds, own))
        m.d.sync += [self.pending.eq(remaining), self.ends.eq(self.ends & (remaining != 0))]
        with m.If(entering):
            m.d.sync += [
                self.pending.eq(Cat(entry.action != Entry.NONE for entry in entries)),
                self.ends.eq(is_last),
                self.entries.eq(entries),
                self.entries_warp.eq(of),
                *(bank.eq(of + entry.number) for bank, entry in zip(self.entry_banks, entries, strict=True)),
            ]
        done = Signal()
        m.d.comb += done.eq(self.ends & (remaining == 0))
        m.d.sync += self.sent.valid.eq(sent.any() | done)
        m.d.sync += self.sent.payload.warp.eq(Mux(sent.any() | done, self.entries_warp, 0))
        m.d.sync += [self.sent.payload.entries.eq(popcount(sent)), self.sent.payload.last.eq(done)]
        return announced, leaves, ends

    def _send(self, m: Module) -> Signal:
        """Offer each bank the first of its entries; returns which are transferred."""
        sent = Signal(ENTRIES, name="sent_entries")
        chosen = [Signal(ENTRIES, name=f"chosen_{bank}") for bank in range(len(self.preload))]
        for bank, (port, mine) in enumerate(zip(self.preload, chosen, strict=True)):
            theirs = Signal(ENTRIES, name=f"theirs_{bank}")
            m.d.comb += [
                theirs.eq(self.pending & Cat(each == bank for each in self.entry_banks)),
                mine.eq(lowest(theirs)),
                port.valid.eq(theirs.any()),
                port.p.warp.eq(Mux(port.valid, self.entries_warp, 0)),
                port.p.number.eq(select(mine, [entry.number for entry in self.entries])),
                port.p.action.eq(select(mine, [Value.cast(entry.action) for entry in self.entries])),
            ]
        m.d.comb += sent.eq(
            reduce(or_, (Mux(port.ready, mine, 0) for port, mine in zip(self.preload, chosen, strict=True)))
        )
        return sent

    def _issue(self, m: Module, issues: Signal) -> tuple[Signal, Signal]:
        """Flags of what issues. One-hot: the warp whose region ends with it; and how many words leave."""
        issue, flags = self.issue, self.flags
        first, at, left = (
            Signal.like(each[0], name=f"issue_{name}")
            for name, each in (("first", self.first), ("at", self.at), ("left", self.left))
        )
        last, reach, shift = Signal(name="ends_region"), Signal(range(2 * FLAGS_SLOTS), name="reach"), Signal(2)
        finishes = Signal(len(self.phase), name="finishes")
        m.d.comb += [
            first.eq(select(issues, self.first)),
            at.eq(select(issues, self.at)),
            left.eq(select(issues, self.left)),
            last.eq(issue.valid & (left == issue.payload.slots)),
            reach.eq(at + issue.payload.slots),
            shift.eq(Mux(last, 1 + (reach > FLAGS_SLOTS), reach >= FLAGS_SLOTS)),
            finishes.eq(Mux(last, issues, 0)),
            self.last.valid.eq(last),
            self.last.payload.warp.eq(Mux(last, issue.payload.warp, 0)),
        ]
        for w, (own_at, own_left) in enumerate(zip(self.at, self.left, strict=True)):
            with m.If(issues[w]):
                m.d.sync += own_at.eq(Mux(reach >= FLAGS_SLOTS, reach - FLAGS_SLOTS, reach))
                m.d.sync += own_left.eq(left - issue.payload.slots)
        reads = [memory.read_port() for memory in self.store]
        for odd, read in enumerate(reads):
            place = first if odd else (first + first[0])[: len(first)]
            m.d.comb += [read.addr.eq(Cat(place[1:], issue.payload.warp)), read.en.eq(issue.valid)]
        m.d.sync += self.issued.eq(issue.valid)
        with m.If(issue.valid):
            m.d.sync += [
                self.issued_odd.eq(first[0]), self.issued_warp.eq(issue.payload.warp), self.issued_at.eq(at),
                self.issued_slots.eq(issue.payload.slots),
            ]  # fmt: skip

        slots = Signal((FLAGS_SLOTS - 1 + INSTRUCTION_SLOTS) * SLOT_BITS, name="slots")  # that an instruction may have
        even, odd = (read.data.payload[: FLAGS_SLOTS * SLOT_BITS] for read in reads)
        m.d.comb += [slots.eq(Mux(self.issued_odd, Cat(odd, even), Cat(even, odd))), flags.valid.eq(self.issued)]
        with m.If(self.issued):
            m.d.comb += flags.payload.warp.eq(self.issued_warp)
            for k, slot in enumerate(flags.payload.slots):
                mine = slots[k * SLOT_BITS :].word_select(self.issued_at, SLOT_BITS)
                m.d.comb += slot.eq(Mux(k < self.issued_slots, mine, 0))
        return finishes, shift
