"""The progress of long work."""

from __future__ import annotations

__all__ = ["Watch"]


class Watch:
    """Receives the progress of a job; this one shows nothing."""

    def phase(self, text: str) -> None:
        """A part of the work begins."""

    def progress(self, ended: int, total: int, cycle: int) -> None:
        """CTAs of the current launch, and its core cycle."""

    def runs(self, ended: int, total: int, failed: int) -> None:
        """Of ``total`` runs, ``ended`` have ended in any way, ``failed`` of them without a right result."""

    def printed(self, text: str) -> None:
        """A launch has printed something."""
