"""WarpPool's statistics, and what its counts conserve."""

from __future__ import annotations

from lockstep.spec.mapping import Mapping
from lockstep.spec.mechanism import Law
from lockstep.spec.statistics import CYCLES, RATIO, Counts, counted, of_sm, ratio

STATISTICS = (
    counted("warppool.requests", "requests", "warppool.requests", "load requests that WarpPool sent to the L1"),
    counted("warppool.merged", "lines", "warppool.merged", "lines of instructions that these requests serve"),
    of_sm("warppool.lines_per_request", RATIO,
          "lines served per load request (Kloosterman's instructions per L1 request)",
          lambda c: ratio(c("warppool.merged"), c("warppool.requests"))),
    *(counted(f"warppool.{kind.name.lower()}", "lines", "warppool.mappings",
              f"lines with the mapping *{kind.name.lower()}*", int(kind)) for kind in Mapping),
    of_sm("warppool.by_warp", RATIO, "share of the launch in which the lowest warp goes before the oldest line",
          lambda c: ratio(c("warppool.by_warp"), c("gpu.cycles") * c.sms)),
    counted("warppool.answers_held_core_cycles", CYCLES, "warppool.answers_held",
            "cycles in which writeback accepted no response of the L1"),
    counted("warppool.overdue", "lines", "warppool.overdue",
            "stores and atomics sent before loads because they had waited too long"),
)  # fmt: skip


def laws(c: Counts) -> list[Law]:
    """Every line that is not sent itself is merged, and every line of a load has a mapping."""
    return [
        ("WarpPool's lines without a request", c("lsu.merged"), c("warppool.merged") - c("warppool.requests")),
        ("lines of stores in WarpPool's crossbar", c("warppool.stores_sent"), c("warppool.stores_moved")),
        ("WarpPool's lines by mapping", c("warppool.mappings"), c("warppool.merged")),
    ]
