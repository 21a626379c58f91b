"""Faults in the RTL and in the model of every block that WarpPool brings; ``test_planted.py`` finds them."""

from __future__ import annotations

from lockstep.verif.planted import Differing, Misleading, another, appears, bits_less, bits_more, less, more

FAULTS = [
    Differing(
        "warppool.instruction_queues", "rtl", "a queue's head wraps one place early",
        "head == depth - 1", "head == depth - 2",
        "spmv", r"o\.instruction\[\d\]\.payload\.\w+", another, settings={"warppool.instructions": 4},
    ),
    Differing(
        "warppool.instruction_queues", "models", "two coalescers get an instruction in one cycle",
        "            elif queued:\n", "            elif state.waiting != 0:\n",
        "spmv", r"o\.free\[\d+\]", more, settings={"warppool.instructions": 4},
    ),
    Differing(
        "lsu.intra_warp_coalescer", "rtl", "line numbers are compared without their lowest bit",
        "Cat(*shorter, Const(-1, len(line.number) - len(shorter)))",
        "Cat(*shorter, Const(-2, len(line.number) - len(shorter)))",
        "spmv", r"o\.line\.payload\.mask", bits_more,
    ),
    Differing(
        "lsu.intra_warp_coalescer", "models", "an instruction is accepted when a line is found, not when the last is",
        "pending == 0 or (pending == state.here and _moves(state, io))", "pending == 0 or _moves(state, io)",
        "spmv", r"c\.request\.ready", appears,
    ),
    Differing(
        "warppool.thread_map_table", "rtl", "the last entry is promised to every coalescer",
        "spare, more = Mux(new, spare[1:], spare),", "spare, more = spare,",
        "spmv", r"c\.admits\[1\]", appears, settings={"warppool.maps": 2},
    ),
    Differing(
        "warppool.thread_map_table", "models", "entries that are no longer in use can be read",
        "if (state.used >> index) & 1 == 0:", "if state.used == 0:",
        "spmv", r"c\.map\.mask", appears,
    ),
    Differing(
        "warppool.inter_warp_queues", "rtl", "what is merged into a tag that leaves is lost",
        "request.count.eq(count + late)", "request.count.eq(count)",
        "spmv", r"o\.request\.payload\.count", less,
    ),
    Differing(
        "warppool.inter_warp_queues", "models", "a full tag has room for another slot",
        "state.count[tag] < state.merges", "state.count[tag] <= state.merges",
        "gemm", r"o\.insert\[\d\]\.valid", appears,
    ),
    Differing(
        "warppool.request_selector", "rtl", "warps are compared without their lowest bit",
        "low.eq(select(steps, planes[-2::-2]))", "low.eq(select(steps[:-1], planes[-2:0:-2]))",
        "mvt", r"o\.pop\.payload\.tag", another, settings={"warppool.quantum": 16},
    ),
    Differing(
        "warppool.request_selector", "models", "hits and misses are not cleared at the end of a quantum",
        "        state.cycle = 0\n        state.margin = -1\n", "        state.cycle = 0\n",
        "atax", r"o\.(policy|pop\.payload\.tag)", another, settings={"warppool.quantum": 16},
    ),
    Differing(
        "warppool.mshr_metadata", "rtl", "the tail of the queue of free entries wraps one place early",
        "tail == last,", "tail == last - 1,",
        "spmv", r"o\.id", another, settings={"l1.mshrs": 8, "l1.merges": 2},
    ),
    Differing(
        "warppool.mshr_metadata", "models", "an entry is not counted when another is released",
        "i64(io.o.free) + i64(answered) - i64(allocated)", "i64(io.o.free) + (i64(1) if answered else i64(-1))",
        "spmv", r"o\.free", more, settings={"l1.mshrs": 8, "l1.merges": 2},
    ),
    Differing(
        "warppool.writeback", "rtl", "the last slot of an answer in the buffer is forgotten",
        "buffered.eq(rest.count != 0)", "buffered.eq(rest.count > 1)",
        "spmv", r"o\.result\.payload\.warp", another,
    ),
    Differing(
        "warppool.writeback", "models", "a slot that leaves as it arrives is kept in the buffer",
        "state.next = i64(vacant)", "state.next = i64(0)",
        "spmv", r"o\.result\.valid", appears,
    ),
    Differing(
        "lsu.line_crossbar", "rtl", "a range goes one word beyond the end of its line",
        "(in_run < words)", "(in_run <= words)",
        "spmv", r"o\.write\.payload\.lanes", bits_more,
    ),
    Differing(
        "lsu.line_crossbar", "models", "lanes that take no part get a value",
        "    while lanes != 0:", "    lanes = (i64(1) << i64(state.lanes)) - 1\n    while lanes != 0:",
        "spmv", r"o\.write\.payload\.registers\[\d\]\[\d+\]", appears,
    ),
    Differing(
        "lsu.store_crossbar", "rtl", "lanes that take no part store the first row",
        "row.eq(store.mask[lane] << ", "row.eq(1 << ",
        "spmv", r"o\.write\.payload\.(bytes|line)\[\d+\]", another,
    ),
    Differing(
        "lsu.store_crossbar", "models", "the last byte of a word is not stored",
        "write.bytes[word + k] = 15", "write.bytes[word + k] = 7",
        "spmv", r"o\.write\.payload\.bytes\[\d+\]", bits_less,
    ),
    Differing(
        "warppool.load_store_order", "rtl", "a request that merges several loads counts for the first of them",
        "slot < payload.count", "int(slot == 0)",
        "spmv", r"o\.drained", bits_less,
    ),
    Differing(
        "warppool.load_store_order", "models", "a store does not clear that its warp's last instruction was a load",
        "state.loads & ~enter | i64(io.i.enter_load)", "state.loads | i64(io.i.enter_load)",
        "spmv", r"o\.load_ready", bits_more,
    ),
    Differing(
        "warppool.warp_pool", "rtl", "every coalescer is told the first one's map entry",
        "merging.map_entry[k].eq(table.entry[k])", "merging.map_entry[k].eq(table.entry[0])",
        "spmv", r"o\.access\.payload\.slots\[\d\]\.word", another,
    ),
    Differing(
        "warppool.warp_pool", "models", "the words of a result remain when the next one has none",
        "            result.words[lane] = 0\n", "            pass\n",
        "spmv", r"o\.result\.payload\.words\[\d+\]", appears,
    ),
]  # fmt: skip

MISLEADING = [
    Misleading(
        "warppool.thread_map_table", "rtl", "the words of a line are stored as zeros",
        "kept.word.eq(word)", "kept.word.eq(0)",
        "spmv", r"lane \d+ loads 0x\w+, and its result names the word at 0x\w+",
    ),
    Misleading(
        "warppool.inter_warp_queues", "rtl", "a range begins at the first word of its line",
        "with m.If(line.p.mapping == Mapping.RANDOM):",
        "with m.If(line.p.mapping == Mapping.RANGE):\n            m.d.comb += buffer.i.p.word.eq(0)\n"
        "        with m.If(line.p.mapping == Mapping.RANDOM):",
        "spmv", r"lane \d+ loads 0x\w+, and its result names the word at 0x\w+",
    ),
    Misleading(
        "lsu.intra_warp_coalescer", "rtl", "a consecutive load is called a broadcast",
        "m.d.comb += mapping.eq(Mapping.CONSECUTIVE)", "m.d.comb += mapping.eq(Mapping.BROADCAST)",
        "saxpy", r"lane 1 loads 0x\w+, and its result names the word at 0x\w+",
    ),
    Misleading(
        "lsu.line_crossbar", "rtl", "values arrive for another instruction of the warp",
        "found.ticket.eq(load.ticket)", "found.ticket.eq(~load.ticket)",
        "spmv", r"a lane's access was sent or answered twice, or a line or a result has none",
    ),
    Misleading(
        "lsu.store_crossbar", "rtl", "the first and the third word of a row are exchanged",
        "span << (place[:ROW_BITS] & begin)", "span << (place[:ROW_BITS] & begin ^ 8)",
        "saxpy", r"lane \d+ stores to 0x\w+, and the byte sent to 0x\w+ is wrong",
    ),
    Misleading(
        "warppool.writeback", "rtl", "the second result of an answer has the first one's place",
        "result[name].eq(slots.slots[0][name]) for name in slots.slots[0].shape().members",
        "result[name].eq(slots.slots[0][name]) for name in slots.slots[0].shape().members if name != \"thread\"",
        "spmv", r"lane \d+ loads .*|.*answered twice.*",
    ),
    Misleading(
        "warppool.request_selector", "rtl", "the line number of a store loses its lowest bit",
        'same = {name: store[name] for name in ("number", "mask", "last", "atomic")}',
        'same = {name: store[name] for name in ("mask", "last", "atomic")} | {"number": store.number & ~1}',
        "saxpy", r"lane 0 accesses 0x\w+, and its line was sent as 0x\w+",
    ),
    Misleading(
        "warppool.request_selector", "rtl", "an atomic leaves as a store",
        '"store": ~store.atomic', '"store": 1',
        "histogram-atomics", r"a load, store or atomic was sent as another kind",
    ),
    Misleading(
        "warppool.inter_warp_queues", "rtl", "loads that bypass the L1 are forgotten to",
        "request.bypass.eq(key.bypass)", "request.bypass.eq(0)",
        "reduction", r"a load, store or atomic was sent as another kind", settings={"l1.data": 0},
    ),
]  # fmt: skip
"""Faults in what the hardware says of lines, lanes, words and kinds; *replace* ends there."""
