"""Ends the sharing of an SM when the primary kernel stays behind its target: one beside each SM's controllers.

Kloosterman's thesis, section 5.5.3.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.spec.scavenger import control
from lockstep.spec.scavenger.fixed import IPC


class FallbackMonitor(wiring.Component):
    """Sums up how far the primary is beyond its target, and leaves the SM to it alone when that is too little for long.

    A run begins with the first cycle with ``run`` and ends with the next one without it; it has at most ``longest``
    cycles. Each of its cycles adds ``issued`` - ``target`` to a sum, which is S21.16 as shipped, begins with 0 and
    cannot overflow. When the sum has been below -``limit`` for ``duration`` cycles on end, the primary is alone for
    ``time`` cycles, in which ``run`` means nothing and the sum is 0. Then a profile is asked for.

    Latency: two cycles, from the last cycle that the sum needs to ``alone``: one to the sum, one to the output. Both
    outputs are registers. ``alone`` is 1 for exactly ``time`` cycles, and ``profile`` in the cycle after them, unless
    ``clear`` ends them.

    Parameters
    ----------
    limit : int
        Instructions behind the target that are still allowed, 0 to 2097151.
    duration : int
        Cycles, 1 to ``longest``.
    time : int
        Cycles, 1 to 1048575.
    longest : int
        Of a run, in cycles, 1 to 262144.

    Members
    -------
    run : In
        Both kernels share the SM.
    clear : In
        Neither does the primary have it alone: this cycle is none of a run, and a time alone is over after it.
    issued : In
        Instructions of the primary in this cycle, 0 to 7.
    target : In, U3.16
        Instructions per cycle.
    alone : Out
        The secondary's CTAs are to leave the SM, or stay away.
    profile : Out
        The time is over: a new profile is to begin. One cycle.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "limit": control.MAX_LIMIT, "duration": control.LONGEST_RUN, "time": control.MAX_CYCLES,
        "longest": control.LONGEST_RUN,
    }  # fmt: skip

    def __init__(
        self, *, limit: int = control.LIMIT, duration: int = control.DURATION, time: int = control.ALONE,
        longest: int = control.LONGEST_RUN,
    ) -> None:  # fmt: skip
        for what, value in dict(limit=limit, duration=duration, time=time, longest=longest).items():
            least = int(what != "limit")
            largest = min(self.LARGEST[what], longest) if what == "duration" else self.LARGEST[what]
            ranges.check(what, value, least, largest)
        self._limit, self._duration, self._time = limit, duration, time
        super().__init__(
            {
                "run": In(1),
                "clear": In(1),
                "issued": In(range(control.MAX_ISSUED + 1)),
                "target": In(IPC.bits),
                "alone": Out(1),
                "profile": Out(1),
            }
        )
        # The state; proofs speak of it.
        self.sum = Signal(signed(bits_for(longest * IPC.most) + 1))  # of the run's cycles
        self.low = Signal(bits_for(duration - 1))  # cycles on end in which it has been below
        self.left = Signal(bits_for(time - 1))  # cycles alone, after this one

    def elaborate(self, platform: object) -> Module:
        m = Module()
        behind = Signal()
        m.d.comb += behind.eq(self.sum[IPC.fraction :].as_signed() < -self._limit)  # which has no fraction
        falls = behind & (self.low == self._duration - 1)
        m.d.sync += self.profile.eq(0)
        with m.If(self.clear):
            m.d.sync += [self.alone.eq(0), self.sum.eq(0), self.low.eq(0), self.left.eq(0)]
        with m.Elif(self.alone):
            m.d.sync += [self.left.eq(self.left - 1), self.sum.eq(0), self.low.eq(0)]
            with m.If(self.left == 0):
                m.d.sync += [self.alone.eq(0), self.profile.eq(1), self.left.eq(0)]
        with m.Elif(~self.run):
            m.d.sync += [self.sum.eq(0), self.low.eq(0)]
        with m.Else():
            m.d.sync += [
                self.sum.eq(self.sum + Cat(Const(0, IPC.fraction), self.issued) - self.target),
                self.low.eq(Mux(behind, self.low + 1, 0)),
            ]
            with m.If(falls):
                m.d.sync += [self.alone.eq(1), self.left.eq(self._time - 1), self.low.eq(0)]
        return m
