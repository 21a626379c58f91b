"""Kernels in which CTAs are paused: after short windows, for few cycles that wait for memory."""

_SHORT = {"core.sms": 1, "dyncta.window": 64, "dyncta.idle_high": 60, "dyncta.memory_low": 1, "dyncta.memory_high": 2}
CONTENDED = (("dyncta", "spmv", _SHORT), ("dyncta", "histogram-atomics", _SHORT))
