"""TOML as the standard library reads it, without the keys that would take it a time that grows with their square."""

from __future__ import annotations

import re
import tomllib
from typing import Any

__all__ = ["loads"]

MOST_PARTS = 32
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS}}}")


def loads(text: str) -> dict[str, Any]:
    """Raises ValueError for what is not TOML or has a key of more than ``MOST_PARTS`` parts (``a.b.c`` has three), and
    RecursionError for what is nested too deep."""
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than {MOST_PARTS} parts (at line {line})")
    return tomllib.loads(text)
