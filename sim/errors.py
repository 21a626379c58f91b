"""Errors that users make, and faults of their kernels: one plain line each, exit code 2 on the command line."""

from __future__ import annotations


class UsageError(Exception):
    """Wrong input. The message says what is wrong, where, and what is allowed, in one line."""


class KernelFault(UsageError):
    """The running kernel did something illegal; names kernel, PTX line, CTA, warp and lane."""
