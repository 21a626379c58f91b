"""Divides the active warps, or the outstanding requests, of an SM between two kernels: two beside the warp schedulers.

Kloosterman's thesis, section 5.5.1 and figure 5.8, table 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.spec.parameters import MAX_WARPS
from lockstep.spec.scavenger import control
from lockstep.spec.scavenger.fixed import ERROR, GAIN, IPC, SHARE, WARPS

HALF_DROPPED = IPC.fraction + GAIN.fraction - 1  # bits below half a unit of an allocation, of a weighted sum


class PidController(wiring.Component):
    """Moves the primary kernel's allocation by a weighted error, after each beat of ``interval`` cycles.

    A run begins with the first cycle with ``run`` and ends with the next one without it. The beats of a run follow each
    other from its first cycle on. After each:

        allocation += w * scale * (proportional * e_s + integral * e_l)

    - e_s is ``target`` - IPC, the mean over the beat; e_l is ``long_term``. With ``relative`` both are divided by
      ``target``. ``target`` is that of each cycle in the mean, that of the beat's last cycle as a divisor.
    - w is the slack if the sum is negative, else 1 - slack, or with ``reciprocal`` 1 / slack. A slack above 1 is 1, and
      one of 0 is 1/256 as a divisor. ``long_term`` and ``slack`` are read in the beat's last cycle.
    - The change is exact and rounded once, to the nearest 1/256, ties away from zero. So the *dead band*, in which
      nothing moves, is a change of less than 1/512: at w = 1 and the thesis's gains an error of 0.0008 instructions per
      cycle that lasts, at w = 1/256 one of 0.2. At w = 0 nothing moves.
    - The allocation stays between 1 and ``most``. It is the only state that outlives a beat, so that nothing winds up
      at an end: the first change of the other sign leaves it.

    The arithmetic has one adder for its products, one bit a cycle, and one for its quotient. Latency: ``latency``
    cycles, from the last cycle of a beat to the outputs; 54 as shipped for warps. While ``run`` is 0, the allocation is
    ``first``, one cycle later. After reset it is 1.

    Parameters
    ----------
    most : int
        Warp contexts, or requests, to be divided, 1 to 256.
    interval : int
        Cycles of a beat, at least ``latency``, at most 1023.
    proportional, integral : int
        Gains Kp and Ki as codes of U2.6: 96 is 1.5.
    scale : int
        What the change is multiplied by, 1 to 64.
    relative : int
        1: errors are relative to the target. Not together with ``reciprocal``.
    reciprocal : int
        1: the weight of a positive change is 1 / slack.

    Members
    -------
    run : In
        Both kernels share the SM.
    first : In
        Warps or requests of the primary at the start of a run, 1 to ``most``.
    issued : In
        Instructions of the primary in this cycle, 0 to 7.
    target : In, U3.16
        Instructions per cycle; not 0 with ``relative``.
    long_term : In, S3.16 in two's complement
        e_l, the mean error of a longer time.
    slack : In, U1.8
        Share of the allocation that the primary does not use.
    allocation : Out, U7.8 or U9.8, or as few bits as ``most`` needs
        Of the primary.
    primary, secondary : Out
        Its whole part, and what that leaves of ``most``.

    Raises
    ------
    ValueError
        for an argument out of range, and for an interval in which the arithmetic does not end.
    """

    LARGEST: ClassVar = {
        "most": control.MAX_REQUESTS, "interval": control.MAX_INTERVAL, "proportional": GAIN.most,
        "integral": GAIN.most, "scale": control.MAX_SCALE, "relative": 0, "reciprocal": 1,
    }  # fmt: skip

    def __init__(
        self, *, most: int = MAX_WARPS, interval: int = control.INTERVAL, proportional: int = control.PROPORTIONAL,
        integral: int = control.INTEGRAL, scale: int = 1, relative: int = 0, reciprocal: int = 0,
    ) -> None:  # fmt: skip
        given = dict(
            most=most, interval=interval, proportional=proportional, integral=integral, scale=scale, relative=relative,
            reciprocal=reciprocal,
        )  # fmt: skip
        for what, value in given.items():
            least = int(what in ("most", "interval", "scale"))
            largest = max(self.LARGEST[what], what == "relative")
            ranges.check(what, value, least, largest)
        if relative and reciprocal:
            raise ValueError("relative and reciprocal exclude each other")
        self._most, self._interval, self._relative, self._reciprocal = most, interval, relative, reciprocal
        self._gains = proportional * scale, integral * scale * interval  # of the sum of a beat's errors, and of e_l
        self._gain_bits = max(map(bits_for, self._gains))
        weight_bits = 2 * SHARE.fraction + 1 if reciprocal else SHARE.bits
        quotient_bits = bits_for((most - 1) * WARPS.one) + 1  # in halves of 1/256
        self._divides = divides = bool(relative or reciprocal)
        # The steps of the arithmetic, by the one after their last; a sign and a comparison take one each in between.
        self.summed = 2 * self._gain_bits
        self.weighed = self.summed + 1 + weight_bits
        self.scaled = self.weighed + bits_for(interval) * divides
        self.divided = self.scaled + 1 + quotient_bits
        if self.latency > interval:
            raise ValueError(f"interval must be at least {self.latency} with these arguments, not {interval}")
        super().__init__(
            {
                "run": In(1),
                "first": In(range(most + 1)),
                "issued": In(range(control.MAX_ISSUED + 1)),
                "target": In(IPC.bits),
                "long_term": In(ERROR.bits),
                "slack": In(SHARE.bits),
                "allocation": Out(bits_for(most * WARPS.one), init=WARPS.one),
                "primary": Out(range(most + 1)),
                "secondary": Out(bits_for(most - 1)),
            }
        )
        # The state; proofs speak of it.
        self.cycle = Signal(range(interval))  # of the beat
        self.error = Signal(signed(bits_for(interval << IPC.bits) + 1))  # of the beat, summed
        self.working = Signal()
        self.step = Signal(range(self.divided + 1))
        self.short_error = Signal(self.error.shape())
        self.long_error = Signal(signed(ERROR.bits))
        self.idle_share = Signal(range(SHARE.one + 1))  # the slack
        largest = self._gains[0] * interval + self._gains[1]
        self.sum = Signal(signed(bits_for(largest << IPC.bits) + 1))  # and then its magnitude
        self.negative = Signal()
        self.product = Signal(len(self.sum) - 1 + weight_bits)  # the weight, from which the product pushes its bits
        if divides:
            self.factor = Signal(IPC.bits if relative else SHARE.bits)  # of the divisor, beside the interval
            self.divisor = Signal(bits_for(interval * (IPC.most if relative else SHARE.one)))
        else:
            self.divisor = Const(interval)
        self.rest = Signal(len(self.divisor))
        self.quotient = Signal(quotient_bits)
        self.halves = self.product[HALF_DROPPED - IPC.fraction * relative :]  # which the divisor divides
        upper_bits = max(len(self.halves) - quotient_bits, 0)
        if divides or 1 << upper_bits > interval:
            self.beyond = Signal()  # the quotient has more bits
        else:
            self.beyond = Const(0, 1)

    @property
    def latency(self) -> int:
        """Cycles from the last cycle of a beat to the allocation after it."""
        return self.divided + 2

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = Signal()
        with_this = Signal(self.error.shape())
        fits = Signal()  # the divisor, into the rest
        change = Signal(len(self.quotient))
        room = Signal(len(self.quotient) - 1)  # up to the end
        m.d.comb += [
            last.eq(self.cycle == self._interval - 1),
            with_this.eq(self.error + self.target - Cat(Const(0, IPC.fraction), self.issued)),
            fits.eq(Cat(self.quotient[-1], self.rest) >= self.divisor),
            change.eq((self.quotient + 1) >> 1),
            room.eq(Mux(self.negative, self.allocation - WARPS.one, self._most * WARPS.one - self.allocation)),
            self.primary.eq(self.allocation >> WARPS.fraction),
            self.secondary.eq(self._most - self.primary),
        ]
        with m.If(~self.run):
            m.d.sync += [
                self.cycle.eq(0), self.error.eq(0), self.working.eq(0),
                self.allocation.eq(Cat(Const(0, WARPS.fraction), self.first)),
            ]  # fmt: skip
        with m.Else():
            m.d.sync += [self.cycle.eq(Mux(last, 0, self.cycle + 1)), self.error.eq(Mux(last, 0, with_this))]
            with m.If(last):
                m.d.sync += [
                    self.short_error.eq(with_this),
                    self.long_error.eq(self.long_term.as_signed()),
                    self.idle_share.eq(Mux(self.slack > SHARE.one, SHARE.one, self.slack)),
                    self.working.eq(1), self.step.eq(0), self.sum.eq(0),
                ]  # fmt: skip
                if self._relative:
                    m.d.sync += self.factor.eq(self.target)
            with m.Elif(self.working):
                m.d.sync += self.step.eq(self.step + 1)
                self._work(m, fits, change, room)
        return m

    def _work(self, m: Module, fits: Value, change: Value, room: Value) -> None:
        """A step of the arithmetic."""
        step = self.step
        with m.If(step < self.summed):
            # Both products, from the gains' highest bits on: short, long, long, short and so on.
            order = [self._gains[which] for which in (0, 1, 1, 0)] * self._gain_bits
            bits = [order[k] >> self._gain_bits - 1 - k // 2 & 1 for k in range(self.summed)]
            addend = Mux(_bit(bits, step), Mux(step[0] ^ step[1], self.long_error, self.short_error), 0)
            m.d.sync += self.sum.eq(Mux(step[0], self.sum, self.sum << 1) + addend)
        with m.Elif(step == self.summed):
            negative, slack = self.sum[-1], self.idle_share
            positive_weight = 1 << 2 * SHARE.fraction if self._reciprocal else SHARE.one - slack
            m.d.sync += [
                self.negative.eq(negative),
                self.sum.eq(Mux(negative, -self.sum, self.sum)),
                self.product.eq(Mux(negative, slack, positive_weight)),
            ]
            if self._reciprocal:
                m.d.sync += self.factor.eq(Mux(negative | (slack == 0), 1, slack))
            if self._divides:
                m.d.sync += self.divisor.eq(0)
        with m.Elif(step < self.weighed):
            magnitude = self.sum[:-1]
            upper = self.product[-len(magnitude) :] + Mux(self.product[0], magnitude, 0)
            m.d.sync += self.product.eq(Cat(self.product[1 : -len(magnitude)], upper))
        if self._divides:
            with m.Elif(step < self.scaled):
                bits = [int(bit) for bit in f"{self._interval:b}"]
                addend = Mux(_bit(bits, (step - self.weighed)[: len(step)]), self.factor, 0)
                m.d.sync += self.divisor.eq((self.divisor << 1) + addend)
        with m.Else():
            self._divide(m, fits, change, room)

    def _divide(self, m: Module, fits: Value, change: Value, room: Value) -> None:
        """The last steps: a quotient with a bit below the last place, which then rounds it."""
        with m.If(self.step == self.scaled):
            upper = self.halves[len(self.quotient) :]
            m.d.sync += [self.quotient.eq(self.halves), self.rest.eq(upper)]
            if isinstance(self.beyond, Signal):
                m.d.sync += self.beyond.eq(upper >= self.divisor)
        with m.Elif(self.step != self.divided):
            rest = Cat(self.quotient[-1], self.rest)
            m.d.sync += [
                self.rest.eq(Mux(fits, rest - self.divisor, rest)), self.quotient.eq(Cat(fits, self.quotient[:-1])),
            ]  # fmt: skip
        with m.Else():
            m.d.sync += self.working.eq(0)
            with m.If(self.beyond | (change > room)):
                m.d.sync += self.allocation.eq(Mux(self.negative, WARPS.one, self._most * WARPS.one))
            with m.Else():
                m.d.sync += self.allocation.eq(Mux(self.negative, self.allocation - change, self.allocation + change))


def _bit(bits: Sequence[int], index: Value) -> Value:
    """The one with this number, of bits that are known."""
    return Const(sum(bit << place for place, bit in enumerate(bits)), len(bits)).bit_select(index, 1)
