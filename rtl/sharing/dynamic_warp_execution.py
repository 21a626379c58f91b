"""Throttles the memory accesses of non-owner warps on an SM that stalls more than SM 0, where they make none.

Jatala et al., section 5.3, dynamic warp execution: the gate that non-owner warps pass before they issue an instruction
that accesses global memory. Every SM has one; ``stalls`` of SM 0 is the ``baseline`` of all others.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from lockstep.rtl import ranges
from lockstep.rtl.bits import multiplex
from lockstep.spec.sharing.parameters import CERTAIN, LFSR_BITS, LFSR_START, LFSR_STATES, MAX_WINDOW, MIN_WINDOW


class DynamicWarpExecution(wiring.Component):
    """Counts stalls by window, moves a probability by a tenth after each window, and draws with it in every cycle.

    **Windows.** Cycles count from reset; window k has the cycles from k x ``window`` on. Instances that are reset
    together have the same windows.

    **Probability.** Starts at 10 tenths. In the first cycle of each window but the very first one, while SM 0 has a
    pair that shares, the stalls of the window that has ended are compared with SM 0's: if there were more, the
    probability loses a tenth, unless it is 0; if there were fewer, it gains one, unless it is 10. That shows in
    ``probability`` one cycle later. At all other times the probability keeps its value, and always does on SM 0.

    **Draws.** While SM 0 has no such pair, everything is allowed; while it has, SM 0 allows nothing, and the other SMs
    draw. A draw takes the number in an LFSR of 10 bits, which goes through 1 to 1023, and allows if it is at most
    ⌊1023 p / 10⌋, where p is what ``probability`` shows in the cycle of the draw. So a probability of 10 always allows,
    0 never does, and any other allows exactly ⌊1023 p / 10⌋ of 1023 consecutive draws.

    **LFSR.** x^10 + x^7 + 1: each bit shifted in is the sum of the tenth and the seventh before it. It starts at 1 and
    moves on with each draw from 1 to 9 tenths, by ten shifts, so that consecutive numbers have no bits in common:
    after a single shift small ones would follow small ones, and at a tenth a warp that tries in every cycle would wait
    for 14 cycles on average instead of 9. At all other times it holds.

    Latency: what is drawn in a cycle, and whatever ``active`` says in it, holds for ``allow`` of the next cycle. All
    outputs are registers, and none has a value without a meaning.

    Parameters
    ----------
    window : int
        Cycles between two comparisons, 16 to 65535.

    Members
    -------
    first : In, constant
        This is SM 0.
    stall : In
        The cycle is a stall: a warp is ready, but its pipeline is blocked.
    active : In
        SM 0 has a pair of CTAs that share.
    baseline : In
        SM 0's ``stalls``, at most ``window``: of the window that has ended last. Looked at in the first cycle of each
        window but the very first one.
    stalls : Out
        Stalls of the window that has ended last; 0 in the first one. Changes with the first cycle of a window.
    probability : Out
        In tenths, 0 to 10; 10 after reset.
    allow : Out
        Non-owner warps may issue memory instructions in this cycle; 1 after reset.

    Raises
    ------
    ValueError
        for a window out of range.
    """

    LARGEST: ClassVar = {"window": MAX_WINDOW}
    constant: ClassVar = ("first",)

    def __init__(self, *, window: int = 1000) -> None:
        ranges.check("window", window, MIN_WINDOW, MAX_WINDOW)
        self._window = window
        super().__init__(
            {
                "first": In(1),
                "stall": In(1),
                "active": In(1),
                "baseline": In(range(window + 1)),
                "stalls": Out(range(window + 1)),
                "probability": Out(range(CERTAIN + 1), init=CERTAIN),
                "allow": Out(1, init=1),
            }
        )
        # The state; proofs speak of it.
        self.cycle = Signal(range(window))  # of the window
        self.count = Signal(range(window))  # stalls of the window in the cycles before
        self.begins = Signal()  # the first cycle of a window that another one came before
        self.lfsr = Signal(LFSR_BITS, init=LFSR_START)

    @property
    def window(self) -> int:
        return self._window

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._count_stalls(m)
        throttles = Signal()
        m.d.comb += throttles.eq(self.active & ~self.first)
        with m.If(self.begins & throttles):
            with m.If((self.stalls > self.baseline) & (self.probability != 0)):
                m.d.sync += self.probability.eq(self.probability - 1)
            with m.Elif((self.stalls < self.baseline) & (self.probability != CERTAIN)):
                m.d.sync += self.probability.eq(self.probability + 1)
        with m.If(throttles & (self.probability != 0) & (self.probability != CERTAIN)):
            m.d.sync += self.lfsr.eq(self._next())
        tenths = (min(value, CERTAIN) for value in range(1 << len(self.probability)))
        threshold = multiplex(self.probability, [Const(LFSR_STATES * value // CERTAIN, LFSR_BITS) for value in tenths])
        m.d.sync += self.allow.eq(~self.active | (~self.first & (self.lfsr <= threshold)))
        return m

    def _count_stalls(self, m: Module) -> None:
        """The windows, and the stalls of each."""
        ends, stalls = Signal(), Signal.like(self.stalls, name="stalls_so_far")
        m.d.comb += [ends.eq(self.cycle == self.window - 1), stalls.eq(self.count + self.stall)]
        m.d.sync += [
            self.cycle.eq(Mux(ends, 0, self.cycle + 1)),
            self.count.eq(Mux(ends, 0, stalls)),
            self.begins.eq(ends),
        ]
        with m.If(ends):
            m.d.sync += self.stalls.eq(stalls)

    def _next(self) -> Value:
        """The next ten bits of the LFSR's sequence."""
        bits: list[Value] = list(self.lfsr)  # the youngest first
        for _ in range(LFSR_BITS):
            bits = [bits[9] ^ bits[6], *bits[:-1]]
        return Cat(bits)
