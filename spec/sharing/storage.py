"""The storage that section 6 of Jatala et al. counts for an SM: 273 bits for their GPU."""

from __future__ import annotations

from lockstep.spec.sharing.parameters import LOCKS, OWNER
from lockstep.spec.storage import Storage, Structure

# The paper's GPU (its table 1).
CTAS, WARPS = 8, 48


def mode_bits(ctas: int, warps: int) -> int:
    """A bit for the SM's mode, each CTA's sharer, and for each warp whether it shares and whether it is an owner."""
    return 1 + ctas * ctas.bit_length() + 2 * warps


def lock_bits(warps: int) -> int:
    """Of one lock, which names the warp that has it."""
    return (warps - 1).bit_length()


def bits(ctas: int, warps: int) -> int:
    """All of an SM that shares registers."""
    return mode_bits(ctas, warps) + warps // 2 * lock_bits(warps)


def scratchpad_bits(ctas: int) -> int:
    """What sharing scratchpad adds: a lock for each pair of CTAs, which names the CTA that has it."""
    return ctas // 2 * (ctas - 1).bit_length()


STORAGE = Storage("Jatala et al., section 6", (
    Structure(
        "Mode, sharers, owners", OWNER, mode_bits(CTAS, WARPS), 1,
        "Which CTA shares with which follows from its place in the SM, and whether a warp shares, and owns, from its "
        "CTA. What is left is, for each pair, which of its CTAs are there, which is the owner, and which is older; the "
        "SM's mode follows from them.",
    ),
    Structure(
        "Locks", LOCKS, lock_bits(WARPS), WARPS // 2,
        "A lock is a bit for each of its two warps instead of a warp's number. Each warp has a bit more, which keeps "
        "it from asking again in vain. Each pair of CTAs has its lock of scratchpad, and for each CTA a bit that says "
        "whether it holds any lock.",
    ),
))  # fmt: skip
