"""``docs/add-a-mechanism.md`` and ``docs/add-a-block.md`` work as written: their example, in a copy of the tree.

``trial/odd_gate`` has its files as they would lie in the trees, and the registry gets its line; no other file changes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from numba.core import caching

from lockstep.models import cache
from lockstep.sim import Gpu

EXAMPLE = Path(__file__).parent / "trial" / "odd_gate"
TREES = ("cli", "models", "rtl", "sim", "spec", "synth", "verif")

Command = Callable[..., str]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a copy of the trees that has the example."""
    root = tmp_path_factory.mktemp("tree") / "lockstep"
    for name in TREES:
        shutil.copytree(cache.ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE, root, dirs_exist_ok=True)
    shutil.rmtree(root / EXAMPLE.relative_to(cache.ROOT))
    registry = root / "spec" / "registry.py"
    text = registry.read_text(encoding="utf-8").replace(
        "from lockstep.spec import ", "from lockstep.spec import odd_gate, ", 1
    )
    text, changed = re.subn(r"\bmrpb\.MECHANISM,", "mrpb.MECHANISM, odd_gate.MECHANISM,", text)
    assert changed == 1
    registry.write_text(text, encoding="utf-8")
    _share_compiled_code(root)
    return root


def _share_compiled_code(root: Path) -> None:
    """Give the copy what this tree has compiled; what the example changes is compiled again, by itself."""
    assert Gpu("gtx480").machine
    own = Path(os.environ["NUMBA_CACHE_DIR"])
    for folder in {path.parent for path in (cache.ROOT / "models").rglob("*.py")}:
        names = [
            caching.UserProvidedCacheLocator.get_suitable_cache_subpath(str(path / "any.py"))
            for path in (folder, root / folder.relative_to(cache.ROOT))
        ]
        if (own / names[0]).is_dir():
            shutil.copytree(own / names[0], root.parent / "numba" / names[1])


@pytest.fixture
def lockstep(tree: Path) -> Command:
    """Runs a module in the copy, and returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree.parent), "NUMBA_CACHE_DIR": str(tree.parent / "numba")}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(
            command, cwd=tree.parent, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_it_is_known(lockstep: Command) -> None:
    assert "odd-gate" in lockstep("lockstep.cli", "mechanisms")
    assert "test, bench, 1 proof" in lockstep("lockstep.cli", "blocks", "odd_gate")


@pytest.mark.parametrize("level", ["smoke", "formal"])
def test_its_block_is_verified(lockstep: Command, level: str) -> None:
    lockstep("lockstep.cli", "verify", "odd_gate.gate", "--level", level)


@pytest.mark.exhaustive
@pytest.mark.long
def test_its_own_tests_pass(lockstep: Command, tree: Path) -> None:
    lockstep("pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", str(tree / "verif" / "odd_gate"))


def test_a_kernel_is_right_with_it_and_slower(lockstep: Command) -> None:
    command = ("lockstep.cli", "run", "mri-q", "--size", "tiny", "--json", "-",
               "--set", "instruction_cache.mode=perfect")  # fmt: skip
    alone, gated = (json.loads(lockstep(*command, *more)) for more in ((), ("--with", "odd-gate")))
    assert alone["checked"] and gated["checked"]
    assert alone["cycles"] < gated["cycles"]
    closed = "odd_gate.closed_core_cycles"
    assert alone["stats"][closed] == 0 < gated["stats"][closed] < gated["stats"]["sm.active_core_cycles"]


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_its_hardware_runs_in_a_kernel(lockstep: Command, mode: str) -> None:
    """In several launches, each of which begins with a reset; a period that leaves idle cycles."""
    kernel = ("lockstep.cli", "cosim", "bfs", "--size", "tiny", "--json", "-", "--mode", mode)
    block = ("--with", "odd-gate", "--set", "odd_gate.period=3", "--rtl", "odd_gate.gate")
    result = json.loads(lockstep(*kernel, *block))
    assert result["checked"] and result["launches"] > 1 and result["mismatches"] == 0
    assert result["compared_cycles"] == (15 * result["cycles"] if mode == "shadow" else 0)
