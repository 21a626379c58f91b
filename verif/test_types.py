"""Checkers see through the project's imports: ``package`` has a link for every tree, and mypy looks there."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lockstep.models import jit
from lockstep.models.cache import PACKAGE, ROOT
from lockstep.verif.test_imports import FOLDERS

LINKS = ROOT / "package" / PACKAGE
STUB = ROOT / "models" / "jit.pyi"
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def test_the_links_are_the_trees() -> None:
    assert {link.name: link.readlink() for link in LINKS.iterdir()} == {
        name: Path("..", "..", name) for name in FOLDERS
    }


def test_every_checker_looks_at_the_links() -> None:
    assert SETTINGS["mypy"]["mypy_path"] == "package" and SETTINGS["mypy"]["packages"] == [PACKAGE]
    assert SETTINGS["pyright"]["extraPaths"] == ["package"]
    assert "ignore_missing_imports" not in SETTINGS["mypy"]
    lint = subprocess.run(["make", "--dry-run", "lint"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert lint.splitlines()[-1].endswith("/bin/mypy")  # all that the settings name


@pytest.mark.parametrize("argument, found", [("'8'", ["arg-type"]), ("8", [])])
def test_a_wrong_argument_to_another_module_is_found(tmp_path: Path, argument: str, found: list[str]) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(f"from lockstep.spec.mapping import log2\n\nlog2({argument})\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(planted)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.rpartition("[")[2].rstrip("]") for line in errors] == found, done.stdout
    assert done.returncode == bool(found), done.stderr


def declared() -> dict[str, list[str] | None]:
    """The functions that the stub of ``models.jit`` declares, with their parameters; None for what else it does."""
    found: dict[str, list[str] | None] = {}
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = [each.arg for each in node.args.args]
    return found


def interpreted() -> dict[str, list[str]]:
    """The same, of the interpreted functions."""
    return {name: list(inspect.signature(getattr(jit, name)).parameters) for name in declared()}
