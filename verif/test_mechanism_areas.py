"""A mechanism owns itself: nothing but the registry leads to its areas, and every area is found."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.models import cache
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.blocks import blocks

ROOT = cache.ROOT
REGISTRY = ROOT / "spec" / "registry.py"
FRAME = ("models/core", "models/memory", "models/execution", "models/lsu", "models/scheduling", "models/cta", "sim")
CHAPTERS = "sim/study/reproduce/chapters"
TREES = ("cli", "models", "rtl", "sim", "spec", "synth", "verif")


def areas() -> list[Path]:
    """The folders and files of the mechanisms; a chapter's name is an area's, or a word of a mechanism's name."""
    there = [ROOT / tree / mechanism.area for mechanism in MECHANISMS.values() for tree in (*TREES, CHAPTERS)]
    there += [ROOT / CHAPTERS / word for mechanism in MECHANISMS.values() for word in mechanism.name.split("-")]
    return [path for area in there for path in (area, area.with_suffix(".py")) if path.exists()]


def way(*starts: Path) -> list[Path]:
    """A way of imports from files into a mechanism's area that does not lead through the registry; empty if none."""
    forbidden = areas()
    found = {start: start for start in starts}
    todo = [*starts]
    while todo:
        current = todo.pop()
        if any(current.is_relative_to(area) for area in forbidden):
            steps = [current]
            while found[steps[-1]] != steps[-1]:
                steps.append(found[steps[-1]])
            return steps[::-1]
        for path in () if current == REGISTRY else cache._imports(current):
            if path not in found:
                found[path] = current
                todo.append(path)
    return []


@pytest.mark.parametrize("folder", FRAME)
def test_no_import_leads_from_the_frame_to_a_mechanism(folder: str) -> None:
    chapters = ROOT / CHAPTERS
    files = [p for p in (ROOT / folder).rglob("*.py") if p.name != "kernel.py" and not p.is_relative_to(chapters)]
    assert files
    assert [str(path.relative_to(ROOT)) for path in way(*files)] == []


def test_only_the_registry_names_mechanisms() -> None:
    """In code, outside their own areas and the tests: no name and no text is a mechanism's or one of its sections'."""
    words = {word for m in MECHANISMS.values() for word in (m.name, m.area, *m.sections)}
    own = areas()
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for tree in TREES
        for path in sorted((ROOT / tree).rglob("*.py"))
        if not any(path.is_relative_to(area) for area in own) and path != REGISTRY and not path.stem.startswith("test_")
        for word in words & set(named(path))
    ]
    assert wrong == []


def named(path: Path) -> Iterator[str]:
    """The identifiers and the words of a file's code, lower case; prose, which has spaces, says what it likes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            yield node.id.lower()
        elif isinstance(node, ast.Attribute):
            yield node.attr.lower()
        elif isinstance(node, ast.alias):
            yield from node.name.lower().split(".")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from node.module.lower().split(".")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            yield from node.value.lower().replace(",", ".").split(".")


def test_a_way_into_a_mechanism_is_found() -> None:
    """The test can fail: a tenant's own module is in its area, and the registry leads there."""
    assert way(ROOT / "models" / "mrpb" / "path.py")
    assert [path.name for path in way(ROOT / "spec" / "warppool" / "statistics.py")] == ["statistics.py"]
    assert way(REGISTRY) == []


def test_every_folder_with_code_is_a_package() -> None:
    """``setup.py`` finds what has an ``__init__.py``. Kernels, also those of chapters, are loaded by their paths."""
    folders = {path.parent for tree in TREES if tree != "verif" for path in (ROOT / tree).rglob("*.py")}
    folders |= {ROOT / "verif" / block.split(".")[0] for block in blocks()}
    kernels = [*(ROOT / "sim" / "kernels").iterdir(), ROOT / CHAPTERS / "data"]
    assert [f for f in folders if not (f / "__init__.py").exists() and f not in kernels] == []
