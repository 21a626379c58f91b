"""The output of commands: tables and progress through rich, and JSON files that are never half written."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lockstep.sim import layout
from lockstep.sim.errors import UsageError
from lockstep.sim.watch import Watch
from lockstep.spec import files

__all__ = [
    "Display", "cell", "check_writable", "fits", "numeric", "say", "table", "write_file", "write_json", "write_text",
]  # fmt: skip

NUMBERS = re.compile(r"(?<=\[)\n[-+.,\deE\s]+(?=\])")  # there is no line break inside of a string
ESCAPED = r"\udc"
PATIENCE = 2.0  # seconds without a word; also between the lines of a log


def check_writable(target: str | None) -> None:
    """Refuse a file, or - for standard output, that cannot be written, before the work is done."""
    if target is not None and target != "-" and not files.writable(Path(target)):
        raise UsageError(f"{target or repr(target)}: cannot be written there")


def write_json(target: str, value: Any) -> None:
    """Write to a file, or to standard output for ``-``. A file is replaced as a whole or not at all.

    A list of numbers stands on one line.
    """
    text = json.dumps(value, indent=2)
    if ESCAPED in text:  # the bytes of names that the locale has no letters for; JSON has none for bytes
        letters = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        text = json.dumps(json.loads(letters), indent=2)
    text = NUMBERS.sub(lambda found: " ".join(found[0].split()), text)
    write_text(target, text + "\n")


def write_text(target: str, text: str) -> None:
    """As :func:`write_json`."""
    if target == "-":
        sys.stdout.write(text)
    else:
        write_file(target, text)


def write_file(target: str, content: str | bytes) -> None:
    """Write to a file, also what is no text."""
    sys.stdout.flush()  # the file may be the same
    files.write(Path(target), content)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], keys: int = 1) -> None:
    """Print a table no wider than the terminal; numbers to the right, with separators.

    A table that is too wide is printed in parts (:mod:`lockstep.sim.layout`), each with the first ``keys`` columns.
    """
    say(title)
    show(_columns(columns, [list(row) for row in rows]), min(keys, len(columns) - 1))


def show(columns: Sequence[layout.Column], keys: int) -> None:
    """Print columns as parts of a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = shutil.get_terminal_size().columns
    for part in layout.parts(columns, width, keys):
        found = layout.widths(part, width, True) or layout.widths(part, width, False)
        each = found or [column.least(False) for column in part]
        result = Table()
        for column, own in zip(part, each, strict=True):
            heading = layout.wrap(column.name, own)
            result.add_column(heading, justify="right" if column.number else "left", width=own, no_wrap=True)
        wrapped = [[layout.wrap(text, own) for text in column.cells] for column, own in zip(part, each, strict=True)]
        for cells in zip(*wrapped, strict=True):
            result.add_row(*map(Text, cells))
        Console(width=sum(each) + 4 * len(each)).print(result)


def say(text: str, first: str = "", others: str = "") -> None:
    """Print a paragraph no wider than the terminal, with what its first line and the others begin with."""
    width = shutil.get_terminal_size().columns
    print(textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False))


def fits(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bool:
    """Whether the terminal has room for a table in one part."""
    return layout.fits(_columns(columns, [list(row) for row in rows]), shutil.get_terminal_size().columns)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[layout.Column]:
    return [
        layout.Column(name, [cell(row[k]) for row in rows], numeric(rows, k)) for k, name in enumerate(names)
    ]


def numeric(rows: Sequence[Sequence[Any]], column: int) -> bool:
    """Whether a column has nothing but numbers, and places without one."""
    return all(row[column] is None or isinstance(row[column], int | float) for row in rows)


def cell(value: Any) -> str:
    """A value as tables show it; None is empty."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}"
    return f"{value:,}" if isinstance(value, int) else str("" if value is None else value)


class Display(Watch):
    """Progress on standard error for work that takes longer than :data:`PATIENCE`: a line on a terminal, else a log.

    What kernels print goes to standard output, or to standard error if that takes the JSON (``target``). Of several
    runs, ``processes`` are made at the same time.
    """

    def __init__(self, target: str | None = None, processes: int = 1) -> None:
        self._processes = processes
        self._to_error = target == "-"
        self._lock = threading.Lock()
        self._text = ""
        self._detail = ""
        self._runs = ""
        self._share = (0, 0)
        self._before: int | None = None  # runs that had ended before this command made the first
        self._first: tuple[float, int] | None = None  # when that one ended, and how many had ended then
        self._live: Any = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Display:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._live is not None:
            self._live.stop()

    def phase(self, text: str) -> None:
        with self._lock:
            self._text, self._detail = text, ""

    def progress(self, ended: int, total: int, cycle: int) -> None:
        with self._lock:
            self._detail = f": {ended:,} of {total:,} CTAs, {cycle:,} cycles"

    def runs(self, ended: int, total: int, failed: int) -> None:
        now = time.monotonic()
        text = f"{ended:,} of {total:,} runs"
        if failed:
            text += f", {failed:,} failed"
        if self._before is None:
            self._before = ended
        elif self._first is None and ended > self._before:
            self._first = now, ended
        # The first run of each process also prepares the model, which takes minutes where it must be compiled.
        if self._first is not None and ended < total:
            count = ended - self._first[1] - (self._processes - 1)
            if count > 0 and 4 * (ended - self._before) >= total - self._before:
                text += f", {_duration((now - self._first[0]) / count * (total - ended))} left"
        with self._lock:
            self._runs, self._share = text, (ended, total)

    def printed(self, text: str) -> None:
        if not text:
            return
        with self._lock:
            if self._live is not None:  # its line would be written over
                self._live.stop()
                self._live = None
            print(text, end="", file=sys.stderr if self._to_error else sys.stdout, flush=True)

    def _show(self) -> None:
        interval, shown = PATIENCE, ""
        while not self._stop.wait(interval):
            with self._lock:
                text = "; ".join(filter(None, (self._runs, self._text + self._detail)))
            if not text:
                continue
            if not sys.stderr.isatty():
                if text != shown:
                    print(text, file=sys.stderr, flush=True)
                shown = text
                continue
            interval = 0.2
            with self._lock:
                if self._live is None:
                    from rich.console import Console

                    self._live = Console(stderr=True).status(text)
                    self._live.start()
                self._live.update(self._line(text))

    def _line(self, text: str) -> Any:
        """On a terminal, with a bar for several runs."""
        ended, total = self._share
        if not total:
            return text
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        line = Table.grid(padding=(0, 1))
        line.add_row(ProgressBar(total, ended, width=20), text)
        return line


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"about {seconds:.0f} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 100 else f"about {minutes / 60:.0f} h"
