"""The ranges of blocks' parameters."""

from __future__ import annotations


def check(what: str, value: int, least: int, largest: int) -> None:
    """Raise :class:`ValueError` for a parameter that is out of range."""
    if not least <= value <= largest:
        raise ValueError(f"{what} must be {least} to {largest}, not {value}")
