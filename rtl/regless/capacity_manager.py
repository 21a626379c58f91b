"""Starts the regions of a shard's warps when the staging unit has room for them, in front of the warp scheduler.

Kloosterman's thesis, section 4.5.1 and figure 4.9: a state machine for each warp, counters of free lines, a warp stack.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, next_after, popcount, select
from lockstep.rtl.regless._layouts import check, region_of, sent_of
from lockstep.rtl.signatures import event
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.register_regions import BANKS, HEADER_USAGE_BITS
from lockstep.spec.regless.parameters import MAX_BANK_LINES, MAX_PATIENCE, MAX_REGISTERS


class Warp(IntEnum):
    """The state of a warp."""

    ABSENT = 0
    UNKNOWN = 1  # inactive: its next region has not been announced
    KNOWN = 2  # inactive: it waits for the stack
    STACKED = 3  # inactive
    PRELOADING = 4
    ACTIVE = 5
    DRAINING = 6


class CapacityManager(wiring.Component):
    """Holds the lines of each bank that regions need, from their start on, and tells which warps may issue.

    A warp whose next region is known comes to the stack, unless it is ``barred`` then. In a cycle, the warp on top
    starts if each bank has as many free lines as its region needs there; else one warp comes to the stack, in turn.
    After ``patience`` starts from the top while others were below, the warp at the bottom is next, whatever it needs:
    so every warp on the stack starts, if regions end.

    A region has all its lines until the last instruction's accesses are ``delivered``; then only as many as results of
    it are to be written, and the next region may be announced. When none is, the warp is inactive again, or has ended.

    **Beyond the thesis.** There, a warp is pushed as it is deactivated, the top of the stack always starts, and nothing
    is said of barriers, of warps that begin, or of several at once. Here ``barred`` keeps a warp from the stack, since
    it would take lines only to wait. ``patience`` lets the bottom start, which could wait for ever (0 leaves that out).
    Warps come to the stack once their next region is known, one in a cycle, in turn from the one that came last; so the
    top is the last that came, not the last that ran. And the next region may be announced while results of the last one
    are still to be written.

    Latency: ``start`` is seen in the cycle after the decision; a region is active in the cycle after its last answer,
    or after ``sent`` with ``last`` if nothing is due then. After ``last`` the warp is not active in the next cycle. It
    is ``wanted`` in the cycle after ``delivered``, and inactive or ``ended`` in the one after its last result, too.

    The environment announces regions of ``wanted`` warps alone, of which no bank needs more than it has; sends entries
    after ``start`` and answers each once, later; reserves no more than a region needs, and before or when it says
    ``delivered``, which follows ``last``.

    Parameters
    ----------
    warps : int
        Warps of the shard.
    registers : int
        Registers of a warp: the most entries that a region has.
    banks : int
        1, 2, 4 or 8.
    lines : int
        Lines of a bank.
    patience : int
        Starts from the top of the stack before one from its bottom; 0: all are from the top.

    Members
    -------
    begin : In, event
        ``warp`` has been placed.
    wanted : Out, one bit per warp
        Warps whose next region may be announced.
    region : In, event
        The next region of ``warp``: ``usage`` of the banks, by register numbers.
    barred : In, one bit per warp
        Warps that must not come to the stack.
    start : Out, event
        ``warp`` has its lines.
    sent : In, event
        So many ``entries`` of ``warp`` are on their way to the staging unit; with ``last``, all of its region are.
    answered : In, event, one per bank
        An entry of ``warp`` is done.
    active : Out, one bit per warp
        Warps that may issue.
    last : In, event
        ``warp`` issues the last instruction of its region, and, with ``end``, of all.
    reserved, written : In, event, one per bank
        A line of ``warp`` was reserved for a result, or a result was written.
    delivered : In, event
        All accesses of the last instruction of ``warp`` are done.
    ended : Out, one bit per warp
        Warps that ended in the last cycle: nothing of them is due.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {
        "warps": MAX_WARPS, "registers": MAX_REGISTERS, "banks": BANKS, "lines": MAX_BANK_LINES,
        "patience": MAX_PATIENCE,
    }  # fmt: skip

    def __init__(
        self, *, warps: int = 16, registers: int = 255, banks: int = BANKS, lines: int = 16, patience: int = 15
    ) -> None:
        check(dict(warps=warps, registers=registers, banks=banks, lines=lines), self.LARGEST)
        if banks & (banks - 1):
            raise ValueError(f"banks must be a power of two, not {banks}")
        if not 0 <= patience <= MAX_PATIENCE:
            raise ValueError(f"patience must be 0 to {MAX_PATIENCE}, not {patience}")
        number = {"warp": bits_for(warps - 1)}
        warp = data.StructLayout(number)
        super().__init__(
            {
                "begin": In(event(warp)),
                "wanted": Out(warps),
                "region": In(event(region_of(warps, banks))),
                "barred": In(warps),
                "start": Out(event(warp)),
                "sent": In(event(sent_of(warps))),
                "answered": In(event(warp)).array(banks),
                "active": Out(warps),
                "last": In(event(data.StructLayout({**number, "end": 1}))),
                "reserved": In(event(warp)).array(banks),
                "written": In(event(warp)).array(banks),
                "delivered": In(event(warp)),
                "ended": Out(warps),
            }
        )
        # The state; proofs speak of it.
        self.state = [Signal(Warp, name=f"state_{w}") for w in range(warps)]
        self.due = [Signal(range(registers + 1), name=f"due_{w}", reset_less=True) for w in range(warps)]
        self.need, self.pending = (
            [[Signal(HEADER_USAGE_BITS, name=f"{n}_{w}_{b}", reset_less=r) for b in range(banks)] for w in range(warps)]
            for n, r in (("need", True), ("pending", False))
        )
        self.complete, self.collected, self.told, self.ends = (
            Signal(warps, name=n) for n in ("complete", "collected", "told", "ends")
        )
        self.free = [Signal(range(lines + 1), init=lines, name=f"free_{b}") for b in range(banks)]
        self.stack = Memory(shape=bits_for(warps - 1), depth=warps, init=[])
        self.bottom, self.depth = Signal(bits_for(warps - 1), name="bottom"), Signal(range(warps + 1), name="depth")
        self.came = Signal(bits_for(warps - 1), init=warps - 1)  # to the stack, last
        self.patience = patience
        self.starts = Signal(range(patience + 1))  # from the top, while others were below
        # What follows from these, kept since a cycle has no time to find it: the first free place; whether so many
        # have started as may, or one less; the warp that is next, and what it needs.
        self.end = Signal(bits_for(warps - 1))
        self.overdue, self.nearly = Signal(name="overdue"), Signal(init=patience == 1, name="nearly")
        self.candidate = Signal(bits_for(warps - 1), reset_less=True)
        self.needs = [Signal(HEADER_USAGE_BITS, name=f"needs_{b}", reset_less=True) for b in range(banks)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stack = self.stack
        count, banks = len(self.state), range(len(self.free))

        def named(port: object) -> Value:
            """One-hot: the warp of an event."""
            return Mux(port.valid, 1 << port.payload.warp, 0)[:count]  # type: ignore[attr-defined]

        candidate, needs, fits, starts = self.candidate, self.needs, Signal(name="fits"), Signal(name="starts")
        chosen = Signal(count)
        self._stack(m, starts)
        m.d.comb += [
            chosen.eq(1 << candidate),
            fits.eq(Cat(need <= free for need, free in zip(needs, self.free, strict=True)).all()),
            starts.eq(fits & (self.depth != 0)),
        ]
        m.d.sync += [self.start.valid.eq(starts), self.start.payload.warp.eq(Mux(starts, candidate, 0))]

        begun, last, told, sent, delivered = (
            Signal(count, name=n) for n in ("begun", "lasts", "told", "sends", "delivers")
        )
        m.d.comb += [
            begun.eq(named(self.begin)), last.eq(named(self.last)), told.eq(named(self.region)),
            sent.eq(named(self.sent)), delivered.eq(named(self.delivered)),
        ]  # fmt: skip
        reserved, written = ([Signal(count, name=f"{n}_{b}") for b in banks] for n in ("reserves", "writes"))
        m.d.comb += [own.eq(named(port)) for own, port in zip(reserved, self.reserved, strict=True)]
        m.d.comb += [own.eq(named(port)) for own, port in zip(written, self.written, strict=True)]
        answers = [named(port) for port in self.answered]

        for w, state in enumerate(self.state):
            follows = (state == Warp.DRAINING) & self.collected[w] & ~self.told[w] & ~self.ends[w]
            m.d.comb += [self.wanted[w].eq((state == Warp.UNKNOWN) | follows), self.active[w].eq(state == Warp.ACTIVE)]
            complete = self.complete[w] | sent[w] & self.sent.payload.last
            owed, drained = Signal(len(self.due[w]) + 1, name=f"owed_{w}"), Signal(name=f"drained_{w}")
            answered = Signal(range(len(answers) + 1), name=f"answers_{w}")
            m.d.comb += [
                owed.eq(self.due[w] + Mux(sent[w], self.sent.payload.entries, 0)),
                answered.eq(popcount(Cat(each[w] for each in answers))),
            ]
            m.d.sync += [
                self.ended[w].eq(drained & self.ends[w]),
                self.due[w].eq(owed - answered),
                self.complete[w].eq(complete),
            ]
            due = Signal(len(banks), name=f"results_{w}")
            for b in banks:
                need, pending = self.need[w][b], self.pending[w][b]
                then = Signal.like(pending, name=f"pending_then_{w}_{b}")
                m.d.comb += [then.eq(pending + reserved[b][w] - written[b][w]), due[b].eq(then != 0)]
                m.d.sync += pending.eq(then)
                with m.If(told[w]):
                    m.d.sync += need.eq(self.region.payload.usage[(b - w) % len(banks)])
            m.d.comb += drained.eq((state == Warp.DRAINING) & (self.collected[w] | delivered[w]) & (due == 0))
            with m.If(begun[w]):
                m.d.sync += state.eq(Warp.UNKNOWN)
            with m.If(told[w]):
                m.d.sync += [self.due[w].eq(0), self.complete[w].eq(0), self.told[w].eq(1)]
            with m.If(told[w] & (state != Warp.DRAINING)):
                m.d.sync += [state.eq(Warp.KNOWN), self.told[w].eq(0)]
            with m.If(self._comes[w]):
                m.d.sync += state.eq(Warp.STACKED)
            with m.If(starts & chosen[w]):
                m.d.sync += state.eq(Warp.PRELOADING)
            with m.If((state == Warp.PRELOADING) & complete & (owed == answered)):
                m.d.sync += state.eq(Warp.ACTIVE)
            with m.If(last[w]):
                m.d.sync += [state.eq(Warp.DRAINING), self.ends[w].eq(self.last.payload.end)]
            with m.If(delivered[w]):
                m.d.sync += self.collected[w].eq(1)
            with m.If(drained):
                known = Mux(self.told[w] | told[w], Warp.KNOWN, Warp.UNKNOWN)
                m.d.sync += [
                    state.eq(Mux(self.ends[w], Warp.ABSENT, known)), self.collected[w].eq(0), self.told[w].eq(0),
                ]  # fmt: skip
        # A region that is delivered gives back all lines but those that are to be written, and these one by one later.
        for b, free in enumerate(self.free):
            back, once = Signal(HEADER_USAGE_BITS, name=f"back_{b}"), Signal(name=f"once_{b}")
            m.d.comb += [
                back.eq(
                    select(delivered, [each[b] for each in self.need])
                    - select(delivered, [each[b] for each in self.pending])
                    - (delivered & reserved[b]).any()
                    + (delivered & written[b]).any()
                ),
                once.eq((self.collected & written[b]).any()),
            ]
            m.d.sync += free.eq(free - Mux(starts, needs[b], 0) + back + once)
        return m

    def _stack(self, m: Module, starts: Signal) -> None:
        """The warp that comes to the stack, and the one that is next then."""
        count = len(self.state)
        read, write = self.stack.read_port(domain="comb"), self.stack.write_port()
        overdue, ready, end = self.overdue, Signal(count, name="ready"), self.end
        could = Signal(count, name="could_come")
        comes = self._comes = Signal(count, name="comes")
        following = Signal(count, name="following")  # after a start

        def above(place: Value) -> Value:
            """The next place of the ring."""
            return Mux(place == count - 1, 0, place + 1)

        def below(distance: int) -> Value:
            """The place so far below the first free one."""
            return Mux(end < distance, end + (count - distance), end - distance)

        number = index_of(could)
        last = Mux(self.nearly, self.bottom, below(2) if count > 1 else 0)
        m.d.comb += [
            read.addr.eq(Mux(overdue, below(1), last)),
            following.eq(1 << read.data),
            ready.eq(Cat(state == Warp.KNOWN for state in self.state) & ~self.barred),
            could.eq(next_after(ready, self.came)),
            comes.eq(Mux(starts, 0, could)),
            write.en.eq(comes.any()),
            write.addr.eq(end),
            write.data.eq(number),
        ]
        m.d.sync += self.depth.eq(self.depth + comes.any() - starts)
        with m.If(comes.any()):
            m.d.sync += [self.came.eq(number), end.eq(above(end))]
        with m.If(starts):
            limited = int(self.patience != 0)
            done = Mux(overdue | (self.depth == 1), 0, self.starts + limited)
            m.d.sync += [
                self.starts.eq(done), overdue.eq(limited & (done == self.patience)),
                self.nearly.eq(done == self.patience - 1),
            ]  # fmt: skip
            with m.If(overdue):
                m.d.sync += self.bottom.eq(above(self.bottom))
            with m.Else():
                m.d.sync += end.eq(below(1))
        for after, warp, index in ((starts, following, read.data), (comes.any() & ~overdue, could, number)):
            with m.If(after):
                m.d.sync += self.candidate.eq(index)
                m.d.sync += [n.eq(select(warp, [w[b] for w in self.need])) for b, n in enumerate(self.needs)]
