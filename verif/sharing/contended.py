"""Kernels in which CTAs of a pair ask for the same locks: one SM, half its registers or a third of its scratchpad."""

_SCRATCHPAD = {"core.sms": 1, "scratchpad.bytes": 16384, "scratchpad.bytes_per_cta": 16384}
CONTENDED = (
    ("register-sharing", "hotspot", {"core.sms": 1, "core.registers": 16384}),
    ("scratchpad-sharing", "convolutionSeparable", _SCRATCHPAD),
)
