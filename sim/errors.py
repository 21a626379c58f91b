"""Errors that users make, and faults of their kernels: one plain line each, exit code 2 on the command line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
MOST = 500  # characters of a message


def one_line(message: object) -> str:
    """A message as users read it: in one line, without control characters and the middle of what is far too long."""
    text = " ".join(str(message).split())
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return text if len(text) <= MOST else f"{text[: 2 * MOST // 3]} ... {text[-MOST // 3 :]}"


class UsageError(Exception):
    """Wrong input. The message says what is wrong, where, and what is allowed, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def of_type(kinds: type[T] | tuple[type[T], ...], what: str, value: object, rule: str) -> T:
    """``value``, if it is of one of these types. Raises :class:`UsageError`."""
    if not isinstance(value, kinds):
        raise UsageError(f"{what} = {value!r}: must be {rule}")
    return value


def path_text(what: str, value: object) -> str:
    """A path as a text that can be the name of a file. Raises :class:`UsageError`."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    text = of_type(str, what, value, "a path")
    try:
        usable = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise UsageError(f"{what} = {text!r}: cannot be the name of a file")
    return text


@dataclass(frozen=True)
class StuckWarp:
    """A warp of a CTA that has not ended, in a launch that makes no progress.

    ``state``: what it waits for; "ended"; or "repeating", for one that only comes back to where it was. ``since``: the
    core cycle of its last issue, or since which it has been seen repeating. ``ptx`` and ``source``: file, first and
    last line of the PTX and of the CUDA text, of where it waits or what it repeats; None: not known.
    """

    sm: int
    cta: tuple[int, ...]
    warp: int
    state: str
    since: int
    ptx: tuple[str, int, int] | None
    source: tuple[str, int, int] | None


class KernelFault(UsageError):
    """The running kernel did something illegal; names kernel, line, CTA, warp and lane.

    ``ptx``: file and line of the PTX; ``source``: those of the CUDA text, where the PTX says which. None: not known.

    ``warps``, of a launch that makes no progress (a barrier deadlock among them): all warps of the CTAs concerned, with
    what each waits for. The notes of the exception, which Python shows below it, say the same in a few lines.
    """

    def __init__(
        self,
        message: str,
        ptx: tuple[str, int] | None = None,
        source: tuple[str, int] | None = None,
        warps: tuple[StuckWarp, ...] = (),
    ) -> None:
        super().__init__(message)
        self.ptx, self.source, self.warps = ptx, source, warps


FAULTS = {
    "OUT_OF_BOUNDS": "access out of bounds",
    "MISALIGNED": "misaligned access",
    "READ_ONLY": "store to read-only memory",
    "BAD_SHARED_ATOMIC": "atomic of this kind is not possible in shared memory",
    "TRAP": "trap",
    "ASSERT": "assertion failed",
    "BARRIER_DEADLOCK": "barrier deadlock: every warp that is left in the CTA waits for warps that never come",
    "NO_PROGRESS": "no progress: for launch.no_progress core cycles all warps only repeated themselves, or for 100 "
    "times as many no warp ended, no barrier opened and no CTA started",
    "STACK_OVERFLOW": "divergence nested deeper than core.reconvergence_stack",
    "BAD_BARRIER": "no such barrier, or a thread count that is not a multiple of 32",
    "BAD_TEXTURE": "not a valid texture handle",
    "BAD_BRANCH_INDEX": "branch index beyond its table",
    "UNWRITTEN": "read of memory that nobody has written",
    "OFF_TRACE": "the warp is not where its trace says",
}
"""The text for each of ``models.execution.isa.Fault``, by its name."""

WITH_ADDRESS = ("OUT_OF_BOUNDS", "MISALIGNED", "READ_ONLY", "BAD_SHARED_ATOMIC", "BAD_TEXTURE", "UNWRITTEN")
"""The faults of one lane at one address."""
