"""``make check``, ``make test`` and ``make test-all``: which tests each runs, and what their summary says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lockstep.models.cache import ROOT
from lockstep.rtl import registry
from lockstep.sim import kernels
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.extremes import KERNELS

TESTS = """
import pytest

@pytest.mark.parametrize("a", range(3))
@pytest.mark.parametrize("b, c", [(1, 1), (1, 2), (2, 2)])
def test_combinations(a, b, c): sum(range(3_000_000))

@pytest.mark.parametrize("a", ["fails", pytest.param("more", marks=pytest.mark.exhaustive)])
def test_sizes(a): assert a != "fails"

@pytest.mark.long
def test_long(): pass
"""


def run(*arguments: str) -> list[str]:
    """What pytest says."""
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    file = tmp_path / "test_some.py"
    file.write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from lockstep.verif.conftest import *\n", encoding="utf-8")
    return file


def selected(marks: Sequence[str], *files: Path) -> set[str]:
    lines = run("-q", "--collect-only", "-o", "addopts=--import-mode=importlib", *marks, *map(str, files))
    return {line.rpartition("::")[2] for line in lines if "::" in line}


def test_check_has_every_value_but_not_every_combination(tests: Path) -> None:
    """What one mark gives together stays together."""
    assert selected(["-m", "check"], tests) == {
        "test_combinations[1-1-0]", "test_combinations[1-2-1]", "test_combinations[2-2-2]", "test_sizes[fails]",
    }  # fmt: skip


def test_test_and_the_rest_are_all(tests: Path) -> None:
    test, rest = (selected(["-m", marks], tests) for marks in ("not exhaustive", "exhaustive"))
    assert "test_sizes[more]" in rest and "test_long" in test and (len(test), len(rest)) == (3 + 1 + 1, 6 + 1)
    assert test | rest == selected([], tests)


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.exhaustive)])
def test_the_summary_counts_by_distance_and_names_what_is_slow(workers: Sequence[str], tests: Path) -> None:
    assert not [line for line in run(*workers, str(tests)) if "slow for" in line]
    with (tests.parent / "conftest.py").open("a", encoding="utf-8") as file:
        file.write("SLOW['check'] = 0.001\n")
    told = run(*workers, str(tests))
    counted = {line.split()[0]: line.split()[1] for line in told if line.endswith(" s") and " tests " in line}
    assert counted == {"check": "4", "test": "1", "test-all": "7"}
    slow = [line for line in told if line.startswith("slow for check: ")]
    assert any("test_combinations[1-1-0]" in line for line in slow) and not any("test_long" in line for line in slow)


PROMISED = ("test_blocks.py", "test_skipping.py", "sim/kernels/test_runs.py", "sim/cosim/test_kernels.py",
            "regless/test_hardware.py", "sharing/test_sharing.py", "test_documentation.py")  # fmt: skip


@pytest.mark.long
def test_make_test_has_a_test_of_everything() -> None:
    """Of every kernel and every GPU; of every mechanism, with its hardware; of every block, with a proof."""
    found = selected(["-m", "not exhaustive"], *(ROOT / "verif" / file for file in PROMISED))
    with_hardware = {name for name, each in MECHANISMS.items() if each.blocks} - {"regless", "sharing"}
    assert {"test_every_gpu_runs_kernels", *(f"test_results[{name}]" for name in kernels.names())} <= found
    assert {f"test_skipping_changes_nothing[{name}-{KERNELS[0]}]" for name in MECHANISMS} <= found
    assert {f"test_every_block_of_a_mechanism[{name}]" for name in with_hardware} <= found
    assert {f"test_blocks_in_a_run[{case}]" for case in ("some-replace", "hotspot, registers-shadow")} <= found
    assert "test_pages_are_linked[README.md]" in found
    for block in registry.blocks():
        assert {f"test_hardware_equals_the_model[{block}-odd]", f"test_exported_verilog[{block}]"} <= found
        assert any(name.startswith(f"test_property[{block}-") for name in found)


def test_the_commands_are_those_of_the_makefile() -> None:
    done = subprocess.run(
        ["make", "--dry-run", "check", "test", "test-all"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True,
        env={**os.environ, "VENV": sys.prefix},
    )  # fmt: skip
    marks = [line.rpartition(" -m ")[2] for line in done.stdout.splitlines() if " -m pytest " in line]
    assert marks == ["check", "'not exhaustive'", "exhaustive"], "each once, also in one command"
