"""Errors that users make, and faults of their kernels: one plain line each, exit code 2 on the command line."""

from __future__ import annotations


class UsageError(Exception):
    """Wrong input. The message says what is wrong, where, and what is allowed, in one line."""


class KernelFault(UsageError):
    """The running kernel did something illegal; names kernel, PTX line, CTA, warp and lane."""


FAULTS = {
    "OUT_OF_BOUNDS": "access out of bounds",
    "MISALIGNED": "misaligned access",
    "READ_ONLY": "store to read-only memory",
    "BAD_SHARED_ATOMIC": "atomic of this kind is not possible in shared memory",
    "TRAP": "trap",
    "ASSERT": "assertion failed",
    "BARRIER_DEADLOCK": "barrier deadlock: every warp left in the CTA waits, for warps that never come",
    "NO_PROGRESS": "no progress: no warp ended or passed a barrier for launch.no_progress core cycles",
    "STACK_OVERFLOW": "divergence nested deeper than core.reconvergence_stack",
    "BAD_BARRIER": "no such barrier, or a thread count that is not a multiple of 32",
    "BAD_TEXTURE": "not a valid texture handle",
    "BAD_BRANCH_INDEX": "branch index beyond its table",
    "UNWRITTEN": "read of memory that nobody has written",
}
"""What a user reads for each of ``models.execution.isa.Fault``, by its name."""

WITH_ADDRESS = ("OUT_OF_BOUNDS", "MISALIGNED", "READ_ONLY", "BAD_SHARED_ATOMIC", "BAD_TEXTURE", "UNWRITTEN")
"""The faults of one lane at one address."""
