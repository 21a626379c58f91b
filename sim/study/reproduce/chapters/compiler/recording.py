"""The figures of ptxas, in a file: with them, nothing here needs ptxas. ``__main__.py`` records them again."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep.sim import kernels
from lockstep.sim.compile.ptx import program
from lockstep.sim.errors import UsageError
from lockstep.sim.study.reproduce.chapters.compiler import witness
from lockstep.sim.study.reproduce.chapters.compiler.witness import Figures
from lockstep.spec import files

DATA = Path(__file__).parents[1] / "data" / "ptxas-sm75.csv"
COMMAND = "python -m lockstep.sim.study.reproduce.chapters.compiler"
NAMES = ("kernel", "function", "variant", "ptx", "ptxas")  # columns that are no figures

Variants = Mapping[str, Figures]


def record(kernel: str) -> list[dict[str, Any]]:
    """A kernel's rows of the file. Raises :class:`UsageError`."""
    text = _text(kernel)
    about = {"ptx": _digest(text), "ptxas": witness.version()}
    return [
        {"kernel": kernel, "function": function, "variant": name, **figures, **about}
        for name, variant in witness.VARIANTS.items()
        for function, figures in sorted(witness.assemble(text, variant).items())
    ]


def rows() -> list[dict[str, str]]:
    """Of the file."""
    with DATA.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(new: list[dict[str, Any]]) -> None:
    """Put these rows in the place of those of the same kernels."""
    again = {row["kernel"] for row in new}
    kept = [row for row in (rows() if DATA.exists() else []) if row["kernel"] not in again]
    ordered = sorted([*kept, *new], key=lambda row: row["kernel"].lower())
    text = io.StringIO()
    writer = csv.DictWriter(text, list(new[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(ordered)
    files.write(DATA, text.getvalue())


def versions() -> list[str]:
    """Of ptxas, in the file."""
    return sorted({row["ptxas"] for row in rows()})


def recorded(kernel: str) -> Mapping[str, Variants]:
    """The figures of a kernel's functions, by variant. Raises :class:`UsageError` if they are not of its PTX."""
    own = [row for row in rows() if row["kernel"] == kernel]
    if {row["ptx"] for row in own} != {_digest(_text(kernel))}:
        raise UsageError(f"{kernel}: its PTX is not what ptxas's figures were recorded for: {COMMAND} {kernel}")
    found: dict[str, dict[str, Figures]] = {}
    for row in own:
        figures = {name: int(value) for name, value in row.items() if name not in NAMES}
        found.setdefault(row["function"], {})[row["variant"]] = figures
    return found


def _text(kernel: str) -> str:
    return program.read(kernels.find(kernel).ptx)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
