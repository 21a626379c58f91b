"""Proofs about dynamic warp execution, with the shortest window."""

from __future__ import annotations

from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Module, Mux, Signal

from lockstep.rtl.sharing.dynamic_warp_execution import DynamicWarpExecution
from lockstep.spec.sharing.parameters import CERTAIN, LFSR_BITS, LFSR_STATES, MIN_WINDOW
from lockstep.verif.formal import Proof


class Windows(Elaboratable):
    """Any inputs, cycles counted by window, and the ports as they were a cycle ago."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = DynamicWarpExecution(window=MIN_WINDOW)
        self.cycle, self.later = Signal(range(MIN_WINDOW)), Signal()  # of the window, which is not the very first one
        self.started, self.decided, self.throttled = Signal(), Signal(), Signal()
        self.active, self.baseline, self.stalls, self.probability = (
            Signal.like(port, name=f"last_{name}")
            for name, port in (
                ("active", dut.active), ("baseline", dut.baseline), ("stalls", dut.stalls),
                ("probability", dut.probability),
            )
        )  # fmt: skip
        last = self.cycle == MIN_WINDOW - 1
        m.d.sync += [
            self.cycle.eq(Mux(last, 0, self.cycle + 1)),
            self.later.eq(self.later | last),
            self.started.eq(1),
            self.decided.eq(self.later & (self.cycle == 0)),
            self.throttled.eq(dut.active & ~dut.first),
            self.active.eq(dut.active),
            self.baseline.eq(dut.baseline),
            self.stalls.eq(dut.stalls),
            self.probability.eq(dut.probability),
        ]
        m.d.comb += [
            # What the block counts, for induction.
            Assert(dut.cycle == self.cycle),
            Assert(dut.begins == (self.later & (self.cycle == 0))),
            Assert(dut.count <= self.cycle),
            Assert(dut.probability <= CERTAIN),
            Assert(dut.lfsr != 0),
        ]
        return m


class Counted(Windows):
    """Stalls, counted from the first cycle of a window to its last."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        count, ended = Signal.like(dut.stalls), Signal.like(dut.stalls)
        now = Mux(self.cycle == 0, 0, count) + dut.stall
        m.d.sync += count.eq(now)
        with m.If(self.cycle == MIN_WINDOW - 1):
            m.d.sync += ended.eq(now)
        m.d.comb += [
            Assert(dut.stalls == ended),
            Assert(dut.stalls <= MIN_WINDOW),
            Assert((self.stalls == dut.stalls) | (self.later & (self.cycle == 0))),
            Assert(self.later | (dut.stalls == 0)),
            Assert((self.cycle == 0) | (dut.count == count)),
            Assert((self.cycle != 0) | (dut.count == 0)),
            Assert(self.started | ((self.cycle == 0) & ~self.later & (self.stalls == 0))),
        ]
        return m


class Compared(Windows):
    """The probability against the one of a cycle ago."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, before = self.dut, self.probability
        fell, rose = dut.probability + 1 == before, dut.probability == before + 1
        with m.If(self.started):
            m.d.comb += [
                Assert(fell | rose | (dut.probability == before)),
                Assert((dut.probability == before) | (self.decided & self.throttled)),
                Assert(before <= CERTAIN),
            ]
            with m.If(self.decided & self.throttled):
                m.d.comb += [
                    Assert(fell == ((self.stalls > self.baseline) & (before != 0))),
                    Assert(rose == ((self.stalls < self.baseline) & (before != CERTAIN))),
                ]
        with m.Else():
            m.d.comb += Assert(dut.probability == CERTAIN)
        return m


class Drawn(Windows):
    """What is allowed, and when the LFSR moves on."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        numbers, tenths = Signal.like(dut.lfsr), self.probability
        never, always = tenths == 0, tenths == CERTAIN
        moves = self.throttled & ~never & ~always
        sequence = [*reversed(numbers), *reversed(dut.lfsr)]  # its bits of this cycle and the one before, oldest first
        follows = Cat(sequence[k] == sequence[k - 10] ^ sequence[k - 7] for k in range(LFSR_BITS, 2 * LFSR_BITS)).all()
        m.d.sync += numbers.eq(dut.lfsr)
        with m.If(self.started):
            m.d.comb += [
                Assert(numbers != 0),
                Assert(self.active | dut.allow),
                Assert(~self.active | self.throttled | ~dut.allow),
                Assert(~self.throttled | (dut.allow == (10 * numbers <= LFSR_STATES * tenths))),
                Assert(~(self.throttled & always) | dut.allow),
                Assert(~(self.throttled & never) | ~dut.allow),
                Assert(Mux(moves, follows, dut.lfsr == numbers)),
            ]
        with m.Else():
            m.d.comb += Assert(dut.allow)
        return m


class Reached(Windows):
    """The probability falls and rises again, and draws have both outcomes."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, risen = self.dut, Signal()
        with m.If(self.started & (dut.probability > self.probability)):
            m.d.sync += risen.eq(1)
        m.d.comb += [
            Cover(risen & ~dut.allow & self.throttled),
            Cover(risen & dut.allow & self.throttled & (dut.probability < CERTAIN)),
            Cover(dut.stalls == MIN_WINDOW),
        ]
        return m


_SIZE = f"window {MIN_WINDOW}"
PROOFS = {
    "stalls by window": Proof(
        Counted, "prove", 2,
        f"the stalls of each whole window, at most {MIN_WINDOW}; they change with the first cycle of the next; {_SIZE}",
    ),
    "a tenth at a time": Proof(
        Compared, "prove", 2,
        "0 to 10 tenths; changes by one, down after more stalls than SM 0 and up after fewer, after the first cycle of "
        f"a window with a pair on SM 0, and at no other time; {_SIZE}",
    ),
    "draws": Proof(
        Drawn, "prove", 2,
        "everything is allowed without a pair, nothing by SM 0, and by the others, at p tenths, numbers up to "
        "1023 p / 10, so never at 0 and always at 10; the LFSR is never 0 and takes its next ten bits with each draw "
        f"from 1 to 9 tenths alone; {_SIZE}",
    ),
    "falls and rises": Proof(
        Reached, "cover", 4 * MIN_WINDOW + 4, f"both outcomes of draws after the probability rose; {_SIZE}"
    ),
}  # fmt: skip
