"""Counts the cycles in which an SM issues, by window: one beside the warp schedulers of every SM.

Kayiran et al., section 4.2: N_act.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import ranges
from lockstep.spec.dyncore.parameters import MAX_WINDOW, MIN_WINDOW


class ActivityCounter(wiring.Component):
    """Holds N_act of the window that has ended last.

    Cycles count from reset; window k has the cycles from k x ``window`` on. What is said of a cycle is counted in the
    next one, so that a window's count lacks its last cycle and has the last one of the window before.

    Latency: one cycle, from the last cycle of a window to ``count``, which is a register, and 0 in the first window.

    Parameters
    ----------
    window : int
        Cycles, 16 to 65535.

    Members
    -------
    active : In
        An issue is under way in this cycle; where a warp takes several, so is it in all of them.
    count : Out
        Cycles with ``active`` of the window that has ended last. Changes with the first cycle of a window.

    Raises
    ------
    ValueError
        for a window out of range.
    """

    LARGEST: ClassVar = {"window": MAX_WINDOW}

    def __init__(self, *, window: int = 2048) -> None:
        ranges.check("window", window, MIN_WINDOW, MAX_WINDOW)
        self._window = window
        super().__init__({"active": In(1), "count": Out(range(window + 1))})
        # The state; proofs speak of it.
        self.cycle = Signal(range(window))
        self.so_far = Signal(range(window))  # of this window
        self.was_active = Signal()  # a cycle ago

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last, counted = Signal(), Signal.like(self.count)
        m.d.comb += [last.eq(self.cycle == self._window - 1), counted.eq(self.so_far + self.was_active)]
        m.d.sync += [
            self.cycle.eq(Mux(last, 0, self.cycle + 1)),
            self.so_far.eq(Mux(last, 0, counted)),
            self.was_active.eq(self.active),
        ]
        with m.If(last):
            m.d.sync += self.count.eq(counted)
        return m
