"""Keeps the thread maps that no common pattern encodes, from the intra-warp coalescers to writeback.

Kloosterman's thesis, section 3.3.6, table 3.1: eight entries of 1 + 32 x 10 bits. An entry for each line needs a word
and a bit for every lane; one for each load, the other reading, a word and a line for every lane.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import index_of, lowest, popcount
from lockstep.rtl.signatures import observed
from lockstep.spec.mapping import LINE_WORDS, Mapping
from lockstep.spec.parameters import MAX_MAPS
from lockstep.spec.warppool.parameters import MAP_PER, MAX_COALESCERS


class ThreadMapTable(wiring.Component):
    """An entry for each load's line with the mapping *random*, or for each load that has such lines.

    All coalescers share the entries, and each has a write port. Coalescer k gets the lowest free entry that none of
    those below it asks for. A load's entry is held from the transfer of its first random line until its last line has
    been transferred and all its random lines' results have been; a line's from its transfer to its result's. Latency:
    what is taken in a cycle can be looked up from the next on; what is released can be taken from the one after that.

    The environment transfers no line that is not admitted, and releases only what is in use. A coalescer transfers all
    lines of a load, in turn, before another's. The lanes of a load's lines are different, and a random line has two or
    more.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    entries : int
        Of the table.
    coalescers : int
        Ports.
    map_per : int
        Of which there is an entry for each, a number in ``MAP_PER``: 0, *line*, or 1, *load*.

    Members
    -------
    line : In, observed, array
        The loads' lines of each coalescer. One with the mapping *random* leaves ``mask`` and ``words`` in its entry;
        by *load*, ``thread`` is its lowest lane, and ``last`` says that the load has no other line.
    admits : Out, combinational, array
        Whether the line presented finds an entry or needs none.
    entry : Out, combinational, array
        Its entry; 0 if it needs none, and not valid if it finds none.
    result : In, observed
        A load's, with the mapping *random*, releases the entry ``word``, or its part of it.
    lookup : In
        An ``entry``, and, by *load*, the ``thread`` of a line in it.
    map : Out, combinational
        ``mask`` of the line and ``words`` that it keeps; zero when it is not in use.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"lanes": 32, "entries": MAX_MAPS, "coalescers": MAX_COALESCERS, "map_per": len(MAP_PER) - 1}
    combinational: ClassVar = {
        "map": ("lookup",),
        "admits": ("line.valid", "line.payload"),
        "entry": ("line.valid", "line.payload"),
    }

    def __init__(self, *, lanes: int = 32, entries: int = 8, coalescers: int = 2, map_per: int = 0) -> None:
        arguments = {"lanes": lanes, "entries": entries, "coalescers": coalescers, "map_per": map_per}
        for what, value in arguments.items():
            least = what != "map_per"
            ranges.check(what, value, int(least), self.LARGEST[what])
        self._entries = entries
        self._per_load = MAP_PER[map_per] == "load"
        thread = bits_for(lanes - 1)
        words = data.ArrayLayout(range(LINE_WORDS), lanes)
        line = {"mask": lanes, "mapping": Mapping, "words": words, "thread": thread, "last": 1}
        lookup = {"entry": range(MAX_MAPS), "thread": thread}
        most = max(lanes // 2, 1) if self._per_load else 1  # results that release an entry
        result = data.StructLayout({"mapping": Mapping, "word": range(LINE_WORDS), "atomic": 1})
        # By lane, its word, and the line that it is in: its thread, or the lane's own number if it is in none; where
        # an entry has one line, whether it is in that.
        kept = data.StructLayout({"line": thread if self._per_load else 1, "word": range(LINE_WORDS)})
        self._maps = Memory(shape=data.ArrayLayout(kept, lanes), depth=entries, init=[])
        self._due = [Signal(range(most + 1), name=f"due_{entry}") for entry in range(entries)]  # results, by entry
        # How many entries are free, at most one for each coalescer: bit i is set if more than i are. What is released
        # shows a cycle later, so that little has to be known before a line may leave.
        self._spare = Signal(coalescers, init=(1 << min(coalescers, entries)) - 1, name="spare")
        # One-hot, by coalescer: the entry of the load of which it has further lines.
        self._open = [Signal(entries, name=f"open_{k}") for k in range(coalescers if self._per_load else 0)]
        super().__init__(
            {
                "line": In(observed(data.StructLayout(line))).array(coalescers),
                "admits": Out(1).array(coalescers),
                "entry": Out(range(MAX_MAPS)).array(coalescers),
                "result": In(observed(result)),
                "lookup": In(data.StructLayout(lookup)),
                "map": Out(data.StructLayout({"mask": lanes, "words": words})),
            }
        )

    @property
    def entries(self) -> int:
        return self._entries

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.maps = self._maps
        used, released = Signal(self.entries, name="used"), Signal(self.entries, name="released")
        result = self.result.payload
        releases = self.result.valid & self.result.ready & (result.mapping == Mapping.RANDOM) & ~result.atomic
        m.d.comb += [
            used.eq(reduce(or_, self._open, Cat(due.any() for due in self._due))),
            released.eq(releases << result.word),
        ]
        self._look_up(m, used)
        free, spare, taken = ~used, self._spare, Const(0, self.entries)
        count = popcount(free)
        more: Value = Cat(count > i for i in range(2 * len(spare)))
        for k, line in enumerate(self.line):
            entry, takes, left = (Signal(self.entries, name=f"{name}_{k}") for name in ("entry", "takes", "left"))
            needs, new = Signal(name=f"needs_{k}"), Signal(name=f"new_{k}")
            place, known = lowest(free), Const(0)
            if self._per_load:
                own = self._open[k]
                place, known = Mux(own.any(), own, place), own.any()
                with m.If(line.valid & line.ready):
                    m.d.sync += own.eq(Mux(line.payload.last, 0, own | entry))
            m.d.comb += [
                needs.eq(line.valid & (line.payload.mapping == Mapping.RANDOM)),
                new.eq(needs & ~known),
                self.admits[k].eq(~new | spare[0]),
                entry.eq(Mux(needs, place, 0)),
                self.entry[k].eq(index_of(entry)),
                takes.eq(entry & line.ready.replicate(self.entries)),
                left.eq(free & ~entry),
            ]
            free, taken = left, taken | takes
            spare, more = Mux(new, spare[1:], spare), Mux(new & line.ready, more[1:], more[:-1])
            self._write(m, k, needs & line.ready, known)
        m.d.sync += self._spare.eq(more)
        for due, more, less in zip(self._due, taken, released, strict=True):
            m.d.sync += due.eq(due + more - less)
        return m

    def _write(self, m: Module, k: int, takes: Value, known: Value) -> None:
        """Coalescer k's line goes into its entry: all lanes, or, if the entry is known, those that are in the line."""
        port, line = self._maps.write_port(granularity=1 if self._per_load else None), self.line[k].payload
        m.d.comb += [
            port.addr.eq(self.entry[k]),
            port.en.eq(takes.replicate(len(port.en)) & (line.mask | ~known.replicate(len(port.en)))),
        ]
        for lane, (kept, inside, word) in enumerate(zip(port.data, line.mask, line.words, strict=True)):
            number = Mux(inside, line.thread, lane) if self._per_load else inside
            m.d.comb += [kept.line.eq(number), kept.word.eq(word)]

    def _look_up(self, m: Module, used: Value) -> None:
        port = self._maps.read_port(domain="comb")
        m.d.comb += port.addr.eq(self.lookup.entry)
        with m.If((used & (1 << self.lookup.entry)).any()):
            for lane, kept in enumerate(port.data):
                inside = kept.line == self.lookup.thread if self._per_load else kept.line
                m.d.comb += [self.map.mask[lane].eq(inside), self.map.words[lane].eq(kept.word)]
