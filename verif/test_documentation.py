"""The documentation's site is complete without a network. ``make docs`` builds it, and refuses what is not."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
HOOKS = runpy.run_path(str(ROOT / "docs" / "diagrams.py"))
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))


def test_diagrams_are_drawn() -> None:
    first, second = (HOOKS["draw"]("flowchart LR\n  a[one] -->|then| b[two]\n") for _ in range(2))
    assert first.startswith('<div class="diagram"><svg') and all(word in first for word in ("one", "then", "two"))
    markers = [set(re.findall(r"url\(#([^)]+)\)", svg)) for svg in (first, second)]
    assert markers[0] and not markers[0] & markers[1], "a page may have several"


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
    assert HOOKS["on_post_page"](harmless, PAGE) == harmless
    with pytest.raises(Exception, match=r"page\.md"):
        HOOKS["on_post_page"](harmless + tag, PAGE)
