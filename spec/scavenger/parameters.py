"""Scavenger's blocks, and the constructor arguments of the unit that joins them and of its parts."""

from __future__ import annotations

from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS
from lockstep.spec.scavenger import control, prediction
from lockstep.spec.scavenger.fixed import ERROR

UNIT = "scavenger.scavenger_unit"
PREDICTOR, HISTOGRAM, DETECTOR, BALANCER, FALLBACK, WINDOW, CONTROLLER = (
    "scavenger.performance_predictor", "scavenger.pc_histogram", "scavenger.phase_detector", "scavenger.cta_balancer",
    "scavenger.fallback_monitor", "scavenger.sliding_window", "scavenger.pid_controller",
)  # fmt: skip

# Of the two controllers, and of the sliding windows: what each is for.
WARPS, REQUESTS = range(2)
WINDOWS = {
    "lanes": prediction.AMOUNT_BITS, "instructions": prediction.COUNT_BITS, "requests": prediction.AMOUNT_BITS,
    "memory_instructions": prediction.COUNT_BITS, "error": ERROR.bits,
}  # fmt: skip
"""Bits of the values that windows sum, in their order; the last ones are signed."""
ERRORS = len(WINDOWS) - 1

SHIPPED = {
    "warps": MAX_WARPS, "ctas": MAX_CTAS, "pairs": control.MAX_PAIRS, "requests": control.MAX_REQUESTS,
    "minimum": prediction.MINIMUM, "maximum": prediction.MAXIMUM, "tolerance": prediction.TOLERANCE,
    "comparisons": prediction.COMPARISONS, "buckets": prediction.BUCKETS, "large_bits": prediction.LARGE_BITS,
    "small_bits": prediction.SMALL_BITS, "entries": prediction.ENTRIES, "entry": prediction.ENTRY,
    "window": control.WINDOW, "primary_slack": control.PRIMARY_SLACK, "secondary_slack": control.SECONDARY_SLACK,
    "carry": 1, "interval": control.INTERVAL, "proportional": control.PROPORTIONAL, "integral": control.INTEGRAL,
    "scale": 1, "relative": 0, "reciprocal": 0, "above": prediction.ABOVE, "longest": control.LONGEST_RUN,
    "lanes_apart": prediction.LANES, "requests_apart": prediction.REQUESTS, "pcs_apart": prediction.SHARE,
    "limit": control.LIMIT, "duration": control.DURATION, "time": control.ALONE,
}  # fmt: skip
"""Arguments of the unit, as the thesis has them."""


def parts(**p: int) -> Parameters:
    """Of the blocks that a unit with these arguments joins; those of one of several have its number behind the name."""

    def some(*names: str) -> dict[str, int]:
        return {name: p[name] for name in names}

    controllers = some("interval", "proportional", "integral", "scale", "relative", "reciprocal")
    profile = some("minimum", "maximum")
    return {
        PREDICTOR: dict(**profile, **some("tolerance", "comparisons")),
        HISTOGRAM: dict(**profile, **some("buckets", "window", "large_bits", "small_bits")),
        DETECTOR: dict(
            **some("maximum", "interval", "above", "longest"), lanes=p["lanes_apart"], requests=p["requests_apart"],
            share=p["pcs_apart"],
        ),
        BALANCER: some("warps", "ctas", "pairs", "window", "primary_slack", "secondary_slack", "carry"),
        FALLBACK: some("limit", "duration", "time", "longest"),
        **{
            f"{WINDOW}[{k}]": dict(entries=p["entries"], cycles=p["entry"], bits=bits, signed=int(k == ERRORS))
            for k, bits in enumerate(WINDOWS.values())
        },
        **{
            f"{CONTROLLER}[{k}]": dict(most=p[most], **controllers)
            for k, most in ((WARPS, "warps"), (REQUESTS, "requests"))
        },
    }  # fmt: skip
