"""Limits the CTAs of an SM by what its warps wait for, and pauses those beyond: beside the warp schedulers.

Kayiran et al., section 4.1: the two counters, the decision after each window, and which CTAs are paused.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import ranges
from lockstep.rtl.bits import popcount
from lockstep.spec.dyncta.parameters import ALL, HALF, MAX_WINDOW, MIN_WINDOW, MOST, ONE, counter_bits
from lockstep.spec.parameters import MAX_CTAS


class CtaLimiter(wiring.Component):
    """Moves a limit by one after each window, and pauses the CTAs beyond it, those that came last first.

    **Windows.** Cycles count from ``launch``: the cycle after it is the first, window k has the cycles from
    k x ``window`` on.

    **Counters.** C_idle and C_mem count the cycles of a window with ``idle`` and with ``memory``. They have 11 bits, or
    as many as ``window`` - 1 if that is fewer, and stay at their largest value. What is said of a cycle is counted in
    the next one, so that a window's counts lack its last cycle, and have the last one of the window before; the first
    window's lack the cycle of the launch.

    **Decision**, in the last cycle of a window: if C_idle is ``idle_high`` or more, or C_mem is less than
    ``memory_low``, the limit rises by one, unless it is what ``launch`` said to be the most; else, if C_mem is
    ``memory_high`` or more, it falls by one, unless it is 1. The paper's algorithm 1 resumes a CTA instead of raising
    the limit while some are paused, and pauses it again at once; here a raised limit resumes it.

    **Pausing.** A CTA is paused while ``limit`` or more CTAs are there that came before it. CTAs that start together
    came in the order of their places. So exactly the CTAs beyond the limit are paused, those that came last; a CTA that
    ends, or a raised limit, resumes the one of them that came first.

    Latency: one cycle, from a launch, a start, a finish or the last cycle of a window to the outputs, which follow from
    state alone. After reset there is no CTA, and the limit is 0.

    The environment starts a CTA only where there is none, or where one finishes in the same cycle, and finishes none
    that is not there.

    Parameters
    ----------
    ctas : int
        Places for CTAs, 1 to 32.
    first : int
        The limit at first, as an index into ``parameters.FIRSTS``: half the most, rounded down, but at least 1; 1; the
        most.
    window : int
        Cycles, 16 to 65535.
    idle_high, memory_low, memory_high : int
        Thresholds, 0 to 2047.

    Members
    -------
    launch : In
        A new grid, of whose CTAs ``most`` fit; none is there any more, and counters and window begin anew.
    most : In
        1 to ``ctas``; read with ``launch``.
    start, finish : In, one bit per place
        A CTA has been placed there in this cycle, or has ended.
    idle, memory : In
        The cycle is one of C_idle, or of C_mem.
    limit : Out
        How many CTAs the SM may hold without one of them being paused.
    paused : Out, one bit per place
        The CTA there is paused.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {
        "ctas": MAX_CTAS, "first": ALL, "window": MAX_WINDOW, "idle_high": MOST, "memory_low": MOST,
        "memory_high": MOST,
    }  # fmt: skip
    LEAST: ClassVar = {"ctas": 1, "window": MIN_WINDOW}

    def __init__(
        self, *, ctas: int = 8, first: int = HALF, window: int = 2048, idle_high: int = 16, memory_low: int = 128,
        memory_high: int = 384,
    ) -> None:  # fmt: skip
        given = dict(
            ctas=ctas, first=first, window=window, idle_high=idle_high, memory_low=memory_low, memory_high=memory_high
        )
        for what, value in given.items():
            least, largest = self.LEAST.get(what, 0), self.LARGEST[what]
            ranges.check(what, value, least, largest)
        self._first, self._window = first, window
        self._idle_high, self._memory_low, self._memory_high = idle_high, memory_low, memory_high
        super().__init__(
            {
                "launch": In(1),
                "most": In(range(ctas + 1)),
                "start": In(ctas),
                "finish": In(ctas),
                "idle": In(1),
                "memory": In(1),
                "limit": Out(range(ctas + 1)),
                "paused": Out(ctas),
            }
        )
        # The state; proofs speak of it.
        self.resident = Signal(ctas)
        # By place from the second on, the places below whose CTAs came before; of places without CTAs it says nothing.
        self.before = [Signal(place, name=f"before_{place}") for place in range(1, ctas)]
        self.largest = Signal.like(self.limit)  # the most CTAs
        self.cycle = Signal(range(window))  # of the window
        self.idles = Signal(counter_bits(window))  # C_idle
        self.memories = Signal(counter_bits(window))  # C_mem
        self.was_idle = Signal()  # a cycle ago
        self.was_memory = Signal()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._pause(m)
        last = Signal()
        idles, memories = self._more(m, self.idles, self.was_idle), self._more(m, self.memories, self.was_memory)
        m.d.comb += last.eq(self.cycle == self._window - 1)
        m.d.sync += [
            self.cycle.eq(Mux(last | self.launch, 0, self.cycle + 1)),
            self.was_idle.eq(self.idle & ~self.launch),
            self.was_memory.eq(self.memory & ~self.launch),
            self.idles.eq(Mux(last | self.launch, 0, idles)),
            self.memories.eq(Mux(last | self.launch, 0, memories)),
        ]
        rises = (idles >= self._idle_high) | (memories < self._memory_low)
        with m.If(self.launch):
            first = {HALF: Mux(self.most[1:] == 0, 1, self.most[1:]), ONE: 1, ALL: self.most}[self._first]
            m.d.sync += [self.largest.eq(self.most), self.limit.eq(first)]
        with m.Elif(last & rises & (self.limit != self.largest)):
            m.d.sync += self.limit.eq(self.limit + 1)
        with m.Elif(last & ~rises & (memories >= self._memory_high) & (self.limit > 1)):
            m.d.sync += self.limit.eq(self.limit - 1)
        return m

    def _more(self, m: Module, count: Signal, one: Value) -> Signal:
        """A counter of which the largest value is the last."""
        more = Signal.like(count, name=f"more_{count.name}")
        m.d.comb += more.eq(count + (one & ~count.all()))
        return more

    def _pause(self, m: Module) -> None:
        """Follow which CTAs are there and in which order they came."""
        stays = Signal.like(self.resident)
        m.d.comb += stays.eq(self.resident & ~self.finish)
        m.d.sync += self.resident.eq(Mux(self.launch, 0, stays | self.start))
        for place, row in enumerate(self.before, 1):
            m.d.sync += row.eq(row & ~self.start[:place] | self.start[place].replicate(place))
        for place, here in enumerate(self.resident):
            below = self.before[place - 1] if place else self.resident[:0]
            above = Cat(~row[place] for row in self.before[place:])
            earlier = popcount(Cat(below, above) & Cat(self.resident[:place], self.resident[place + 1 :]))
            m.d.comb += self.paused[place].eq(here & (earlier >= self.limit))
