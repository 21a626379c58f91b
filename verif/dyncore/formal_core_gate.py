"""Proofs about when SMs are drained and off, at a reduced size: three SMs, one of them turned off, shortest windows."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl.dyncore.core_gate import CoreGate
from lockstep.spec.dyncore.parameters import MIN_WINDOW
from lockstep.verif.formal import Proof

SMS, OFF = 3, 1
THRESHOLD = 2 * SMS * MIN_WINDOW // 3


class Windows(Elaboratable):
    """Any counts up to a window's cycles, cycles counted by window, and the sum as the counts of its cycles give it."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = CoreGate(sms=SMS, off=OFF, window=MIN_WINDOW, threshold=THRESHOLD)
        self.cycle, self.later = Signal(range(MIN_WINDOW)), Signal()
        self.sum = Signal(range(SMS * MIN_WINDOW + 1), name="sum_of_counts")
        ends = self.cycle == MIN_WINDOW - 1
        m.d.sync += [self.cycle.eq(Mux(ends, 0, self.cycle + 1)), self.later.eq(self.later | ends)]
        with m.Switch(self.cycle):
            for sm in range(SMS):
                with m.Case(sm):
                    m.d.comb += Assume(dut.active[sm] <= MIN_WINDOW)
                    m.d.sync += self.sum.eq(Mux(sm == 0, 0, self.sum) + dut.active[sm])
        self.decides = Signal()
        m.d.comb += [
            self.decides.eq(self.later & (self.cycle == SMS)),
            Assert(dut.cycle == self.cycle),  # what the block keeps, for induction
            Assert(dut.later == self.later),
            Assert(dut.sum == Mux((self.cycle == 0) | (self.cycle > SMS), 0, self.sum)),
            Assert((self.cycle == 0) | (self.cycle > SMS) | (self.sum <= self.cycle * MIN_WINDOW)),
            Assert(self.later | ~dut.drained),
            Assert(dut.drained | ~dut.off),
        ]
        return m


class Decided(Windows):
    """Outputs change only right after a decision, and as the sum and the SMs' CTAs say; what is off stays so."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        decided, drained, off, busy = (Signal(name=f"was_{name}") for name in ("decided", "drained", "off", "busy"))
        total = Signal.like(self.sum)
        m.d.sync += [
            decided.eq(self.decides), drained.eq(dut.drained), off.eq(dut.off), busy.eq(Cat(*dut.busy).any()),
            total.eq(self.sum),
        ]  # fmt: skip
        with m.If(~decided | off):
            m.d.comb += [Assert(dut.drained == drained), Assert(dut.off == off)]
        with m.Elif(drained & ~busy):
            m.d.comb += Assert(dut.off & dut.drained)
        with m.Else():
            m.d.comb += [
                Assert(~dut.off),
                Assert(dut.drained == ((total < THRESHOLD) | drained & (total == THRESHOLD))),
            ]
        return m


class Reached(Windows):
    """SMs are drained, and off in the end."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += Cover(self.dut.off)
        return m


_SIZE = f"{SMS} SMs, windows of {MIN_WINDOW}"
PROOFS = {
    "decided": Proof(Decided, "prove", 2, f"drained, back and off exactly as the sum and the CTAs say; {_SIZE}"),
    "reached": Proof(Reached, "cover", 2 * MIN_WINDOW + 8, f"drained in one window, off in the next; {_SIZE}"),
}
