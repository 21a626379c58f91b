"""Kernels whose CTAs wait for room: each SM holds one."""

CONTENDED = tuple(("baseline", kernel, {"core.ctas": 1}) for kernel in ("hotspot", "lud"))
