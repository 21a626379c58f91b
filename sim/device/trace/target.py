"""Where a timeline goes, and which window of a run it shows."""

from __future__ import annotations

from pathlib import Path

from lockstep.sim.errors import UsageError
from lockstep.spec import files

__all__ = ["ENDINGS", "LAST", "check"]

ENDINGS = {".kanata": "konata", ".log": "konata", ".perfetto-trace": "perfetto", ".pftrace": "perfetto"}
"""The formats of files, by their ending."""

LAST = 1 << 62
"""More cycles than any run has."""


def check(target: str | None, cycles: str | None, sm: int | None, around_stop: int | None) -> tuple[int, int | None]:
    """The window that ``--cycles`` names. Refuse what cannot be, also of the file."""
    for option, value in (("--cycles", cycles), ("--sm", sm), ("--around-stop", around_stop)):
        if target is None and value is not None:
            raise UsageError(f"{option} {value}: needs --timeline")
        if around_stop is not None and value is not None and option != "--around-stop":
            raise UsageError(f"{option} {value}: the launch that stops sets it with --around-stop")
    if around_stop is not None and not 1 <= around_stop <= LAST:
        raise UsageError(f"--around-stop {around_stop}: must be 1 core cycle or more, up to 2^62")
    if target is not None:
        if Path(target).suffix not in ENDINGS:
            raise UsageError(f"{target}: the name of a timeline must end in {', '.join(ENDINGS)}")
        if not files.writable(Path(target)):
            raise UsageError(f"{target}: cannot be written there")
    first, colon, last = (cycles or "0:").partition(":")
    try:
        window = int(first or 0), int(last) if last else None
    except ValueError:
        window = -1, None
    if not colon or not 0 <= window[0] < (LAST if window[1] is None else min(window[1], LAST)):
        raise UsageError(f"--cycles {cycles}: must be A:B, A: or :B, with core cycles A < B")
    return window
