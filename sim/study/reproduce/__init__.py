"""Chapters: published or independent figures beside ours, as a page that anybody can make again.

A chapter is a module or a package in ``chapters`` with a ``CHAPTER``: the runs that it needs, by name, and what it
makes of their results. It knows nothing about how they are run, in several processes, and kept by what they depend on
(``run.py``), nor about how they are shown, as HTML, Markdown and CSV (``sim/study/page.py``).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep.sim.study.job import Job, Result
from lockstep.sim.study.page import Page

CHAPTERS = tuple(sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "chapters")])))


@dataclass(frozen=True)
class Chapter:
    """``jobs`` takes whether a quick look is enough, ``page`` the results by the jobs' names."""

    title: str
    jobs: Callable[[bool], Mapping[str, Job]]
    page: Callable[[Mapping[str, Result]], Page]


def chapter(name: str) -> Chapter:
    """One of :data:`CHAPTERS`."""
    found: Chapter = importlib.import_module(f"{__name__}.chapters.{name}").CHAPTER
    return found
