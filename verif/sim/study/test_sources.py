"""What the version of the code depends on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lockstep.models import cache
from lockstep.sim.study import sources


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the sources, of which the version is taken."""
    for folder in ("models", "spec", "sim", "cli"):
        shutil.copytree(cache.ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.ptx", "__pycache__"))
    layouts = sources.blocks.layouts()
    monkeypatch.setattr(sources.blocks, "layouts", lambda: layouts)
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("models/core/sm.py", True),
        ("models/dyncta/tenant.py", True),
        ("spec/parameters.py", True),
        ("sim/device/statistics.py", True),
        ("sim/compile/ptx/passes/memory_regions.py", True),
        ("sim/compile/ptx/ptx.lark", True),
        ("sim/compile/cuda/prelude.h", True),
        ("cli/run.py", False),
        ("sim/kernels/saxpy/kernel.py", False),
        ("sim/gpus/gtx480.toml", False),
        ("sim/study/page.py", False),
        ("sim/study/report/plots.py", False),
    ],
)
def test_what_can_change_a_result_counts(tree: Path, file: str, counts: bool) -> None:
    before = sources.code_version.__wrapped__()
    with (tree / file).open("a") as opened:
        opened.write("# edited\n")
    cache._imports.cache_clear()
    assert (sources.code_version.__wrapped__() != before) == counts


def test_the_blocks_ports_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.code_version.__wrapped__()
    monkeypatch.setattr(sources.blocks, "layouts", lambda: {"cta.cta_dispatcher": {}})
    assert sources.code_version.__wrapped__() != before


def test_the_libraries_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources.code_version.__wrapped__()
    monkeypatch.setattr(sources, "_version", lambda name: "999")
    assert sources.code_version.__wrapped__() != before


@pytest.mark.parametrize(
    ("kernel", "module"), [("transpose-tiled", "transposes"), ("syr2k", "rank_updates"), ("covar", "moments")]
)
def test_what_kernels_share_is_a_part_of_each(kernel: str, module: str) -> None:
    assert cache.ROOT / "sim" / "kernels" / f"{module}.py" in sources.kernel_files(kernel)
