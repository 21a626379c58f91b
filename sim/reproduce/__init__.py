"""Chapters: published or independent figures beside ours, as a page that anybody can make again.

A chapter is a module in ``chapters`` with a ``CHAPTER``: the runs that it needs, by name, and what it makes of their
results. It knows nothing about how they are run: they are kept by what they depend on (``store.py``), run in several
processes (``run.py``) and shown as HTML, Markdown and CSV (``page.py``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.sim.job import Job
from lockstep.sim.reproduce.page import Page

Result = dict[str, Any]  # of a job: ``lockstep.sim.job.execute``


@dataclass(frozen=True)
class Chapter:
    """``jobs`` takes whether a quick look is enough, ``page`` the results by the jobs' names."""

    title: str
    jobs: Callable[[bool], Mapping[str, Job]]
    page: Callable[[Mapping[str, Result]], Page]


def chapter(name: str) -> Chapter:
    """One of ``lockstep.sim.cli.CHAPTERS``."""
    found: Chapter = importlib.import_module(f"{__name__}.chapters.{name}").CHAPTER
    return found
