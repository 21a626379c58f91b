"""The statistics of sharing, and what must hold of its counts."""

from __future__ import annotations

from lockstep.spec.mechanism import Law
from lockstep.spec.statistics import CYCLES, Counts, counted, of_sm, ratio

STATISTICS = (
    counted("sharing.register_locks", "locks", "sharing.register_locks", "locks taken for registers"),
    counted("sharing.scratchpad_locks", "locks", "sharing.scratchpad_locks", "locks taken for scratchpad"),
    counted("sharing.register_refusals", "grants", "sharing.register_refusals",
            "grants refused for want of a register lock"),
    counted("sharing.scratchpad_refusals", "grants", "sharing.scratchpad_refusals",
            "grants refused for want of a scratchpad lock alone"),
    counted("sharing.waiting_core_cycles", CYCLES, "sharing.waiting_cycles", "cycles in which a warp waits for a lock"),
    of_sm("sharing.lock_waiters", "warps", "mean warps that wait for a lock while any do",
          lambda c: ratio(c("sharing.waiters"), c("sharing.waiting_cycles"))),
    counted("sharing.handovers", "handovers", "sharing.handovers",
            "CTAs that became owner of their pair, since they took its first lock or since the owner ended"),
    counted("sharing.throttled_core_cycles", CYCLES, "sharing.throttled_cycles",
            "cycles in which dynamic warp execution keeps non-owners from accessing memory"),
)  # fmt: skip


def laws(c: Counts) -> list[Law]:
    """With the rule against deadlock, one CTA of each pair never waits for a lock; and what is taken is given back."""
    rule = c.gpu.sections["sharing"].rule
    return [
        ("cycles in which both CTAs of a pair wait for locks", rule * c("sharing.both_wait"), 0),
        ("locks held at the end", c("sharing.register_locks") + c("sharing.scratchpad_locks"), c("sharing.released")),
    ]
