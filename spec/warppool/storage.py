"""Table 3.1 of Kloosterman's thesis, "Per-SM storage and power overhead of WarpPool components"."""

from __future__ import annotations

from lockstep.spec.storage import Storage, Structure

STORAGE = Storage("Kloosterman's table 3.1", (
    Structure(
        "Instruction queues", "warppool.instruction_queues", 37, 128,
        "An entry has the instruction's ticket, size and kind beside warp and mask; pointers, and an output register "
        "for each coalescer, are outside the paper's figure.",
    ),
    Structure(
        "Intra-warp coalescers", "lsu.intra_warp_coalescer", 2048, 2,
        "The paper counts 32 addresses and 32 words of store data. Here each lane's address is its line and its word, "
        "store data wait in the load/store unit, and beside the addresses stand the lanes still pending, mask, ticket "
        "and kind. Two lines are on their way, the one found last and the one presented, each with its lanes and "
        "their words.",
    ),
    Structure(
        "Inter-warp queues", "warppool.inter_warp_queues", 124, 64,
        "A slot names warp and ticket; each tag has its valid bit and count of slots, each input a buffer of two "
        "entries, since its ready depends on state alone, and the request leaves through a register.",
    ),
    Structure(
        "Thread map table", "warppool.thread_map_table", 321, 8,
        "An entry for a line has a bit and a word for each lane. With warppool.map_per=load it has a line and a word "
        "for each lane, which are the paper's 10 bits, and counts the results that it waits for.",
    ),
    Structure(
        "MSHR metadata", "warppool.mshr_metadata", 23, 1024,
        "Slots are as wide as the paper's; an entry also counts its slots, and the queue of the free entries is "
        "outside the paper's figure.",
        slots=4,
    ),
))  # fmt: skip
