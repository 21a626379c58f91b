"""`lockstep new-mechanism` and `new-block`: what they write works as it is, in a copy of the trees.

It is the example of ``docs/add-a-mechanism.md`` and ``docs/add-a-block.md``, ``trial/odd_gate``, under other names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from numba.core import caching

from lockstep.models import cache
from lockstep.sim import Gpu
from lockstep.verif.conftest import partly

TREES = ("cli", "models", "package", "rtl", "sim", "spec", "synth", "verif")

Command = Callable[..., str]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a copy of the trees."""
    root = tmp_path_factory.mktemp("tree") / "lockstep"
    for name in TREES:
        shutil.copytree(cache.ROOT / name, root / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(cache.ROOT / "pyproject.toml", root)
    _share_compiled_code(root)
    return root


def _share_compiled_code(root: Path) -> None:
    """Give the copy what this tree has compiled; what a new mechanism changes is compiled again, by itself."""
    assert Gpu("gtx480").machine
    own = Path(os.environ["NUMBA_CACHE_DIR"])
    for folder in {path.parent for path in (cache.ROOT / "models").rglob("*.py")}:
        names = [
            caching.UserProvidedCacheLocator.get_suitable_cache_subpath(str(path / "any.py"))
            for path in (folder, root / folder.relative_to(cache.ROOT))
        ]
        if (own / names[0]).is_dir():
            shutil.copytree(own / names[0], root.parent / "numba" / names[1])


@pytest.fixture(scope="module")
def lockstep(tree: Path) -> Command:
    """Runs a module in the copy, which has a new mechanism and another block of it, and returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(tree.parent / "numba")}

    def run(*arguments: str, at: Path = tree.parent) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, cwd=at, env=environment, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("lockstep.cli", "new-mechanism", "pair-lane")
    run("lockstep.cli", "new-block", "pair_lane.side_door")
    return run


def test_they_are_known(lockstep: Command) -> None:
    assert "pair-lane" in lockstep("lockstep.cli", "mechanisms")
    rows = json.loads(lockstep("lockstep.cli", "blocks", "pair_lane", "--json", "-"))
    assert [(*row["verification"], len(row["proofs"])) for row in rows] == [("test", "bench", "formal", 1)] * 2


@pytest.mark.exhaustive
def test_lint(lockstep: Command, tree: Path) -> None:
    files = sorted(name for path in tree.rglob("*.py") if "pair_lane" in (name := str(path.relative_to(tree))))
    assert len(files) == 16
    lockstep("ruff", "check", "--no-cache", *files, "spec/registry.py", at=tree)
    modules = [f"-mlockstep.{name.removesuffix('.py').replace('/', '.')}" for name in files if "__init__" not in name]
    lockstep("mypy", "--follow-imports=silent", *modules, at=tree)


@pytest.mark.parametrize("level", partly(["formal", "smoke", "random"], 3))
def test_their_blocks_are_verified(lockstep: Command, level: str) -> None:
    lockstep("lockstep.cli", "verify", "pair_lane", "--level", level)


@pytest.mark.exhaustive
@pytest.mark.long
def test_their_own_tests_pass(lockstep: Command, tree: Path) -> None:
    """And that of skipping, with the period at both ends."""
    options = ("-q", "--import-mode=importlib", "-p", "no:cacheprovider")
    lockstep("pytest", *options, str(tree / "verif" / "pair_lane"))
    lockstep("pytest", *options, str(tree / "verif" / "test_skipping.py"), "-k", "pair-lane")


def test_a_kernel_is_right_with_it_and_slower(lockstep: Command) -> None:
    command = ("lockstep.cli", "run", "mri-q", "--size", "tiny", "--json", "-",
               "--set", "instruction_cache.mode=perfect")  # fmt: skip
    alone, gated = (json.loads(lockstep(*command, *more)) for more in ((), ("--with", "pair-lane")))
    assert alone["checked"] and gated["checked"]
    assert alone["cycles"] < gated["cycles"]
    closed = "pair_lane.closed_core_cycles"
    assert alone["stats"][closed] == 0 < gated["stats"][closed] < gated["stats"]["sm.active_core_cycles"]


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_its_hardware_runs_in_a_kernel(lockstep: Command, mode: str) -> None:
    """In several launches, each of which begins with a reset; a period that leaves idle cycles."""
    kernel = ("lockstep.cli", "cosim", "bfs", "--size", "tiny", "--json", "-", "--mode", mode)
    block = ("--with", "pair-lane", "--set", "pair_lane.period=3", "--rtl", "pair_lane")
    result = json.loads(lockstep(*kernel, *block))
    assert result["checked"] and result["launches"] > 1 and result["mismatches"] == 0
    assert result["compared_cycles"] == (15 * result["cycles"] if mode == "shadow" else 0)
