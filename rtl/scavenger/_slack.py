"""The share of a resource that a kernel does not use, from sums over a beat: one beside each PID controller."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.spec.scavenger.control import QUOTIENT_BITS
from lockstep.spec.scavenger.fixed import SHARE


class Slack(wiring.Component):
    """Sums ``used`` and ``whole`` over the cycles of a measurement, and divides the difference of both by the latter.

    A measurement has the cycles with ``run`` after the ``last`` of the one before, up to its own. The quotient is
    rounded to nearest, ties up; it is 0 where more is used, and 1 of 0 by 0. Latency: 11 cycles from ``last``, in the
    first ten of which ``share`` means nothing.

    Parameters
    ----------
    most : int
        The largest ``whole``.
    cycles : int
        Of a measurement, at most.
    beyond : bool
        More may be used than there is.
    """

    def __init__(self, *, most: int, cycles: int, beyond: bool) -> None:
        self._beyond = beyond
        super().__init__(
            {
                "run": In(1),
                "last": In(1),
                "used": In(range(most + 1)),
                "whole": In(range(most + 1)),
                "share": Out(SHARE.bits),
            }
        )
        self.used_sum = Signal(range(most * cycles + 1))
        self.whole_sum = Signal.like(self.used_sum)
        self.divisor = Signal.like(self.used_sum)
        self.rest = Signal(len(self.used_sum) + 1)
        self.turn = Signal(range(QUOTIENT_BITS + 1))
        self.quotient = Signal(QUOTIENT_BITS)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        used, whole, fits = Signal.like(self.used_sum), Signal.like(self.used_sum), Signal()  # with this cycle
        unused = whole - used
        m.d.comb += [
            used.eq(self.used_sum + self.used),
            whole.eq(self.whole_sum + self.whole),
            fits.eq(self.rest >= self.divisor),
            self.share.eq(Mux(self.quotient[-1], SHARE.one, (self.quotient + 1) >> 1)),
        ]
        with m.If(self.last):
            m.d.sync += [
                self.divisor.eq(whole),
                self.rest.eq(Mux(used > whole, 0, unused) if self._beyond else unused),
                self.turn.eq(QUOTIENT_BITS),
            ]
        with m.Elif(self.turn != 0):
            m.d.sync += [
                self.turn.eq(self.turn - 1),
                self.quotient.eq(Cat(fits, self.quotient)),
                self.rest.eq(Mux(fits, self.rest - self.divisor, self.rest) << 1),
            ]
        with m.If(self.last | ~self.run):
            m.d.sync += [self.used_sum.eq(0), self.whole_sum.eq(0)]
        with m.Else():
            m.d.sync += [self.used_sum.eq(used), self.whole_sum.eq(whole)]
        return m
