"""From lines of a PTX text to those of the source that it was made from, by ``.file`` and ``.loc``."""

from __future__ import annotations

import re
from collections.abc import Callable

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_PLACE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FUNCTION = re.compile(r"\s*(?:\.\w+\s+)*\.(?:entry|func)\b")


def source_line(text: str, line: int, is_own: Callable[[str], bool]) -> tuple[str, int] | None:
    """File and line of the source for a line of the PTX (from 1); None where the PTX does not say.

    Of code that was inlined, the innermost place in a file for which ``is_own`` holds is taken.
    """
    lines = text.splitlines()
    files = {found[1]: found[2] for found in map(_FILE.match, lines) if found}
    place: tuple[str, ...] | None = None
    for each in reversed(lines[:line]):
        if _FUNCTION.match(each):
            break
        found = _PLACE.match(each)
        if found is None or (place is not None and found.groups()[:3] != place):
            continue
        file, number = files.get(found[1], ""), int(found[2])
        if number and is_own(file):
            return file, number
        place = found.groups()[3:]
        if place[0] is None:
            break
        if is_own(files.get(place[0], "")):
            return files[place[0]], int(place[1])
    return None
