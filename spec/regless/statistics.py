"""Statistics of RegLess."""

from __future__ import annotations

from lockstep.spec.statistics import CYCLES, RATIO, counted, of_sm, ratio

STATISTICS = (
    counted("regless.regions", "regions", "regless.regions", "started"),
    of_sm("regless.region_core_cycles", CYCLES, "mean of a region, from when it may issue to its last issue",
          lambda c: ratio(c("regless.region_cycles"), c("regless.regions"))),
    counted("regless.metadata_words", "words", "regless.words", "decoded"),
    counted("regless.preloads", "registers", "regless.preloads", "that regions have asked for"),
    of_sm("regless.preloads_missed", RATIO, "of these, those that the staging units had to ask for",
          lambda c: ratio(c("regless.fetches"), c("regless.preloads"))),
    of_sm("regless.preloads_from_l1", RATIO, "those that the L1 had, alone or in a line of compressed registers",
          lambda c: ratio(c("regless.l1_hits"), c("regless.preloads"))),
    of_sm("regless.preloads_from_below", RATIO, "those that came from below the L1; the others were in the compressors",
          lambda c: ratio(c("regless.l1_misses"), c("regless.preloads"))),
    counted("regless.invalidations", "registers", "regless.invalidations", "dropped where a region starts"),
    counted("regless.operands", "registers", "regless.reads", "read from the staging units"),
    counted("regless.results", "registers", "regless.writes", "written to the staging units"),
    counted("regless.evictions", "registers", "regless.stores", "stored from the staging units to the compressors"),
    of_sm("regless.uncompressed", RATIO, "of these, those that went to the L1 as they were",
          lambda c: ratio(c("regless.raw_stores"), c("regless.stores"))),
    counted("regless.line_fetches", "lines", "regless.lines_fetched", "of compressed registers, from the L1"),
    counted("regless.line_stores", "lines", "regless.line_stores", "of compressed registers, to the L1"),
    counted("regless.line_drops", "lines", "regless.drops", "of registers, dropped in the L1"),
    counted("regless.l1_requests", "lines", "regless.requests", "accesses of the shards that the L1s have accepted"),
    of_sm("regless.l1_requests_per_cycle", RATIO, "of these, to the cycles of SMs with work",
          lambda c: ratio(c("regless.requests"), c("sm.cycles"))),
)  # fmt: skip
