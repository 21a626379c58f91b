"""The cache of compiled code: an edit anywhere below a module makes its compiled functions stale."""

from __future__ import annotations

import ast
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from lockstep.models import cache
from lockstep.verif.conftest import partly

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


class Tree:
    """A project of three modules with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.models = _tree(folder)
        self.cache = folder / "cache"
        self._environment = {**os.environ, "PYTHONPATH": str(folder), "LOCKSTEP_CACHE": str(self.cache)}
        self._environment["NUMBA_CACHE_DIR"] = ""  # as if it were not set
        # Python would not see an edit in the same second, and reads what it could not write to the end.
        self._environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def start(self, begin: Callable[[], None] | None = None) -> subprocess.Popen[str]:
        """Print what the top function returns, and how often the cache had it."""
        code = "from lockstep.models.top import run; print(run(20), sum(run.stats.cache_hits.values()))"
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env=self._environment, stdout=subprocess.PIPE, encoding="utf-8", preexec_fn=begin,
        )  # fmt: skip

    def result(self, begin: Callable[[], None] | None = None) -> str:
        return self.start(begin).communicate()[0].strip()


def _tree(tmp_path: Path) -> Path:
    models = tmp_path / "lockstep" / "models"
    models.mkdir(parents=True)
    (tmp_path / "lockstep" / "spec").mkdir()
    for name in ("models/__init__", "models/jit", "models/cache", "spec/__init__", "spec/files"):
        (tmp_path / "lockstep" / f"{name}.py").write_text(
            (cache.ROOT / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8"
        )
    for name, text in (("leaf", _LEAF), ("middle", _MIDDLE), ("top", _TOP)):
        (models / f"{name}.py").write_text(text, encoding="utf-8")
    return models


@pytest.mark.exhaustive
def test_an_edit_two_imports_away_is_seen(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert tree.result() == "42 0"
    assert tree.result() == "42 1"
    (tree.models / "leaf.py").write_text(_LEAF.replace("+ 1", "+ 2"), encoding="utf-8")
    assert tree.result() == "44 0"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", partly(["empty", "flipped"], 2))
def test_damaged_code_is_compiled_anew(tmp_path: Path, kind: str, damage: str) -> None:
    tree = Tree(tmp_path)
    tree.result()
    for file in tree.cache.rglob(f"*.{kind}"):
        content = file.read_bytes()
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes({"empty": b"", "flipped": flipped}[damage])
    assert tree.result() in ("42 0", "42 1")  # an index with another bit may still be right
    assert tree.result() == "42 1"


@pytest.mark.long
def test_the_code_of_another_source_is_not_taken(tmp_path: Path) -> None:
    """As an interrupt leaves it between the two files that Numba writes."""
    tree = Tree(tmp_path)
    tree.result()
    old = {file: file.read_bytes() for file in tree.cache.rglob("*.nbc")}
    (tree.models / "leaf.py").write_text(_LEAF.replace("+ 1", "+ 2"), encoding="utf-8")
    tree.result()
    for file, content in old.items():
        file.write_bytes(content)
    assert tree.result() == "44 0"


@pytest.mark.long
def test_two_cold_starts_compile_once(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    both = [tree.start(), tree.start()]
    assert sorted(process.communicate()[0].strip() for process in both) == ["42 0", "42 1"]


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("room", [0, 100, 4000])
def test_a_full_disk_costs_time(tmp_path: Path, room: int) -> None:
    """No file may have more bytes."""
    tree = Tree(tmp_path)
    for _ in range(2):
        assert tree.result(partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))) == "42 0"
    assert not [file for file in tree.cache.rglob("*") if file.name.startswith(".")]
    assert [tree.result(), tree.result()] == ["42 0", "42 1"]


def test_a_disk_that_is_full_of_files_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a folder can be made."""
    tree = Tree(tmp_path)
    full = "import errno, os\ndef mkdir(*_): raise OSError(errno.ENOSPC, 'full')\n"
    begin = f"{full}from pathlib import Path\nPath.cwd().joinpath('cache').mkdir()\nos.mkdir = mkdir\n"
    (tmp_path / "sitecustomize.py").write_text(begin, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert tree.result() == "42 0"


@pytest.mark.parametrize("ends", ["with an error", "as if nothing were"])
def test_an_interrupt_in_a_compilation_is_one(ends: str) -> None:
    """Python that LLVM calls drops it: Numba then finds no code, or goes on."""

    class Dispatcher:
        py_func = staticmethod(test_all_imports_of_the_project_are_found)

        def compile(self) -> None:
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            if ends == "with an error":
                raise RuntimeError("no compiled object yet")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        cache._compiled_alone(Dispatcher.compile, "py_func")(Dispatcher())
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.long
def test_all_imports_of_the_project_are_found() -> None:
    """The quick search finds what a parse of the whole file finds."""
    for folder in cache.FOLDERS:
        for path in (cache.ROOT / folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
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
