"""DYNCTA's statistics, and what must hold of its counts."""

from __future__ import annotations

from lockstep.spec.mechanism import Law
from lockstep.spec.statistics import CYCLES, Counts, counted, of_sm, ratio

STATISTICS = (
    counted("dyncta.raised", "windows", "dyncta.raised", "windows after which an SM's limit rose by one"),
    counted("dyncta.lowered", "windows", "dyncta.lowered", "windows after which an SM's limit fell by one"),
    counted("dyncta.paused_core_cycles", CYCLES, "dyncta.paused_cycles", "cycles with a paused CTA, summed over SMs"),
    of_sm("dyncta.mean_limit", "CTAs", "mean limit of an SM while it has CTAs",
          lambda c: ratio(c("dyncta.limits"), c("sm.cycles"))),
    of_sm("dyncta.mean_paused", "CTAs", "mean paused CTAs of an SM while it has any",
          lambda c: ratio(c("dyncta.paused"), c("dyncta.paused_cycles"))),
)  # fmt: skip


def laws(c: Counts) -> list[Law]:
    """The limit stays between 1 and the most CTAs that fit, and exactly the CTAs beyond it are paused."""
    blocked = c.gpu.sections["dyncta"].blocked * c("sm.memory_blocked_cycles")
    return [
        ("cycles with a limit out of range", c("dyncta.out_of_range"), 0),
        ("cycles with other CTAs paused than those beyond the limit", c("dyncta.wrongly_paused"), 0),
        ("cycles of C_idle", c("dyncta.idle_cycles"), c("sm.other_idle_cycles")),
        ("cycles of C_mem", c("dyncta.memory_cycles"), c("sm.memory_wait_cycles") + blocked),
    ]
