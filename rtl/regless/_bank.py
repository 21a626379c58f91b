"""A bank of the operand staging unit: its lines, their tags, and what it does in a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import beyond, index_of, select
from lockstep.rtl.buffer import Buffer
from lockstep.rtl.regless._layouts import WORD, access_of, fill_layout, named, preload_of, values, write_of
from lockstep.spec.register_regions import ERASE, LAST, Entry
from lockstep.spec.regless.parameters import IN_TURN, POISON, Request

PATIENCE = 7  # cycles in which others go before a preload


class Bank(wiring.Component):
    """Does one thing in a cycle: a write, a fill, an access, a preload; or it stores a dirty line to make room.

    ``write``, ``finish`` and ``fill`` cannot be refused here. ``pushes`` asks for the way to the compressor; with
    ``granted`` it is done in the same cycle, and ``kind``, ``pushed`` and the line's ``words`` follow in the next.
    """

    def __init__(self, *, lanes: int, warps: int, registers: int, lines: int, leaves: int) -> None:
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
                "kind": Out(2),  # a Request, not FINISH
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
        self._lanes, self._leaves = lanes, leaves
        self._memory = Memory(shape=words, depth=lines, init=[])
        # The state; proofs speak of it.
        self.valid, self.held, self.dirty, self.fresh = (
            Signal(lines, name=n) for n in ("valid", "held", "dirty", "fresh")
        )
        self.tag = [Signal(data.StructLayout(name), name=f"tag_{line}", reset_less=True) for line in range(lines)]
        self.accessed = Signal(lines)  # the line of the oldest access, found as that became the oldest, ...
        self.preloaded = Signal(lines)  # ... and of the oldest preload
        if leaves == IN_TURN:
            self.turn = Signal(lines - 1)  # of all but the first, those that leave before the others
        else:  # of each line, which of those before it were released before it
            self.earlier = [Signal(k, init=(1 << k) - 1, name=f"earlier_{k}") for k in range(lines)]
        self.waited = Signal(range(PATIENCE + 1))  # by the preload

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.access, m.submodules.preload, m.submodules.lines = self.access, self.preload, self._memory
        access, preload, count = self.access.o, self.preload.o, len(self.valid)

        # What the bank does, if a write or a fill does not come first: an access, or a preload.
        begins, first, fills = Signal(name="begins"), Signal(name="first"), Signal(name="fills")
        wanted = Signal(self.pushed.shape())
        overdue = (self.waited == PATIENCE) & self.room
        m.d.comb += [
            fills.eq(~self.writes & self.fills),
            begins.eq(preload.valid & overdue | ~access.valid),
            first.eq(~self.writes & ~self.fills),
            *(wanted[name].eq(Mux(begins, preload.p[name], access.p[name])) for name in wanted.shape().members),
        ]
        reads, preloads = first & ~begins, first & begins & preload.valid

        # Its line, the one that it would take, and the one that would have to leave.
        hits, vacant, clean, dirty = (Signal(count, name=name) for name in ("hits", "vacant", "clean", "dirty_lines"))
        found, available = Signal(name="found"), Signal(name="available")
        taken, leaving, after_vacant = (Signal(count, name=name) for name in ("taken", "leaving", "after_vacant"))
        if self._leaves == IN_TURN:
            first_clean, after_clean = self._in_turn(m, clean, "clean")
            first_dirty, _ = self._in_turn(m, dirty, "dirty")
        else:
            first_clean, first_dirty = self.first_released(clean), self.first_released(dirty)
        m.d.comb += [
            hits.eq(Mux(begins, self.preloaded, self.accessed)),
            found.eq(Mux(begins, self.preloaded.any(), self.accessed.any())),
            vacant.eq(~self.valid),
            clean.eq(self.valid & ~self.held & ~self.dirty),
            dirty.eq(self.valid & ~self.held & self.dirty),
            available.eq(~(self.valid & (self.held | self.dirty)).all()),
            after_vacant.eq(beyond(vacant)),
            taken.eq(Mux(vacant.any(), vacant & ~after_vacant, first_clean)),
            leaving.eq(first_dirty),
        ]

        # What comes of it.
        action = preload.p.action
        last, invalidates = action == Entry.PRELOAD_LAST, action == Entry.INVALIDATE
        misses, stores, sends = (Signal(name=name) for name in ("misses", "stores", "sends"))
        evicts, reserves, fetched, takes = (Signal(name=name) for name in ("evicts", "reserves", "fetched", "takes"))
        m.d.comb += [
            misses.eq(~found & (reads & access.p.result | preloads & ~invalidates)),
            stores.eq(misses & ~available),
            sends.eq(preloads & (~found & (available | invalidates) | found & (last | invalidates))),
            self.pushes.eq(sends | stores),
            access.ready.eq(reads & (found | ~access.p.result | available)),
            preload.ready.eq(preloads & Mux(sends, self.granted, found)),
            evicts.eq(stores & self.granted),
            reserves.eq(access.ready & access.p.result),
            fetched.eq(preload.ready & ~invalidates),
            takes.eq(reserves | fetched),
        ]
        # The tag of a line that leaves is still there in the next cycle.
        asked = Signal(self.pushed.shape(), name="asked", reset_less=True)
        left = Signal(count, name="left", reset_less=True)
        m.d.comb += self.pushed.eq(
            Mux(self.kind == Request.STORE, select(left, [Value.cast(tag) for tag in self.tag]), asked)
        )
        with m.If(self.granted):
            asks = Mux(found | invalidates, Request.DROP, Mux(last, Request.FETCH_LAST, Request.FETCH))
            m.d.sync += [self.kind.eq(Mux(stores, Request.STORE, asks)), asked.eq(wanted), left.eq(leaving)]

        # Lines.
        written, new, place, lacking = (Signal(count, name=name) for name in ("written", "new", "place", "lacking"))
        arrives = Signal.like(wanted, name="arrives")
        freed, released = Signal(count, name="freed"), Signal(count, name="released")
        # A line that is taken in this cycle is the new register's, whatever its tag still says.
        ended = Cat(tag.warp == self.finish for tag in self.tag) & ~new & self.finishes.replicate(count)
        uses = access.ready & ~access.p.result & (access.p.flags & LAST).any()
        ends = self.writes & (self.write.flags & LAST).any()
        m.d.comb += [
            *(arrives[name].eq(Mux(self.writes, self.write[name], self.fill[name])) for name in wanted.shape().members),
            written.eq(self._with(arrives)),
            lacking.eq(Mux(found, 0, taken)),
            place.eq(lacking | hits),
            new.eq(Mux(takes, lacking, 0)),
            released.eq(Mux(uses, self.accessed, 0) | Mux(ends, written, 0)),
            freed.eq(
                Mux(uses & (access.p.flags & ERASE).any(), self.accessed, 0)
                | Mux(ends & (self.write.flags & ERASE).any(), written, 0)
                | Mux(preload.ready & invalidates, self.preloaded, 0)
                | Mux(evicts, leaving, 0)
                | ended
            ),
        ]
        m.d.sync += [
            self.valid.eq((self.valid | new) & ~freed),
            self.held.eq((self.held | Mux(takes, place, 0)) & ~(released | freed)),
            self.dirty.eq(self.dirty & ~new | Mux(self.writes, written, 0) | Mux(fetched & last, place, 0)),
            self.fresh.eq(self.fresh & ~(new | Mux(self.writes, written, 0)) | Mux(reserves, place & ~self.held, 0)),
        ]
        with m.If(takes & ~found):
            m.d.sync += [tag.eq(Mux(one, wanted, tag)) for tag, one in zip(self.tag, taken, strict=True)]
        if self._leaves == IN_TURN:
            # A line that is stored is free then, and the next one that is taken: that sets the turn.
            with m.If(takes & ~found):
                m.d.sync += self.turn.eq(Mux(vacant.any(), after_vacant, after_clean)[1:])
        else:
            for line, earlier in enumerate(self.earlier):
                m.d.sync += earlier.eq(Mux(released[line], -1, earlier & ~released[:line]))
        for buffer, line in (self.access, self.accessed), (self.preload, self.preloaded):
            following, oldest = (self._named(each) == self._named(wanted) for each in (buffer.following, buffer.head))
            is_new = Mux(buffer.moves, following, oldest)
            found_next = Mux(buffer.moves, self._with(buffer.following), line)
            m.d.sync += line.eq(found_next & ~(freed | new) | Mux(is_new, new, 0))

        # Values.
        read, write = self._memory.read_port(), self._memory.write_port(granularity=1)
        fills_all = Signal()
        m.d.comb += [
            read.addr.eq(Mux(stores, index_of(leaving), index_of(self.accessed))),
            read.en.eq(evicts | access.ready & ~access.p.result),
            write.addr.eq(index_of(written)),
            fills_all.eq(fills | (self.fresh & written).any()),
            write.en.eq(Mux(self.writes | fills, self.write.mask | fills_all.replicate(self._lanes), 0)),
            self.words.eq(read.data),
        ]
        for lane, word in enumerate(write.data):
            value = Mux(self.write.mask[lane], self.write.words[lane], Const(POISON, WORD))
            m.d.comb += word.eq(Mux(fills, self.fill.words[lane], value))

        # Events, and how long the preload has waited.
        answers, answered = Signal(), Signal.like(self.answered)
        m.d.comb += [
            answers.eq(fills | preload.ready & (found | invalidates)),
            answered.eq(Mux(fills, self.fill.warp, preload.p.warp)),
        ]
        m.d.sync += [
            self.accesses.eq(access.ready),
            self.answers.eq(answers),
            self.answered.eq(Mux(answers, answered, 0)),
            self.done.eq(0),
        ]
        with m.If(access.ready):
            m.d.sync += [self.done[name].eq(access.p[name]) for name in self.done.shape().members]
        with m.If(preload.ready | ~preload.valid):
            m.d.sync += self.waited.eq(0)
        with m.Elif(~preloads & (self.waited != PATIENCE)):
            m.d.sync += self.waited.eq(self.waited + 1)
        return m

    def _named(self, payload: Any) -> Value:
        """The register of a payload."""
        return Cat(payload[name] for name in self.pushed.shape().members)

    def _with(self, payload: Any) -> Value:
        """The lines with the register of a payload: one at most."""
        return self.valid & Cat(Value.cast(tag) == self._named(payload) for tag in self.tag)

    def _in_turn(self, m: Module, lines: Signal, name: str) -> tuple[Signal, Signal]:
        """Of lines of one list, the next in turn: one-hot; and those that follow it."""
        early, those, after = (Signal.like(lines, name=f"{each}_{name}") for each in ("early", "those", "after"))
        m.d.comb += [
            early.eq(lines & Cat(0, self.turn)),
            those.eq(Mux(early.any(), early, lines)),
            after.eq(Mux(early.any(), beyond(early), beyond(lines))),
        ]
        return those & ~after, after

    def first_released(self, lines: Signal) -> Value:
        """One-hot: of lines of one list, the one that was released first."""
        before = [
            Cat(earlier, 0, *(~later[line] for later in self.earlier[line + 1 :]))
            for line, earlier in enumerate(self.earlier)
        ]
        return Cat(one & ~(lines & those).any() for one, those in zip(lines, before, strict=True))
