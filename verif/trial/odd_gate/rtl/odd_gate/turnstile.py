"""Lets some warp slots issue in one of ``period`` cycles only; stands before the warp schedulers."""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.spec.parameters import MAX_WARPS


class Turnstile(wiring.Component):
    """A counter, and a mask that it opens.

    Open in the first cycle after reset and in every ``period``-th one from there on. ``closed`` belongs to the cycle of
    ``slots``.

    Parameters
    ----------
    warps : int
        Warps of the SM.
    period : int
        Cycles from one in which it is open to the next.

    Members
    -------
    slots : In
        Warp slots that it is for.
    open : Out
        It is open in this cycle.
    closed : Out, combinational
        Warp slots that must not issue: ``slots`` unless it is open.

    Raises
    ------
    ValueError
        for a size out of range.
    """

    LARGEST: ClassVar = {"warps": MAX_WARPS, "period": 256}
    combinational: ClassVar = {"closed": ("slots",)}

    def __init__(self, *, warps: int = 48, period: int = 2) -> None:
        for what, value in (("warps", warps), ("period", period)):
            if not 1 <= value <= self.LARGEST[what]:
                raise ValueError(f"{what} must be 1 to {self.LARGEST[what]}, not {value}")
        super().__init__({"slots": In(warps), "open": Out(1, init=1), "closed": Out(warps)})
        self.period = period
        self.phase = Signal(range(period))  # cycles since it was open

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = self.phase == self.period - 1
        m.d.sync += [self.phase.eq(Mux(last, 0, self.phase + 1)), self.open.eq(last)]
        m.d.comb += self.closed.eq(Mux(self.open, 0, self.slots))
        return m
