"""The parameters of DYNCTA, and the constructor arguments of its block."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import Gpu, choice, integer

COUNTER_BITS = 11  # of C_idle and C_mem (section 4.3), or as few as a shorter window needs
MOST = (1 << COUNTER_BITS) - 1
MIN_WINDOW, MAX_WINDOW = 16, 65535
FIRSTS = ("half", "one", "most")
HALF, ONE, ALL = range(len(FIRSTS))

LIMITER = "dyncta.cta_limiter"


def counter_bits(window: int) -> int:
    """Of the two counters."""
    return min(COUNTER_BITS, (window - 1).bit_length())


@dataclass(frozen=True, kw_only=True)
class Dyncta:
    """A limit of CTAs on each SM that follows what its warps wait for (Kayiran et al., section 4.1)."""

    first: str = choice("half", FIRSTS, "the limit at first, of the most CTAs that fit: half, rounded down, or one")
    window: int = integer(2048, MIN_WINDOW, MAX_WINDOW, "core cycles", "between two decisions")
    idle_high: int = integer(16, 0, MOST, "core cycles", "t_idle: the limit rises if C_idle is this or more")
    memory_low: int = integer(128, 0, MOST, "core cycles", "t_mem_l: the limit rises if C_mem is less")
    memory_high: int = integer(384, 0, MOST, "core cycles", "t_mem_h: the limit falls if C_mem is this or more")
    blocked: int = integer(
        1, 0, 1, "", "1: cycles in which the L1 refuses a request while some warps wait for memory are in C_mem, too"
    )


def check(gpu: Gpu) -> list[str]:
    """What contradicts itself, one line per error."""
    dyncta = gpu.sections["dyncta"]
    if dyncta.memory_low <= dyncta.memory_high:
        return []
    most = f"dyncta.memory_high = {dyncta.memory_high}"
    return [f"dyncta.memory_low = {dyncta.memory_low}: must not exceed {most}"]


def arguments(gpu: Gpu) -> Parameters:
    """Constructor arguments of the block."""
    dyncta = gpu.sections["dyncta"]
    return {
        LIMITER: dict(
            ctas=gpu.core.ctas,
            first=FIRSTS.index(dyncta.first),
            window=dyncta.window,
            idle_high=dyncta.idle_high,
            memory_low=dyncta.memory_low,
            memory_high=dyncta.memory_high,
        )
    }
