"""Keeps the thread maps that no common pattern encodes, from the intra-warp coalescers to writeback.

Kloosterman's thesis, section 3.3.6, table 3.1: eight entries, each with a word for every thread.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl.bits import index_of, lowest, popcount, select
from lockstep.rtl.signatures import observed
from lockstep.spec.mapping import LINE_WORDS, Mapping
from lockstep.spec.parameters import MAX_MAPS
from lockstep.spec.warppool.parameters import MAX_COALESCERS


class ThreadMapTable(wiring.Component):
    """An entry for each load's line with the mapping *random*, from the line's transfer to its result's.

    Each coalescer has a bank of its own, so that a bank is written once per cycle; results may be of any bank. Latency:
    what is taken or released in a cycle shows in ``free`` and ``entry`` in the next, and can be looked up from then on.

    The environment transfers no line that needs an entry when its bank has none, and releases only what is in use.

    Parameters
    ----------
    lanes : int
        Threads of a warp.
    entries : int
        Of all banks; a multiple of ``coalescers``.
    coalescers : int
        Banks. Bank k has the entries from ``k * entries / coalescers`` on.

    Members
    -------
    line : In, observed, array
        The loads' lines of each coalescer. One with the mapping *random* takes the lowest free entry of its bank, which
        keeps ``mask`` and ``words``.
    free : Out, array
        Free entries of each bank.
    entry : Out, array
        The lowest free entry of each bank, numbered across the banks; the bank's first when none is free.
    result : In, observed
        A load's, with the mapping *random*, releases the entry ``word``.
    lookup : In
        An entry.
    map : Out, combinational
        ``mask`` and ``words`` that it keeps; zero when it is not in use.

    Raises
    ------
    ValueError
        for a size out of range, and for entries that the banks cannot share evenly.
    """

    LARGEST: ClassVar = {"lanes": 32, "entries": MAX_MAPS, "coalescers": MAX_COALESCERS}
    combinational: ClassVar = {"map": ("lookup",)}

    def __init__(self, *, lanes: int = 32, entries: int = 8, coalescers: int = 2) -> None:
        for what, value, most in (
            ("lanes", lanes, 32), ("entries", entries, MAX_MAPS), ("coalescers", coalescers, MAX_COALESCERS)
        ):  # fmt: skip
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        if entries % coalescers:
            raise ValueError(f"entries must be a multiple of the {coalescers} coalescers, not {entries}")
        self._entries = entries
        self._coalescers = coalescers
        words = data.ArrayLayout(range(LINE_WORDS), lanes)
        line = data.StructLayout({"mask": lanes, "mapping": Mapping, "words": words})
        result = data.StructLayout({"mapping": Mapping, "word": range(LINE_WORDS), "atomic": 1})
        super().__init__(
            {
                "line": In(observed(line)).array(coalescers),
                "free": Out(range(MAX_MAPS + 1)).array(coalescers),
                "entry": Out(range(MAX_MAPS)).array(coalescers),
                "result": In(observed(result)),
                "lookup": In(range(MAX_MAPS)),
                "map": Out(data.StructLayout({"mask": lanes, "words": words})),
            }
        )

    @property
    def entries(self) -> int:
        return self._entries

    @property
    def coalescers(self) -> int:
        return self._coalescers

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = range(self.coalescers)
        size = self.entries // self.coalescers
        used = [Signal(size, name=f"used_{k}") for k in banks]

        result = self.result.payload
        release = self.result.valid & self.result.ready & (result.mapping == Mapping.RANDOM) & ~result.atomic
        released = Signal(self.entries)
        looked_up = Signal(self.entries)
        m.d.comb += [
            released.eq(release << result.word),
            looked_up.eq(Cat(used) & (1 << self.lookup)),
        ]
        hit = Signal(self.coalescers)
        found = []
        for k in banks:
            m.submodules[f"bank_{k}"] = bank = memory.Memory(shape=self.map.shape(), depth=size, init=[])
            write = bank.write_port()
            read = bank.read_port(domain="comb")
            line = self.line[k]
            free, first = Signal(size, name=f"free_{k}"), Signal(size, name=f"first_{k}")
            here = slice(k * size, (k + 1) * size)
            m.d.comb += [
                free.eq(~used[k]),
                first.eq(lowest(free)),
                self.free[k].eq(popcount(free)),
                self.entry[k].eq(k * size + index_of(first)),
                write.en.eq(line.valid & line.ready & (line.payload.mapping == Mapping.RANDOM)),
                write.addr.eq(index_of(first)),
                write.data.mask.eq(line.payload.mask),
                write.data.words.eq(line.payload.words),
                read.addr.eq(self.lookup - k * size),
                hit[k].eq(looked_up[here].any()),
            ]
            m.d.sync += used[k].eq((used[k] | first & write.en.replicate(size)) & ~released[here])
            found.append(Value.cast(read.data))
        m.d.comb += self.map.eq(select(hit, found))
        return m
