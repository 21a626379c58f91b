"""Proofs about when a run ends, with short runs, and that no counter of a profile overflows, as shipped."""

from __future__ import annotations

from functools import partial

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal, Value

from lockstep.rtl.scavenger.phase_detector import STATISTICS, Job, PhaseDetector
from lockstep.spec.scavenger import prediction
from lockstep.spec.scavenger.prediction import COUNT_BITS, DISTANCE_BITS, WARP, Reason
from lockstep.verif.formal import Proof

MAXIMUM, INTERVAL, ABOVE, LONGEST = 24, 70, 3, 500
TURNS = DISTANCE_BITS + 2  # cycles of a comparison


class Run(Elaboratable):
    """When it may end: the cycles that it has had, and its comparisons that count, beside the block."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = PhaseDetector(
            maximum=MAXIMUM, interval=INTERVAL, above=ABOVE, longest=LONGEST
        )
        cycles, beat = Signal(range(LONGEST + 1)), Signal(range(INTERVAL))
        ran, given, long = Signal(), Signal(), Signal()
        counted = Signal(range(LONGEST // INTERVAL + 2))  # comparisons of a run that is as long as its profile
        last = beat == INTERVAL - 1
        reaches = cycles + 1 >= dut.cycles << 3
        m.d.sync += ran.eq(dut.run)
        with m.If(~dut.run):
            m.d.sync += [cycles.eq(0), beat.eq(0), given.eq(0), long.eq(0), counted.eq(0)]
        with m.Elif(cycles < LONGEST):
            m.d.sync += [cycles.eq(cycles + 1), beat.eq(Mux(last, 0, beat + 1)), given.eq(given | dut.ends.valid)]
            with m.If(last):
                m.d.sync += [long.eq(reaches), counted.eq(counted + reaches)]
        with m.Else():
            m.d.sync += given.eq(1)
        valid, reason = dut.ends.valid, dut.ends.payload
        statistic = (reason == Reason.LANES) | (reason == Reason.REQUESTS)
        waits = [dut.working == Job.LANES, (dut.working == Job.LANES) | (dut.working == Job.REQUESTS)]
        m.d.comb += [
            Assert(~valid | ran),
            Assert(~(valid & given)),
            Assert(~valid | ((reason == Reason.LENGTH) == (cycles == LONGEST))),
            Assert(~valid | (reason == Reason.LENGTH) | long),
            Assert(~(valid & statistic) | (counted >= ABOVE)),
            Assert(~ran | (cycles != LONGEST) | dut.ended),
            # What the block keeps, for induction.
            Assert(dut.ended | (dut.cycle == cycles) & (dut.beat == beat)),
            Assert(dut.ended == (valid | given)),
            Assert(~dut.armed | long | dut.ended),
            Assert((dut.working == Job.NOTHING) | (dut.step < TURNS)),
            Assert((counted != 0) | ~long),
            Assert(beat < INTERVAL),
            Assert(cycles <= LONGEST),
            Assert(ran | (cycles == 0)),
            *(
                Assert(dut.ended | (dut.working != job) | (dut.step + TURNS * number == dut.beat))
                for number, job in enumerate((Job.LANES, Job.REQUESTS, Job.PCS))
            ),
            *(
                Assert(dut.ended | (outside + (wait & long) <= counted) & (outside < ABOVE))
                for outside, wait in zip(dut.outside, waits, strict=True)
            ),
            Assert(counted * INTERVAL + beat <= cycles),
        ]
        return m


class Room(Elaboratable):
    """In a profile of so many cycles at most, each counter has what the cycles of its interval may add."""

    def __init__(self, statistic: int, maximum: int = MAXIMUM) -> None:
        self.statistic, self.maximum = statistic, maximum

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = self.dut = dut = PhaseDetector(maximum=self.maximum)
        counting, begins = dut.profile & ~dut.over, dut.profile & ~dut.profiled
        joins = counting & dut.joining.valid
        large, *smalls = cycles = [
            Signal(range(self.maximum + 1), name=f"cycles_{k}") for k in range(prediction.SMALLS + 1)
        ]  # of each interval
        total = sum(cycles)
        for k, own in enumerate(cycles):
            with m.If(counting & dut.restart):
                m.d.sync += own.eq(0)
            with m.Elif(counting & (dut.part == k)):
                m.d.sync += own.eq(Mux(begins, 0, own) + 1)
            with m.Elif(begins):
                m.d.sync += own.eq(0)
        for k, own in enumerate(smalls):
            with m.If(joins & (dut.joining.payload == k)):
                m.d.sync += [large.eq(large + own), own.eq(0)]
        m.d.comb += [
            Assume(~begins | ~(dut.joining.valid | dut.restart)),
            Assume(~joins | (dut.part != 0) & (dut.part != dut.joining.payload + 1) & ~dut.restart),
            Assume(dut.part <= prediction.SMALLS),
            Assume(begins | ~counting | (total < self.maximum)),
            Assert(total <= self.maximum),
            Assert(~dut.over | dut.profiled),
        ]
        most = (1 << COUNT_BITS) - 1
        arrivals = ((dut.lanes, dut.instructions), (dut.requests, dut.memory_instructions))
        statistic, (amount, count) = dut.statistics[self.statistic], arrivals[self.statistic]
        m.d.comb += Assume(amount <= WARP * count)
        for registers, value, each in ((statistic.amounts, amount, WARP * most), (statistic.counts, count, most)):
            m.d.comb += [Assert(register <= each * own) for register, own in zip(registers, cycles, strict=True)]
            self._fits(m, counting & ~begins & ~dut.restart, joins, registers, value)
        return m

    def _fits(self, m: Module, counting: Value, joins: Value, registers: list[Signal], value: Value) -> None:
        """What is added leaves no counter lower than it was."""
        large, *smalls = registers
        room = 1 << len(large)
        for k, register in enumerate(registers):
            m.d.comb += Assert(~(counting & (self.dut.part == k)) | (register + value < room))
        for k, register in enumerate(smalls):
            m.d.comb += Assert(~(joins & (self.dut.joining.payload == k)) | (large + register < room))


class Reached(Elaboratable):
    """The longest run, and a profile's means."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = PhaseDetector(maximum=MAXIMUM, longest=5)
        m.d.comb += [Assume(~(dut.profile & dut.run)), Cover(dut.ends.valid & (dut.ends.payload == Reason.LENGTH))]
        return m


PROOFS = {
    "run": Proof(
        Run, "prove", 1,
        "a run ends once, by its length at its last cycle alone, for other reasons not before it is as long as its "
        f"profile, and by a mean only after {ABOVE} comparisons since; of up to {LONGEST} cycles",
    ),
    **{
        f"room for {name}": Proof(
            partial(Room, statistic), "prove", 1,
            f"no counter of {name} overflows, and each has what its interval may add; of up to {MAXIMUM} cycles",
            long=True,
        )
        for statistic, name in enumerate(STATISTICS)
    },
    "reached": Proof(Reached, "cover", 10, "the longest run, of 5 cycles"),
}  # fmt: skip
