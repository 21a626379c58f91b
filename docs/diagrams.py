"""Draws the site's Mermaid diagrams while it is built, and ensures that its pages fetch nothing from elsewhere."""

from __future__ import annotations

import itertools
import re
from typing import Any

import mermaidx
from mkdocs.exceptions import PluginError

WIDEST = 1100  # units of a diagram; a page has about 700, and text that is much smaller than its own is not read
_NUMBERS = itertools.count()
_ELSEWHERE = re.compile(r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="(?:https?:)?//[^"]*"[^>]*>')
_HARMLESS = re.compile(r'\brel="(?:canonical|prev|next|alternate)"')


def draw(source: str, *_: Any, **__: Any) -> str:
    """A diagram as SVG. Its identifiers are its own, since a page may have several."""
    svg = mermaidx.render(source, theme="neutral").svg()
    width = float(svg.partition('viewBox="')[2].split()[2])
    if width > WIDEST:
        raise PluginError(f"a diagram is {width:.0f} wide, and a page has room for {WIDEST}: {source.splitlines()[0]}")
    return f'<div class="diagram">{svg.replace("my-svg", f"diagram-{next(_NUMBERS)}")}</div>'


def on_config(config: Any) -> Any:
    """Let code blocks called mermaid be drawn."""
    fence = {"name": "mermaid", "class": "diagram", "format": draw}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would fetch something."""
    for tag in _ELSEWHERE.findall(output):
        if not _HARMLESS.search(tag):
            raise PluginError(f"{page.file.src_uri}: is not complete without a network: {tag}")
    if 'class="mermaid"' in output:
        raise PluginError(f"{page.file.src_uri}: a diagram was not drawn, so a script from elsewhere would do it")
    return output
