"""A bank of the operand staging unit: its lines, their tags, and what it does in a cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import above, index_of, lowest, select
from lockstep.rtl.buffer import Buffer
from lockstep.rtl.regless._layouts import WORD, access_of, fill_layout, named, preload_of, values, write_of
from lockstep.spec.register_regions import ERASE, LAST, Entry
from lockstep.spec.regless.parameters import POISON, Request

PATIENCE = 7  # cycles in which others go before a preload


class Bank(wiring.Component):
    """Does one thing in a cycle: a write, a fill, an access, a preload; or it stores a dirty line to make room.

    ``write``, ``finish`` and ``fill`` cannot be refused here. ``pushes`` asks for the way to the compressor, for
    ``kind``; with ``granted`` it is done in the same cycle, and the line's words follow on ``words`` in the next.
    """

    def __init__(self, *, lanes: int, warps: int, registers: int, lines: int) -> None:
        name = named(warps, registers)
        words = values(lanes)
        super().__init__(
            {
                "write": In(write_of(lanes, warps, registers)),
                "writes": In(1),
                "fill": In(fill_layout(lanes=lanes, warps=warps, registers=registers)),
                "fills": In(1),
                "finish": In(bits_for(warps - 1)),
                "finishes": In(1),
                "room": In(1),
                "granted": In(1),
                "pushes": Out(1),
                "kind": Out(Request),
                "pushed": Out(data.StructLayout(name)),
                "words": Out(words),
                "done": Out(data.StructLayout({**name, "result": 1})),
                "accesses": Out(1),
                "answered": Out(bits_for(warps - 1)),
                "answers": Out(1),
            }
        )
        self.access = Buffer(access_of(warps, registers))
        self.preload = Buffer(preload_of(warps, registers))
        self._lanes = lanes
        self._memory = Memory(shape=words, depth=lines, init=[])
        # The state; proofs speak of it.
        self.valid, self.held, self.dirty, self.fresh = (
            Signal(lines, name=n) for n in ("valid", "held", "dirty", "fresh")
        )
        self.tag = [Signal(data.StructLayout(name), name=f"tag_{line}", reset_less=True) for line in range(lines)]
        self.turn = Signal(bits_for(lines - 1))  # the line that leaves next, if its list has it
        self.waited = Signal(range(PATIENCE + 1))  # by the preload

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.access, m.submodules.preload, m.submodules.lines = self.access, self.preload, self._memory
        access, preload, count = self.access.o, self.preload.o, len(self.valid)

        # What the bank looks at.
        fills, preloads, reads = Signal(name="fills"), Signal(name="preloads"), Signal(name="reads")
        overdue = Signal()
        wanted = Signal(self.pushed.shape())
        m.d.comb += [
            overdue.eq((self.waited == PATIENCE) & self.room),
            fills.eq(~self.writes & self.fills),
            preloads.eq(~self.writes & ~self.fills & preload.valid & (overdue | ~access.valid)),
            reads.eq(~self.writes & ~self.fills & access.valid & ~preloads),
        ]
        for field in ("warp", "number"):
            source = Mux(self.writes, self.write[field], Mux(self.fills, self.fill[field], access.p[field]))
            m.d.comb += wanted[field].eq(Mux(preloads, preload.p[field], source))

        # Its line, the one that it would take, and the one that would have to leave.
        hits, vacant, clean, dirty = (Signal(count, name=name) for name in ("hits", "vacant", "clean", "dirty_lines"))
        found, available = Signal(name="found"), Signal(name="available")
        taken, leaving = Signal(count, name="taken"), Signal(count, name="leaving")
        m.d.comb += [
            hits.eq(self.valid & Cat(Value.cast(tag) == Value.cast(wanted) for tag in self.tag)),
            found.eq(hits.any()),
            vacant.eq(~self.valid),
            clean.eq(self.valid & ~self.held & ~self.dirty),
            dirty.eq(self.valid & ~self.held & self.dirty),
            available.eq(vacant.any() | clean.any()),
            taken.eq(Mux(vacant.any(), lowest(vacant), self._in_turn(m, clean, "clean"))),
            leaving.eq(self._in_turn(m, dirty, "dirty")),
        ]

        # What it does.
        action = preload.p.action
        last, invalidates = action == Entry.PRELOAD_LAST, action == Entry.INVALIDATE
        misses, allocates, evicts, sends = (Signal(name=n) for n in ("misses", "allocates", "evicts", "sends"))
        reserves = Signal()
        m.d.comb += [
            misses.eq(~found & (reads & access.p.result | preloads & ~invalidates)),
            sends.eq(preloads & (~found & (available | invalidates) | found & (last | invalidates))),
            self.pushes.eq(sends | misses & ~available),
            evicts.eq(misses & ~available & self.granted),
            self.kind.eq(
                Mux(
                    misses & ~available, Request.STORE,
                    Mux(found | invalidates, Request.DROP, Mux(last, Request.FETCH_LAST, Request.FETCH)),
                )
            ),
            self.pushed.eq(Mux(misses & ~available, select(leaving, [Value.cast(tag) for tag in self.tag]), wanted)),
            access.ready.eq(reads & (found | ~access.p.result | available)),
            preload.ready.eq(preloads & Mux(sends, self.granted, found)),
            reserves.eq(access.valid & access.ready & access.p.result),
            allocates.eq(misses & available & (reserves | preload.ready)),
        ]  # fmt: skip

        # Lines.
        place, fetched = Signal(count, name="place"), Signal(name="fetched")
        m.d.comb += place.eq(Mux(evicts, leaving, Mux(allocates, taken, hits)))
        m.d.comb += fetched.eq(preloads & preload.ready)
        flags = Mux(self.writes, self.write.flags, access.p.flags)
        ends = (self.writes | access.valid & access.ready & ~access.p.result) & (flags & LAST).any()
        erased = Signal()
        freed, released = Signal(count, name="freed"), Signal(count, name="released")
        # A line that is taken in this cycle is the new register's, whatever its tag still says.
        theirs = Cat(tag.warp == self.finish for tag in self.tag) & ~Mux(allocates, place, 0)
        ended = theirs & self.finishes.replicate(count)
        m.d.comb += [
            erased.eq(ends & (flags & ERASE).any()),
            freed.eq(Mux(evicts | erased | fetched & invalidates, place, 0) | ended),
            released.eq(Mux(ends, place, 0)),
        ]
        holds = reserves | fetched & ~invalidates
        new = Mux(allocates | reserves & ~(self.held & place).any(), place, 0)
        m.d.sync += [
            self.valid.eq((self.valid | Mux(allocates, place, 0)) & ~freed),
            self.held.eq((self.held | Mux(holds, place, 0)) & ~(released | freed)),
            self.dirty.eq(self.dirty & ~Mux(allocates, place, 0) | Mux(self.writes | fetched & last, place, 0)),
            self.fresh.eq(self.fresh & ~Mux(self.writes | allocates, place, 0) | Mux(reserves, new, 0)),
        ]
        with m.If(allocates):
            m.d.sync += [tag.eq(Mux(one, wanted, tag)) for tag, one in zip(self.tag, taken, strict=True)]
        with m.If(evicts | allocates):
            number = index_of(place)
            m.d.sync += self.turn.eq(Mux(number == count - 1, 0, number + 1))

        # Values.
        read, write = self._memory.read_port(), self._memory.write_port(granularity=1)
        fills_all = Signal()
        m.d.comb += [
            read.addr.eq(index_of(place)),
            read.en.eq(evicts | access.valid & access.ready & ~access.p.result),
            write.addr.eq(index_of(place)),
            fills_all.eq(fills | (self.fresh & place).any()),
            write.en.eq(Mux(self.writes | fills, self.write.mask | fills_all.replicate(self._lanes), 0)),
            self.words.eq(read.data),
        ]
        for lane, word in enumerate(write.data):
            written = Mux(self.write.mask[lane], self.write.words[lane], Const(POISON, WORD))
            m.d.comb += word.eq(Mux(fills, self.fill.words[lane], written))

        # Events, and how long the preload has waited.
        m.d.sync += [
            self.accesses.eq(access.valid & access.ready),
            self.answers.eq(fills | fetched & (found | invalidates)),
        ]
        m.d.sync += self.done.eq(0)
        with m.If(access.ready):
            m.d.sync += [self.done[name].eq(access.p[name]) for name in self.done.shape().members]
        m.d.sync += self.answered.eq(Mux(fills | fetched & (found | invalidates), wanted.warp, 0))
        with m.If(preload.ready | ~preload.valid):
            m.d.sync += self.waited.eq(0)
        with m.Elif(~preloads & (self.waited != PATIENCE)):
            m.d.sync += self.waited.eq(self.waited + 1)
        return m

    def _in_turn(self, m: Module, lines: Signal, name: str) -> Signal:
        """Of lines of one list, the next in turn: one-hot."""
        later, chosen = Signal.like(lines, name=f"later_{name}"), Signal.like(lines, name=f"next_{name}")
        m.d.comb += [
            later.eq(lines & above(self.turn, len(lines), itself=True)),
            chosen.eq(Mux(later.any(), lowest(later), lowest(lines))),
        ]
        return chosen
