"""Merges the accesses of one warp to the same cache line: in the LSU, before the L1.

Kloosterman's thesis, sections 3.1 and 3.3.3, table 3.1: two instructions' addresses of 128 bytes each, one of them
being served and one waiting; the mapping pattern is identified on the way out (section 3.3.6).
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import index_of, lowest, select
from lockstep.rtl.buffer import Buffer
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import MAX_MAPS, MAX_WARPS, TICKETS

ADDRESS_BITS = 32
LINE_SHIFTS = range(5, 8)  # lines of 32, 64 and 128 bytes
SIZES = range(5)  # accesses of 1 to 16 bytes
WORDS = 32  # of 4 bytes in the longest line


class IntraWarpCoalescer(wiring.Component):
    """Turns a warp's memory instruction into requests for lines, one per cycle, until every active lane is in one.

    Lines leave in the order of their lowest lane that is still pending. Latency: a line is presented two cycles after
    its instruction was accepted, one to the buffer and one to the output register; instructions follow each other
    without a gap. An instruction without active lanes is accepted and leaves nothing. Ready depends on state alone, and
    a line that is presented holds.

    A load's line with the mapping *random* needs an entry of the thread-map table, which whoever accepts the line
    allocates: it is not presented before there is one. Stores and atomics need none.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    warps : int
        Warps of the SM.
    tickets : int
        Memory instructions of a warp that can be in flight.

    Members
    -------
    line_shift : In
        Log2 of the line size in bytes, 5 to 7; constant.
    map_free : In
        Free entries of the thread-map table, before the line presented now takes one.
    request : In, stream
        ``address`` (aligned to the access) and ``mask`` of the lanes; ``size``, log2 of the bytes per lane, 0 to 4;
        ``store``, ``atomic``, ``bypass`` (the L1), ``warp`` and ``ticket`` come out again with each line.
    line : Out, stream
        ``number``: the line's address divided by its size. ``mask``: its lanes. ``last``: no line of the instruction
        follows. ``mapping``, with the first lane in ``thread`` and its word in ``word`` (:class:`Mapping`). ``words``:
        with *random* the word of every lane, of the lanes outside ``mask`` too; otherwise 0.
    """

    LARGEST: ClassVar = {"lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS}
    constant: ClassVar = ("line_shift",)

    def __init__(self, *, lanes: int = 32, warps: int = 48, tickets: int = TICKETS) -> None:
        for what, value, most in ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tickets", tickets, TICKETS):
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        self._lanes = lanes
        source = {
            "store": 1, "atomic": 1, "bypass": 1, "warp": bits_for(warps - 1), "ticket": bits_for(tickets - 1)
        }  # fmt: skip
        request = data.StructLayout(
            {"address": data.ArrayLayout(ADDRESS_BITS, lanes), "mask": lanes, "size": bits_for(SIZES[-1]), **source}
        )
        line = data.StructLayout(
            {
                "number": ADDRESS_BITS - LINE_SHIFTS[0],
                "mask": lanes,
                "last": 1,
                "mapping": Mapping,
                "thread": bits_for(lanes - 1),
                "word": range(WORDS),
                "words": data.ArrayLayout(range(WORDS), lanes),
                **source,
            }
        )
        super().__init__(
            {
                "line_shift": In(bits_for(LINE_SHIFTS[-1])),
                "map_free": In(range(MAX_MAPS + 1)),
                "request": In(stream.Signature(request)),
                "line": Out(stream.Signature(line)),
            }
        )
        self._buffer = Buffer(request)
        self._done = Signal(lanes, name="done")  # lanes of the instruction being served that have been in a line

    @property
    def lanes(self) -> int:
        return self._lanes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = range(self.lanes)
        m.submodules.buffer = buffer = self._buffer
        entry = buffer.o.p
        pending = Signal(self.lanes)
        m.d.comb += [
            buffer.i.valid.eq(self.request.valid & self.request.p.mask.any()),
            buffer.i.p.eq(self.request.p),
            self.request.ready.eq(buffer.i.ready),
            pending.eq(entry.mask & ~self._done),
        ]

        # The line of the lowest pending lane, and the lanes that share it.
        onehot = Signal(self.lanes)
        base = Signal(ADDRESS_BITS)
        thread = Signal(bits_for(self.lanes - 1))
        offset_bits = LINE_SHIFTS[-1]
        in_line = Signal(ADDRESS_BITS)  # the bits of an address that lie within a line
        m.d.comb += [
            onehot.eq(lowest(pending)),
            base.eq(select(onehot, [entry.address[lane] for lane in lanes])),
            thread.eq(index_of(onehot)),
            in_line.eq((1 << self.line_shift) - 1),
        ]
        here = Signal(self.lanes)
        rest = Signal(self.lanes)
        for lane in lanes:
            same_line = ((entry.address[lane] ^ base) & ~in_line) == 0
            m.d.comb += here[lane].eq(pending[lane] & same_line)
        m.d.comb += rest.eq(pending & ~here)

        # Their words, and the pattern that these make with the lanes.
        word = [Signal(range(WORDS), name=f"word_{lane}") for lane in lanes]
        first = Signal(range(WORDS))
        words = Signal(range(WORDS + 1))
        unit = Signal(3)

        def word_of(address: Value) -> Value:
            return ((address[:offset_bits] & in_line) >> unit)[: len(first)]

        m.d.comb += [
            unit.eq(Mux(entry.size > 2, entry.size, 2)),
            first.eq(word_of(base)),
            words.eq((1 << self.line_shift) >> unit),
        ]
        same = Signal(self.lanes)
        run = Signal(self.lanes)
        span = Signal(self.lanes)
        for lane in lanes:
            m.d.comb += [
                word[lane].eq(word_of(entry.address[lane])),
                same[lane].eq(word[lane] == first),
                run[lane].eq(word[lane] + thread == first + lane),
                span[lane].eq((lane >= thread) & (first + lane < thread + words)),
            ]
        whole = here == entry.mask
        mapping = Signal(Mapping)
        with m.If((here & ~onehot) == 0):
            m.d.comb += mapping.eq(Mapping.SINGLE)
        with m.Elif(((here & ~run) == 0) & (first == thread) & whole):
            m.d.comb += mapping.eq(Mapping.CONSECUTIVE)
        with m.Elif(((here & ~same) == 0) & whole):
            m.d.comb += mapping.eq(Mapping.BROADCAST)
        with m.Elif(((here & ~run) == 0) & (here == entry.mask & span)):
            m.d.comb += mapping.eq(Mapping.RANGE)
        with m.Else():
            m.d.comb += mapping.eq(Mapping.RANDOM)

        # The free entries were counted before the line that leaves now took one.
        line = self.line.p
        takes = (line.mapping == Mapping.RANDOM) & ~line.store & ~line.atomic & self.line.valid
        needs = (mapping == Mapping.RANDOM) & ~entry.store & ~entry.atomic
        present = Signal()
        vacant = ~self.line.valid | self.line.ready
        m.d.comb += [
            present.eq(vacant & buffer.o.valid & ~(needs & (self.map_free <= takes))),
            buffer.o.ready.eq(present & (rest == 0)),
        ]
        with m.If(vacant):
            m.d.sync += self.line.valid.eq(present)
        with m.If(present):
            m.d.sync += [
                self._done.eq(Mux(rest == 0, 0, self._done | here)),
                line.number.eq(base >> self.line_shift),
                line.mask.eq(here),
                line.last.eq(rest == 0),
                line.mapping.eq(mapping),
                line.thread.eq(thread),
                line.word.eq(first),
                *(line.words[lane].eq(Mux(mapping == Mapping.RANDOM, word[lane], 0)) for lane in lanes),
                *(line[name].eq(entry[name]) for name in ("store", "atomic", "bypass", "warp", "ticket")),
            ]
        return m
