"""What `lockstep ptx --show regions` prints, and its JSON has, of a kernel with two branches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockstep.verif.cli.test_cli import lockstep

TEXT = """.version 8.7
.target sm_90
.address_size 64
.entry k(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<2>;
ld.param.u64 %d0, [p];
mov.u32 %r0, %tid.x;
setp.lt.u32 %p0, %r0, 7;
@%p0 bra A;
mov.u32 %r1, 3;
bra B;
A: mov.u32 %r1, 5;
B: st.global.u32 [%d0], %r1;
ret;
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_regions_are_shown(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, shown, _ = lockstep(capsys, "ptx", file)
    assert code == 0
    parts = shown.split("  region ")
    assert len(parts) == 5 and "at most 32 registers in a region, 7 of a bank" in parts[0]
    assert "erase" in parts[1] and "evict" in parts[1]
    # Both arms define the register, and the other arm may have done so before: each of them preloads it.
    assert all("preload r" in part for part in parts[2:4])
    assert "preload and invalidate r" in parts[4]
    live = [line.split()[:3] for line in parts[2].splitlines() if "mov.u32 %r1, 3;" in line]
    assert live == [["11", "3", "2"]]  # algorithm 2 takes the definition for a hard one


def test_statistics(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    code, shown, _ = lockstep(capsys, "ptx", file, "--json", "-")
    (kernel,) = json.loads(shown)["kernels"]
    found = kernel["staging"]["statistics"]
    assert code == 0
    assert (found["regions"], found["instructions_per_region"], found["metadata_words"]) == (4, 9 / 4, 5)
    assert found["preloads_per_region"] == (0 + 1 + 1 + 3) / 4
    assert found["live_registers_per_region"] == (3 + 1 + 1 + 3) / 4 and found["live_registers_deviation"] == 1
    regions = kernel["staging"]["regions"]
    assert [len(region["instructions"]) for region in regions] == [4, 2, 1, 2]
    assert sum(regions[3]["banks"]) == 3
