"""A page of text, tables and plots, as HTML in one file, as Markdown for the documentation, and its tables as CSV."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import markupsafe

from lockstep.sim.output import cell, numeric
from lockstep.spec import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Text:
    """A paragraph, or a heading of ``level`` 2 or 3. `code`, *emphasis* and links to pages of the documentation,
    [Timing](../timing.md), are marked as in Markdown."""

    text: str
    level: int = 0


@dataclass(frozen=True)
class Table:
    """``key`` names its CSV file; cells are texts and numbers, None is empty. ``folded``: HTML shows it on demand.

    ``marked``: cells are marked as :class:`Text` is, in place of data of which every character is shown.
    """

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False
    marked: bool = False


@dataclass(frozen=True)
class Plot:
    """``key`` names its SVG file. It is drawn when it is written."""

    key: str
    title: str
    draw: Callable[[], str]

    @cached_property
    def svg(self) -> str:
        return self.draw()


@dataclass(frozen=True)
class Command:
    """A command for a shell."""

    title: str
    command: str


@dataclass(frozen=True)
class Page:
    title: str
    blocks: Sequence[Text | Table | Plot | Command]


def svg(figure: Figure) -> str:
    """The same text for the same figure."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "lockstep", "svg.fonttype": "none"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # the browser has other fonts
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    return text.getvalue()


def _prose(text: str) -> markupsafe.Markup:
    """A paragraph's `code`, *emphasis* and names of pages: beside the HTML there is no documentation to link to."""
    escaped = re.sub(r"\[([^\]]+)\]\(\.\./[\w-]+\.md\)", r"*\1* in the documentation", str(markupsafe.escape(text)))
    escaped = re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped)
    return markupsafe.Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escaped))


def _inline(plot: Plot, number: int) -> markupsafe.Markup:
    """A plot as a part of a page: its title for those who do not see it, and names that no other plot has."""
    text = plot.svg[plot.svg.index("<svg") :]

    def named(tag: re.Match[str]) -> str:
        return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>plot{number}-", tag[0])

    text = re.sub(r"<[^>]*>", named, text)  # in attributes, > is escaped
    return markupsafe.Markup(text.replace("<svg", f'<svg role="img" aria-label="{markupsafe.escape(plot.title)}"', 1))


def html(page: Page, whole: bool = True) -> str:
    """In one file, which needs no other; or, not ``whole``, as a part of another page."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["cell"] = cell
    environment.filters["prose"] = _prose
    environment.filters["inline"] = _inline
    environment.globals["numeric"] = numeric
    environment.tests["number"] = lambda value: isinstance(value, int | float)
    template = environment.from_string((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
    return template.render(page=page, whole=whole, kinds=[type(block).__name__ for block in page.blocks])


def markdown(page: Page, name: str) -> str:
    """With the plots in files of their own beside it."""
    parts = [f"# {page.title}"]
    for block in page.blocks:
        if isinstance(block, Text):
            parts.append(f"{'#' * block.level} {block.text}" if block.level else block.text)
        elif isinstance(block, Plot):
            parts.append(f"![{block.title}]({name}-{block.key}.svg)")
        elif isinstance(block, Command):
            parts.append(f"{block.title}\n\n```\n{block.command}\n```")
        else:
            rule = ["--:" if numeric(block.rows, column) else "---" for column in range(len(block.columns))]
            rows = [block.columns, rule, *([cell(value) for value in row] for row in block.rows)]
            lines = (" | ".join(text.replace("|", "\\|") for text in row) for row in rows)
            parts.append(f"{block.title}\n\n" + "\n".join(f"| {line} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def write(page: Page, folder: Path, name: str) -> list[Path]:
    """Write ``NAME.html`` and ``NAME.md``, a CSV file for every table and an SVG file for every plot."""
    contents = {f"{name}.html": html(page), f"{name}.md": markdown(page, name)}
    for block in page.blocks:
        if isinstance(block, Plot):
            contents[f"{name}-{block.key}.svg"] = block.svg
        elif isinstance(block, Table):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([block.columns, *block.rows])
            contents[f"{name}-{block.key}.csv"] = text.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in contents.items():
        files.write(folder / file, content)
    return [folder / file for file in contents]
