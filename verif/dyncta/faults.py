"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault(
        "dyncta.cta_limiter", "rtl", "what was idle before a launch counts after it",
        "self.was_idle.eq(self.idle & ~self.launch)",
        "self.was_idle.eq(self.idle)",
    ),
    Fault("dyncta.cta_limiter", "rtl", "the limit stops at 2", "(self.limit > 1)", "(self.limit > 2)"),
    Fault(
        "dyncta.cta_limiter", "rtl", "as many cycles of memory as the threshold are too few",
        "memories >= self._memory_high",
        "memories > self._memory_high",
    ),
    Fault(
        "dyncta.cta_limiter", "rtl", "as many idle cycles as the threshold are too few",
        "(idles >= self._idle_high)",
        "(idles > self._idle_high)",
    ),
    Fault(
        "dyncta.cta_limiter", "rtl", "a place keeps the order of its last CTA",
        "row & ~self.start[:place] | self",
        "row | self",
    ),
    Fault(
        "dyncta.cta_limiter", "rtl", "CTAs stay over a launch",
        "Mux(self.launch, 0, stays | self.start)",
        "stays | self.start",
    ),
    Fault("dyncta.cta_limiter", "rtl", "a count goes round", "(one & ~count.all())", "one"),
]  # fmt: skip
