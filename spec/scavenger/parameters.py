"""Scavenger's parameters and blocks, and the constructor arguments of the unit that joins them and of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import MAX_CTAS, MAX_WARPS, PLACEMENTS, Gpu, integer
from lockstep.spec.scavenger import control, prediction
from lockstep.spec.scavenger.fixed import ERROR

UNIT = "scavenger.scavenger_unit"
PREDICTOR, HISTOGRAM, DETECTOR, BALANCER, FALLBACK, WINDOW, CONTROLLER = (
    "scavenger.performance_predictor", "scavenger.pc_histogram", "scavenger.phase_detector", "scavenger.cta_balancer",
    "scavenger.fallback_monitor", "scavenger.sliding_window", "scavenger.pid_controller",
)  # fmt: skip

BLOCKS = PREDICTOR, HISTOGRAM, DETECTOR, BALANCER, FALLBACK, WINDOW, CONTROLLER

# Of the two controllers, and of the sliding windows: what each is for.
CONTROLLERS = 2
WARPS, REQUESTS = range(CONTROLLERS)
WINDOWS = {
    "lanes": prediction.AMOUNT_BITS, "instructions": prediction.COUNT_BITS, "requests": prediction.AMOUNT_BITS,
    "memory_instructions": prediction.COUNT_BITS, "error": ERROR.bits,
}  # fmt: skip
"""Bits of the values that windows sum, in their order; the last ones are signed."""
ERRORS = len(WINDOWS) - 1

MEAN = prediction.ENTRIES * prediction.ENTRY  # core cycles of a sliding window
LEAST_PROFILE = 4 * (prediction.BUCKETS + 2)  # core cycles: two intervals, each as long as a walk of the histogram
LEAST_WINDOW = 1024  # core cycles: beyond the histogram's comparison and the balancer's decision


@dataclass(frozen=True, kw_only=True)
class Scavenger:
    """Two kernels on an SM, of which the first keeps a share of its speed (Kloosterman's thesis, tables 5.1, 5.2)."""

    target: int = integer(90, 1, 100, "%", "of the speed that the primary kernel has alone on the SM, which it keeps")
    minimum: int = integer(
        prediction.MINIMUM, LEAST_PROFILE, prediction.MAX_PROFILE // 16 * 8, "core cycles",
        "of a profile, at least; a multiple of 8",
    )
    maximum: int = integer(
        prediction.MAXIMUM, LEAST_PROFILE + 16, prediction.MAX_PROFILE, "core cycles",
        "of a profile that does not become stable, which begins anew",
    )
    comparisons: int = integer(
        prediction.COMPARISONS, 1, prediction.MAX_COMPARISONS, "comparisons",
        "in a row, 16 core cycles apart, in which a profile's halves agree: 8, or 16",
    )
    entries: int = integer(
        prediction.ENTRIES, MEAN // prediction.MAX_ENTRY, prediction.MAX_ENTRIES, "entries",
        f"of the sliding windows, which have {MEAN} core cycles; a power of two: 16, or 128",
    )
    window: int = integer(
        control.WINDOW, LEAST_WINDOW, prediction.MAX_WINDOW, "core cycles",
        "between two decisions on CTAs, and between two histograms of PCs",
    )
    interval: int = integer(
        control.INTERVAL, control.INTERVAL, control.MAX_INTERVAL, "core cycles",
        "between two decisions on active warps and outstanding requests, and of those on phases",
    )
    relative: int = integer(0, 0, 1, "", "0: errors of the controllers are in instructions per cycle; 1: by the target")
    scale: int = integer(1, 1, control.MAX_SCALE, "times", "the thesis's gains of the controllers")
    reciprocal: int = integer(0, 0, 1, "", "0: changes upwards are scaled by 1 - slack; 1: by 1 / slack")
    gated_slack: int = integer(0, 0, 1, "", "0: the slack is of the primary's active warps; 1: also of those held back")
    primary_slack: int = integer(
        control.PRIMARY_SLACK, 0, MAX_WARPS, "warps", "that did not issue; the primary gets a CTA if it has fewer"
    )
    secondary_slack: int = integer(
        control.SECONDARY_SLACK, 0, MAX_WARPS, "warps", "that did not issue; the secondary gets CTAs if it has fewer"
    )
    carry: int = integer(1, 0, 1, "", "1: what is less than a CTA of a balancer's change counts in the next window")
    patience: int = integer(
        control.PATIENCE, LEAST_WINDOW, control.MAX_CYCLES, "core cycles",
        "in which the primary reaches no further instruction, until another warp of it becomes active",
    )
    longest: int = integer(control.LONGEST_RUN, LEAST_WINDOW, control.LONGEST_RUN, "core cycles", "of a run, at most")
    limit: int = integer(
        control.LIMIT, 0, control.MAX_LIMIT, "instructions", "behind the target, from which on the fallback counts"
    )
    duration: int = integer(
        control.DURATION, 1, control.LONGEST_RUN, "core cycles", "behind the limit, until the primary is alone"
    )
    alone: int = integer(control.ALONE, 1, control.MAX_CYCLES, "core cycles", "of the primary after a fallback")


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


def unit(gpu: Gpu) -> dict[str, int]:
    """Of ``scavenger_unit``; large counters are as wide as they must be for the profile."""
    s, core = gpu.sections["scavenger"], gpu.core
    joined = len(prediction.intervals(s.minimum, s.maximum)) - prediction.SMALLS
    most = s.minimum // 2 + joined * ((1 << prediction.SMALL_BITS) - 1)
    return SHIPPED | dict(
        warps=core.warps, ctas=core.ctas, pairs=max(core.ctas - 1, 1), minimum=s.minimum, maximum=s.maximum,
        comparisons=s.comparisons, large_bits=most.bit_length(), entries=s.entries, entry=MEAN // s.entries,
        window=s.window, primary_slack=s.primary_slack, secondary_slack=s.secondary_slack, carry=s.carry,
        interval=s.interval, scale=s.scale, relative=s.relative, reciprocal=s.reciprocal, longest=s.longest,
        limit=s.limit, duration=s.duration, time=s.alone,
    )  # fmt: skip


def arguments(gpu: Gpu) -> Parameters:
    """Of all blocks and the unit."""
    joined = unit(gpu)
    return {UNIT: joined, **parts(**joined)}


def copies(gpu: Gpu) -> dict[str, int]:
    """How many of a block an SM has, where it is not one."""
    return {WINDOW: len(WINDOWS), CONTROLLER: CONTROLLERS}


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself: one line per error."""
    s, errors = gpu.sections["scavenger"], []
    if s.minimum % prediction.EIGHTHS:
        errors.append(f"scavenger.minimum = {s.minimum}: must be a multiple of {prediction.EIGHTHS}")
    if s.maximum < (least := s.minimum + prediction.BEAT * s.comparisons):
        errors.append(
            f"scavenger.maximum = {s.maximum}: must be {least} at least, with scavenger.minimum = {s.minimum} and "
            f"scavenger.comparisons = {s.comparisons}"
        )
    if s.entries & (s.entries - 1):
        errors.append(f"scavenger.entries = {s.entries}: must be a power of two")
    if s.relative and s.reciprocal:
        errors.append("scavenger.reciprocal = 1: must be 0 with scavenger.relative = 1")
    if s.duration > s.longest:
        errors.append(f"scavenger.duration = {s.duration}: must not exceed scavenger.longest = {s.longest}")
    if gpu.launch.placement != PLACEMENTS[0]:
        errors.append(f"launch.placement = {gpu.launch.placement}: must be {PLACEMENTS[0]}, as Scavenger shares SMs")
    if gpu.core.ctas < 2:
        errors.append(f"core.ctas = {gpu.core.ctas}: must be 2 at least, for two kernels")
    return errors
