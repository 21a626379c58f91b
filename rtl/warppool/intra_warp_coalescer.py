"""Merges the accesses of one warp to the same cache line: in the LSU, before the L1.

Kloosterman's thesis, sections 3.1 and 3.3.3, table 3.1: two instructions' addresses of 128 bytes each, one of them
being served and one waiting; the mapping pattern is identified on the way out (section 3.3.6).
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.models.parameters import MAX_WARPS
from lockstep.models.warppool.mapping import Mapping

ADDRESS_BITS = 32
LINE_SHIFTS = range(5, 8)  # lines of 32, 64 and 128 bytes
SIZES = range(5)  # accesses of 1 to 16 bytes
WORDS = 32  # of 4 bytes in the longest line
MAP_ENTRIES = 8  # of the thread-map table
MAX_TOKENS = 32


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
    tokens : int
        Memory instructions in flight in the LSU.

    Members
    -------
    line_shift : In
        Log2 of the line size in bytes, 5 to 7; constant.
    map_free : In
        Free entries of the thread-map table, before the line presented now takes one.
    request : In, stream
        ``address`` (aligned to the access) and ``mask`` of the lanes; ``size``, log2 of the bytes per lane, 0 to 4;
        ``store``, ``atomic``, ``warp`` and ``token`` come out again with each line.
    line : Out, stream
        ``number``: the line's address divided by its size. ``mask``: its lanes. ``last``: no line of the instruction
        follows. ``mapping``, with the first lane in ``thread`` and its word in ``word`` (:class:`Mapping`). ``words``:
        with *random* the word of every lane, of the lanes outside ``mask`` too; otherwise 0.
    """

    LARGEST: ClassVar = {"lanes": 32, "warps": MAX_WARPS, "tokens": MAX_TOKENS}

    def __init__(self, *, lanes: int = 32, warps: int = 48, tokens: int = 8) -> None:
        for what, value, most in ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tokens", tokens, MAX_TOKENS):
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        self._lanes = lanes
        source = {"store": 1, "atomic": 1, "warp": bits_for(warps - 1), "token": bits_for(tokens - 1)}
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
                "map_free": In(range(MAP_ENTRIES + 1)),
                "request": In(stream.Signature(request)),
                "line": Out(stream.Signature(line)),
            }
        )

    @property
    def lanes(self) -> int:
        return self._lanes
