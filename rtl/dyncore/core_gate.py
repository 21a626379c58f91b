"""Turns off some of the GPU's SMs while all of them issue little: one for the whole GPU, beside the CTA dispatcher.

Kayiran et al., section 4.2: the sum of N_act, its threshold, and the way from an SM that takes no CTA to one that is
off.
"""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl import ranges
from lockstep.rtl.bits import multiplex
from lockstep.spec.dyncore.parameters import MAX_THRESHOLD, MAX_WINDOW, least_window
from lockstep.spec.parameters import MAX_SMS

WORD_BITS = 64  # of ``busy``


class CoreGate(wiring.Component):
    """Lets the last ``off`` SMs take no CTA after a window in which all SMs together issued too little.

    **Windows.** Cycles count from reset; window k has the cycles from k x ``window`` on. In each window but the very
    first one the counts of the window before are added up, that of SM s in cycle s. The decision falls in cycle
    ``sms``, the one after the last of them.

    **Decision.** While no SM is off, a sum below ``threshold`` drains the last ``off`` SMs: they take no CTA any more.
    While they are drained, a sum above it lets them take CTAs again, unless none of them has one left: then they are
    off, whatever the sum. What is off stays so until the next reset, since the sum of the others would be measured
    against a threshold that was made for all.

    Latency: one cycle, from the decision to the outputs, which are registers. After reset no SM is drained.

    Parameters
    ----------
    sms : int
        SMs of the GPU, 1 to 128.
    off : int
        How many are turned off, at most ``sms``; a GPU that is to go on has more.
    window : int
        Cycles, 16 or ``sms`` + 2 to 65535.
    threshold : int
        In cycles with an issue, added up over SMs.

    Members
    -------
    active : In, one count per SM
        Cycles with an issue in the window that has ended last, at most ``window``. That of SM s is looked at in cycle s
        of each window but the very first one.
    busy : In, words of 64 bits
        Bit k mod 64 of word k / 64: SM ``sms - off + k``, one of the last, has CTAs. Looked at in the cycle of the
        decision, while they are drained.
    drained : Out
        The last ``off`` SMs take no CTA.
    off : Out
        They have none, are drained and remain so.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"sms": MAX_SMS, "off": MAX_SMS, "window": MAX_WINDOW, "threshold": MAX_THRESHOLD}
    LEAST: ClassVar = {"sms": 1, "off": 1, "threshold": 0}

    def __init__(self, *, sms: int = 30, off: int = 8, window: int = 2048, threshold: int = 40960) -> None:
        for what, value in dict(sms=sms, off=off, window=window, threshold=threshold).items():
            least = least_window(sms) if what == "window" else self.LEAST[what]
            largest = min(self.LARGEST[what], sms if what == "off" else MAX_THRESHOLD)
            ranges.check(what, value, least, largest)
        self._sms, self._window, self._threshold = sms, window, threshold
        super().__init__(
            {
                "active": In(range(window + 1)).array(sms),
                "busy": In(min(off, WORD_BITS)).array(-(-off // WORD_BITS)),
                "drained": Out(1),
                "off": Out(1),
            }
        )
        # The state; proofs speak of it.
        self.cycle = Signal(range(window))
        self.later = Signal()  # the window is not the very first one
        self.sum = Signal(bits_for(sms * window))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last, adds, decides = Signal(), Signal(), Signal()
        number = self.cycle[: bits_for(self._sms - 1)]
        counts = [self.active[min(sm, self._sms - 1)] for sm in range(1 << len(number))]
        count = Signal.like(counts[0], name="count")
        m.d.comb += [
            last.eq(self.cycle == self._window - 1),
            adds.eq(self.cycle < self._sms),
            decides.eq(self.later & (self.cycle == self._sms)),
            count.eq(multiplex(number, counts)),
        ]
        m.d.sync += [
            self.cycle.eq(Mux(last, 0, self.cycle + 1)),
            self.later.eq(self.later | last),
            self.sum.eq(Mux(adds, self.sum + count, 0)),
        ]
        with m.If(decides & ~self.off):
            with m.If(self.drained & ~Cat(*self.busy).any()):
                m.d.sync += self.off.eq(1)
            with m.Elif(self.sum < self._threshold):
                m.d.sync += self.drained.eq(1)
            with m.Elif(self.sum > self._threshold):
                m.d.sync += self.drained.eq(0)
        return m
