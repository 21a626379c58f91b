"""Ends the run of two kernels when the primary does something else than in its profile: one in each SM.

Kloosterman's thesis, section 5.4.2, table 5.1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import multiplex, select
from lockstep.rtl.scavenger import _profile
from lockstep.rtl.signatures import event
from lockstep.spec.scavenger import control, prediction
from lockstep.spec.scavenger.fixed import MARGIN, MEAN
from lockstep.spec.scavenger.prediction import (
    AMOUNT_BITS,
    COUNT_BITS,
    DISTANCE_BITS,
    EIGHTHS,
    RANGE_BITS,
    WARP,
    Reason,
    sum_bits,
)  # fmt: skip

MARGIN_CODE = MARGIN.code(1.1)
WINDOW = prediction.ENTRIES * prediction.ENTRY
FACTOR_BITS = DISTANCE_BITS  # of what a bound is multiplied by: a count, or the sum of two totals
QUOTIENT_BITS = RANGE_BITS + 2  # of a distance, which may be all of the range; the last bit rounds
MOST_APART = MARGIN_CODE << RANGE_BITS  # before it is rounded
MOST_LIMIT = MOST_APART >> MARGIN.fraction
MOST_MEAN = WARP << MEAN.fraction
MOST_BOUND = MOST_MEAN + (MOST_MEAN * MARGIN_CODE >> MARGIN.fraction)
STATISTICS = ("lanes", "requests")  # by instructions, and by memory instructions
HALVES = 3  # whose means are needed: training, validation, both


class Job(IntEnum):
    """What the multiplier does."""

    NOTHING = 0
    LANES = 1
    REQUESTS = 2
    PCS = 3


class Statistic:
    """An amount and a count, of a profile: the registers of its intervals, and what a run's mean may be."""

    def __init__(self, name: str, maximum: int) -> None:
        most = maximum * ((1 << COUNT_BITS) - 1)
        parts = range(prediction.SMALLS + 1)
        self.amounts = [Signal(range(WARP * most + 1), name=f"{name}_amount_{k}") for k in parts]
        self.counts = [Signal(range(most + 1), name=f"{name}_count_{k}") for k in parts]
        self.means = [Signal(MEAN.bits, name=f"{name}_mean_{k}") for k in range(HALVES)]
        self.known = [Signal(name=f"{name}_known_{k}") for k in range(HALVES)]  # a count that is not 0
        self.window_amount = Signal(sum_bits(AMOUNT_BITS, WINDOW), name=f"{name}_window_amount")
        self.window_count = Signal(sum_bits(COUNT_BITS, WINDOW), name=f"{name}_window_count")
        self.least = Signal(range(MOST_MEAN - MEAN.one + 1), name=f"{name}_least")  # a threshold is 1 or more
        self.most = Signal(range(MOST_BOUND + 1), name=f"{name}_most")


class PhaseDetector(wiring.Component):
    """Compares what a kernel does in its run with its profile, and ends the run when that is something else.

    **Statistics.** The mean active lanes of an instruction, and the mean requests of a memory instruction. In the
    profile they are counted by interval, as :class:`PerformancePredictor` has them; of the last 8,192 cycles of a run,
    four :class:`SlidingWindow` have the amounts and counts. A mean of the run is outside if it differs from that of the
    profile by more than the threshold: ``lanes`` or ``requests``, or 282/256 of the difference between training and
    validation if that is more. When it has been outside in ``above`` comparisons in a row, ``interval`` cycles apart,
    the run ends. What has no instruction is not compared, and not outside.

    **PCs.** A distance of :class:`PcHistogram` ends the run if it is more than ``share`` of 64K, or 282/256 of that
    between training and validation if that is more; one is enough.

    **Length.** Nothing of this counts before the run is as long as its profile was. It ends after ``longest`` cycles.

    **Rounding.** After a profile its means and its distance are divided once, each to the nearest 1/256 and 1/64K, and
    thresholds are rounded once more; so they are exact if they are the least ones. A run's are never divided: its
    amount is compared with its count times the bounds, exactly.

    Latency: 22 cycles from the last one of an interval for lanes, 43 for requests, 64 for PCs; 127 from ``stable`` to
    the bounds, and 24 from a profile's distance, if that comes later.

    Parameters
    ----------
    maximum : int
        Cycles of a profile, 16 to 262143.
    interval : int
        Cycles, 70 to 1023.
    above : int
        Comparisons, 1 to 16.
    longest : int
        Cycles of a run, up to 262144.
    lanes, requests : int
        1 to 32.
    share : int
        Of 64K, 1 to 65535.

    Members
    -------
    profile, run : In
        As of :class:`PcHistogram`. Never together.
    part, joining, restart, stable, cycles : In
        Of :class:`PerformancePredictor`. ``cycles`` is an eighth of the profile's, from its end on.
    lanes, instructions : In
        Active lanes of the instructions that the kernel issues in this cycle, 32 of each at most.
    requests, memory_instructions : In
        Lines of those that access memory, before any merging between warps; 32 of each at most.
    window_lanes, window_instructions, window_requests, window_memory_instructions : In
        ``total`` of a :class:`SlidingWindow` of each.
    distance : In, event
        Of :class:`PcHistogram`. That of a profile comes once, 64 cycles or more before the first one of a window.
    ends : Out, event
        The run is to end, and why: once in each run. The payload stays until the next one.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "maximum": prediction.MAX_PROFILE, "interval": control.MAX_INTERVAL, "above": 16,
        "longest": control.LONGEST_RUN, "lanes": 32, "requests": 32, "share": (1 << RANGE_BITS) - 1,
    }  # fmt: skip
    LEAST: ClassVar = {"maximum": 16, "interval": 70}

    def __init__(
        self, *, maximum: int = prediction.MAXIMUM, interval: int = prediction.INTERVAL, above: int = prediction.ABOVE,
        longest: int = control.LONGEST_RUN, lanes: int = prediction.LANES, requests: int = prediction.REQUESTS,
        share: int = prediction.SHARE,
    ) -> None:  # fmt: skip
        given = dict(
            maximum=maximum, interval=interval, above=above, longest=longest, lanes=lanes, requests=requests,
            share=share,
        )  # fmt: skip
        for what, value in given.items():
            least = self.LEAST.get(what, 1)
            ranges.check(what, value, least, self.LARGEST[what])
        self._interval, self._above, self._longest, self._share = interval, above, longest, share
        self._thresholds = lanes, requests
        distance = data.StructLayout({"run": 1, "difference": DISTANCE_BITS, "total": DISTANCE_BITS})
        amount, count = AMOUNT_BITS, COUNT_BITS
        super().__init__(
            {
                **_profile.ports(),
                "cycles": In(range(maximum // EIGHTHS + 1)),
                "run": In(1),
                "lanes": In(amount),
                "instructions": In(count),
                "requests": In(amount),
                "memory_instructions": In(count),
                "window_lanes": In(sum_bits(amount, WINDOW)),
                "window_instructions": In(sum_bits(count, WINDOW)),
                "window_requests": In(sum_bits(amount, WINDOW)),
                "window_memory_instructions": In(sum_bits(count, WINDOW)),
                "distance": In(event(distance)),
                "ends": Out(event(Reason)),
            }
        )
        self.statistics = [Statistic(name, maximum) for name in STATISTICS]
        self.profiled = Signal()  # a cycle ago
        self.over = Signal()  # it was stable
        # The divider.
        first = self.statistics[0]
        self.jobs = HALVES * len(STATISTICS) + 1
        self.dividing = Signal()
        self.job = Signal(range(self.jobs))
        self.turn = Signal(range(QUOTIENT_BITS + 4))
        self.divisor = Signal(max(len(first.counts[0]), DISTANCE_BITS))
        self.rest = Signal(len(self.divisor))
        self.quotient = Signal(QUOTIENT_BITS)
        self.ready = Signal()
        self.waits = Signal()  # a profile's distance is to be divided
        self.difference = Signal(DISTANCE_BITS)
        self.total = Signal(DISTANCE_BITS)
        self.apart = Signal(range(MOST_APART + 1))
        self.threshold = Signal(range(MOST_LIMIT + 1))
        self.limit = Signal(range(MOST_LIMIT + 1), init=share)
        # The run.
        self.cycle = Signal(range(longest))
        self.beat = Signal(range(interval))
        self.armed = Signal()  # the run is as long as its profile was
        self.ended = Signal()
        self.compared = Signal()  # a distance of a window waits
        self.window_difference = Signal(DISTANCE_BITS)
        self.window_total = Signal(DISTANCE_BITS)
        self.taken = Signal()  # it is compared
        self.taken_difference = Signal(DISTANCE_BITS)
        self.outside = [Signal(range(above + 1), name=f"{name}_outside") for name in STATISTICS]  # in a row
        # The multiplier: a count, from its highest bit on, by two bounds.
        self.working = Signal(Job)
        self.step = Signal(range(FACTOR_BITS + 3))
        self.factor = Signal(FACTOR_BITS)
        least = len(first.window_count) + len(first.least)
        most = bits_for(MOST_LIMIT * ((1 << FACTOR_BITS) - 1))
        self.products = [Signal(bits, name=f"product_{of}") for of, bits in (("least", least), ("most", most))]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self.begins = Signal()
        self.counting = Signal()
        m.d.comb += [self.begins.eq(self.profile & ~self.profiled), self.counting.eq(self.profile & ~self.over)]
        m.d.sync += [self.profiled.eq(self.profile), self.over.eq(self.profile & (self.over | self.stable))]
        self._count(m)
        self._divide(m)
        self._compare(m)
        return m

    def _count(self, m: Module) -> None:
        """What the intervals of a profile have."""
        joins = self.counting & self.joining.valid
        arrivals = ((self.lanes, self.instructions), (self.requests, self.memory_instructions))
        for statistic, arrived in zip(self.statistics, arrivals, strict=True):
            for registers, value in zip((statistic.amounts, statistic.counts), arrived, strict=True):
                large, *smalls = registers
                for k, register in enumerate(registers):
                    with m.If(self.counting & self.restart):
                        m.d.sync += register.eq(0)
                    with m.Elif(self.counting & (self.part == k)):
                        m.d.sync += register.eq(Mux(self.begins, 0, register) + value)
                    with m.Elif(self.begins | (joins & (self.joining.payload == k - 1) if k else 0)):
                        m.d.sync += register.eq(0)
                with m.If(joins & ~self.restart):
                    m.d.sync += large.eq(large + multiplex(self.joining.payload, smalls))

    def _divide(self, m: Module) -> None:
        """After a profile: its means, one by one, and what a run's may be; then its distance."""
        stores = QUOTIENT_BITS + 1
        dividends: list[Value] = []  # by job
        divisors: list[Value] = []
        for statistic in self.statistics:
            for registers, those in ((statistic.amounts, dividends), (statistic.counts, divisors)):
                training, validation = registers[0], sum(registers[1:])
                those += [training, validation, training + validation]
        dividends = [amount << MEAN.fraction for amount in dividends]
        dividends.append(self.difference << RANGE_BITS)
        divisors.append(self.total)
        chosen = [self.job == job for job in range(self.jobs)]
        doubled = select(Cat(chosen), dividends) << 1  # for a bit that rounds
        rest, rounded = Cat(self.quotient[-1], self.rest), (self.quotient + 1) >> 1
        fits = rest >= self.divisor
        with m.If(self.dividing):
            m.d.sync += self.turn.eq(self.turn + 1)
            with m.If(self.turn == 0):
                m.d.sync += [
                    self.quotient.eq(doubled), self.rest.eq(doubled >> QUOTIENT_BITS),
                    self.divisor.eq(select(Cat(chosen), divisors)),
                ]  # fmt: skip
            with m.Elif(self.turn < stores):
                m.d.sync += [
                    self.rest.eq(Mux(fits, rest - self.divisor, rest)), self.quotient.eq(Cat(fits, self.quotient))
                ]  # fmt: skip
            with m.Else():
                self._bound(m, rounded)
        with m.Elif(self.waits & self.ready):
            m.d.sync += [self.dividing.eq(1), self.waits.eq(0)]
        with m.If(self.distance.valid & ~self.distance.payload.run):
            m.d.sync += [
                self.waits.eq(1), self.difference.eq(self.distance.payload.difference),
                self.total.eq(self.distance.payload.total),
            ]  # fmt: skip
        with m.If(self.counting & self.stable):
            m.d.sync += [self.dividing.eq(1), self.job.eq(0), self.turn.eq(0)]
        with m.If(self.begins | (self.counting & self.restart)):
            m.d.sync += [
                self.dividing.eq(0), self.ready.eq(0), self.waits.eq(0), self.limit.eq(self._share), self.turn.eq(0)
            ]  # fmt: skip

    def _bound(self, m: Module, rounded: Value) -> None:
        """Keep a quotient; after the last one of its kind, find what a run's may be."""
        stores, last = QUOTIENT_BITS + 1, Signal()
        m.d.comb += last.eq((self.job == HALVES - 1) | (self.job == 2 * HALVES - 1) | (self.job == self.jobs - 1))
        with m.If(self.turn == stores):
            for job in range(self.jobs - 1):
                of, half = divmod(job, HALVES)
                with m.If(self.job == job):
                    statistic = self.statistics[of]
                    m.d.sync += [statistic.means[half].eq(rounded), statistic.known[half].eq(self.divisor != 0)]
            with m.If(~last):
                m.d.sync += [self.job.eq(self.job + 1), self.turn.eq(0)]
            m.d.sync += self.apart.eq(Mux(self.divisor != 0, rounded * MARGIN_CODE, 0))  # of a distance
        for of, statistic in enumerate(self.statistics):
            mine = self.job == HALVES * (of + 1) - 1
            with m.If(mine & (self.turn == stores + 1)):
                one, other = statistic.means[:2]
                difference = Mux(one > other, one - other, other - one)
                known = statistic.known[0] & statistic.known[1]
                m.d.sync += self.apart.eq(Mux(known, difference * MARGIN_CODE, 0))
            with m.If(mine & (self.turn == stores + 3)):
                mean, least = statistic.means[2], self._thresholds[of] << MEAN.fraction
                threshold = Mux(self.threshold > least, self.threshold, least)
                m.d.sync += [
                    statistic.least.eq(Mux(mean > threshold, mean - threshold, 0)), statistic.most.eq(mean + threshold)
                ]  # fmt: skip
        with m.If(self.turn == stores + 2):
            m.d.sync += self.threshold.eq((self.apart + (MARGIN.one >> 1)) >> MARGIN.fraction)
        with m.If(last & (self.turn == stores + 3)):
            m.d.sync += [self.job.eq(self.job + 1), self.turn.eq(0)]
            with m.If(self.job >= 2 * HALVES - 1):
                m.d.sync += [self.dividing.eq(0), self.ready.eq(1)]
            with m.If(self.job == self.jobs - 1):
                m.d.sync += self.limit.eq(Mux(self.threshold > self._share, self.threshold, self._share))

    def _compare(self, m: Module) -> None:
        """In a run: each interval's means with their bounds, and a window's distance with its limit."""
        last = Signal()
        found = Signal(Reason)
        outside = Signal()
        ends = Signal()
        windows = (
            (self.window_lanes, self.window_instructions), (self.window_requests, self.window_memory_instructions),
        )  # fmt: skip
        m.d.comb += last.eq(self.beat == self._interval - 1)
        m.d.sync += [
            self.ends.valid.eq(0),
            self.cycle.eq(self.cycle + 1),
            self.beat.eq(Mux(last, 0, self.beat + 1)),
        ]
        with m.If(last):
            divided = self.ready & ~self.dividing & ~self.waits
            m.d.sync += [
                self.working.eq(Job.LANES), self.step.eq(0),
                self.armed.eq(divided & (self.cycle + 1 >= self.cycles * EIGHTHS)),
            ]  # fmt: skip
            for statistic, (amount, count) in zip(self.statistics, windows, strict=True):
                m.d.sync += [statistic.window_amount.eq(amount), statistic.window_count.eq(count)]
        with m.Elif(self.working != Job.NOTHING):
            m.d.sync += self.step.eq(self.step + 1)
        jobs = [
            (statistic.window_amount << MEAN.fraction, statistic.window_count, statistic.least, statistic.most)
            for statistic in self.statistics
        ]
        distance = self.taken_difference << RANGE_BITS
        jobs.append((distance, self.window_total, 0, self.limit))
        least, most = self.products
        for number, (value, factor, below, above) in enumerate(jobs):
            with m.If(self.working == number + 1):
                m.d.comb += outside.eq((value > most) | (value < least))
                with m.If(self.step == 0):
                    m.d.sync += [self.factor.eq(factor), least.eq(0), most.eq(0)]
                    if number == len(STATISTICS):
                        m.d.sync += [
                            self.taken.eq(self.compared), self.taken_difference.eq(self.window_difference),
                            self.compared.eq(0),
                        ]  # fmt: skip
                with m.Elif(self.step <= FACTOR_BITS):
                    high = self.factor[-1]
                    m.d.sync += [
                        self.factor.eq(self.factor << 1),
                        least.eq((least << 1) + Mux(high, below, 0)),
                        most.eq((most << 1) + Mux(high, above, 0)),
                    ]
                with m.Else():
                    m.d.sync += [self.step.eq(0), self.working.eq(Job((number + 2) % len(Job)))]
                    if number < len(STATISTICS):
                        known = self.statistics[number].known[2] & (factor != 0)
                        again = self.outside[number]
                        far = outside & known & self.armed
                        m.d.comb += ends.eq(far & (again == self._above - 1))
                        m.d.sync += again.eq(Mux(far, again + 1, 0))
                    else:
                        m.d.comb += ends.eq(outside & self.taken & self.armed)
                    m.d.comb += found.eq(Reason(number))
        with m.If(self.distance.valid & self.distance.payload.run):
            m.d.sync += [
                self.compared.eq(1), self.window_difference.eq(self.distance.payload.difference),
                self.window_total.eq(self.distance.payload.total),
            ]  # fmt: skip
        longest = self.cycle == self._longest - 1
        with m.If((ends | longest) & ~self.ended):
            m.d.sync += [
                self.ended.eq(1), self.ends.valid.eq(1), self.ends.payload.eq(Mux(longest, Reason.LENGTH, found)),
            ]  # fmt: skip
        with m.If(self.ended):
            m.d.sync += [self.cycle.eq(self.cycle), self.working.eq(Job.NOTHING)]
        with m.If(~self.run):
            m.d.sync += [
                self.ended.eq(0), self.ends.valid.eq(0), self.ends.payload.eq(self.ends.payload), self.cycle.eq(0),
                self.beat.eq(0), self.armed.eq(0), self.compared.eq(0), self.working.eq(Job.NOTHING), self.step.eq(0),
                *(register.eq(0) for register in self.outside),
            ]  # fmt: skip
