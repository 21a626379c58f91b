"""Predicts the IPC of a kernel that has an SM to itself, from a profile as long as it needs: one in each SM.

Kloosterman's thesis, section 5.4.1, tables 5.1 and 5.3; the counters are those of section 5.6.2.
"""

from __future__ import annotations

from enum import IntEnum
from math import gcd
from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for, exact_log2

from lockstep.rtl import ranges
from lockstep.rtl.bits import multiplex
from lockstep.rtl.signatures import event
from lockstep.spec.scavenger import prediction
from lockstep.spec.scavenger.control import MAX_ISSUED
from lockstep.spec.scavenger.fixed import IPC

HUNDRED = 100
PERCENT_BITS = bits_for(HUNDRED)
QUOTIENT_BITS = IPC.bits + 1  # the last one rounds
DIGIT_BITS = 2  # of a factor, in each cycle of a multiplication


class Stage(IntEnum):
    """What the predictor does."""

    COUNTING = 0
    DIVIDING = 1  # instructions by cycles
    SCALING = 2  # the quotient by the percentage
    TARGETING = 3  # the product by 100
    DONE = 4


class PerformancePredictor(wiring.Component):
    """Profiles a kernel until both halves of the profile have the same IPC, and derives a target from it.

    **Profile.** It begins with the first cycle with ``profile``; without ``profile`` nothing is kept but the results.
    With q = ``minimum`` / 8, the first 4q cycles are the large interval, and the next four of q cycles each the small
    ones. At the end of the fourth, and whenever an interval ends from then on, the oldest small interval joins the
    large one, and another begins that is twice as long as what has joined. So the large one (training) and the small
    ones (validation) have equally many cycles at 8, 10, 12, 14, 16, 20, 24, 28, 32, 40 ... q; in between, validation
    has 3/8 at least.

    **Comparison**, at the end of cycle ``minimum`` and of every 16th from then on, before anything joins: the halves
    agree if |I_t C_v - I_v C_t| < ``tolerance`` / 1000 of I_t C_v, where I are instructions and C cycles; so they never
    do without an instruction in training. When they have agreed ``comparisons`` times in a row, the profile is stable.

    **Restart.** After ``maximum`` cycles all is discarded, and a profile begins with the next cycle. A comparison then
    would decide nothing; nor does one whose result is still to come.

    **Results.** ``predicted`` is instructions by cycles, both up to the last comparison, and ``target`` is ``percent``
    of that; each is rounded to nearest, ties away from zero. They stay until the next ones.

    Latency: ``verdict`` = 14 cycles (as shipped) from the last cycle that is compared to ``stable``, with which the
    profile ends; the cycles in between are counted, too, but are in no result. ``predicted`` changes 22 cycles after
    ``stable``, ``target`` 51, with which ``done`` rises. A product takes a cycle for two bits of a number of cycles, a
    quotient one for each bit.

    Parameters
    ----------
    minimum, maximum : int
        Cycles of a profile, a multiple of 8 and at least as many as a stable profile takes, up to 262143.
    tolerance : int
        In thousandths, 1 to 999.
    comparisons : int
        1 to 16.

    Members
    -------
    profile : In
        The kernel is alone and this cycle counts, or has been profiled and the results are wanted.
    issued : In
        Instructions of the kernel in this cycle, 0 to 7.
    percent : In
        What the target is of the prediction, 1 to 100; read with ``stable``.
    part : Out
        The interval that this cycle is of: 0 the large one, 1 to 4 the small ones. 0 without a profile.
    joining : Out, event
        After this cycle, small interval ``payload`` (0 to 3, which is part ``payload`` + 1) joins the large one.
    restart : Out
        After this cycle, all is discarded.
    stable : Out
        The profile is over, in its last cycle. Not together with ``joining`` or ``restart``. These three mean nothing
        in a cycle without ``profile``.
    done : Out
        The results are those of this profile. Stays while ``profile`` does.
    cycles : Out
        Of the last stable profile, in eights: comparisons fall on multiples of eight. Changes with the cycle after
        ``stable``.
    predicted, target : Out, U3.16
        Instructions per cycle.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "minimum": prediction.MAX_PROFILE // 16 * 8, "maximum": prediction.MAX_PROFILE,
        "tolerance": prediction.MAX_TOLERANCE, "comparisons": prediction.MAX_COMPARISONS,
    }  # fmt: skip

    def __init__(
        self, *, minimum: int = prediction.MINIMUM, maximum: int = prediction.MAXIMUM,
        tolerance: int = prediction.TOLERANCE, comparisons: int = prediction.COMPARISONS,
    ) -> None:  # fmt: skip
        given = {
            "comparisons": (comparisons, 1, prediction.MAX_COMPARISONS),
            "tolerance": (tolerance, 1, prediction.MAX_TOLERANCE),
            "minimum": (minimum, prediction.EIGHTHS, self.LARGEST["minimum"]),
            "maximum": (maximum, minimum + prediction.BEAT * comparisons, prediction.MAX_PROFILE),
        }
        for what, (value, least, largest) in given.items():
            ranges.check(what, value, least, largest)
        if minimum % prediction.EIGHTHS:
            raise ValueError(f"minimum must be a multiple of {prediction.EIGHTHS}, not {minimum}")
        self._minimum, self._maximum, self._comparisons = minimum, maximum, comparisons
        common = gcd(tolerance, 1000)
        self._tolerance = tolerance // common, 1000 // common
        self._zeros = (self._tolerance[1] & -self._tolerance[1]).bit_length() - 1  # at the end of the latter
        super().__init__(
            {
                "profile": In(1),
                "issued": In(range(MAX_ISSUED + 1)),
                "percent": In(PERCENT_BITS),
                "part": Out(range(prediction.SMALLS + 1)),
                "joining": Out(event(range(prediction.SMALLS))),
                "restart": Out(1),
                "stable": Out(1),
                "done": Out(1),
                "cycles": Out(range(maximum // prediction.EIGHTHS + 1)),
                "predicted": Out(IPC.bits),
                "target": Out(IPC.bits),
            }
        )
        lengths, large, smalls = prediction.intervals(minimum, maximum), minimum // 2, prediction.SMALLS
        joined = lengths[: len(lengths) - smalls]
        training = large + sum(joined)  # cycles, at most
        validation = max(training - joined[-1], maximum - training)
        # The state; proofs speak of it.
        self.stage = Signal(Stage)
        self.cycle = Signal(range(maximum))
        self.left = Signal(range(large + 1), init=large)  # cycles of an early interval, this one among them
        self.early = Signal(init=1)  # nothing has joined
        self.unit = Signal(range(lengths[len(joined) // smalls * smalls] + 1), init=lengths[0])  # of the oldest
        self.train_cycles = Signal(range(training + 1), init=large)
        self.train = Signal(range(MAX_ISSUED * training + 1))  # instructions
        self.validate = Signal(range(MAX_ISSUED * validation + 1))
        most = [MAX_ISSUED * max(lengths[k::smalls]) for k in range(smalls)]
        self.small = [Signal(range(count + 1), name=f"small_{k}") for k, count in enumerate(most)]
        self.beat = Signal(range(prediction.BEAT))
        # The comparison: both numbers of cycles, of which the digits rotate, instructions, and their products.
        self.digits = -(-bits_for(max(training, validation)) // DIGIT_BITS)
        self.step = Signal(range(self.verdict + 1))
        self.cycles_t, self.cycles_v = (Signal(DIGIT_BITS * self.digits, name=f"cycles_{half}") for half in "tv")
        self.issued_t, self.issued_v = (Signal.like(s, name=f"issued_{s.name[0]}") for s in (self.train, self.validate))
        self.triple_t = Signal(range(3 * MAX_ISSUED * training + 1))
        self.triple_v = Signal(range(3 * MAX_ISSUED * validation + 1))
        balanced = training - joined[-1]  # at the last balance, and then until the end
        largest = MAX_ISSUED * max(balanced**2, training * (maximum - training))
        self.product_t, self.product_v = (Signal(range(largest + 1), name=f"product_{half}") for half in "tv")
        self.difference = Signal(signed(bits_for(largest) + 1))
        self.allowed = Signal(range(self._tolerance[0] * largest + 1))
        self.scaled = Signal(signed(bits_for(self._tolerance[1] * largest >> self._zeros) + 1))
        self.equal = Signal()
        self.agreed = Signal(range(comparisons))  # comparisons in a row
        # The results.
        self.turn = Signal(range(QUOTIENT_BITS + 1))
        self.share = Signal(PERCENT_BITS)  # the percentage
        self.divisor = Signal(range(max(maximum // prediction.EIGHTHS, HUNDRED) + 1))
        self.rest = Signal.like(self.divisor)
        self.quotient = Signal(QUOTIENT_BITS)
        self.product = Signal(bits_for(HUNDRED * MAX_ISSUED << IPC.fraction))

    @property
    def verdict(self) -> int:
        """Cycles from the last one that is compared to ``stable``."""
        return self.digits + 5

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counting = Signal()
        m.d.comb += [
            counting.eq(self.stage == Stage.COUNTING),
            self.stable.eq((self.step == self.verdict) & self.equal & (self.agreed == self._comparisons - 1)),
            self.restart.eq((self.cycle == self._maximum - 1) & ~self.stable),
            self.done.eq(self.stage == Stage.DONE),
        ]
        self._count(m)
        self._compare(m)
        self._divide(m)
        with m.If(~self.profile | self.restart | self.stable | ~counting):
            m.d.sync += [s.eq(s.init) for s in (self.cycle, self.left, self.early, self.unit, self.train_cycles)]
            m.d.sync += [s.eq(0) for s in (self.train, self.validate, *self.small, self.beat, self.part)]
            m.d.sync += [self.step.eq(0), self.agreed.eq(0)]
        return m

    def _count(self, m: Module) -> None:
        """Count this cycle in its interval, and begin the next one at its end."""
        ends, joins = Signal(), Signal()
        oldest = self.part[:2]  # part 4, small interval 3, is followed by small interval 0
        leaving = multiplex(oldest, self.small)
        m.d.comb += [
            ends.eq(Mux(self.early, self.left == 1, self.cycle + 1 == self.train_cycles << 1)),
            joins.eq(ends & (~self.early | (self.part == prediction.SMALLS))),
            self.joining.valid.eq(joins & ~self.restart & ~self.stable),
            self.joining.payload.eq(Mux(self.joining.valid, oldest, 0)),
        ]
        large = self.part == 0
        m.d.sync += [
            self.cycle.eq(self.cycle + 1),
            self.train.eq(self.train + Mux(large, self.issued, Mux(joins, leaving, 0))),
            self.validate.eq(self.validate + Mux(large, 0, self.issued) - Mux(joins, leaving, 0)),
        ]
        for k, small in enumerate(self.small):
            with m.If(self.part == k + 1):
                m.d.sync += small.eq(small + self.issued)
            with m.If(joins & (oldest == k)):
                m.d.sync += small.eq(0)
        with m.If(self.early):
            m.d.sync += self.left.eq(Mux(ends, self.unit, self.left - 1))
        with m.If(ends):
            m.d.sync += self.part.eq(oldest + 1)
        with m.If(joins):
            m.d.sync += [
                self.early.eq(0), self.train_cycles.eq(self.train_cycles + self.unit)
            ]  # fmt: skip
            with m.If(oldest == prediction.SMALLS - 1):
                m.d.sync += self.unit.eq(self.unit << 1)

    def _compare(self, m: Module) -> None:
        """Compare the halves, with this cycle and before anything joins."""
        now = Signal()
        first = self.early & (self.part == prediction.SMALLS) & (self.left == 1)
        m.d.comb += now.eq(first | self.beat.all())
        with m.If(~self.early):
            m.d.sync += self.beat.eq(self.beat + 1)
        with m.If(self.step != 0):
            m.d.sync += self.step.eq(self.step + 1)
        products, step = self.digits + 2, self.step
        with m.If(step == 1):
            for value, triple in ((self.issued_t, self.triple_t), (self.issued_v, self.triple_v)):
                m.d.sync += triple.eq(value + (value << 1))
            m.d.sync += [self.product_t.eq(0), self.product_v.eq(0)]
        with m.Elif((step > 1) & (step < products)):
            for cycles, value, triple, product in (
                (self.cycles_v, self.issued_t, self.triple_t, self.product_t),
                (self.cycles_t, self.issued_v, self.triple_v, self.product_v),
            ):
                digit = cycles[-DIGIT_BITS:]
                times = multiplex(digit, [value & 0, value, value << 1, triple])
                m.d.sync += [product.eq((product << DIGIT_BITS) + times), cycles.eq(Cat(digit, cycles))]
        with m.Elif(step == products):
            m.d.sync += self.difference.eq(self.product_t - self.product_v)
        with m.Elif(step == products + 1):
            m.d.sync += [
                self.allowed.eq(self.product_t * self._tolerance[0]),
                self.scaled.eq(self.difference * (self._tolerance[1] >> self._zeros)),
            ]
        with m.Elif(step == products + 2):
            scaled = self.scaled << self._zeros
            m.d.sync += self.equal.eq((scaled < self.allowed) & (scaled + self.allowed > 0))
        with m.Elif(step == self.verdict):
            m.d.sync += [self.agreed.eq(Mux(self.equal, self.agreed + 1, 0)), step.eq(0)]
        with m.If(now):
            m.d.sync += [
                self.step.eq(1), self.beat.eq(0), self.issued_t.eq(self.train),
                self.issued_v.eq(self.validate + self.issued), self.cycles_t.eq(self.train_cycles),
                self.cycles_v.eq(self.cycle + 1 - self.train_cycles),
            ]  # fmt: skip

    def _divide(self, m: Module) -> None:
        """From the last comparison to the results."""
        last, fits = Signal(), Signal()
        rest, rounded = Cat(self.quotient[-1], self.rest), (self.quotient + 1) >> 1
        m.d.comb += [last.eq(self.turn == QUOTIENT_BITS), fits.eq(rest >= self.divisor)]
        m.d.sync += self.turn.eq(Mux(last, 0, self.turn + 1))
        divided = [
            self.rest.eq(Mux(fits, rest - self.divisor, rest)), self.quotient.eq(Cat(fits, self.quotient[:-1])),
        ]  # fmt: skip
        with m.If(~self.profile):
            m.d.sync += [self.stage.eq(Stage.COUNTING), self.turn.eq(0)]
        with m.Elif(self.stage == Stage.COUNTING):
            cycles = (self.cycles_t + self.cycles_v) >> exact_log2(prediction.EIGHTHS)
            m.d.sync += self.turn.eq(0)
            with m.If(self.stable):
                m.d.sync += [
                    self.stage.eq(Stage.DIVIDING), self.share.eq(self.percent), self.cycles.eq(cycles),
                    self.divisor.eq(cycles),
                    *self._dividend(self.issued_t + self.issued_v, IPC.fraction - exact_log2(prediction.EIGHTHS)),
                ]  # fmt: skip
        with m.Elif(self.stage == Stage.DIVIDING):
            m.d.sync += divided
            with m.If(last):
                m.d.sync += [self.stage.eq(Stage.SCALING), self.predicted.eq(rounded), self.product.eq(0)]
        with m.Elif(self.stage == Stage.SCALING):
            with m.If(self.turn != PERCENT_BITS):
                m.d.sync += [
                    self.product.eq((self.product << 1) + Mux(self.share[-1], self.predicted, 0)),
                    self.share.eq(self.share << 1),
                ]
            with m.Else():
                m.d.sync += [
                    self.stage.eq(Stage.TARGETING), self.turn.eq(0), self.divisor.eq(HUNDRED),
                    *self._dividend(self.product, 0),
                ]  # fmt: skip
        with m.Elif(self.stage == Stage.TARGETING):
            m.d.sync += divided
            with m.If(last):
                m.d.sync += [self.stage.eq(Stage.DONE), self.target.eq(rounded)]
        with m.Else():
            m.d.sync += self.turn.eq(0)

    def _dividend(self, value: Value, fraction: int) -> list[Value]:
        """Begin to divide a value, for a quotient with so many bits of fraction."""
        doubled = value << 1 + fraction
        return [self.quotient.eq(doubled), self.rest.eq(doubled >> QUOTIENT_BITS)]
