"""Merges the accesses of one warp to the same cache line: in the LSU, before the L1.

Kloosterman's thesis, sections 3.1 and 3.3.3, table 3.1: one instruction, whose 256 bytes there are 32 addresses and 32
words of store data; the mapping pattern is identified on the way out (section 3.3.6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import lowest, select
from lockstep.spec.mapping import LINE_WORDS, Mapping
from lockstep.spec.parameters import MAX_WARPS, TICKETS

ADDRESS_BITS = 32
LINE_SHIFTS = range(5, 8)  # lines of 32, 64 and 128 bytes
SIZES = range(5)  # accesses of 1 to 16 bytes
LEAD_BITS = 6  # of a word's number minus a lane's
SOURCE = ("store", "atomic", "bypass", "warp", "ticket")  # what a line has from its instruction
GROUP = 8  # lanes that are searched as one; with 4 to 7 the longest path is no shorter


class IntraWarpCoalescer(wiring.Component):
    """Turns a warp's memory instruction into requests for lines, one per cycle, until every active lane is in one.

    Lines leave in the order of their lowest lane that is still pending. Latency: a line is presented three cycles after
    its instruction was accepted: its addresses kept, the line and its lanes found, its mapping found on the way to the
    output register. One instruction is held, and the next is accepted as the last line of it is found, so instructions
    follow each other without a gap. One without active lanes is accepted and leaves nothing. A line that is presented
    holds.

    A load's line with the mapping *random* needs an entry of the thread-map table: whoever accepts the line allocates
    it, and accepts none that there is no entry for.

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
    request : In, stream, ready combinational
        ``address`` (aligned to the access) and ``mask`` of the lanes; ``size``, log2 of the bytes per lane, 0 to 4;
        ``store``, ``atomic``, ``bypass`` (the L1), ``warp`` and ``ticket`` come out again with each line.
    line : Out, stream
        ``number``: the line's address divided by its size. ``mask``: its lanes. ``last``: no line of the instruction
        follows. ``mapping``, with the first lane in ``thread`` and its word in ``word`` (:class:`Mapping`). ``words``:
        with *random* the word of every lane, of the lanes outside ``mask`` too; otherwise 0.
    """

    LARGEST: ClassVar = {"lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS}
    constant: ClassVar = ("line_shift",)
    combinational: ClassVar = {"request.ready": ("line.ready", "line_shift")}

    def __init__(self, *, lanes: int = 32, warps: int = 48, tickets: int = TICKETS) -> None:
        for what, value, most in ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tickets", tickets, TICKETS):
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        self._lanes = lanes
        source = dict(zip(SOURCE, (1, 1, 1, bits_for(warps - 1), bits_for(tickets - 1)), strict=True))
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
                "word": range(LINE_WORDS),
                "words": data.ArrayLayout(range(LINE_WORDS), lanes),
                **source,
            }
        )
        super().__init__(
            {
                "line_shift": In(bits_for(LINE_SHIFTS[-1])),
                "request": In(stream.Signature(request)),
                "line": Out(stream.Signature(line)),
            }
        )
        # The instruction that is served. A lead is the number of a lane's word in its line minus the lane's own: the
        # same for all lanes of a run.
        sector = ADDRESS_BITS - LINE_SHIFTS[0]  # bits of the number of a line of the smallest size
        mapped = {"leads": data.ArrayLayout(LEAD_BITS, lanes), "mask": lanes, "outside": LEAD_BITS, **source}
        entry = data.StructLayout({"sectors": data.ArrayLayout(sector, lanes), **mapped})
        self._entry = Signal(entry, reset_less=True, name="entry")
        self._pending = Signal(lanes, name="pending")  # its lanes that are in no line yet
        # The line found last, which is mapped next, beside what is from its entry: ``mask`` has the lanes of all lines.
        line_found = {"number": sector, "thread": bits_for(lanes - 1), "lead": LEAD_BITS, "here": lanes, "last": 1}
        found = data.StructLayout({**line_found, **mapped})
        self._found = Signal(found, reset_less=True, name="found")
        self._found_valid = Signal(name="found_valid")  # it is not in the output register yet
        # The output register: the line, and all lanes' words.
        presented = {name: field.shape for name, field in line if name != "words"}
        self._presented = Signal(data.StructLayout(presented), name="presented")
        self._words = Signal(line["words"].shape, reset_less=True, name="words")

    @property
    def lanes(self) -> int:
        return self._lanes

    def elaborate(self, platform: object) -> Module:
        m = Module()
        vacant, moves = Signal(name="vacant"), Signal(name="moves")  # the output register, the line found make room
        finds, accepts = Signal(name="finds"), Signal(name="accepts")
        pending = self._pending.any()
        line, entry = self._line_of(m), self._arriving(m)
        m.d.comb += [
            vacant.eq(~self.line.valid | self.line.ready),
            moves.eq(vacant | ~self._found_valid),
            finds.eq(moves & pending),
            self.request.ready.eq(~pending | moves & line.last),
            accepts.eq(self.request.valid & self.request.ready),
        ]
        m.d.sync += self._found_valid.eq(finds | self._found_valid & ~vacant)
        with m.If(finds):
            m.d.sync += [self._found.eq(line), self._pending.eq(self._pending & ~line.here)]
        with m.If(accepts):
            m.d.sync += [self._entry.eq(entry), self._pending.eq(entry.mask)]
        self._present(m, vacant)
        return m

    def _arriving(self, m: Module) -> data.View:
        """What is kept of the instruction that comes."""
        request, entry = self.request.p, Signal(self._entry.shape(), name="arriving")
        inside, double = Signal(LINE_SHIFTS[-1], name="inside"), Signal(name="double")

        def word(place: Value) -> Value:
            """The number of the word, of 4, 8 or 16 bytes, at a place in the line."""
            return Mux(request.size[2], place >> 4, Mux(double, place >> 3, place >> 2))

        m.d.comb += [
            inside.eq(Cat(self.line_shift > bit for bit in range(LINE_SHIFTS[-1]))),  # bits of a place in a line
            double.eq(request.size[:2] == 3),
            entry.outside.eq(~word(inside)[:LEAD_BITS]),  # bits that the number of a word in a line does not have
            *(entry[name].eq(request[name]) for name in ("mask", *SOURCE)),
        ]
        for lane, (address, sector, lead) in enumerate(zip(request.address, entry.sectors, entry.leads, strict=True)):
            m.d.comb += [
                sector.eq(address[LINE_SHIFTS[0] :]),
                lead.eq(word(address[: LINE_SHIFTS[-1]] & inside) - lane),
            ]
        return entry

    def _line_of(self, m: Module) -> data.View:
        """The line of the lowest pending lane, the lanes that share it, and whether these are all that are pending."""
        entry, pending, line = self._entry, self._pending, Signal(self._found.shape(), name="next_line")
        first = Signal(data.StructLayout({name: len(line[name]) for name in ("number", "lead", "thread")}))
        lanes = zip(entry.sectors, entry.leads, strict=True)
        threads = [Cat(sector, lead, Const(lane, len(line.thread))) for lane, (sector, lead) in enumerate(lanes)]
        shorter = [self.line_shift <= shift for shift in LINE_SHIFTS[:-1]]  # bits that count in shorter lines alone
        counts = Cat(*shorter, Const(-1, len(line.number) - len(shorter)))
        same = Cat(((sector ^ first.number) & counts) == 0 for sector in entry.sectors)
        # No bit that counts is 1 in one pending lane and 0 in another: known before the first of them is.
        ones, zeros = Signal(len(line.number), name="ones"), Signal(len(line.number), name="zeros")
        m.d.comb += [
            Value.cast(first).eq(_first(m, pending, threads)),
            ones.eq(_any_of(pending, entry.sectors)),
            zeros.eq(_any_of(pending, [~sector for sector in entry.sectors])),
            line.number.eq(first.number >> (self.line_shift - LINE_SHIFTS[0])[:2]),
            line.thread.eq(first.thread),
            line.lead.eq(first.lead),
            line.here.eq(pending & same),
            line.last.eq(~(ones & zeros & counts).any()),
            *(line[name].eq(entry[name]) for name in ("leads", "mask", "outside", *SOURCE)),
        ]
        return line

    def _present(self, m: Module, vacant: Value) -> None:
        """Map the line found, and put it into the output register."""
        found, line = self._found, self._presented
        mapping, words = self._map(m)
        with m.If(vacant):
            m.d.sync += self.line.valid.eq(self._found_valid)
        with m.If(vacant & self._found_valid):
            m.d.sync += [
                line.mask.eq(found.here),
                line.mapping.eq(mapping),
                line.word.eq(words[0]),
                *(word.eq(of_lane) for word, of_lane in zip(self._words, words[1:], strict=True)),
                *(line[name].eq(found[name]) for name in ("number", "thread", "last", *SOURCE)),
            ]
        m.d.comb += [
            *(self.line.p[name].eq(line[name]) for name, _ in line.shape()),
            self.line.p.words.eq(Mux(line.mapping == Mapping.RANDOM, Value.cast(self._words), 0)),
        ]

    def _map(self, m: Module) -> tuple[Signal, list[Signal]]:
        """The pattern that the words of the line found make with its lanes; the first lane's word, and all lanes'."""
        found, here = self._found, self._found.here
        first = Signal(range(LINE_WORDS), name="first")
        words = [Signal(range(LINE_WORDS), name=f"word_{lane}") for lane in range(self.lanes)]
        same, run, span = (Signal(self.lanes, name=name) for name in ("same", "run", "span"))
        m.d.comb += first.eq(found.lead + found.thread)
        for lane, (word, lead) in enumerate(zip(words, found.leads, strict=True)):
            in_run = (found.lead + lane)[:LEAD_BITS]  # the lane's word, if the first lane's run comes to it
            m.d.comb += [
                word.eq(lead + lane),
                same[lane].eq(word == first),
                run[lane].eq(lead == found.lead),
                span[lane].eq((lane >= found.thread) & ((in_run & found.outside) == 0)),
            ]
        whole = here == found.mask
        mapping = Signal(Mapping)
        with m.If((here & (here - 1)) == 0):
            m.d.comb += mapping.eq(Mapping.SINGLE)
        with m.Elif(((here & ~run) == 0) & (found.lead == 0) & whole):
            m.d.comb += mapping.eq(Mapping.CONSECUTIVE)
        with m.Elif(((here & ~same) == 0) & whole):
            m.d.comb += mapping.eq(Mapping.BROADCAST)
        with m.Elif(((here & ~run) == 0) & (here == found.mask & span)):
            m.d.comb += mapping.eq(Mapping.RANGE)
        with m.Else():
            m.d.comb += mapping.eq(Mapping.RANDOM)
        return mapping, [first, *words]


def _first(m: Module, mask: Value, values: Sequence[Value]) -> Value:
    """The value at the lowest bit of a mask, found in all groups of lanes at the same time; zero if there is none."""
    groups = [slice(start, start + GROUP) for start in range(0, len(mask), GROUP)]
    filled, found = Signal(len(groups), name="first_filled"), []
    m.d.comb += filled.eq(Cat(mask[group].any() for group in groups))
    for k, group in enumerate(groups):
        onehot, value = Signal(len(mask[group]), name=f"first_onehot_{k}"), Signal(len(values[0]), name=f"first_{k}")
        m.d.comb += [onehot.eq(lowest(mask[group])), value.eq(select(onehot, values[group]))]
        found.append(value)
    group = Signal(len(groups), name="first_group")
    m.d.comb += group.eq(lowest(filled))
    return select(group, found)


def _any_of(mask: Value, values: Iterable[Value]) -> Value:
    """The bits that are 1 in any of the values in a mask."""
    return reduce(or_, (Mux(each, value, 0) for each, value in zip(mask, values, strict=True)))
