"""Chapters: published or independent figures beside ours, as a page that anybody can make again.

A chapter is a module or a package in ``chapters`` with a ``CHAPTER``: the jobs that it needs, by name, and what it
makes of their results. Most jobs are runs; a chapter knows nothing about how these are made, in several processes, and
kept by what they depend on (``run.py``), nor about how pages are shown, as HTML, Markdown and CSV
(``sim/study/page.py``).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.sim.study.job import Result
from lockstep.sim.study.page import Page
from lockstep.sim.study.reproduce.run import run as run_jobs
from lockstep.sim.watch import Watch

CHAPTERS = tuple(sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "chapters")])))


@dataclass(frozen=True)
class Chapter:
    """``jobs`` takes whether a quick look is enough, ``page`` the results by the jobs' names, which ``run`` makes."""

    title: str
    jobs: Callable[[bool], Mapping[str, Any]]
    page: Callable[[Mapping[str, Result]], Page]
    run: Callable[[Mapping[str, Any], Watch, int | None], Mapping[str, Result]] = run_jobs


def chapter(name: str) -> Chapter:
    """One of :data:`CHAPTERS`."""
    found: Chapter = importlib.import_module(f"{__name__}.chapters.{name}").CHAPTER
    return found
