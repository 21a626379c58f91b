"""Proofs about the total of a window, and that nothing overflows."""

from __future__ import annotations

from amaranth.hdl import Assert, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl.scavenger.sliding_window import SlidingWindow
from lockstep.verif.formal import Proof

ENTRIES, CYCLES, BITS = 3, 5, 3


class Sums(Elaboratable):
    """The total is the sum of all entries, exactly, and each entry that of its cycles, for any values and runs."""

    def __init__(self, signed: int) -> None:
        self.signed = signed

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = SlidingWindow(entries=ENTRIES, cycles=CYCLES, bits=BITS, signed=self.signed)
        total = dut.total.as_signed() if self.signed else dut.total
        entries = [dut.entry(number) for number in range(ENTRIES)]
        m.d.comb += [Assert(total == sum(entries)), Assert(dut.cycle < CYCLES)]
        most = (1 << BITS - self.signed) - 1
        for value, cycles in ((dut.sum, dut.cycle), *((entry, CYCLES) for entry in entries)):
            m.d.comb += Assert(value <= most * cycles)
            if self.signed:
                m.d.comb += Assert(value >= (-most - 1) * cycles)

        # The values of this entry, one by one, each a cycle later.
        value = dut.value.as_signed() if self.signed else dut.value
        before, counted = Signal.like(value), Signal.like(dut.sum)
        ends = dut.cycle == CYCLES - 1
        m.d.sync += [before.eq(Mux(dut.clear, 0, value)), counted.eq(Mux(ends | dut.clear, 0, counted + before))]
        m.d.comb += [Assert(dut.sum == counted), Assert(dut.last_value == before)]
        newest, shifted, ended = Signal.like(dut.sum), Signal(), Signal()
        older = [Signal.like(dut.sum, name=f"older_{number}") for number in range(ENTRIES)]
        m.d.sync += [shifted.eq(ends & ~dut.clear), ended.eq(1), newest.eq(counted + before)]
        m.d.sync += [old.eq(Mux(dut.clear, 0, entry)) for old, entry in zip(older, entries, strict=True)]
        with m.If(shifted):
            m.d.comb += [Assert(entries[0] == newest)]
            m.d.comb += [Assert(entry == old) for entry, old in zip(entries[1:], older, strict=False)]
        with m.Elif(ended):
            m.d.comb += [Assert(entry == old) for entry, old in zip(entries, older, strict=True)]
        return m


class Reached(Elaboratable):
    """A full window, at its largest total."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = SlidingWindow(entries=2, cycles=3, bits=2)
        m.d.comb += Cover(dut.total == 2 * 3 * 3)
        return m


_SIZE = f"{ENTRIES} entries of {CYCLES} cycles, values of {BITS} bits"
PROOFS = {
    "sums": Proof(
        lambda: Sums(0), "prove", 2, f"the total is the sum of all entries, each that of its cycles, exactly; {_SIZE}"
    ),
    "signed sums": Proof(lambda: Sums(1), "prove", 2, f"the same of signed values; {_SIZE}"),
    "reached": Proof(Reached, "cover", 12, "a window of the largest values; 2 entries of 3 cycles, 2 bits"),
}
