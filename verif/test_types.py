"""Checkers see through the project's imports: ``package`` has a link for every tree, and mypy looks there."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lockstep.models import jit
from lockstep.models.cache import PACKAGE, ROOT
from lockstep.verif.bench import elsewhere
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
    command = ["make", "--dry-run", "--no-print-directory", "lint"]
    lint = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    assert lint.splitlines()[-1].endswith("/bin/mypy --num-workers auto")  # all that the settings name


@pytest.mark.parametrize("argument, found", [("8", ["arg-type"]), ("'8'", [])])
def test_a_wrong_argument_to_another_module_is_found(tmp_path: Path, argument: str, found: list[str]) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(f"from lockstep.spec.words import closest\n\nclosest({argument}, [])\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(planted)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [line.rpartition("[")[2].rstrip("]") for line in errors] == found, done.stdout
    assert done.returncode == bool(found), done.stderr


def differences() -> list[str]:
    """What the stub of ``models.jit`` declares and the module lacks; where it is interpreted, also other parameters."""
    found = []
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            made: Any = getattr(jit, node.name, None)
            names = [each.arg for each in (*node.args.args, node.args.vararg, node.args.kwarg) if each]
            known = not jit.COMPILED and inspect.isfunction(inspect.unwrap(made))
            if made is None or (known and list(inspect.signature(made).parameters) != names):
                found.append(node.name)
    return found


@pytest.mark.parametrize("interpreted", ["0", "1"])
def test_the_stub_declares_what_is_there(interpreted: str) -> None:
    assert elsewhere(differences, NUMBA_DISABLE_JIT=interpreted) == []
