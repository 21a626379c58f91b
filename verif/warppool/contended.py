"""Kernels in which the blocks' queues are full and results wait (``CONTENDED`` of a bench)."""

_SMALL = {
    "core.sms": 1, "core.write_refusals": 8, "warppool.queues": 2, "warppool.tags": 1, "warppool.instructions": 1,
    "warppool.warps_per_queue": 24, "warppool.quantum": 256, "warppool.store_wait": 8,
}  # fmt: skip
CONTENDED = (("warppool", "mvt", {"core.sms": 1, "l1.mshrs": 4}), ("warppool", "bfs", _SMALL))
