"""The parameters of DYNCORE, and the constructor arguments of its blocks."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import MAX_SMS, Gpu, integer

MIN_WINDOW, MAX_WINDOW = 16, 65535
MAX_THRESHOLD = MAX_SMS * MAX_WINDOW

SHARE_OFF, SHARE_OF = 16, 55  # SMs that are turned off: 8 of 30, 16 of 56, 32 of 110 (Kayiran et al., section 5.3)

COUNTER, GATE = "dyncore.activity_counter", "dyncore.core_gate"


@dataclass(frozen=True, kw_only=True)
class Dyncore:
    """SMs that are turned off while the others are enough for the memory (Kayiran et al., section 4.2)."""

    off: int = integer(0, 0, MAX_SMS - 1, "SMs", "that are turned off; 0: 8 of 30, 16 of 56, 32 of 110, and alike")
    window: int = integer(2048, MIN_WINDOW, MAX_WINDOW, "core cycles", "between two decisions")
    threshold: int = integer(
        0, 0, MAX_THRESHOLD, "core cycles", "t_act, of N_act of all SMs in a window; 0: two thirds, 40960 of 30 SMs"
    )


def least_window(sms: int) -> int:
    """The sum over all SMs takes a cycle for each, the decision another."""
    return max(MIN_WINDOW, sms + 2)


def off(gpu: Gpu) -> int:
    """How many SMs are turned off."""
    return gpu.sections["dyncore"].off or max(1, gpu.core.sms * SHARE_OFF // SHARE_OF)


def threshold(gpu: Gpu) -> int:
    """The sum of N_act below which they are, in core cycles."""
    dyncore = gpu.sections["dyncore"]
    return dyncore.threshold or 2 * gpu.core.sms * dyncore.window // 3


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself, one line per error."""
    window, least = gpu.sections["dyncore"].window, least_window(gpu.core.sms)
    errors = []
    if off(gpu) >= gpu.core.sms:
        errors.append(f"dyncore.off = {off(gpu)}: must be less than core.sms = {gpu.core.sms}")
    if window < least:
        errors.append(f"dyncore.window = {window}: must be {least} at least with core.sms = {gpu.core.sms}")
    return errors


def arguments(gpu: Gpu) -> Parameters:
    """Constructor arguments of each block."""
    window = gpu.sections["dyncore"].window
    return {
        COUNTER: dict(window=window),
        GATE: dict(sms=gpu.core.sms, off=off(gpu), window=window, threshold=threshold(gpu)),
    }
