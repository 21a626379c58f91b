"""Moves the words of a store from its threads to the cache line.

Kloosterman's thesis, sections 3.1 and 3.4.1, counts the words of stores in the coalescers. Here they wait in the
store's entry of the load/store unit, and one crossbar stands at the L1, which takes one line per cycle however many
coalescers there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.lsu.intra_warp_coalescer import LINE_SHIFTS, SIZES
from lockstep.rtl.signatures import event
from lockstep.spec.mapping import LINE_WORDS, REGISTERS

LINE_BYTES = 4 * LINE_WORDS
ROW = 4 * REGISTERS  # bytes that the widest access fills
ROW_BITS = bits_for(ROW - 1)


class StoreCrossbar(wiring.Component):
    """Puts the bytes that the lanes of one line store where their addresses are; the highest lane wins a byte.

    Latency: 2 core cycles from ``store`` to ``write``; registers are taken in the cycle after their ``store``, so that
    they can be read while bytes are given to lanes. Takes a line in every cycle, of any access width.

    Parameters
    ----------
    lanes : int
        Threads of a warp.

    Members
    -------
    line_shift : In
        Log2 of the line size in bytes, 5 to 7; constant.
    store : In, event
        ``mask`` of the lanes whose bytes lie in this line; ``size``, log2 of the bytes per lane, 0 to 4; ``place``, by
        lane: the lowest bits of its address, of which those below the access width and beyond the line do not count.
    registers : In
        By number and lane, lowest address first: those of the store that was there in the cycle before.
    write : Out, event
        ``line``, as words of 32 bits, and by word which of its ``bytes`` are stored; the others are 0. The payload
        holds until the next write.

    Raises
    ------
    ValueError
        for a number of lanes out of range.
    """

    LARGEST: ClassVar = {"lanes": 32}
    constant: ClassVar = ("line_shift",)

    def __init__(self, *, lanes: int = 32) -> None:
        if not 1 <= lanes <= self.LARGEST["lanes"]:
            raise ValueError(f"lanes must be 1 to {self.LARGEST['lanes']}, not {lanes}")
        store = {
            "mask": lanes,
            "size": bits_for(SIZES[-1]),
            "place": data.ArrayLayout(LINE_SHIFTS[-1], lanes),
        }
        write = {"bytes": data.ArrayLayout(4, LINE_WORDS), "line": data.ArrayLayout(32, LINE_WORDS)}
        super().__init__(
            {
                "line_shift": In(bits_for(LINE_SHIFTS[-1])),
                "store": In(event(data.StructLayout(store))),
                "registers": In(data.ArrayLayout(data.ArrayLayout(32, lanes), REGISTERS)),
                "write": Out(event(data.StructLayout(write))),
            }
        )
        # The store whose registers come now: which bytes of the line it stores, and whose they are.
        self._moves = Signal(name="moves")
        self._stored = Signal(LINE_BYTES, name="stored")
        self._lane = Signal(data.ArrayLayout(range(lanes), LINE_BYTES), name="lane")
        width = {"byte": 1, "narrow": 1, "double": 1, "quadruple": 1}
        self._width = Signal(data.StructLayout(width), name="width")
        # What was moved last. The bytes stored are reset, so that the line need not be.
        self._written = Signal(LINE_BYTES, name="written")
        self._line = Signal(8 * LINE_BYTES, reset_less=True, name="line")

    @property
    def lanes(self) -> int:
        return len(self.store.payload.mask)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._find(m)
        self._move(m)
        return m

    def _find(self, m: Module) -> None:
        """Which bytes of the line each lane stores, and which of the lanes wins each."""
        store, width = self.store.payload, self._width
        span, begin, rows = Signal(ROW, name="span"), Signal(ROW_BITS, name="begin"), Signal(3, name="rows")
        m.d.comb += [  # bytes of an access; bits of an address that say where it begins in a row, and in which row
            span.eq(Cat(store.size >= byte.bit_length() for byte in range(ROW))),
            begin.eq(Cat(store.size <= bit for bit in range(ROW_BITS))),
            rows.eq(Cat(self.line_shift > bit for bit in range(ROW_BITS, LINE_SHIFTS[-1]))),
        ]
        hits = []
        for lane, place in enumerate(store.place):
            in_row, row = Signal(ROW, name=f"in_row_{lane}"), Signal(LINE_BYTES // ROW, name=f"row_{lane}")
            hit = Signal(LINE_BYTES, name=f"hit_{lane}")
            m.d.comb += [
                in_row.eq(span << (place[:ROW_BITS] & begin)),
                row.eq(store.mask[lane] << (place[ROW_BITS:] & rows)),
                hit.eq(Cat(in_row & each.replicate(ROW) for each in row)),
            ]
            hits.append(hit)
        stored, winner = _highest(m, hits)
        m.d.sync += self._moves.eq(self.store.valid)
        with m.If(self.store.valid):
            m.d.sync += [
                self._stored.eq(stored),
                *(lane.eq(Cat(bit[byte] for bit in winner)) for byte, lane in enumerate(self._lane)),
                width.byte.eq(store.size == 0),
                width.narrow.eq(store.size < 2),
                width.double.eq(store.size == 3),
                width.quadruple.eq(store.size == 4),
            ]

    def _move(self, m: Module) -> None:
        """Give each byte of the line that of its lane: every row has what the lane would store there."""
        width, rows = self._width, []
        for lane in range(self.lanes):
            register = [row[lane] for row in self.registers]
            word, pair = (Signal(32, name=f"{name}_{lane}") for name in ("word", "pair"))
            row = Signal(8 * ROW, name=f"row_of_{lane}")
            narrow = Mux(width.byte, register[0][:8].replicate(4), register[0][:16].replicate(2))
            m.d.comb += [
                word.eq(Mux(width.narrow, narrow, register[0])),
                pair.eq(Mux(width.double, register[1], word)),
                row.eq(Mux(width.quadruple, Cat(register), Cat(word, pair, word, pair))),
            ]
            rows.append(row)
        column = [Signal(8 * self.lanes, name=f"column_{byte}") for byte in range(ROW)]
        m.d.comb += [each.eq(Cat(row.word_select(byte, 8) for row in rows)) for byte, each in enumerate(column)]
        m.d.sync += self.write.valid.eq(self._moves)
        with m.If(self._moves):
            m.d.sync += self._written.eq(self._stored)
            m.d.sync += [
                self._line.word_select(byte, 8).eq(column[byte % ROW].word_select(lane, 8))
                for byte, lane in enumerate(self._lane)
            ]
        m.d.comb += [
            Value.cast(self.write.payload.bytes).eq(self._written),
            Value.cast(self.write.payload.line).eq(self._line & Cat(bit.replicate(8) for bit in self._written)),
        ]


def _highest(m: Module, masks: Sequence[Value], name: str = "any") -> tuple[Value, list[Value]]:
    """Where any of the masks is set, and the number of the last one that is, bit-sliced."""
    if len(masks) == 1:
        return masks[0], []
    half = 1 << (len(masks) - 1).bit_length() - 1
    lower, low = _highest(m, masks[:half], f"{name}_0")
    upper, high = _highest(m, masks[half:], f"{name}_1")
    found = Signal.like(lower, name=name)
    m.d.comb += found.eq(lower | upper)
    number = [Signal.like(lower, name=f"{name}_bit_{k}") for k in range(len(low))]
    for k, (bit, below) in enumerate(zip(number, low, strict=True)):
        m.d.comb += bit.eq(below & ~upper | (high[k] & upper if k < len(high) else 0))
    return found, [*number, upper]
