"""Proofs about the thread-map table, at reduced sizes: two coalescers, three entries; by load, four lanes."""

from __future__ import annotations

from functools import partial
from typing import Literal

from amaranth.hdl import Array, Assert, Assume, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.bits import lowest, popcount
from lockstep.rtl.warppool.thread_map_table import ThreadMapTable
from lockstep.spec.mapping import Mapping
from lockstep.spec.warppool.parameters import MAP_PER
from lockstep.verif.formal import Proof

COALESCERS, ENTRIES, LANES = 2, 3, 4


class Table(Elaboratable):
    """The table with any lines and results that the protocol allows.

    Counts the results that each entry waits for, and knows the entry of the load of which each coalescer has further
    lines: an entry is in use if either needs it, and what is in use is what the table says.
    """

    def __init__(self, map_per: Literal["line", "load"], lanes: int) -> None:
        self.by_load = map_per == "load"
        self.dut = ThreadMapTable(lanes=lanes, entries=ENTRIES, coalescers=COALESCERS, map_per=MAP_PER.index(map_per))
        self.lanes = lanes
        self.used = Signal(ENTRIES)
        self.takes, self.asks = Signal(COALESCERS), Signal(COALESCERS)
        self.releases = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.dut
        result = dut.result.payload
        random = (result.mapping == Mapping.RANDOM) & ~result.atomic
        due = Array(Signal(range(self.lanes), name=f"due_{entry}") for entry in range(ENTRIES))
        m.d.comb += [
            self.releases.eq(dut.result.valid & dut.result.ready & random),
            *(Assume(Value.cast(each) <= Mapping.RANDOM) for each in (result.mapping, *self.mappings())),
            Assume(~self.releases | (result.word < ENTRIES) & (due[result.word[:2]] != 0)),
        ]
        more, held = Const(0, ENTRIES), Const(0, ENTRIES)  # by lines, and by loads that are open
        for k, line in enumerate(dut.line):
            p, entry = line.payload, Signal(ENTRIES, name=f"entry_{k}")
            needs = line.valid & (p.mapping == Mapping.RANDOM)
            own = self.load(m, k) if self.by_load else Const(0, ENTRIES)
            m.d.comb += [
                self.asks[k].eq(needs & ~own.any()),
                self.takes[k].eq(needs & line.ready),
                entry.eq(1 << dut.entry[k]),
                Assume(~(line.valid & line.ready) | dut.admits[k]),
                Assume(~self.takes[k] | p.mask.any()),
                Assert(needs | dut.admits[k] & (dut.entry[k] == 0)),
            ]
            taken = Mux(self.takes[k], entry, 0)
            with m.If(self.takes[k]):
                m.d.comb += Assert((entry & (self.used | more) & ~own == 0) & (dut.entry[k] < ENTRIES))
                m.d.comb += Assert(~own.any() | (entry == own))
            more, held = more | taken, held | own
        m.d.comb += self.used.eq(held | sum((each != 0) << entry for entry, each in enumerate(due)))
        for entry, each in enumerate(due):
            less = self.releases & (result.word == entry)
            m.d.sync += each.eq(each + more[entry] - less)
            m.d.comb += Assert(dut._due[entry] == each)
        self._priority(m)
        self.specify(m)
        return m

    def mappings(self) -> list[Value]:
        return [line.payload.mapping for line in self.dut.line]

    def load(self, m: Module, k: int) -> Value:
        """Coalescer k's load: its lines have lanes of their own, of which a random one has two or more."""
        line, p = self.dut.line[k], self.dut.line[k].payload
        entry, sent = Signal(ENTRIES, name=f"own_{k}"), Signal(self.lanes, name=f"sent_{k}")
        leaves = line.valid & line.ready
        m.d.comb += [
            Assume(~leaves | p.mask.any() & (p.mask & sent == 0)),
            Assume(~leaves | (lowest(p.mask) == 1 << p.thread)),
            Assume(~leaves | (p.mapping != Mapping.RANDOM) | (popcount(p.mask) > 1)),
            Assert(self.dut._open[k] == entry),
            Assert(~entry.any() | (popcount(entry) == 1) & (popcount(sent) > 1)),
        ]
        with m.If(leaves):
            m.d.sync += sent.eq(Mux(p.last, 0, sent | p.mask))
            with m.If(p.last):
                m.d.sync += entry.eq(0)
            with m.Elif(p.mapping == Mapping.RANDOM):
                m.d.sync += entry.eq(1 << self.dut.entry[k])
        return entry

    def _priority(self, m: Module) -> None:
        """A line is admitted if it asks for no entry, or if more are spare than coalescers below it ask for."""
        dut = self.dut
        spare = Signal(range(ENTRIES + 1), init=ENTRIES)  # free before the last cycle, and not taken in it
        m.d.sync += spare.eq(ENTRIES - popcount(self.used) - popcount(self.takes & self.asks))
        for k in range(COALESCERS):
            below = popcount(self.asks[:k]) if k else 0
            m.d.comb += Assert(dut.admits[k] == (~self.asks[k] | (spare > below)))
        m.d.comb += [
            Assert(spare <= ENTRIES - popcount(self.used)),
            *(Assert(dut._spare[i] == (spare > i)) for i in range(COALESCERS)),
        ]

    def specify(self, m: Module) -> None:
        """What else to prove."""


class KeptByLine(Table):
    """What each entry should keep, beside the table.

    The entry looked up walks round, so that each is seen every ``ENTRIES`` cycles, which is what induction needs; the
    table itself does not depend on it.
    """

    def specify(self, m: Module) -> None:
        dut = self.dut
        kept = Array(Signal(dut.map.shape(), name=f"kept_{entry}") for entry in range(ENTRIES))
        walk = Signal(range(ENTRIES))
        m.d.sync += walk.eq(Mux(walk == ENTRIES - 1, 0, walk + 1))
        m.d.comb += [dut.lookup.entry.eq(walk), Assert(walk < ENTRIES)]
        for k, line in enumerate(dut.line):
            with m.If(self.takes[k]):
                here = kept[dut.entry[k][:2]]
                m.d.sync += [here.mask.eq(line.payload.mask), here.words.eq(line.payload.words)]
        with m.If(self.used.bit_select(walk, 1)):
            m.d.comb += [Assert(Value.cast(dut.map) == Value.cast(kept[walk])), Assert(dut.map.mask.any())]
        with m.Else():
            m.d.comb += Assert(Value.cast(dut.map) == 0)


class KeptByLoad(Table):
    """A random line, any one, is found in its load's entry from its transfer to its result's, as it was."""

    def specify(self, m: Module) -> None:
        dut, result = self.dut, self.dut.result.payload
        choose, answers, follows = Signal(COALESCERS), Signal(), Signal()
        entry, thread = Signal(range(ENTRIES)), Signal(range(self.lanes))
        mask, words = Signal(self.lanes), Signal(dut.map.words.shape())
        others = Array(Signal(range(self.lanes), name=f"others_{e}") for e in range(ENTRIES))  # results of other lines
        m.d.comb += [dut.lookup.entry.eq(entry), dut.lookup.thread.eq(thread)]
        chosen: Value = Const(0)
        for k, line in enumerate(dut.line):
            mine = self.takes[k] & choose[k] & ~follows & ~chosen.any()
            with m.If(mine):
                p = line.payload
                m.d.sync += [follows.eq(1), entry.eq(dut.entry[k]), thread.eq(p.thread), mask.eq(p.mask)]
                m.d.sync += words.eq(p.words)
            with m.Elif(self.takes[k]):
                m.d.comb += Assert(~follows | (dut.entry[k] != entry) | self.dut._open[k].any())
            chosen = chosen | mine
        ends = self.releases & answers & follows & (result.word == entry)
        for e, each in enumerate(others):
            new = sum(self.takes[k] & (dut.entry[k] == e) for k in range(COALESCERS))
            followed = chosen & (sum(self.takes[k] & choose[k] & (dut.entry[k] == e) for k in range(COALESCERS)) != 0)
            m.d.sync += each.eq(each + new - followed - (self.releases & (result.word == e) & ~ends))
        m.d.comb += Assume(~self.releases | ends | (others[result.word[:2]] != 0))
        with m.If(ends):
            m.d.sync += follows.eq(0)
        with m.If(follows):
            m.d.comb += [Assert(self.used.bit_select(entry, 1)), Assert(dut.map.mask == mask)]
            for lane in range(self.lanes):
                m.d.comb += Assert(~mask[lane] | (dut.map.words[lane] == words[lane]))


class Reached(Table):
    def specify(self, m: Module) -> None:
        m.d.comb += [
            Cover(self.used.all() & self.releases),
            Cover(self.takes.all() & self.releases),
            Cover((self.asks.all()) & (self.takes == 1) & ~self.dut.admits[1]),
        ]
        if self.by_load:
            m.d.comb += Cover((self.takes & ~self.asks).any() & self.used.all() & self.releases)


_LINE, _LOAD = "3 entries, 2 coalescers, 2 lanes", f"3 entries, 2 coalescers, {LANES} lanes"
PROOFS = {
    "entries are exclusive, counted and kept": Proof(
        partial(KeptByLine, "line", 2), "prove", ENTRIES + 1,
        "no entry is taken while in use; a line is admitted if more are spare than the coalescers below ask for; one "
        f"in use shows what its line stored, one that is not shows zeros: {_LINE}",
    ),
    "loads' entries are exclusive and counted": Proof(
        partial(Table, "load", LANES), "prove", 2,
        f"the lines of a load get one entry, which is in use until the last of them and all results: {_LOAD}",
    ),
    "a load's entry keeps its lines": Proof(
        partial(KeptByLoad, "load", LANES), "bmc", 8, f"each line's lanes and words until its own result: {_LOAD}",
        long=True,
    ),
    "every entry can be in use": Proof(
        partial(Reached, "line", 2), "cover", 6,
        "all entries in use and one released; both coalescers take one while another is released; the last entry goes "
        "to the lower",
    ),
    "every load's entry can be in use": Proof(
        partial(Reached, "load", LANES), "cover", 8, "the same, and a line joins its load's while all are in use"
    ),
}  # fmt: skip
