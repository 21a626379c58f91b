"""Sums a value over the last cycles of a run: beside the controllers and detectors of Scavenger that look back.

Kloosterman's thesis, sections 5.4.2, 5.5.1 and 5.6.2.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import ranges
from lockstep.spec.scavenger import prediction
from lockstep.spec.scavenger.prediction import sum_bits


class SlidingWindow(wiring.Component):
    """Holds the sum of a value over the last ``entries`` x ``cycles`` cycles: a shift register of sums, and a total.

    Cycles count from ``clear``: the cycle after it is the first, entry k has the cycles from k x ``cycles`` on. When an
    entry ends, its sum takes the place of the oldest one. What came before ``clear`` counts as 0. A value is added in
    the cycle after its own, so that the first entry begins with a 0, each lacks its last cycle and has the last one of
    the entry before.

    A signed value is in two's complement, and so is the total. The total is exact; its mean, and how that is rounded,
    is left to whoever divides it.

    Latency: one cycle, from the last cycle of an entry to ``total``, which is a register and holds through the next
    entry. It never overflows. After reset it is as after ``clear``.

    Parameters
    ----------
    entries : int
        1 to 128.
    cycles : int
        Of an entry, 2 to 1024.
    bits : int
        Of the value, 1 to 20.
    signed : int
        1: the value is signed.

    Members
    -------
    clear : In
        A run begins after this cycle: all entries are 0, and this cycle's value is in none.
    value : In
        What is summed.
    total : Out
        The sum of all entries.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "entries": prediction.MAX_ENTRIES, "cycles": prediction.MAX_ENTRY, "bits": prediction.MAX_VALUE_BITS,
        "signed": 1,
    }  # fmt: skip

    def __init__(
        self, *, entries: int = prediction.ENTRIES, cycles: int = prediction.ENTRY, bits: int = prediction.VALUE_BITS,
        signed: int = 0,
    ) -> None:  # fmt: skip
        for what, value in dict(entries=entries, cycles=cycles, bits=bits, signed=signed).items():
            least, largest = {"cycles": 2, "signed": 0}.get(what, 1), self.LARGEST[what]
            ranges.check(what, value, least, largest)
        self._entries, self._cycles, self._signed = entries, cycles, bool(signed)
        super().__init__(
            {"clear": In(1), "value": In(bits), "total": Out(sum_bits(bits, entries * cycles))},
        )
        # The state; proofs speak of it.
        self.cycle = Signal(range(cycles))  # of the entry
        self.last_value = Signal(Shape(bits, self._signed))  # a cycle ago
        self.sum = Signal(Shape(sum_bits(bits, cycles), self._signed))  # of this entry so far
        self.sums = Signal(entries * len(self.sum))  # of the entries, the newest first

    def entry(self, number: int) -> Value:
        """The sum of an entry, of which the newest has number 0."""
        value = self.sums.word_select(number, len(self.sum))
        return value.as_signed() if self._signed else value

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ends, ended = Signal(), Signal.like(self.sum)
        m.d.comb += [ends.eq(self.cycle == self._cycles - 1), ended.eq(self.sum + self.last_value)]
        m.d.sync += [
            self.last_value.eq(self.value),
            self.cycle.eq(Mux(ends, 0, self.cycle + 1)),
            self.sum.eq(Mux(ends, 0, ended)),
        ]
        with m.If(ends):
            m.d.sync += [
                self.sums.eq(Cat(ended, self.sums)),
                self.total.eq(self.total + (ended - self.entry(self._entries - 1))),
            ]
        with m.If(self.clear):
            registers = (self.cycle, self.last_value, self.sum, self.sums, self.total)
            m.d.sync += [register.eq(0) for register in registers]
        return m
