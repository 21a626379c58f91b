"""The list of the papers' figures and tables: it is complete, and the pages have what it says that they have."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lockstep.models.cache import ROOT
from lockstep.sim.study.reproduce.papers import Item, Paper, markdown, papers

DOCS = ROOT / "docs"
NUMBER = r"\d+(?:[.-]\d+)?[a-z]?"
MENTION = re.compile(rf"\b(figure|table)s?\s+({NUMBER}(?:(?:,\s+|\s+and\s+){NUMBER})*)")
PAGES = {
    "Kloosterman": ("warppool", "regless"), "Jatala": ("sharing",), "Chen": ("pde", "power", "scheduling"),
    "Kayiran": ("dyncta",),
}  # fmt: skip
"""The chapters of each paper; all others have their own."""


def mentioned(page: str) -> set[str]:
    """The figures and tables that a page names."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return {f"{kind} {one}" for kind, numbers in MENTION.findall(text) for one in re.findall(NUMBER, numbers)}


def items() -> Iterator[tuple[Paper, Item]]:
    return ((paper, item) for paper in papers() for item in paper.items)


def test_the_page_is_the_list() -> None:
    again = "run python -m lockstep.sim.study.reproduce.papers > docs/papers.md"
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == markdown(), again


def test_each_has_one_place() -> None:
    for paper, item in items():
        assert sum(map(bool, (item.page, item.shown, item.why))) == 1, (paper.name, item)
        for page in filter(None, (item.page, item.shown)):
            assert (DOCS / f"{page}.md").exists(), (paper.name, item)


def test_pages_name_what_they_reproduce() -> None:
    for paper, item in items():
        if item.page and MENTION.fullmatch(item.id):
            assert item.id in mentioned(item.page), (paper.name, item)


@pytest.mark.parametrize(("name", "page"), [(name, page) for name, pages in PAGES.items() for page in pages])
def test_what_pages_name_is_on_the_list(name: str, page: str) -> None:
    [paper] = [paper for paper in papers() if paper.name == name]
    listed = {item.id for item in paper.items if item.page == f"reproduce/{page}"}
    assert mentioned(f"reproduce/{page}") == listed


@pytest.mark.parametrize("name", PAGES)
def test_no_number_is_left_out(name: str) -> None:
    """Figures and tables are numbered from 1, in a paper or in each of its chapters."""
    [paper] = [paper for paper in papers() if paper.name == name]
    numbers: dict[str, set[int]] = {}
    for item in paper.items:
        found = re.fullmatch(r"(figure|table) (?:(\d+)[.-])?(\d+)[a-z]?", item.id)
        assert found, item
        numbers.setdefault(f"{found[1]} {found[2]}", set()).add(int(found[3]))
    assert all(own == {*range(1, len(own) + 1)} for own in numbers.values()), numbers
    assert len({item.id for item in paper.items}) == len(paper.items)
