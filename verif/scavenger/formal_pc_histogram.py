"""Proofs about full buckets, and that distributions which are equal stay below the least threshold."""

from __future__ import annotations

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.memory import Memory

from lockstep.rtl.scavenger.pc_histogram import FIRST_SHIFT, PcHistogram, Stage
from lockstep.rtl.scavenger.performance_predictor import Stage as PredictorStage
from lockstep.verif.formal import Proof
from lockstep.verif.scavenger.formal_performance_predictor import BALANCES, SMALL_EIGHTH, Intervals

MOST_DIFFERENT = 11_763  # of 64K, distributions that are equal: 7/39
BUCKETS, FULL_BITS, FULL = 4, 3, 7
SMALL_BITS, SMALL_FULL = 2, 3


class Nearest(Elaboratable):
    """After normalising, totals are so near that the buckets of equal distributions differ by less than 12K of 64K.

    Then a - b of a bucket is its share of A - B, so that all differences are |A - B| together.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = PcHistogram(buckets=2, minimum=128, maximum=248, window=255)
        walks = (dut.stage == Stage.NORMALISING) | (dut.stage == Stage.COMPARING)
        shifts = (dut.stage == Stage.NORMALISING) & (dut.turn >= FIRST_SHIFT)
        compares = dut.stage == Stage.COMPARING
        left = Signal(range(dut.steps + 1))  # of the steps
        apart = Mux(dut.larger > dut.smaller, dut.larger - dut.smaller, dut.smaller - dut.larger)
        m.d.comb += [
            Assume(~(dut.profile & dut.run)),
            left.eq(Mux(compares, 0, FIRST_SHIFT + dut.steps - dut.turn)),
            Assert(~(walks | dut.wanted) | ~dut.profiled | dut.over),
            Assert(~walks | (dut.counts == 0) | (dut.stage == Stage.NORMALISING) & (dut.turn == 0)),
            Assert((dut.stage != Stage.NORMALISING) | (dut.turn < FIRST_SHIFT + dut.steps)),
        ]
        with m.If((dut.stage == Stage.NORMALISING) & (dut.turn == FIRST_SHIFT - 1)):
            m.d.comb += [
                Assert(dut.swapped == (dut.other_total > dut.training_total)),
                Assert(dut.empty == ((dut.other_total == 0) | (dut.training_total == 0))),
            ]
        with m.If((shifts | compares) & ~dut.empty):
            m.d.comb += [
                Assert(dut.multiple == 23 * dut.smaller),
                Assert((dut.larger != 0) & (dut.smaller != 0)),
                Assert(dut.multiple <= 32 * dut.larger),
                Assert(dut.larger << 4 < dut.multiple << left),
            ]
        with m.If(compares & ~dut.empty):
            m.d.comb += Assert(apart << 16 <= MOST_DIFFERENT * (dut.larger + dut.smaller))
        return m


def word(m: Module, memory: Memory, address: Value) -> Value:
    """A word of a memory, in this cycle."""
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(address)
    return port.data


class Frozen(Elaboratable):
    """A small histogram freezes with the count that fills a bucket, whichever, and stays as it is until it is cleared.

    No count is lost or counted twice before, when samples of a bucket follow each other.
    """

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = PcHistogram(
            buckets=BUCKETS, minimum=24, maximum=32, window=61, large_bits=6, small_bits=FULL_BITS
        )
        bucket, chosen = Signal(range(BUCKETS)), Signal(range(BUCKETS))
        m.d.sync += chosen.eq(bucket)  # a bucket that stays the same
        m.d.comb += Assume(bucket == chosen)
        clears, joins = dut.stage == Stage.CLEARING, dut.stage == Stage.JOINING
        walking, passed = dut.index != 0, dut.index >= bucket + 2
        m.d.comb += [
            Assert(~((dut.stage == Stage.RESTING) | (dut.stage == Stage.NORMALISING)) | ~walking),
            Assert((dut.counts == 0) | ~walking),
            Assert((dut.counts & (dut.counts - 1)) == 0),
            Assume(~(dut.profile & dut.run)),
            Assume((dut.stage == Stage.RESTING) | ~dut.joining.valid),
        ]
        began = Signal()
        m.d.sync += began.eq(1)
        for k, memory in enumerate(dut.intervals):
            count = word(m, memory, bucket)
            frozen, total, counts = dut.frozen[k], dut.interval_totals[k], dut.counts[k + 1]
            joined = joins & (dut.oldest == k)
            cleared, was_frozen = Signal(name=f"cleared_{k}"), Signal(name=f"was_frozen_{k}")
            was_total, was_count = Signal.like(total, name=f"was_total_{k}"), Signal.like(count, name=f"was_count_{k}")
            was_counted, was_written = Signal(name=f"was_counted_{k}"), Signal(name=f"was_written_{k}")
            counted = counts & ~frozen
            m.d.sync += [
                cleared.eq(clears | walking & joined), was_frozen.eq(frozen), was_total.eq(total), was_count.eq(count),
                was_counted.eq(counted), was_written.eq(counted & (dut.bucket == bucket)),
            ]  # fmt: skip
            with m.If(began & ~cleared):
                m.d.comb += [
                    Assert(~was_frozen | frozen & (total == was_total) & (count == was_count)),
                    Assert(total == (was_total + was_counted)[: len(total)]),
                    Assert(count == was_count + was_written),  # which has a bit more: it never overflows
                    Assert(~was_written | (count != FULL) | frozen),
                ]
            with m.If(counted & (dut.bucket == bucket)):
                m.d.comb += Assert(dut.count == (count + 1)[: len(dut.count)])
            with m.If(clears | joined & walking):
                m.d.comb += Assert(~passed | (count == 0))
            with m.Else():
                m.d.comb += Assert(frozen | (count != FULL))
        return m


class Room(Intervals):
    """The large histogram has room for all samples of its interval and for the full small ones that join it.

    Beside a predictor, whose profiles are followed; of a bucket, whichever.
    """

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        predictor, halves = self.dut, self.ends[0]
        least, most = 2 * halves, self.ends[-1]
        m.submodules.histogram = dut = PcHistogram(
            buckets=2, minimum=least, maximum=most, window=64, large_bits=6, small_bits=SMALL_BITS
        )
        bucket, chosen = Signal(1), Signal(1)
        m.d.sync += chosen.eq(bucket)
        m.d.comb += [
            Assume(bucket == chosen), Assume(~(dut.profile & dut.run)), dut.profile.eq(predictor.profile),
            dut.part.eq(predictor.part), dut.joining.valid.eq(predictor.joining.valid),
            dut.joining.payload.eq(predictor.joining.payload), dut.restart.eq(predictor.restart),
            dut.stable.eq(predictor.stable),
        ]  # fmt: skip
        count = word(m, dut.training, bucket)
        clears, joins = dut.stage == Stage.CLEARING, dut.stage == Stage.JOINING
        compares = (dut.stage == Stage.NORMALISING) | (dut.stage == Stage.COMPARING)
        counting, before = dut.profiled & ~dut.over, dut.index < bucket + 2  # it has been written
        joined = Signal(range(len(self.ends)))  # small histograms since all were cleared
        starts = dut.profile & ~dut.over & dut.joining.valid & ~dut.begins
        m.d.sync += joined.eq(Mux(dut.begins, 0, joined + starts))
        pending = dut.counts[0] & (dut.bucket == bucket)
        own = Mux(counting & (self.interval == 0), self.cycle, halves)
        of_joined = SMALL_FULL * (joined - (joins & before))
        first = len(self.ends) - len(BALANCES)  # the number of the last interval before one joins
        m.d.comb += [
            Assert(dut.over == (predictor.stage != PredictorStage.COUNTING)),
            Assert(dut.profiled | (self.cycle == 0) & ~dut.over),
            Assert(~(compares | dut.wanted) | ~dut.profiled | dut.over),
            Assert(~counting | (joined == Mux(self.interval > first, self.interval - first, 0))),
            Assert(joined < len(BALANCES)),
            Assert(~(joins & counting) | (self.cycle == self.begin + dut.index) & (self.interval > first)),
            Assert(~(clears & counting) | (self.cycle == dut.index) | (self.cycle == dut.index + 1)),
            Assert(~joins | (joined != 0)),
            Assert(clears | joins | (dut.stage == Stage.COMPARING) | (dut.index == 0)),
            Assert(~(clears | joins) | (dut.index <= 2)),
            Assert((dut.counts == 0) | (dut.index == 0)),
            Assert((dut.counts & (dut.counts - 1)) == 0),
            Assert(~dut.counts[0] | ~joins),
            Assert(~dut.counts[0] | clears | ~counting | (self.cycle <= halves)),
            Assert(~pending | clears | (dut.count == (count + 1)[: len(dut.count)])),
            Assert(~joins | (dut.index != bucket + 1) | (dut.values[0] == count)),
            Assert(Mux(clears, before | (count == 0), count + pending <= own + of_joined)),
        ]
        return m


class Reached(Elaboratable):
    """The distance of a profile, or a frozen histogram that joins."""

    def __init__(self, distance: bool) -> None:
        self.distance = distance

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = PcHistogram(
            buckets=2, minimum=16, maximum=24, window=44, large_bits=4, small_bits=2
        )  # fmt: skip
        found = dut.distance
        frozen = (dut.stage == Stage.JOINING) & dut.frozen.bit_select(dut.oldest, 1)
        m.d.comb += [
            Assume(~(dut.profile & dut.run)),
            Assume((dut.stage == Stage.RESTING) | ~dut.joining.valid),
            Cover(found.valid & (found.payload.total != 0) & ~found.payload.run if self.distance else frozen),
        ]
        return m


PROOFS = {
    "nearest": Proof(
        Nearest, "prove", 1,
        f"the smaller total, shifted, is so near the larger that equal distributions differ by {MOST_DIFFERENT:,} of "
        "64K at most; totals up to 255", long=True,
    ),
    "frozen": Proof(
        Frozen, "prove", 2,
        "the count that fills a bucket freezes its small histogram until it is cleared, and none is lost before; "
        f"{BUCKETS} buckets of {FULL_BITS} bits", long=True,
    ),
    "room": Proof(
        lambda: Room(SMALL_EIGHTH), "prove", 2,
        "the large histogram holds half of the minimum and 13 full buckets at most, and never overflows; 16 to 160 "
        f"cycles, small buckets of {SMALL_BITS} bits", long=True,
    ),
    "reached": Proof(lambda: Reached(False), "cover", 16, "a frozen histogram that joins; 2 buckets"),
    "compared": Proof(lambda: Reached(True), "cover", 40, "the distance of a profile; 2 buckets", long=True),
}  # fmt: skip
