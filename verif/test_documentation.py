"""The tutorial does what it says, and the documentation's site is complete without a network.

``make tutorial`` plays the tutorial in a fresh clone; ``make docs`` builds the site, and refuses what it would fetch.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lockstep.verif import tutorial

ROOT = Path(__file__).parents[1]
HOOKS = runpy.run_path(str(ROOT / "docs" / "diagrams.py"))
SITE_PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def test_diagrams_are_drawn() -> None:
    first, second = (HOOKS["draw"]("flowchart LR\n  a[one] -->|then| b[two]\n") for _ in range(2))
    assert first.startswith('<div class="diagram"><svg') and all(word in first for word in ("one", "then", "two"))
    markers = [set(re.findall(r"url\(#([^)]+)\)", svg)) for svg in (first, second)]
    assert markers[0] and not markers[0] & markers[1], "a page may have several"


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_diagram_that_is_too_wide_to_be_read_is_refused() -> None:
    chain = " --> ".join(f"n{k}[a name]" for k in range(20))
    assert HOOKS["draw"](f"flowchart TB\n  {chain}\n")
    with pytest.raises(Exception, match="room for 1100"):
        HOOKS["draw"](f"flowchart LR\n  {chain}\n")


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://unpkg.com/mermaid@11/dist/mermaid.min.js"></script>',
        '<link href="//fonts.googleapis.com/css" rel="stylesheet">',
        '<img alt="a plot" src="http://example.org/plot.png">',
        '<pre class="mermaid"><code>flowchart LR</code></pre>',
    ],
)
def test_a_page_that_fetches_something_is_refused(tag: str) -> None:
    harmless = '<link rel="canonical" href="https://example.org/"><a href="https://example.org/">there</a>'
    assert HOOKS["on_post_page"](harmless, SITE_PAGE) == harmless
    with pytest.raises(Exception, match=r"page\.md"):
        HOOKS["on_post_page"](harmless + tag, SITE_PAGE)


@pytest.mark.parametrize("page", ["README.md", *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))])
def test_pages_are_linked(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert not re.findall(r"`(?:docs/)?[\w/-]+\.md`", text), "a page in code font is no link"
    for target in re.findall(r"\]\(([^)#:]+\.md)[)#]", text):
        assert ((ROOT / page).parent / target).is_file(), target


# ------------------------------------------------------------------------------------------------------- the tutorial


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_tutorial(tmp_path: Path) -> None:
    """All but the installation, which these tests run in, and the hardware, which ``sim/cosim`` has."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    steps = list(tutorial.steps(tutorial.PAGE.read_text(encoding="utf-8")))
    assert [step.file for step in steps if step.file] == [
        "row_sums.cu", "row_sums.py", "mine.toml", "waits.cu", "waits.py",
    ]  # fmt: skip
    played = [step for step in steps if not step.command.startswith((*tutorial.INSTALLS, ".venv/bin/lockstep cosim"))]
    assert len(played) >= len(steps) - 3
    for step in played:
        tutorial.play(step, tmp_path)


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("```\n$ echo one; echo two\ntwo\none\n```\n", "does not show 'one'"),
        ("```\n$ echo one\n...\nthree\n```\n", "does not show 'three'"),
        ("```\n$ echo text >&2; exit 3\n```\n", "exit code 3: text"),
        ("```\nno command\n```\n", "no command is before"),
        ("a file\n\n```toml\n[l1]\n```\n", "no file is named before"),
    ],
)
def test_a_page_that_is_wrong(page: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(tutorial.Wrong, match=wrong):
        for step in tutorial.steps(page):
            tutorial.play(step, tmp_path)


def test_a_page_that_is_right(tmp_path: Path) -> None:
    page = "Into `a.txt`:\n\n```text\none\ntwo\n```\n\n```\n$ cat a.txt\n...\nt...o\n$ rm a.txt\n```\n"
    for step in tutorial.steps(page):
        tutorial.play(step, tmp_path)
    assert not list(tmp_path.iterdir())
