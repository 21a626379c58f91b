"""From lines of a PTX text to those of the source that it was made from, by ``.file`` and ``.loc``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter

_FILE = re.compile(r'\s*\.file\s+(\d+)\s+"([^"]*)"')
_PLACE = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FUNCTION = re.compile(r"\s*(?:\.\w+\s+)*\.(?:entry|func)\b")


class Places:
    """Where the instructions of one PTX text come from.

    ``is_own`` says which source files count: of code that was inlined, the innermost place in one of them is taken.
    """

    def __init__(self, text: str, is_own: Callable[[str], bool]) -> None:
        self.lines = text.splitlines()
        self._is_own = is_own
        self._files = {found[1]: found[2] for found in map(_FILE.match, self.lines) if found}
        self._marks: list[tuple[int, re.Match[str] | None]] = []  # lines with a place, or None where a function begins
        for number, line in enumerate(self.lines, 1):
            if _FUNCTION.match(line):
                self._marks.append((number, None))
            elif found := _PLACE.match(line):
                self._marks.append((number, found))

    def source(self, line: int) -> tuple[str, int] | None:
        """File and line of the source for a line of the PTX (from 1); None where the PTX does not say."""
        place: tuple[str, ...] | None = None
        for index in range(bisect_right(self._marks, line, key=itemgetter(0)) - 1, -1, -1):
            found = self._marks[index][1]
            if found is None:
                break
            if place is not None and found.groups()[:3] != place:
                continue
            file, number = self._files.get(found[1], ""), int(found[2])
            if number and self._is_own(file):
                return file, number
            place = found.groups()[3:]
            if place[0] is None:
                break
            if self._is_own(self._files.get(place[0], "")):
                return self._files[place[0]], int(place[1])
        return None

    def text(self, line: int) -> str:
        """A line of the PTX, without its indentation; empty if there is none."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
