"""What long work tells about its progress."""

from __future__ import annotations

__all__ = ["Watch"]


class Watch:
    """What a job tells about its progress; this one keeps it to itself."""

    def phase(self, text: str) -> None:
        """A part of the work begins."""

    def progress(self, ended: int, total: int, cycle: int) -> None:
        """CTAs of the current launch, and its core cycle."""

    def runs(self, ended: int, total: int, failed: int) -> None:
        """So many of several runs have ended, in whatever way."""

    def printed(self, text: str) -> None:
        """A launch has printed something."""
