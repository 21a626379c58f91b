"""The constructor arguments of WarpPool's blocks on a GPU: what its RTL and its golden models are made from."""

from __future__ import annotations

from lockstep.models.parameters import MAX_METADATA, MAX_TAGS, TICKETS, Gpu

LANES = 32
PIPELINE = 3  # requests between their selection and the L1

Parameters = dict[str, dict[str, int]]


def parameters(gpu: Gpu) -> Parameters:
    """By block. Sizes follow the GPU: metadata entries are MSHRs x merges, instruction queues warps / 3."""
    pool, warps = gpu.warppool, gpu.core.warps
    tags = pool.queues * pool.tags
    source = dict(warps=warps, tickets=TICKETS)
    metadata = gpu.l1.mshrs * gpu.l1.merges
    return {
        "warppool.instruction_queues": dict(
            lanes=LANES, **source, queues=-(-warps // pool.warps_per_queue), warps_per_queue=pool.warps_per_queue,
            depth=pool.instructions, coalescers=pool.coalescers,
        ),
        "warppool.intra_warp_coalescer": dict(lanes=LANES, **source),
        "warppool.thread_map_table": dict(lanes=LANES, entries=pool.maps, coalescers=pool.coalescers),
        "warppool.inter_warp_queues": dict(
            lanes=LANES, **source, queues=pool.queues, tags=pool.tags, merges=pool.merges, coalescers=pool.coalescers,
            set_bits=(gpu.l1.sets - 1).bit_length(), maps=pool.maps,
        ),
        "warppool.request_selector": dict(
            lanes=LANES, **source, tags=tags, merges=pool.merges, coalescers=pool.coalescers, metadata=metadata,
            quantum=pool.quantum, store_wait=pool.store_wait,
        ),
        "warppool.mshr_metadata": dict(lanes=LANES, **source, entries=metadata, merges=pool.merges),
        "warppool.writeback": dict(lanes=LANES, **source, entries=metadata, merges=pool.merges),
        "warppool.load_store_order": dict(
            warps=warps, coalescers=pool.coalescers, merges=pool.merges, limit=_most_in_flight(gpu)
        ),
    }  # fmt: skip


def _most_in_flight(gpu: Gpu) -> int:
    """The most that a warp's counter of ``load_store_order`` can reach: its instructions, and all requests behind."""
    pool = gpu.warppool
    return TICKETS + (pool.queues * pool.tags + PIPELINE) * pool.merges + 2 * pool.coalescers


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
