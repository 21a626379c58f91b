"""Kernels in which queues are full and results wait: few MSHRs, small queues, a register file that takes nothing in
half of the cycles.
"""

_SMALL = {
    "core.sms": 1, "core.write_refusals": 8, "warppool.queues": 2, "warppool.tags": 1, "warppool.instructions": 1,
    "warppool.warps_per_queue": 24, "warppool.quantum": 256, "warppool.store_wait": 8,
}  # fmt: skip
CONTENDED = (("warppool", "mvt", {"core.sms": 1, "l1.mshrs": 4}), ("warppool", "bfs", _SMALL))
