"""WarpPool's parameters, and the constructor arguments that its RTL and its golden models are made from."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.frame import COALESCER, CROSSBAR, STORE_CROSSBAR, instructions, whole_warps
from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import L1_INDEXES, LANES, MAX_MAPS, MAX_WARPS, Gpu, choice, integer

# The most that the records are sized for.
MAX_COALESCERS = 4
MAX_TAGS = 64  # of all inter-warp queues
MAX_SLOTS = 8  # requests that a tag merges
MAX_METADATA = 2048  # L1 requests in flight

MAP_PER = ("line", "load")

PIPELINE = 3  # requests between their selection and the L1

UNIT = "warppool.warp_pool"
BLOCKS = (
    "warppool.instruction_queues", COALESCER, "warppool.thread_map_table", "warppool.inter_warp_queues",
    "warppool.request_selector", "warppool.mshr_metadata", "warppool.writeback", "warppool.load_store_order", CROSSBAR,
    STORE_CROSSBAR,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WarpPool:
    """Request merging between the LSU and the L1 (Kloosterman's thesis, chapter 3, tables 3.1 and 3.2)."""

    warps_per_queue: int = integer(3, 1, MAX_WARPS, "warps", "warps that share an instruction queue")
    instructions: int = integer(8, 1, 16, "instructions", "entries of an instruction queue")
    coalescers: int = integer(2, 1, MAX_COALESCERS, "coalescers", "intra-warp coalescers")
    queues: int = integer(32, 1, MAX_TAGS, "queues", "inter-warp queues, a power of two")
    tags: int = integer(2, 1, 8, "lines", "tags of an inter-warp queue")
    merges: int = integer(4, 1, MAX_SLOTS, "requests", "requests that a tag merges")
    maps: int = integer(8, 1, MAX_MAPS, "entries", "thread-map table")
    map_per: str = choice("line", MAP_PER, "what a thread-map entry is for: a line, or all random lines of a load")
    quantum: int = integer(100_000, 16, 1 << 20, "core cycles", "between two decisions on the selection policy")
    store_wait: int = integer(64, 1, 4095, "core cycles", "a store that has waited so long goes before loads")


def unit(gpu: Gpu) -> dict[str, int]:
    """Of ``warp_pool``, which joins the others. Sizes follow the GPU: metadata entries are MSHRs x merges."""
    pool = gpu.sections["warppool"]
    return dict(
        **instructions(gpu), warps_per_queue=pool.warps_per_queue, depth=pool.instructions, coalescers=pool.coalescers,
        queues=pool.queues, tags=pool.tags, merges=pool.merges, maps=pool.maps,
        index=L1_INDEXES.index(gpu.l1.index), set_bits=(gpu.l1.sets - 1).bit_length(),
        metadata=gpu.l1.mshrs * gpu.l1.merges, quantum=pool.quantum, store_wait=pool.store_wait,
        map_per=MAP_PER.index(pool.map_per),
    )  # fmt: skip


def parts(
    *, lanes: int, warps: int, tickets: int, warps_per_queue: int, depth: int, coalescers: int, queues: int, tags: int,
    merges: int, maps: int, index: int, set_bits: int, metadata: int, quantum: int, store_wait: int, map_per: int,
) -> Parameters:  # fmt: skip
    """Of the blocks that a ``warp_pool`` with these arguments joins."""
    source = dict(lanes=lanes, warps=warps, tickets=tickets)
    # A warp's instructions and all requests behind them: buffered lines, tags, and what is on its way to the L1.
    limit = tickets + (queues * tags + PIPELINE) * merges + 2 * coalescers
    return {
        "warppool.instruction_queues": dict(
            **source, queues=-(-warps // warps_per_queue), warps_per_queue=warps_per_queue, depth=depth,
            coalescers=coalescers,
        ),
        COALESCER: source,
        "warppool.thread_map_table": dict(lanes=lanes, entries=maps, coalescers=coalescers, map_per=map_per),
        "warppool.inter_warp_queues": dict(
            **source, queues=queues, tags=tags, merges=merges, coalescers=coalescers, index=index, set_bits=set_bits,
            maps=maps,
        ),
        "warppool.request_selector": dict(
            **source, tags=queues * tags, merges=merges, coalescers=coalescers, metadata=metadata, quantum=quantum,
            store_wait=store_wait,
        ),
        "warppool.mshr_metadata": dict(**source, entries=metadata, merges=merges),
        "warppool.writeback": dict(**source, merges=merges),
        "warppool.load_store_order": dict(warps=warps, coalescers=coalescers, merges=merges, limit=limit),
    }  # fmt: skip


def arguments(gpu: Gpu) -> Parameters:
    """Of all of them, by block."""
    joined = unit(gpu)
    return {**parts(**joined), UNIT: joined, CROSSBAR: instructions(gpu), STORE_CROSSBAR: dict(lanes=LANES)}


def copies(gpu: Gpu) -> dict[str, int]:
    """How many of a block an SM has, where it is not one."""
    return {COALESCER: gpu.sections["warppool"].coalescers}


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself: one line per error."""
    pool = gpu.sections["warppool"]
    errors = whole_warps(gpu, "warppool")
    if pool.queues & (pool.queues - 1):
        errors.append(f"warppool.queues = {pool.queues}: must be a power of two")
    if pool.queues * pool.tags > MAX_TAGS:
        errors.append(f"warppool.queues * warppool.tags = {pool.queues * pool.tags}: at most {MAX_TAGS} tags")
    if pool.queues > gpu.l1.sets:
        errors.append(f"warppool.queues = {pool.queues}: must not exceed l1.sets = {gpu.l1.sets}")
    if gpu.l1.mshrs * gpu.l1.merges > MAX_METADATA:
        errors.append(f"l1.mshrs * l1.merges = {gpu.l1.mshrs * gpu.l1.merges}: WarpPool has at most {MAX_METADATA}")
    return errors
