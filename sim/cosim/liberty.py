"""Standard-cell libraries that a user names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.sim.errors import UsageError

if TYPE_CHECKING:
    from lockstep.synth.liberty import Library


def read(path: str) -> Library:
    """A Liberty file. Raises :class:`UsageError` for one that cannot be read, or has no flip-flops."""
    from lockstep.synth.liberty import Library

    try:
        library = Library.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--liberty {path}: cannot be read: {error}") from None
    if not library.sequential:
        raise UsageError(f"--liberty {path}: has no flip-flops, so it is not a library of standard cells")
    return library
