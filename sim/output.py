"""What commands show: tables and progress through rich, and JSON files that are never half written."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lockstep.sim.errors import UsageError
from lockstep.sim.watch import Watch
from lockstep.spec import files

__all__ = ["Display", "cell", "check_writable", "numeric", "table", "write_file", "write_json", "write_text"]

NUMBERS = re.compile(r"(?<=\[)\n[-+.,\deE\s]+(?=\])")  # there is no line break inside of a string
PATIENCE = 2.0  # seconds without a word; also between the lines of a log


def check_writable(target: str | None) -> None:
    """Refuse a file, or - for standard output, that cannot be written, before the work is done."""
    if target is not None and target != "-" and not files.writable(Path(target)):
        raise UsageError(f"{target or repr(target)}: cannot be written there")


def write_json(target: str, value: Any) -> None:
    """Write to a file, or to standard output for ``-``. A file is replaced as a whole or not at all.

    A list of numbers stands on one line.
    """
    text = NUMBERS.sub(lambda found: " ".join(found[0].split()), json.dumps(value, indent=2))
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


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int | None = None) -> None:
    """Print a table; numbers to the right, with separators. The last column fits itself to the width, if there is one.

    Without ``width``, a table has that of the terminal.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [list(row) for row in rows]
    result = Table(title=title, title_justify="left")
    for index, name in enumerate(columns):
        last = index == len(columns) - 1  # the one with prose, if any
        result.add_column(name, justify="right" if numeric(lines, index) else "left", no_wrap=not last)
    for line in lines:
        result.add_row(*(Text(cell(value)) for value in line))
    # A pipe has no width: take what the table needs, so that nothing is cut off.
    Console(width=width or (None if sys.stdout.isatty() else 200)).print(result)


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

    What kernels print goes to standard output, or to standard error if that takes the JSON (``target``).
    """

    def __init__(self, target: str | None = None) -> None:
        self._to_error = target == "-"
        self._lock = threading.Lock()
        self._text = ""
        self._detail = ""
        self._runs = ""
        self._share = (0, 0)
        self._first: tuple[float, int] | None = None  # when the first of several runs began, and how many were there
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
        began, before = self._first = self._first or (now, ended)
        text = f"{ended:,} of {total:,} runs"
        if failed:
            text += f", {failed:,} failed"
        if before < ended < total:
            text += f", {_duration((now - began) / (ended - before) * (total - ended))} left"
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
