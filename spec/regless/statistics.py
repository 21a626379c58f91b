"""Statistics of RegLess."""

from __future__ import annotations

from lockstep.spec.statistics import CYCLES, RATIO, counted, of_sm, ratio

STATISTICS = (
    counted("regless.regions", "regions", "regless.regions", "regions that started"),
    of_sm("regless.region_core_cycles", CYCLES, "mean time of a region, from when it may issue to its last issue",
          lambda c: ratio(c("regless.region_cycles"), c("regless.regions"))),
    of_sm("regless.region_held_core_cycles", CYCLES, "the same to its last write, or to the end of the warp",
          lambda c: ratio(c("regless.held_cycles"), c("regless.regions"))),
    counted("regless.metadata_words", "words", "regless.words", "metadata words decoded"),
    counted("regless.preloads", "registers", "regless.preloads", "registers that regions have asked for (preloads)"),
    of_sm("regless.preloads_missed", RATIO, "share of the preloads that the staging units had to ask for",
          lambda c: ratio(c("regless.fetches"), c("regless.preloads"))),
    of_sm("regless.preloads_from_l1", RATIO, "share of preloads that the L1 had, alone or in a line of compressed ones",
          lambda c: ratio(c("regless.l1_hits"), c("regless.preloads"))),
    of_sm("regless.preloads_from_below", RATIO,
          "share of preloads that came from below the L1; the other misses were in the compressors",
          lambda c: ratio(c("regless.l1_misses"), c("regless.preloads"))),
    counted("regless.invalidations", "registers", "regless.invalidations", "registers dropped where a region starts"),
    counted("regless.operands", "registers", "regless.reads", "registers read from the staging units"),
    counted("regless.results", "registers", "regless.writes", "registers written to the staging units"),
    counted("regless.evictions", "registers", "regless.stores", "registers that staging units sent to the compressors"),
    of_sm("regless.uncompressed", RATIO, "share of these registers that went to the L1 uncompressed",
          lambda c: ratio(c("regless.raw_stores"), c("regless.stores"))),
    counted("regless.line_fetches", "lines", "regless.lines_fetched", "lines of compressed registers read from the L1"),
    counted("regless.line_stores", "lines", "regless.line_stores", "lines of compressed registers written to the L1"),
    counted("regless.line_drops", "lines", "regless.drops", "lines of registers dropped in the L1"),
    counted("regless.l1_requests", "lines", "regless.requests", "accesses of the shards that the L1s have accepted"),
    of_sm("regless.l1_requests_per_cycle", RATIO, "accepted accesses of the shards per cycle of SMs with work",
          lambda c: ratio(c("regless.requests"), c("sm.cycles"))),
)  # fmt: skip
