"""Faults of the kind that people make, planted in the hardware of this area: evidence for what finds them."""

from __future__ import annotations

from lockstep.verif.planted import Fault

FAULTS = [
    Fault("regless.shard_arbiter", "rtl", "the one that had its turn is first", "itself=True", "itself=False"),
    Fault(
        "regless.shard_arbiter", "rtl", "a turn that is not accepted is repeated",
        "with m.If(valid.any()):",
        "with m.If(valid.any() & self.accepted):",
    ),
    Fault(
        "regless.shard_arbiter", "rtl", "the turn stays",
        "Mux(access.shard == shards - 1, 0, access.shard + 1)",
        "Mux(access.shard == shards - 1, 0, access.shard)",
    ),
    Fault(
        "regless.region_metadata", "rtl", "an announcement waits for entries",
        "~self.looked | self.announces | (remaining == 0)",
        "~self.looked | (remaining == 0)",
    ),
    Fault(
        "regless.region_metadata", "rtl", "a word leaves with its last slot, when the region has one more",
        "Mux(last, 1 + (reach > FLAGS_SLOTS), reach >= FLAGS_SLOTS)",
        "Mux(last, 1 + (reach >= FLAGS_SLOTS), reach >= FLAGS_SLOTS)",
    ),
    Fault("regless.region_metadata", "rtl", "a warp is looked at twice in a row", "| starts) & ~own", "| starts)"),
    Fault(
        "regless.region_metadata", "rtl", "a flush drops nothing",
        "Mux(flushed[w], 0, length + told[w] - taken)",
        "Mux(flushed[w], length, length + told[w] - taken)",
    ),
    Fault(
        "regless.region_metadata", "rtl", "an instruction has a slot more",
        "Mux(k < self.issued_slots",
        "Mux(k <= self.issued_slots",
    ),
    Fault(
        "regless.region_metadata", "rtl", "a region without entries is never sent",
        "done.eq(self.ends & (remaining == 0))",
        "done.eq(self.ends & (remaining == 0) & sent.any())",
    ),
    Fault(
        "regless.region_metadata", "rtl", "a single word has a slot less",
        "[:SINGLE_COUNT_BITS] + 1",
        "[:SINGLE_COUNT_BITS]",
    ),
    Fault(
        "regless.operand_staging_unit", "rtl", "two requests enter where there is room for one",
        "(waiting == 0) | (waiting == 1) & ~enters",
        "waiting <= 1",
    ),
    Fault(
        "regless.operand_staging_unit", "rtl", "what is fetched carries words",
        "Mux(self.entry.kind == Request.STORE, source, 0)",
        "source",
    ),
    Fault(
        "regless.register_compressor", "rtl", "the queue takes one access more",
        "self.count <= QUEUE - MOST_ACCESSES",
        "self.count <= QUEUE - MOST_ACCESSES + 1",
    ),
    Fault(
        "regless.register_compressor", "rtl", "any number of lines may be away",
        "& room & (self.loose != MAX_LOOSE) &",
        "& room &",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a line that is awaited may leave",
        "vacant.eq(~self.pending)",
        "vacant.eq(~self.pending | self.valid)",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a line that is fetched is dirty",
        "self.dirty | place if dirty else self.dirty & ~place",
        "self.dirty | place",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a register replaces the others of its line",
        "lambda present: present | mine",
        "lambda present: mine",
    ),
    Fault(
        "regless.register_compressor", "rtl", "an eviction stores the value of the register",
        "own.eq((self.step == Step.LOOK) | ~self._vacant)",
        "own.eq(self.step == Step.LOOK)",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a line that is there counts as away",
        "self.loose.eq(self.loose + ~there)",
        "self.loose.eq(self.loose + 1)",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a warp's end keeps its states",
        "self.known.eq(self.known & ~rows)",
        "self.known.eq(self.known)",
    ),
    Fault(
        "regless.register_compressor", "rtl", "what was stored is not known to be",
        "self.stored.eq(self.stored | (1 << leaving))",
        "self.stored.eq(self.stored)",
    ),
    Fault(
        "regless.register_compressor", "rtl", "a line from the L1 overwrites what is newer",
        "self._written.en.eq(~select(self._matches, list(self.present)))",
        "self._written.en.eq(-1)",
    ),
]  # fmt: skip
