"""Proofs about the count of a window, with the shortest window."""

from __future__ import annotations

from amaranth.hdl import Assert, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl.dyncore.activity_counter import ActivityCounter
from lockstep.spec.dyncore.parameters import MIN_WINDOW
from lockstep.verif.formal import Proof


class Counted(Elaboratable):
    """Cycles with an issue, counted from the first cycle of a window to its last, each a cycle later."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = ActivityCounter(window=MIN_WINDOW)
        self.cycle, self.later = Signal(range(MIN_WINDOW)), Signal()
        before = Signal()
        count, ended = Signal(range(MIN_WINDOW + 1)), Signal(range(MIN_WINDOW + 1))
        self.ends = Signal()
        now = count + before
        m.d.comb += self.ends.eq(self.cycle == MIN_WINDOW - 1)
        m.d.sync += [
            self.cycle.eq(Mux(self.ends, 0, self.cycle + 1)),
            self.later.eq(self.later | self.ends),
            before.eq(dut.active),
            count.eq(Mux(self.ends, 0, now)),
        ]
        with m.If(self.ends):
            m.d.sync += ended.eq(now)
        m.d.comb += [
            Assert(dut.count == ended),
            Assert(dut.count <= MIN_WINDOW),
            Assert(self.later | (dut.count == 0)),
            Assert(dut.cycle == self.cycle),  # what the block keeps, for induction
            Assert(dut.was_active == before),
            Assert(dut.so_far == count),
            Assert(count <= self.cycle),
        ]
        return m


class Reached(Counted):
    """A window in which three cycles count."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += Cover(self.later & (self.cycle == 0) & (self.dut.count == 3))
        return m


PROOFS = {
    "counted": Proof(Counted, "prove", 2, f"exactly the cycles of each window, each a cycle later; of {MIN_WINDOW}"),
    "reached": Proof(Reached, "cover", MIN_WINDOW + 4, f"a window with three active cycles ends; of {MIN_WINDOW}"),
}
