"""Proofs about the sum of a run, as shipped, and about when the primary is alone, with short times."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl.scavenger.fallback_monitor import FallbackMonitor
from lockstep.spec.scavenger.control import LONGEST_RUN
from lockstep.spec.scavenger.fixed import IPC
from lockstep.verif.formal import Proof

LIMIT, DURATION, TIME, LONGEST = 2, 4, 5, 20


class Sum(Elaboratable):
    """In a run of at most so many cycles the sum has room for all of them."""

    def __init__(self, longest: int = LONGEST_RUN, **parameters: int) -> None:
        self.longest, self.parameters = longest, parameters

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = FallbackMonitor(longest=self.longest, **self.parameters)
        self.cycles = cycles = Signal(range(self.longest + 1))
        m.d.sync += cycles.eq(Mux(dut.run, cycles + 1, 0))
        most = (cycles << IPC.bits) - cycles  # times the largest target
        self.beyond = Cat(Const(0, IPC.fraction), dut.issued) - dut.target
        m.d.comb += [
            Assume(~dut.run | (cycles < self.longest)),
            Assert((dut.sum <= most) & (-dut.sum <= most)),
            Assert(cycles <= self.longest),
        ]
        return m


class Alone(Sum):
    """Exactly when the sum of the cycles of the run has been below the limit for the duration, and for the time."""

    def __init__(self) -> None:
        super().__init__(longest=LONGEST, limit=LIMIT, duration=DURATION, time=TIME)

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        total = Signal(dut.sum.shape())
        low, alone = Signal(range(DURATION + 1)), Signal(range(TIME + 1))
        profile, ends = Signal(), Signal()
        below = total < -(LIMIT << IPC.fraction)
        counts = dut.run & (alone == 0) & ~dut.clear
        m.d.comb += ends.eq(counts & below & (low == DURATION - 1))
        m.d.sync += [
            total.eq(Mux(counts, total + self.beyond, 0)),
            low.eq(Mux(counts & below & ~ends, low + 1, 0)),
            alone.eq(Mux(ends, TIME, Mux((alone == 0) | dut.clear, 0, alone - 1))),
            profile.eq((alone == 1) & ~dut.clear),
        ]
        m.d.comb += [
            Assert(dut.alone == (alone != 0)),
            Assert(dut.profile == profile),
            Assert(dut.sum == total),  # what the block keeps, for induction
            Assert(dut.low == low),
            Assert((low < DURATION) & (alone <= TIME)),
            Assert(dut.left == Mux(alone == 0, 0, alone - 1)),
        ]
        return m


class Reached(Alone):
    """The primary is alone, and a profile is asked for."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += Cover(self.dut.profile)
        return m


PROOFS = {
    "sum": Proof(Sum, "prove", 1, f"the sum of a run of up to {LONGEST_RUN:,} cycles does not overflow, as shipped"),
    "alone": Proof(
        Alone,
        "prove",
        2,
        f"exactly after a duration below the limit, of {DURATION}, alone for {TIME} cycles or until cleared",
    ),
    "reached": Proof(Reached, "cover", 16, f"a profile after {TIME} cycles alone"),
}
