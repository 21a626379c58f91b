"""The parameters of register and scratchpad sharing, and the constructor arguments of its blocks."""

from __future__ import annotations

from dataclasses import dataclass

from lockstep.spec.frame import SCHEDULER
from lockstep.spec.mechanism import Parameters
from lockstep.spec.parameters import LANES, MAX_CTAS, SCHEDULERS, Gpu, choice, integer
from lockstep.spec.passes import DECLARATION, FIRST_USE, Pass

MAX_PAIRS = MAX_CTAS // 2  # of CTAs
MIN_WINDOW, MAX_WINDOW = 16, 65535
CERTAIN = 10  # tenths: the probability with which everything is allowed
LFSR_BITS = 10  # of the random numbers of dynamic warp execution, ...
LFSR_STATES = (1 << LFSR_BITS) - 1  # ... which are 1 and up to this one
LFSR_START = 1

NUMBERINGS: dict[str, tuple[Pass, ...]] = {
    "allocated": (), "declaration": (DECLARATION,), "first-use": (FIRST_USE,),
}  # fmt: skip
"""How registers may be numbered, and the pass that does it: "first-use" is the paper's unrolled declarations."""

SHARED = {"register-sharing": "registers", "scratchpad-sharing": "scratchpad"}
"""The resource that each mechanism shares, as the plan of CTAs calls it."""

ACCESS, LOCKS, OWNER, DYNAMIC = (
    "sharing.share_access", "sharing.share_locks", "sharing.share_owner", "sharing.dynamic_warp_execution",
)  # fmt: skip
BLOCKS = (ACCESS, LOCKS, OWNER, DYNAMIC)
PATH = "sharing.issue_path"
POLICY = "oldest"  # inside a class


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Pairs of CTAs that share registers or scratchpad (Jatala et al., *The More We Share, The More We Have*)."""

    percent: int = integer(90, 0, 99, "percent", "of what a CTA needs, the part that it shares: 100 (1 - t)")
    owf: int = integer(1, 0, 1, "", "1: owner warp first: warps of owners, then unshared ones, then non-owners")
    numbering: str = choice("first-use", tuple(NUMBERINGS), "of registers; first-use: early code needs no lock")
    dynamic: int = integer(1, 0, 1, "", "1: dynamic warp execution throttles the memory accesses of non-owners")
    window: int = integer(
        1000, MIN_WINDOW, MAX_WINDOW, "core cycles", "between two decisions of dynamic warp execution"
    )
    rule: int = integer(1, 0, 1, "", "0: without the rule against deadlock, to see what it is for")


def pairs_of(ctas: int) -> int:
    """The most pairs of CTAs in an SM that holds ``ctas``; hardware has one at least."""
    return max(1, ctas // 2)


def locks_of(warps: int) -> int:
    """The most register locks, likewise."""
    return max(1, warps // 2)


def arguments(gpu: Gpu) -> Parameters:
    """Constructor arguments of each block."""
    sharing = gpu.sections["sharing"]
    return {
        ACCESS: dict(lanes=LANES),
        LOCKS: dict(warps=gpu.core.warps, ctas=gpu.core.ctas, schedulers=gpu.core.schedulers, rule=sharing.rule),
        OWNER: dict(ctas=gpu.core.ctas),
        DYNAMIC: dict(window=sharing.window),
    }


def copies(gpu: Gpu) -> dict[str, int]:
    """How many of a block an SM has, where it is not one."""
    return {ACCESS: gpu.core.schedulers}


def parts(*, warps: int, ctas: int, schedulers: int, patience: int, policies: int, rule: int) -> Parameters:
    """Of the blocks that an ``issue_path`` with these arguments joins."""
    return {
        SCHEDULER: dict(warps=warps, schedulers=schedulers, patience=patience, classes=1, policies=policies),
        LOCKS: dict(warps=warps, ctas=ctas, schedulers=schedulers, rule=rule),
    }


def path(gpu: Gpu) -> dict[str, int]:
    """Constructor arguments of the unit that joins schedulers and locks."""
    return dict(
        **{name: getattr(gpu.core, name) for name in ("warps", "ctas", "schedulers", "patience")},
        policies=1 << SCHEDULERS.index(POLICY),
        rule=gpu.sections["sharing"].rule,
    )
