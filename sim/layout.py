"""The layout of tables that keep to a width.

Cells are wrapped between words; numbers never are. Columns for which there is no room left follow in a further part of
the table, beside its first columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

__all__ = ["Column", "fits", "parts", "widths", "wrap"]

FRAME = 3  # of each column: a line, and a blank on both sides of its cells; the last column has a line more
BREAKS = re.compile(r"(?<=[._/,:=])(?=[^\W\d])")  # between the pieces of a long word: `l1.`, `stall_`, `cycles`
LONGEST = 20  # characters of a piece that stays whole
READABLE = 24  # width that text of this length or more has beside other columns


@dataclass(frozen=True)
class Column:
    """A heading, and the cells below it. ``number``: the cells are numbers, which stay whole."""

    name: str
    cells: Sequence[str]
    number: bool

    @property
    def most(self) -> int:
        """The width at which nothing is wrapped."""
        return _longest([self.name, *self.cells])

    def least(self, readable: bool) -> int:
        """The least width; ``readable``: at which the words of its cells stay whole, and a line has some of them."""
        heading = _flat(map(BREAKS.split, self.name.split()))
        if self.number:
            return _longest([*heading, *self.cells])
        words = _flat(map(str.split, self.cells))
        if readable:
            return max(_longest([*heading, *words]), min(_longest(self.cells), READABLE))
        return _longest([*heading, *(piece[:LONGEST] for piece in _flat(map(BREAKS.split, words)))])

    def height(self, width: int) -> int:
        """The lines of heading and cells together, if lines were full."""
        return sum(-(-len(text) // width) for text in ([self.name] if self.number else [self.name, *self.cells]))


def _flat(lists: Iterable[list[str]]) -> list[str]:
    return list(chain.from_iterable(lists))


def _longest(texts: Sequence[str]) -> int:
    return max(map(len, texts), default=0)


def widths(columns: Sequence[Column], width: int, readable: bool) -> list[int] | None:
    """The width of each column's cells in a table of at most ``width``; None: there is no room."""
    room = width - 1 - FRAME * len(columns)
    found, least = [column.most for column in columns], [column.least(readable) for column in columns]
    while sum(found) > room:
        wide = [k for k, _ in enumerate(columns) if found[k] > least[k]]
        if not wide:
            return None
        # The one that this makes the least longer, of these the widest.
        chosen = min(wide, key=lambda k: (columns[k].height(found[k] - 1) - columns[k].height(found[k]), -found[k]))
        found[chosen] -= 1
    return found


def fits(columns: Sequence[Column], width: int) -> bool:
    """Whether the columns have room beside each other, and can be read."""
    return widths(columns, width, True) is not None


def parts(columns: Sequence[Column], width: int, keys: int) -> Iterator[Sequence[Column]]:
    """The columns of each part of a table: the first ``keys``, and as many of the others as there is room for."""
    first, rest = columns[:keys], columns[keys:]
    while rest:
        count = max((n for n in range(2, len(rest) + 1) if fits([*first, *rest[:n]], width)), default=1)
        yield [*first, *rest[:count]]
        rest = rest[count:]


def wrap(text: str, width: int) -> str:
    """Lines of at most ``width``. A word is broken only where it is longer."""
    lines = [""]
    for word in text.split():
        pieces = [word] if len(word) <= width else BREAKS.split(word)
        for number, piece in enumerate(part[k : k + width] for part in pieces for k in range(0, len(part), width)):
            before = " " if lines[-1] and number == 0 else ""
            if len(lines[-1]) + len(before) + len(piece) <= width:
                lines[-1] += before + piece
            else:
                lines.append(piece)
    return "\n".join(lines)
