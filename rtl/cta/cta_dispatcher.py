"""Hands the CTAs of a grid to the SMs: one for the whole GPU."""

from __future__ import annotations

from typing import ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.rtl.bits import first_after
from lockstep.spec.parameters import DISPATCHERS, MAX_CTAS, MAX_SMS

MAX_CTA_BITS = 40  # a grid has fewer than 2 ** 40 CTAs
MAX_INTERVAL = 1024
WORD_BITS = 64  # of ``room``


class CtaDispatcher(wiring.Component):
    """Dispatches the CTAs of a grid in the order of their numbers, one per interval, to SMs that have room.

    ============= ==========================================================================
    round-robin   the next SM with room after the one served last, circularly
    load-balanced among the SMs with room and the fewest CTAs, the next after the one served last
    ============= ==========================================================================

    Two cycles: the first finds the SMs that come into question, the second one of them. The fewest CTAs are a level
    that is followed: it falls by one in each cycle in which an SM with room has fewer, and rises by one in each in
    which some have room and all of them have more; then no SM comes into question.

    A grid starts with SM 0 and a level of 0. Latency: a dispatch is presented, for one cycle, two cycles after its SM
    was seen to have room. The SM takes it in that cycle, and its ``room`` and ``load`` tell in the next; meanwhile it
    gets no other.

    Parameters
    ----------
    sms : int
        SMs of the GPU, 1 to 128.
    cta_bits : int
        Bits of a CTA's number, 1 to 40: a grid has fewer than 2 ** ``cta_bits`` CTAs.

    Members
    -------
    policy : In
        Index into ``parameters.DISPATCHERS``; constant.
    interval : In
        Cycles from one dispatch to the next, 1 to 1024; constant.
    launch : In
        A new grid of ``ctas`` CTAs takes the place of whatever remained; its first CTA is presented three cycles
        later at the earliest.
    ctas : In
        CTAs of the grid, read with ``launch``.
    room : In, words of 64 bits
        Bit s mod 64 of word s / 64: SM s can take another CTA.
    load : In, one per SM
        CTAs resident: fewer than 32 in an SM with room.
    dispatch : Out
        ``valid``; ``sm`` and ``cta`` hold from one dispatch to the next.
    remaining : Out
        CTAs not dispatched yet; the one that is presented counts as dispatched.

    Raises
    ------
    ValueError
        for an argument out of range.
    """

    LARGEST: ClassVar = {"sms": MAX_SMS, "cta_bits": MAX_CTA_BITS}
    constant: ClassVar = ("policy", "interval")

    def __init__(self, *, sms: int = 15, cta_bits: int = MAX_CTA_BITS) -> None:
        for what, value in (("sms", sms), ("cta_bits", cta_bits)):
            if not 1 <= value <= self.LARGEST[what]:
                raise ValueError(f"{what} must be 1 to {self.LARGEST[what]}, not {value}")
        self._sms = sms
        dispatch = wiring.Signature({"valid": Out(1), "sm": Out(bits_for(sms - 1)), "cta": Out(cta_bits)})
        super().__init__(
            {
                "policy": In(bits_for(len(DISPATCHERS) - 1)),
                "interval": In(bits_for(MAX_INTERVAL)),
                "launch": In(1),
                "ctas": In(cta_bits),
                "room": In(min(sms, WORD_BITS)).array(-(-sms // WORD_BITS)),
                "load": In(range(MAX_CTAS + 1)).array(sms),
                "dispatch": Out(dispatch),
                "remaining": Out(cta_bits),
            }
        )

        self._next = Signal(cta_bits, name="next_cta")  # number of the next CTA
        self._wait = Signal(range(MAX_INTERVAL), name="wait")  # cycles until the interval is over
        self._last = Signal(bits_for(sms - 1), init=sms - 1, name="last")  # SM served; at first before SM 0
        self._level = Signal(range(MAX_CTAS), name="level")  # the fewest CTAs
        self._in_question = Signal(sms, name="in_question")  # the SMs that the next CTA may go to

    @property
    def sms(self) -> int:
        return self._sms

    def elaborate(self, platform: object) -> Module:
        m = Module()
        sms, next_cta, wait, last = self.sms, self._next, self._wait, self._last

        others, room, candidates = Signal(sms), Signal(sms), Signal(sms)
        m.d.comb += [
            room.eq(Cat(*self.room)[:sms] & others),
            others.eq(~Mux(self.dispatch.valid, Const(1) << self.dispatch.sm, 0)),
            candidates.eq(self._in_question & others),
        ]
        sm = first_after(m, candidates, last, "sm")
        self._question(m, room)

        m.d.sync += self.dispatch.valid.eq(0)
        with m.If(self.launch):
            m.d.sync += [next_cta.eq(0), wait.eq(0), last.eq(last.init), self.remaining.eq(self.ctas)]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.Elif((self.remaining != 0) & candidates.any()):
            m.d.sync += [
                self.dispatch.valid.eq(1),
                self.dispatch.sm.eq(sm),
                self.dispatch.cta.eq(next_cta),
                self.remaining.eq(self.remaining - 1),
                next_cta.eq(next_cta + 1),
                wait.eq(self.interval - 1),
                last.eq(sm),
            ]
        return m

    def _question(self, m: Module, room: Signal) -> None:
        """The first of the two cycles."""
        here, fewer, level = Signal(self.sms), Signal(self.sms), self._level
        m.d.comb += [
            here.eq(room & Cat(load == level for load in self.load)),
            fewer.eq(room & Cat(load < level for load in self.load)),
        ]
        with m.If(self.launch):
            m.d.sync += [self._in_question.eq(0), level.eq(0)]
        with m.Elif(self.policy == DISPATCHERS.index("load-balanced")):
            m.d.sync += self._in_question.eq(Mux(fewer.any(), 0, here))
            with m.If(fewer.any()):
                m.d.sync += level.eq(level - 1)
            with m.Elif(room.any() & ~here.any()):
                m.d.sync += level.eq(level + 1)
        with m.Else():
            m.d.sync += self._in_question.eq(room)
