"""Hands the CTAs of a grid to the SMs: one for the whole GPU."""

from __future__ import annotations

from typing import ClassVar

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from lockstep.models.parameters import DISPATCHERS, MAX_CTAS, MAX_SMS

CTA_BITS = 40  # a grid has fewer than 2 ** 40 CTAs
MAX_INTERVAL = 1024
WORD_BITS = 64  # of ``room``


class CtaDispatcher(wiring.Component):
    """Dispatches the CTAs of a grid in the order of their numbers, one per interval, to SMs that have room.

    ============= ==========================================================================
    round-robin   the next SM with room after the one served last, circularly
    load-balanced among the SMs with room and the fewest CTAs, the next after the one served last
    ============= ==========================================================================

    A grid starts with SM 0. Latency: a dispatch is presented, for one cycle, the cycle after its SM was seen to have
    room. The SM takes it in that cycle, and its ``room`` and ``load`` tell in the next; meanwhile it gets no other.

    Parameters
    ----------
    sms : int
        SMs of the GPU.

    Members
    -------
    policy : In
        Index into ``parameters.DISPATCHERS``; constant.
    interval : In
        Cycles from one dispatch to the next, 1 to 1024; constant.
    launch : In
        A new grid of ``ctas`` CTAs takes the place of whatever remained; its first CTA is presented two cycles later
        at the earliest.
    ctas : In
        CTAs of the grid, read with ``launch``.
    room : In, words of 64 bits
        Bit s mod 64 of word s / 64: SM s can take another CTA.
    load : In, one per SM
        CTAs resident.
    dispatch : Out
        ``valid``; ``sm`` and ``cta`` hold from one dispatch to the next.
    remaining : Out
        CTAs not dispatched yet; the one that is presented counts as dispatched.
    """

    LARGEST: ClassVar = {"sms": MAX_SMS}

    def __init__(self, *, sms: int = 15) -> None:
        if not 1 <= sms <= MAX_SMS:
            raise ValueError(f"sms must be 1 to {MAX_SMS}, not {sms}")
        self._sms = sms
        dispatch = wiring.Signature({"valid": Out(1), "sm": Out(bits_for(sms - 1)), "cta": Out(CTA_BITS)})
        super().__init__(
            {
                "policy": In(bits_for(len(DISPATCHERS) - 1)),
                "interval": In(bits_for(MAX_INTERVAL)),
                "launch": In(1),
                "ctas": In(CTA_BITS),
                "room": In(min(sms, WORD_BITS)).array(-(-sms // WORD_BITS)),
                "load": In(range(MAX_CTAS + 1)).array(sms),
                "dispatch": Out(dispatch),
                "remaining": Out(CTA_BITS),
            }
        )

    @property
    def sms(self) -> int:
        return self._sms
