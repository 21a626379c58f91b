"""Proofs about the intervals of a profile, with the parameters that ship, and that no counter overflows."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.scavenger.performance_predictor import MAX_ISSUED, PerformancePredictor, Stage
from lockstep.spec.scavenger import prediction
from lockstep.verif.formal import Proof

EIGHTH, SMALL_EIGHTH = 2_500, 2
BALANCES = (8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80)  # eighths, at which halves are to be equal
ENDS = (4, 5, 6, 7, *BALANCES)  # eighths, at which intervals end
FIRST_PASS = 4  # the number of the last interval before anything joins
EARLIEST = 20_112
SMALLS = 4


def of(interval: Value, values: list[int]) -> Value:
    """The value with this number."""
    result: Value = Const(values[-1])
    for number, value in reversed([*enumerate(values[:-1])]):
        result = Mux(interval == number, value, result)
    return result


class Intervals(Elaboratable):
    """A profile, and which of its intervals each cycle is of: from the list of balances alone."""

    def __init__(self, eighth: int = EIGHTH) -> None:
        self.eighth = eighth
        self.ends = [eighth * n for n in ENDS]
        self.begins = [0, *self.ends[:-1]]
        self.lengths = [end - begin for begin, end in zip(self.begins, self.ends, strict=True)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        least, most = 8 * self.eighth, BALANCES[-1] * self.eighth
        m.submodules.dut = self.dut = dut = PerformancePredictor(minimum=least, maximum=most)
        self.interval, self.cycle = Signal(range(len(ENDS))), Signal(range(most))
        self.end, self.begin = (Signal(range(most + 1), name=name) for name in ("end", "begin"))
        self.counts = Signal()
        early = self.interval <= FIRST_PASS
        halves = [self.ends[0]] * FIRST_PASS + [end // 2 for end in self.ends[FIRST_PASS:]]
        oldest = self.lengths[1:2] * FIRST_PASS + self.lengths[1 : -SMALLS + 1]
        m.d.comb += [
            self.begin.eq(of(self.interval, self.begins)),
            self.end.eq(of(self.interval, self.ends)),
            self.counts.eq((dut.stage == Stage.COUNTING) & dut.profile & ~dut.stable & ~dut.restart),
            Assert(self.interval < len(ENDS)),
            Assert((self.begin <= self.cycle) & (self.cycle < self.end)),
            Assert((dut.stage == Stage.COUNTING) | (self.cycle == 0)),
            Assert(dut.cycle == self.cycle),  # what the block keeps, for induction
            Assert(~early | (dut.left == self.end - self.cycle)),
            Assert(dut.part == Mux(self.interval == 0, 0, (self.interval - 1)[:2] + 1)),
            Assert(dut.early == early),
            Assert(dut.unit == of(self.interval, oldest)),
            Assert(dut.train_cycles == of(self.interval, halves)),
        ]
        with m.If(self.counts):
            m.d.sync += self.cycle.eq(self.cycle + 1)
            with m.If(self.cycle == self.end - 1):
                m.d.sync += self.interval.eq(self.interval + 1)
        with m.Else():
            m.d.sync += [self.cycle.eq(0), self.interval.eq(0)]
        return m

    def elapsed(self, small: int) -> Value:
        """The cycles that a small interval has."""
        values: list[Value] = []
        for now in range(len(ENDS)):
            number = now - (now - 1 - small) % SMALLS  # of the interval that it had last
            done = Const(self.lengths[number] if number > 0 else 0)
            values.append(self.cycle - self.begin if number == now > 0 else done)
        result = values[-1]
        for number, value in reversed([*enumerate(values[:-1])]):
            result = Mux(self.interval == number, value, result)
        return result

    def trained(self) -> Value:
        return Mux(self.interval == 0, self.cycle, self.dut.train_cycles)


class Balanced(Intervals):
    """With an instruction in each cycle, halves are equal at the end of each interval from the minimum on."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        last = self.counts & (self.cycle == self.end - 1) & (self.interval >= FIRST_PASS)
        m.d.comb += [
            Assume(dut.issued == 1),
            Assert(~last | dut.joining.valid),
            Assert(~(last | dut.restart) | (dut.train == dut.validate + 1)),  # which lacks this cycle
            Assert(~dut.restart | (self.cycle == self.ends[-1] - 1)),
            Assert(dut.train == self.trained()),
            Assert(dut.train + dut.validate == self.cycle),
            *(Assert(small == self.elapsed(k)) for k, small in enumerate(dut.small)),
        ]
        return m


class Bounded(Intervals):
    """Sums of instructions are at most seven for each cycle, so that no counter overflows, and add up."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut, total = self.dut, Signal(32)
        with m.If(self.counts):
            m.d.sync += total.eq(total + dut.issued)
        with m.Else():
            m.d.sync += total.eq(0)
        m.d.comb += [
            Assert(dut.train + dut.validate == total),
            Assert(dut.validate == sum(dut.small)),
            Assert(dut.train <= MAX_ISSUED * self.trained()),
            Assert(dut.validate <= MAX_ISSUED * (self.cycle - self.trained())),
            *(Assert(small <= MAX_ISSUED * self.elapsed(k)) for k, small in enumerate(dut.small)),
        ]
        return m


class Earliest(Intervals):
    """A profile is stable after ``EARLIEST`` cycles, or after more; the verdict comes a while later."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        dut = self.dut
        since = (self.cycle - self.ends[FIRST_PASS])[: len(self.cycle)]
        compared = (since + prediction.BEAT - dut.verdict) >> 4  # comparisons whose verdict has come
        early = self.interval <= FIRST_PASS
        m.d.comb += [
            Assert(~dut.stable | (self.cycle >= EARLIEST + dut.verdict - 1)),
            Assert(dut.beat == Mux(early, 0, since[:4])),
            Assert(dut.step == Mux(early | (dut.beat >= dut.verdict), 0, dut.beat + 1)),
            Assert(dut.agreed <= Mux(early, 0, compared)),
        ]
        return m


class Reached(Elaboratable):
    """The shortest profile that can be stable, and the results; the longest."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = PerformancePredictor(minimum=8, maximum=24, comparisons=1)
        m.d.comb += [Cover(dut.stable), Cover(dut.restart & dut.profile)]
        return m


_SIZE = f"{prediction.MINIMUM} to {prediction.MAXIMUM} cycles"
PROOFS = {
    "balanced": Proof(
        Balanced, "prove", 1,
        "both halves have equally many cycles at 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64 and 80 eighths of "
        f"the minimum, where intervals join or all is discarded; {_SIZE}", words=True, long=True,
    ),
    "bounded": Proof(
        lambda: Bounded(SMALL_EIGHTH), "prove", 1,
        "the intervals' counts add up to all instructions, and none overflows; 16 to 160 cycles", long=True,
    ),
    "earliest": Proof(
        Earliest, "prove", 1, f"no profile is stable before its cycle {EARLIEST}; {_SIZE}", words=True
    ),
    "reached": Proof(Reached, "cover", 30, "a stable profile, and one that is discarded; 8 to 24 cycles"),
}  # fmt: skip
