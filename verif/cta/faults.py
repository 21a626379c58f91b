"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault(
        "cta.cta_dispatcher", "rtl", "an SM gets two CTAs one after the other",
        "room.eq(Cat(*self.room)[:sms] & others)",
        "room.eq(Cat(*self.room)[:sms])",
    ),
    Fault(
        "cta.cta_dispatcher", "rtl", "the interval is a cycle longer",
        "wait.eq(self.interval - 1)",
        "wait.eq(self.interval)",
    ),
    Fault(
        "cta.cta_dispatcher", "rtl", "numbers go on over launches",
        "next_cta.eq(0), wait.eq(0), last",
        "wait.eq(0), last",
    ),
    Fault("cta.cta_dispatcher", "rtl", "an SM without room lowers the level", "fewer.eq(room & Cat(", "fewer.eq(Cat("),
    Fault(
        "cta.cta_dispatcher", "rtl", "a launch keeps the level",
        "[self._in_question.eq(0), level.eq(0)]",
        "[self._in_question.eq(0)]",
    ),
    Fault("cta.cta_dispatcher", "rtl", "the turn never moves", "last.eq(sm)", "last.eq(last)"),
]  # fmt: skip
