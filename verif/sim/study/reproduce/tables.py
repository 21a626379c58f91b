"""What a chapter says on its page, of results that a test makes up."""

from __future__ import annotations

from typing import Any
from unittest import mock

from matplotlib.figure import Figure

from lockstep.sim.study.page import Table
from lockstep.sim.study.reproduce import Chapter

Results = dict[str, dict[str, Any]]
"""By the names of the chapter's jobs."""


def change(results: Results, run: str, cycles: int = 1000, **stats: float) -> None:
    """Set the cycles and some statistics of a run; ``l1__misses`` is ``l1.misses``."""
    results[run] |= {"cycles": cycles}
    results[run]["stats"] |= {key.replace("__", "."): value for key, value in stats.items()}


def rows(chapter: Chapter, results: Results, key: str) -> dict[str, tuple[Any, ...]]:
    """The rows of a table, by their first cell. Plots, which take most of a page's time, are not drawn."""
    with mock.patch.object(Figure, "savefig"):
        page = chapter.page(results)
    (found,) = (block for block in page.blocks if isinstance(block, Table) and block.key == key)
    return {row[0]: tuple(row[1:]) for row in found.rows}


def says(chapter: Chapter, results: Results, statement: str) -> bool:
    """Whether the page says that a statement, of which this is a part, holds."""
    ((so, _),) = (row for text, row in rows(chapter, results, "statements").items() if statement in text)
    return bool(so)
