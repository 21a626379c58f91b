"""Tells by the instructions of a kernel whether it still does what it did while it was profiled: one in each SM.

Kloosterman's thesis, sections 5.4.2 and 5.6.2, table 5.1.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import multiplex, select
from lockstep.rtl.scavenger import _profile
from lockstep.rtl.signatures import event
from lockstep.spec.scavenger import prediction

DEPTH = 4  # cycles from the read of a bucket to its difference in the sum
FIRST_SHIFT = 4  # the step of normalising before which both totals are in order


class Stage(IntEnum):
    """What the block does, beside which nothing is counted."""

    RESTING = 0
    CLEARING = 1  # all histograms
    JOINING = 2  # a small one to the large one
    NORMALISING = 3  # the totals of two
    COMPARING = 4  # their buckets


class PcHistogram(wiring.Component):
    """Histograms of the PCs that a kernel executes, in its profile and in its run, and the distances between them.

    There is one for each interval of :class:`PerformancePredictor`, a large one and four small ones, and one for the
    run. A sample adds 1 to a bucket and to the histogram's total. Buckets are words of memories with one read port and
    one write port each; the large histogram has ``large_bits`` for each, a small one ``small_bits``, and that of the
    run as many as a window needs.

    **Profile.** All histograms are cleared when a profile begins, with its first cycle or after ``restart``. Samples
    count in the ``part`` of their cycle, until the profile is ``stable``. The count that fills a bucket of a small
    histogram freezes it, its total included, until it is cleared. ``joining`` adds a small histogram to the large one
    and clears it. The large one cannot overflow: half the minimum and all that can join it fit.

    **Run.** It begins with the first cycle with ``run``, after a profile that was stable. After each ``window`` cycles
    its histogram is compared with the large one, and cleared.

    **Distance.** After a profile it is that between the large histogram, training, and all small ones together,
    validation; in a run, that between training and the window. The histogram with the smaller total is shifted left, to
    the power of two that brings its total nearest to the larger: once more as long as 16 A >= 23 B. Then ``difference``
    is the sum of |a - b| over all buckets and ``total`` that of both totals, so that the quotient is 1 where no bucket
    has samples of both. Both are 0 if either total is: such a pair is not compared. The distance of a profile comes
    unless another one begins, that of a window unless its run ends.

    **Walks.** To clear or to join takes a cycle for each bucket and one more, to compare 154 cycles as shipped: 21 to
    bring the totals together, one for each bucket, and five. A memory has one write port, and what is cleared is what
    would be counted into; so nothing is counted in these cycles: the first 129 of a profile and of what follows a join,
    and the first 154 of each window but a run's first. A run that begins while the distance of its profile is still to
    come counts from then on.

    Latency: 155 cycles from the last one of a window to ``distance``, and 156 from ``stable``, or up to 129 more if a
    small histogram joins meanwhile; as shipped.

    Parameters
    ----------
    buckets : int
        A power of two, 2 to 128.
    minimum, maximum : int
        Cycles of a profile, as in :class:`PerformancePredictor`. A quarter of the minimum has room for a join.
    window : int
        Cycles between two comparisons in a run, at most 16383; room for two comparisons and a join.
    large_bits, small_bits : int
        Of a bucket, at most 18 and 14.

    Members
    -------
    profile, run : In
        As of :class:`PerformancePredictor` and :class:`FallbackMonitor`. Never together.
    part, joining, restart, stable : In
        Of :class:`PerformancePredictor`. They mean nothing without ``profile``, nor in a profile that was stable.
    sample : In, event
        A bucket: the number of an instruction that the kernel issues in this cycle, modulo ``buckets``.
    distance : Out, event
        ``run``: 1 for a window, 0 for a profile; ``difference`` and ``total``. The payload stays until the next one.

    Raises
    ------
    ValueError
        for an argument out of range, or if the large histogram could overflow.
    """

    LARGEST: ClassVar = {
        "buckets": prediction.BUCKETS, "minimum": prediction.MAX_PROFILE // 16 * 8, "maximum": prediction.MAX_PROFILE,
        "window": prediction.MAX_WINDOW, "large_bits": prediction.MAX_LARGE_BITS,
        "small_bits": prediction.MAX_SMALL_BITS,
    }  # fmt: skip

    def __init__(
        self, *, buckets: int = prediction.BUCKETS, minimum: int = prediction.MINIMUM,
        maximum: int = prediction.MAXIMUM, window: int = prediction.ENTRIES * prediction.ENTRY,
        large_bits: int = prediction.LARGE_BITS, small_bits: int = prediction.SMALL_BITS,
    ) -> None:  # fmt: skip
        if buckets & (buckets - 1) or not 2 <= buckets <= prediction.BUCKETS:
            raise ValueError(f"buckets must be a power of two, 2 to {prediction.BUCKETS}, not {buckets}")
        if minimum % prediction.EIGHTHS:
            raise ValueError(f"minimum must be a multiple of {prediction.EIGHTHS}, not {minimum}")
        least = -(-4 * (buckets + 2) // prediction.EIGHTHS) * prediction.EIGHTHS
        ranges.check("minimum", minimum, least, self.LARGEST["minimum"])
        ranges.check("maximum", maximum, minimum + prediction.EIGHTHS, prediction.MAX_PROFILE)
        ranges.check("small_bits", small_bits, 2, prediction.MAX_SMALL_BITS)
        lengths = prediction.intervals(minimum, maximum)
        joined = lengths[: -prediction.SMALLS]
        training = minimum // 2 + sum(joined)  # samples, at most
        validation = max(training - joined[-1], maximum - training)
        most = max(training, validation, window)
        self._buckets, self._window, self._full = buckets, window, (1 << small_bits) - 1
        self.steps = bits_for(most)  # of normalising: no total needs more shifts
        ranges.check("window", window, buckets + 2 + 2 * self.latency, prediction.MAX_WINDOW)
        least = bits_for(minimum // 2 + len(joined) * self._full)
        ranges.check("large_bits", large_bits, least, prediction.MAX_LARGE_BITS)
        bucket, smalls = bits_for(buckets - 1), range(prediction.SMALLS)
        above, below = prediction.NEAREST
        normalised = most * 2 * below // above  # the smaller total, shifted
        pair = range(most + normalised + 1)
        super().__init__(
            {
                **_profile.ports(),
                "run": In(1),
                "sample": In(event(bucket)),
                "distance": Out(event(data.StructLayout({"run": 1, "difference": pair, "total": pair}))),
            }
        )
        # The histograms, in the order of the parts, and that of the run.
        self.training = Memory(shape=large_bits, depth=buckets, init=[])
        self.intervals = [Memory(shape=small_bits, depth=buckets, init=[]) for _ in smalls]
        self.running = Memory(shape=bits_for(window), depth=buckets, init=[])
        memories = [self.training, *self.intervals, self.running]
        self.reads, self.writes = [each.read_port() for each in memories], [each.write_port() for each in memories]
        self.values = [port.data for port in self.reads]
        self.training_total = Signal(range(training + 1))
        longest = [max(lengths[k :: prediction.SMALLS]) for k in smalls]
        self.interval_totals = [Signal(range(most + 1), name=f"interval_total_{k}") for k, most in enumerate(longest)]
        self.running_total = Signal(range(window + 1))
        self.frozen = Signal(prediction.SMALLS)
        # What is counted.
        self.profiled = Signal()  # a cycle ago
        self.over = Signal()  # the profile was stable
        self.begins = Signal()  # one does, with this cycle or after it
        self.cycle = Signal(range(window))
        self.bucket = Signal(bucket)  # that was read a cycle ago
        self.counts = Signal(prediction.SMALLS + 2)  # its histogram, if it was that of a sample
        self.again = Signal()  # it was that of the sample before, too
        self.latest = Signal(range(max(minimum // 2, self._full, window) + 1))  # what the sample before made of it
        self.count = Signal.like(self.latest)  # what this one does
        # What is walked through.
        self.stage = Signal(Stage)
        self.index = Signal(range(buckets + DEPTH + 1))
        self.oldest = Signal(range(prediction.SMALLS))
        self.wanted = Signal()  # the distance of a profile
        self.of_run = Signal()
        # A comparison: totals, the larger one, the other one and 23 times that; then a bucket of each.
        self.turn = Signal(range(FIRST_SHIFT + self.steps))
        self.other_total = Signal(range(max(validation, window) + 1))
        self.swapped = Signal()
        self.empty = Signal()
        self.larger = Signal(range(most + 1))
        self.smaller = Signal(range(normalised + 1))
        self.multiple = Signal(range(above * normalised + 1))
        self.shift = Signal(range(self.steps + 1))
        self.larger_bucket = Signal(max(large_bits, small_bits + 2, bits_for(window)))
        self.smaller_bucket = Signal.like(self.larger_bucket)
        self.kept_bucket = Signal.like(self.larger_bucket)
        self.shifted_bucket = Signal(range(normalised + 1))
        self.bucket_difference = Signal(signed(bits_for(normalised) + 1))
        self.sum = Signal(pair)

    @property
    def latency(self) -> int:
        """Cycles of a comparison."""
        return FIRST_SHIFT + self.steps + self._buckets + DEPTH + 1

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.training, m.submodules.running = self.training, self.running
        for k, memory in enumerate(self.intervals):
            m.submodules[f"interval_{k}"] = memory
        self._count(m)
        self._normalise(m)
        self._compare(m)
        self._begin(m)
        return m

    def _begin(self, m: Module) -> None:
        """What each cycle begins; a profile ends whatever is under way."""
        counting, resting, last = Signal(), Signal(), Signal()
        m.d.comb += [
            counting.eq(self.profile & ~self.over),
            self.begins.eq(self.profile & ~self.profiled | counting & self.restart),
            resting.eq(self.stage == Stage.RESTING),
            last.eq(self.cycle == self._window - 1),
        ]
        m.d.sync += [
            self.profiled.eq(self.profile),
            self.over.eq(self.profile & (self.over | self.stable)),
            self.cycle.eq(Mux(self.run & ~last, self.cycle + 1, 0)),
        ]
        with m.If(counting & self.stable):
            m.d.sync += self.wanted.eq(1)
        with m.If(self.begins):
            m.d.sync += [self.stage.eq(Stage.CLEARING), self.index.eq(0), self.wanted.eq(0)]
        with m.Elif(counting & self.joining.valid):
            m.d.sync += [self.stage.eq(Stage.JOINING), self.oldest.eq(self.joining.payload)]
        with m.Elif(resting & (self.wanted | self.run & last)):
            m.d.sync += [
                self.stage.eq(Stage.NORMALISING), self.turn.eq(0), self.of_run.eq(~self.wanted), self.wanted.eq(0)
            ]  # fmt: skip

    def _count(self, m: Module) -> None:
        """Read the bucket of a sample, or the next one of a walk, and write it a cycle later."""
        walks, walking = Signal(), Signal()  # the latter where a bucket was read
        clears = self.stage == Stage.CLEARING
        joins = self.stage == Stage.JOINING
        m.d.comb += [walks.eq(self.stage != Stage.RESTING), walking.eq(self.index != 0)]
        chosen = Signal.like(self.counts)
        m.d.comb += chosen.eq(Mux(self.run, 1 << prediction.SMALLS + 1, 1 << self.part))
        counting = self.sample.valid & ~walks & ~self.wanted & (self.run | self.profile & ~self.over)
        m.d.sync += self.counts.eq(Mux(counting, chosen, 0))
        read = Signal(len(self.bucket))
        m.d.comb += read.eq(Mux(walks, self.index[: len(read)], self.sample.payload))
        with m.If(walks | counting):
            m.d.sync += self.bucket.eq(read)

        values = self.values
        # A bucket that is written while it is read shows what it was before.
        count = self.count
        m.d.comb += count.eq(Mux(self.again, self.latest, select(self.counts, values)) + 1)
        repeats = (self.counts == chosen) & (self.bucket == self.sample.payload)
        m.d.sync += self.again.eq(counting & repeats)
        with m.If(self.counts.any()):
            m.d.sync += self.latest.eq(count)
        for port, write in zip(self.reads, self.writes, strict=True):
            m.d.comb += [
                port.en.eq(walks | counting),
                port.addr.eq(read),
                write.addr.eq(self.bucket),
                write.data.eq(Mux(walking, 0, count)),
            ]
        counts, (large, *smalls, run) = self.counts, self.writes
        with m.If(walking & joins):
            m.d.comb += large.data.eq(values[0] + multiplex(self.oldest, values[1:-1]))
        m.d.comb += [
            large.en.eq(counts[0] | walking & (clears | joins)),
            run.en.eq(counts[-1] | walking & (clears | (self.stage == Stage.COMPARING) & self.of_run)),
        ]
        for k, small in enumerate(smalls):
            counted, joined = counts[k + 1] & ~self.frozen[k], joins & (self.oldest == k)
            m.d.comb += small.en.eq(counted | walking & (clears | joined))
            total = self.interval_totals[k]
            with m.If(counted):
                m.d.sync += [total.eq(total + 1), self.frozen[k].eq(count == self._full)]
            with m.If(walking & joined):
                m.d.sync += [total.eq(0), self.frozen[k].eq(0)]
        with m.If(counts[0]):
            m.d.sync += self.training_total.eq(self.training_total + 1)
        with m.Elif(walking & joins):
            m.d.sync += self.training_total.eq(self.training_total + multiplex(self.oldest, self.interval_totals))
        with m.If(counts[-1]):
            m.d.sync += self.running_total.eq(self.running_total + 1)
        with m.Elif(walking & self.of_run & (self.stage == Stage.COMPARING)):
            m.d.sync += self.running_total.eq(0)
        with m.If(clears):
            m.d.sync += [total.eq(0) for total in (self.training_total, *self.interval_totals, self.running_total)]
            m.d.sync += self.frozen.eq(0)
        with m.If(clears | joins):
            m.d.sync += self.index.eq(self.index + 1)
            with m.If(self.index == self._buckets):
                m.d.sync += [self.stage.eq(Stage.RESTING), self.index.eq(0)]

    def _normalise(self, m: Module) -> None:
        """Bring the smaller total to the power of two that is nearest to the larger one."""
        training, other = self.training_total, self.other_total
        above, below = prediction.NEAREST
        with m.If(self.stage == Stage.NORMALISING):
            m.d.sync += self.turn.eq(self.turn + 1)
            with m.If(self.turn == 1):  # the last sample is in the totals
                m.d.sync += other.eq(Mux(self.of_run, self.running_total, sum(self.interval_totals)))
            with m.Elif(self.turn == 2):
                m.d.sync += [self.swapped.eq(other > training), self.empty.eq((other == 0) | (training == 0))]
            with m.Elif(self.turn == 3):
                smaller = Mux(self.swapped, training, other)
                m.d.sync += [
                    self.larger.eq(Mux(self.swapped, other, training)), self.smaller.eq(smaller),
                    self.multiple.eq(smaller * above), self.shift.eq(0), self.sum.eq(0),
                ]  # fmt: skip
            with m.If((self.turn >= FIRST_SHIFT) & (self.larger * below >= self.multiple) & ~self.empty):
                m.d.sync += [
                    self.smaller.eq(self.smaller << 1), self.multiple.eq(self.multiple << 1),
                    self.shift.eq(self.shift + 1),
                ]  # fmt: skip
            with m.If(self.turn == FIRST_SHIFT + self.steps - 1):
                m.d.sync += self.stage.eq(Stage.COMPARING)

    def _compare(self, m: Module) -> None:
        """Sum up the differences of all buckets, each in four steps."""
        large, *smalls, run = self.values
        read, negative = Signal(), Signal()  # the bucket of a step before
        other, difference = Signal.like(self.larger_bucket), self.bucket_difference
        m.d.comb += [
            read.eq(self.index != 0), other.eq(Mux(self.of_run, run, sum(smalls))), negative.eq(difference < 0)
        ]  # fmt: skip
        total = self.larger + self.smaller
        m.d.sync += self.distance.valid.eq(0)
        with m.If(self.stage == Stage.COMPARING):
            m.d.sync += [
                self.index.eq(self.index + 1),
                self.larger_bucket.eq(Mux(read, Mux(self.swapped, other, large), 0)),
                self.smaller_bucket.eq(Mux(read, Mux(self.swapped, large, other), 0)),
                self.kept_bucket.eq(self.larger_bucket),
                self.shifted_bucket.eq(self.smaller_bucket << self.shift),
                difference.eq(self.kept_bucket - self.shifted_bucket),
                self.sum.eq(self.sum + (difference ^ negative.replicate(len(difference))).as_unsigned() + negative),
            ]
            with m.If(self.index == self._buckets + DEPTH):
                payload = self.distance.payload
                m.d.sync += [self.stage.eq(Stage.RESTING), self.index.eq(0)]
                with m.If(~self.begins & (self.run | ~self.of_run)):
                    m.d.sync += [
                        self.distance.valid.eq(1), payload.run.eq(self.of_run),
                        payload.difference.eq(Mux(self.empty, 0, self.sum)),
                        payload.total.eq(Mux(self.empty, 0, total)),
                    ]  # fmt: skip
        with m.Elif(self.stage == Stage.NORMALISING):
            zero = (self.larger_bucket, self.smaller_bucket, self.kept_bucket, self.shifted_bucket, difference)
            m.d.sync += [register.eq(0) for register in zero]
