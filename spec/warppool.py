"""The constructor arguments of WarpPool's blocks on a GPU: what its RTL and its golden models are made from."""

from __future__ import annotations

from lockstep.spec.parameters import MAX_METADATA, MAX_TAGS, TICKETS, Gpu

LANES = 32
PIPELINE = 3  # requests between their selection and the L1

Parameters = dict[str, dict[str, int]]

UNIT = "warppool.warp_pool"


def unit(gpu: Gpu) -> dict[str, int]:
    """Of ``warp_pool``, which joins the others. Sizes follow the GPU: metadata entries are MSHRs x merges."""
    pool = gpu.warppool
    return dict(
        lanes=LANES, warps=gpu.core.warps, tickets=TICKETS, warps_per_queue=pool.warps_per_queue,
        depth=pool.instructions, coalescers=pool.coalescers, queues=pool.queues, tags=pool.tags, merges=pool.merges,
        maps=pool.maps, set_bits=(gpu.l1.sets - 1).bit_length(), metadata=gpu.l1.mshrs * gpu.l1.merges,
        quantum=pool.quantum, store_wait=pool.store_wait,
    )  # fmt: skip


def parts(
    *, lanes: int, warps: int, tickets: int, warps_per_queue: int, depth: int, coalescers: int, queues: int, tags: int,
    merges: int, maps: int, set_bits: int, metadata: int, quantum: int, store_wait: int,
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
        "lsu.intra_warp_coalescer": source,
        "warppool.thread_map_table": dict(lanes=lanes, entries=maps, coalescers=coalescers),
        "warppool.inter_warp_queues": dict(
            **source, queues=queues, tags=tags, merges=merges, coalescers=coalescers, set_bits=set_bits, maps=maps
        ),
        "warppool.request_selector": dict(
            **source, tags=queues * tags, merges=merges, coalescers=coalescers, metadata=metadata, quantum=quantum,
            store_wait=store_wait,
        ),
        "warppool.mshr_metadata": dict(**source, entries=metadata, merges=merges),
        "warppool.writeback": dict(**source, merges=merges),
        "warppool.load_store_order": dict(warps=warps, coalescers=coalescers, merges=merges, limit=limit),
    }  # fmt: skip


def parameters(gpu: Gpu) -> Parameters:
    """Of all of them, by block."""
    arguments = unit(gpu)
    return {**parts(**arguments), UNIT: arguments}


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself: one line per error."""
    pool = gpu.warppool
    errors = []
    if pool.queues & (pool.queues - 1):
        errors.append(f"warppool.queues = {pool.queues}: must be a power of two")
    if pool.queues * pool.tags > MAX_TAGS:
        errors.append(f"warppool.queues * warppool.tags = {pool.queues * pool.tags}: at most {MAX_TAGS} tags")
    if pool.queues > gpu.l1.sets:
        errors.append(f"warppool.queues = {pool.queues}: must not exceed l1.sets = {gpu.l1.sets}")
    if pool.maps % pool.coalescers:
        errors.append(f"warppool.maps = {pool.maps}: must be a multiple of warppool.coalescers = {pool.coalescers}")
    if gpu.l1.mshrs * gpu.l1.merges > MAX_METADATA:
        errors.append(f"l1.mshrs * l1.merges = {gpu.l1.mshrs * gpu.l1.merges}: WarpPool has at most {MAX_METADATA}")
    return errors
