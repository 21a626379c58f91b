"""Plays a page of the documentation word for word: its files are written, its commands typed, its output compared.

    python -m lockstep.verif.tutorial        docs/tutorial.md, in a fresh clone of this repository

A code block behind the name of a file is that file. In a block of commands, lines with ``$`` are typed into a shell;
the others must come out, in this order, where ``...`` stands for anything.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
INSTALLS = ("make ", ".venv/bin/pip ")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w.-]+\.\w+)`")


@dataclass
class Step:
    """A file to be written, or a command with what it shows."""

    file: str = ""
    text: str = ""
    command: str = ""
    shown: list[str] = field(default_factory=list)


class Wrong(Exception):
    """The page does not say what happens."""


def steps(page: str) -> Iterator[Step]:
    """The steps of a page, in order. Raises :class:`Wrong` for a block that is neither file nor commands."""
    end = 0
    for block in _BLOCK.finditer(page):
        before, end = page[end : block.start()], block.end()
        if not block[1]:
            yield from _commands(block[2])
            continue
        names = _FILE.findall(before)
        if not names:
            raise Wrong(f"no file is named before {block[2]!r}")
        yield Step(file=names[-1], text=block[2])


def _commands(text: str) -> Iterator[Step]:
    found: list[Step] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Step(command=line[2:]))
        elif found:
            found[-1].shown.append(line)
        else:
            raise Wrong(f"no command is before {line!r}")
    yield from found


def play(step: Step, folder: Path) -> float:
    """Do a step in a folder; returns the seconds it took."""
    if step.file:
        (folder / step.file).write_text(step.text, encoding="utf-8")
        return 0.0
    start = time.monotonic()
    done = subprocess.run(step.command, shell=True, cwd=folder, encoding="utf-8", capture_output=True)
    if done.returncode:
        raise Wrong(f"{step.command}: exit code {done.returncode}: {done.stderr}")
    output = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    at = 0
    for line in step.shown:
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        found = [index for index in range(at, len(output)) if pattern.fullmatch(output[index])]
        if line != "..." and not found:
            raise Wrong(f"{step.command}: does not show {line!r}, but\n" + "\n".join(output))
        at = found[0] + 1 if line != "..." else at
    return time.monotonic() - start


def main() -> int:
    """Play the tutorial in a fresh clone, with an empty cache; prints what each command took."""
    with tempfile.TemporaryDirectory() as place:
        clone = Path(place) / "lockstep"
        total = 0.0
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for step in steps(PAGE.read_text(encoding="utf-8")):
            step.command = f"export LOCKSTEP_CACHE={place}/cache; {step.command}" if step.command else ""
            seconds = play(step, clone)
            total += seconds
            if step.command:
                print(f"{seconds:7.1f} s  {step.command.partition('; ')[2]}", flush=True)
        print(f"{total:7.1f} s  in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
