"""Moves a load's words from the cache line to its threads.

Kloosterman's thesis, section 3.3.6: the crossbar that a load/store unit has anyway, here with the encodings of the
thread map that WarpPool keeps.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import multiplex
from lockstep.rtl.lsu.intra_warp_coalescer import LEAD_BITS, LINE_SHIFTS, SIZES
from lockstep.rtl.signatures import event
from lockstep.spec.mapping import LINE_WORDS, REGISTERS, Mapping
from lockstep.spec.parameters import MAX_WARPS, TICKETS

CLASSES = 4  # words of the line by their number modulo 4: a wide access takes its words from neighbouring classes


class LineCrossbar(wiring.Component):
    """Gives every lane of one line of a load the bytes at its address, as registers.

    Latency: 2 core cycles from ``load`` to ``write``; the line is taken in the cycle after its ``load``, so that the
    L1's data can be read while words are found. Takes a line in every cycle, of any access width: an access of 16 bytes
    fills four registers at once, whose banks differ. The register file cannot refuse: whoever lets the load go has its
    write port two cycles later.

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
    load : In, event
        ``mapping``, ``thread`` and ``word`` of the line (:class:`Mapping`), and with *random* its lanes in ``mask`` and
        their words in ``words``. What the load's own entry has: ``active`` lanes; ``size``, log2 of the bytes per lane,
        0 to 4; ``sign``, whether values are signed; ``offset``, by lane, of an access of one or two bytes in its word.
        ``warp`` and ``ticket`` come out again.
    line : In
        The words of 32 bits of the line whose ``load`` was there in the cycle before.
    write : Out, event
        ``lanes`` that get a value, and ``registers``, by number and lane, lowest address first. Accesses of one and two
        bytes are extended to a register. Registers that the access does not fill, and those of other lanes, are 0. The
        payload holds until the next write.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"lanes": 32, "warps": MAX_WARPS, "tickets": TICKETS}
    constant: ClassVar = ("line_shift",)

    def __init__(self, *, lanes: int = 32, warps: int = 48, tickets: int = TICKETS) -> None:
        for what, value, most in ("lanes", lanes, 32), ("warps", warps, MAX_WARPS), ("tickets", tickets, TICKETS):
            if not 1 <= value <= most:
                raise ValueError(f"{what} must be 1 to {most}, not {value}")
        source = {"warp": bits_for(warps - 1), "ticket": bits_for(tickets - 1)}
        load = {
            **source,
            "mapping": Mapping,
            "thread": bits_for(lanes - 1),
            "word": range(LINE_WORDS),
            "mask": lanes,
            "words": data.ArrayLayout(range(LINE_WORDS), lanes),
            "active": lanes,
            "size": bits_for(SIZES[-1]),
            "sign": 1,
            "offset": data.ArrayLayout(2, lanes),
        }
        registers = data.ArrayLayout(data.ArrayLayout(32, lanes), REGISTERS)
        super().__init__(
            {
                "line_shift": In(bits_for(LINE_SHIFTS[-1])),
                "load": In(event(data.StructLayout(load))),
                "line": In(data.ArrayLayout(32, LINE_WORDS)),
                "write": Out(event(data.StructLayout({**source, "lanes": lanes, "registers": registers}))),
            }
        )
        # The load whose line comes now: of each lane the first word, and the byte in it where the access is narrow.
        width = {"byte": 1, "narrow": 1, "sign": 1, "double": 1, "quadruple": 1}
        chosen = {"index": data.ArrayLayout(range(LINE_WORDS), lanes), "shift": data.ArrayLayout(2, lanes)}
        self._moves = Signal(name="moves")
        self._found = Signal(data.StructLayout({**source, "lanes": lanes, **width, **chosen}), name="found")
        # What was read last. Lanes and widths are reset, so that the registers need not be.
        written = {**source, "lanes": lanes, "double": 1, "quadruple": 1}
        self._written = Signal(data.StructLayout(written), name="written")
        self._registers = Signal(registers, reset_less=True, name="registers")

    @property
    def lanes(self) -> int:
        return len(self._found.lanes)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._find(m)
        self._move(m)
        return m

    def _find(self, m: Module) -> None:
        """Which lanes take part, and where in the line their bytes begin."""
        load, found = self.load.payload, self._found
        unit = Mux(load.size > 2, load.size - 2, 0)[:2]  # log2 of the words of an access
        words = ((1 << self.line_shift) >> (unit + 2))[: bits_for(LINE_WORDS)]  # of that size, in a line
        ranges, run = load.mapping == Mapping.RANGE, Signal(LEAD_BITS, name="run")
        m.d.comb += run.eq(Mux(ranges, load.word - load.thread, 0))
        lanes, follows = Signal(self.lanes, name="lanes"), Signal(name="follows")
        m.d.comb += follows.eq(ranges | (load.mapping == Mapping.CONSECUTIVE))
        m.d.sync += self._moves.eq(self.load.valid)
        with m.If(self.load.valid):
            m.d.sync += [
                found.warp.eq(load.warp),
                found.ticket.eq(load.ticket),
                found.lanes.eq(lanes),
                found.byte.eq(load.size == 0),
                found.narrow.eq(load.size < 2),
                found.sign.eq(load.sign),
                found.double.eq(load.size > 2),
                found.quadruple.eq(load.size == 4),
            ]
        for lane in range(self.lanes):
            in_run, first = Signal(LEAD_BITS, name=f"in_run_{lane}"), Signal(range(LINE_WORDS), name=f"first_{lane}")
            m.d.comb += [
                in_run.eq(run + lane),
                first.eq(Mux(load.mapping == Mapping.RANDOM, load.words[lane], Mux(follows, in_run, load.word))),
            ]
            with m.If(load.mapping == Mapping.SINGLE):
                m.d.comb += lanes[lane].eq(load.thread == lane)
            with m.Elif(ranges):
                m.d.comb += lanes[lane].eq(load.active[lane] & (load.thread <= lane) & (in_run < words))
            with m.Elif(load.mapping == Mapping.RANDOM):
                m.d.comb += lanes[lane].eq(load.mask[lane])
            with m.Else():
                m.d.comb += lanes[lane].eq(load.active[lane])
            offset = load.offset[lane]
            with m.If(self.load.valid):
                m.d.sync += [
                    found.index[lane].eq(first << unit),
                    found.shift[lane].eq(Cat(offset[0] & (load.size == 0), offset[1] & (load.size < 2))),
                ]

    def _move(self, m: Module) -> None:
        """Read the line, and align what is narrow."""
        found, written, write = self._found, self._written, self.write.payload
        m.d.sync += self.write.valid.eq(self._moves)
        with m.If(self._moves):
            m.d.sync += [written[name].eq(found[name]) for name in written.shape().members]
        m.d.comb += [write[name].eq(written[name]) for name in ("warp", "ticket", "lanes")]
        filled = (1, written.double, written.quadruple, written.quadruple)
        for lane in range(self.lanes):
            index, shift = found.index[lane], found.shift[lane]
            read = Signal(data.ArrayLayout(32, CLASSES), name=f"read_{lane}")
            word, narrow = (Signal(32, name=f"{name}_{lane}") for name in ("word", "narrow"))
            half, byte = Signal(16, name=f"half_{lane}"), Signal(8, name=f"byte_{lane}")
            fill = Signal(name=f"fill_{lane}")
            m.d.comb += [
                *(each.eq(multiplex(index[2:], list(self.line)[k::CLASSES])) for k, each in enumerate(read)),
                word.eq(multiplex(index[:2], list(read))),
                half.eq(Mux(shift[1], word[16:], word[:16])),
                byte.eq(Mux(shift[0], half[8:], half[:8])),
                fill.eq(found.sign & Mux(found.byte, byte[7], half[15])),
                narrow.eq(Cat(byte, Mux(found.byte, fill.replicate(8), half[8:]), fill.replicate(16))),
            ]
            values = (Mux(found.narrow, narrow, word), Mux(index[1], read[3], read[1]), read[2], read[3])
            for k, value in enumerate(values):
                with m.If(self._moves):
                    m.d.sync += self._registers[k][lane].eq(value)
                m.d.comb += write.registers[k][lane].eq(
                    Mux(written.lanes[lane] & filled[k], self._registers[k][lane], 0)
                )
