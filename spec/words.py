"""Suggestions for misspelt names, in every message that refuses one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["closest"]


def closest(word: str, known: Iterable[str]) -> str:
    """The part of a message that suggests the known word nearest to an unknown one; empty if none is near."""
    by_lower_case = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.6)
    return f"; did you mean {by_lower_case[found[0]]}?" if found else ""
