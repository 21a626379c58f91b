"""The cache of compiled code: an edit anywhere below a module makes its compiled functions stale."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.models import cache

_LEAF = """
from lockstep.models.jit import jit


@jit
def value(x):
    return x + 1
"""
_MIDDLE = """
import numpy as np
from lockstep.models import (  # a comment (in parentheses is a trap)
    leaf as other,
)
from lockstep.models.jit import jit


@jit
def twice(x):
    return 2 * other.value(x)
"""
_TOP = """
from .middle import twice
from lockstep.models.jit import entry


@entry
def run(x):
    return twice(x)
"""


def test_an_edit_two_imports_away_is_seen(tmp_path: Path) -> None:
    models = tmp_path / "lockstep" / "models"
    models.mkdir(parents=True)
    for name in ("__init__", "jit", "cache"):
        (models / f"{name}.py").write_text((cache.ROOT / "models" / f"{name}.py").read_text())
    for name, text in (("leaf", _LEAF), ("middle", _MIDDLE), ("top", _TOP)):
        (models / f"{name}.py").write_text(text)

    def result() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "LOCKSTEP_CACHE": str(tmp_path / "cache")}
        environment.pop("NUMBA_CACHE_DIR", None)
        code = "from lockstep.models.top import run; print(run(20), sum(run.stats.cache_hits.values()))"
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    assert result() == "42 0"
    assert result() == "42 1"
    (models / "leaf.py").write_text(_LEAF.replace("+ 1", "+ 2"))
    assert result() == "44 0"


def test_all_imports_of_the_project_are_found() -> None:
    """The quick search finds what a parse of the whole file finds."""
    for folder in cache.FOLDERS:
        for path in (cache.ROOT / folder).rglob("*.py"):
            source = path.read_text()
            parsed = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)]
            found = {ast.unparse(node) for node in cache.import_statements(source)}
            assert {ast.unparse(node) for node in parsed} <= found, path


@pytest.mark.parametrize(
    "source",
    [
        "from a.b import c, d as e",
        "if x:\n    import a.b as c  # why",
        "from . import a",
        "from ..a import (\n    b,  # of c\n    d as e,\n)",
        "from a import b, \\\n    c",
        "import a, b.c",
    ],
)
def test_every_form_of_import_is_found(source: str) -> None:
    parsed = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in cache.import_statements(source)] == [ast.unparse(node) for node in parsed]


def test_a_stamp_has_what_is_derived_of_the_names_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout of a block counts for the modules that name it, and for those that import them."""

    def stamps(coalescer: bytes) -> list[str]:
        blocks = cache.ROOT / "models" / "blocks.py"
        monkeypatch.setattr(cache, "_derived", {blocks: {"lsu.intra_warp_coalescer": coalescer}})
        cache.stamp.cache_clear()
        names = ("lsu/intra_warp_coalescer", "lsu/path", "mrpb/path", "warppool/writeback")
        return [cache.stamp(cache.ROOT / "models" / f"{name}.py") for name in names]

    changed = [before != after for before, after in zip(stamps(b"{}"), stamps(b"[]"), strict=True)]
    cache.stamp.cache_clear()
    assert changed == [True, True, True, False]
