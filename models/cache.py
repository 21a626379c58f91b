"""Numba's on-disk cache, made to see edits in imported modules.

Numba recompiles a cached function when its own file changes, but not when a function that it calls has changed in
another file: the stale machine code would be loaded silently. The locator here stamps a function with the contents of
its module and of every project module that it imports, directly or not, with the versions of Numba and NumPy and with
the settings that change what is compiled. Files live in one folder per user, outside the source tree.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "lockstep"
# The folders that the import names stand for; the tree is mapped by setuptools, so it is not found by name.
ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("models", "rtl", "sim", "spec", "verif")


def folder() -> Path:
    """Where compiled code and derived layouts are kept; ``LOCKSTEP_CACHE`` overrides it."""
    chosen = os.environ.get("LOCKSTEP_CACHE")
    base = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / PACKAGE
    base.mkdir(parents=True, exist_ok=True)
    return base


def _module_file(dotted: list[str]) -> Path | None:
    if len(dotted) < 2 or dotted[0] != PACKAGE or dotted[1] not in FOLDERS:
        return None
    path = ROOT.joinpath(*dotted[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


# Parsing whole files would take a third of a start. What only looks like an import is found too: harmless.
_IMPORT = re.compile(
    r"^[ \t]*((?:from[ \t]+[\w.]+[ \t]+)?import\b[ \t]*(?:\((?:[^)#]|#[^\n]*)*\)|(?:[^\n\\]|\\\n)*))", re.MULTILINE
)


def import_statements(source: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements of a source text, one to a line."""
    for text in _IMPORT.findall(source):
        try:
            yield from (node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom))
        except SyntaxError:
            continue


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """The files of the project's modules that a file imports, packages included."""
    package = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts][:-1]
    names: list[list[str]] = []
    for node in import_statements(path.read_text()):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            names += [base, *([*base, alias.name] for alias in node.names)]
        else:
            names += [alias.name.split(".") for alias in node.names]
    return tuple(found for found in map(_module_file, names) if found)


def closure(*paths: Path) -> list[Path]:
    """The files of modules and of all project modules that they import, sorted."""
    todo, seen = [path.resolve() for path in paths], set[Path]()
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += _imports(current)
    return sorted(seen)


_derived: dict[Path, dict[str, bytes]] = {}


def derived(path: Path, contents: dict[str, bytes]) -> None:
    """Say what a module gives by name, beside its source: part of the stamp of all that import it and name that."""
    _derived[path.resolve()] = contents


@functools.cache
def stamp(path: Path) -> str:
    """A hash of everything that the compiled code of a module depends on."""
    import numba
    import numpy

    digest = hashlib.sha256(f"{numba.__version__} {numpy.__version__}".encode())
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    texts = {source: source.read_bytes() for source in closure(path)}
    for source, text in texts.items():
        digest.update(str(source.relative_to(ROOT)).encode() + text)
        for name, content in _derived.get(source, {}).items():
            if any(f'"{name}"'.encode() in other for other in texts.values()):
                digest.update(content)
    return digest.hexdigest()


def install() -> None:
    """Make Numba use this cache for the functions of this project."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder() / "numba"))
    from numba.core import caching, config

    # Numba has read the variable already if it was imported before.
    setattr(config, "CACHE_DIR", os.environ["NUMBA_CACHE_DIR"])  # noqa: B010 (the module makes its names itself)

    class ImportAwareLocator(caching.UserProvidedCacheLocator):
        def __init__(self, function, file):
            super().__init__(function, file)
            # One index per variant: runs with and without bounds checks must not evict each other's code.
            variant = "checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else "plain"
            self._cache_path = os.path.join(self._cache_path, variant)

        def get_source_stamp(self):
            return stamp(Path(self._py_file).resolve())

        @classmethod
        def from_function(cls, function, file):
            path = Path(file).resolve()
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS:
                return super().from_function(function, str(path))
            return None

    if not any(c.__name__ == "ImportAwareLocator" for c in caching.CacheImpl._locator_classes):
        caching.CacheImpl._locator_classes.insert(0, ImportAwareLocator)
