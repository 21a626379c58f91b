"""`lockstep occupancy` and `Module.occupancy`: what they say of published kernels, and what a launch then does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu
from lockstep.sim.device.occupancy import BLOCKS
from lockstep.sim.errors import UsageError
from lockstep.sim.study.reproduce.chapters.sharing import LIMITED, PERCENTS, PUBLISHED_CTAS

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry any(.param .u64 out)
{
  .shared .align 4 .b8 tile[3000];
  .reg .u64 %o; .reg .u32 %t; .reg .u64 %d;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %d, %t, 4;
  add.u64 %o, %o, %d;
  st.shared.u32 [tile], %t;
  st.global.u32 [%o], %t;
  ret;
}
.visible .entry fixed() .reqntid 48, 2, 1
{
  ret;
}
.visible .entry few() .maxntid 200, 1, 1
{
  ret;
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.ptx"
    path.write_text(PTX, encoding="utf-8")
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict]:
    assert cli.main(["occupancy", *map(str, arguments), "--json", "-"]) == 0
    found: list[dict] = json.loads(capsys.readouterr().out)
    return found


def test_registers_that_sharing_would_use(capsys: pytest.CaptureFixture[str]) -> None:
    """Jatala: three CTAs of hotspot leave 5120 of an SM's registers unused."""
    [found] = answer(capsys, "hotspot", "--gpu", "tesla-c2050", "--threads", 256)
    assert (found["registers"], found["ctas"], found["warps"], found["occupancy"]) == (36, 3, 24, 0.5)
    assert (found["limited_by"], found["unused_registers"]) == (["registers"], 5120)
    [fewer] = answer(capsys, "hotspot", "--gpu", "tesla-c2050", "--threads", 256, "--set", "core.registers=27648")
    assert (fewer["ctas"], fewer["unused_registers"]) == (3, 0)


def test_blocks_that_a_kernel_allows(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    blocks: dict[str, list[int]] = {"any": [], "fixed": [], "few": []}
    for row in answer(capsys, file):
        blocks[row["kernel"]].append(row["threads"])
    assert blocks == {"any": list(BLOCKS), "fixed": [96], "few": [n for n in BLOCKS if n <= 200]}


def test_scratchpad(capsys: pytest.CaptureFixture[str], tmp_path: Path, file: Path) -> None:
    """Static and dynamic bytes together, in units of 128."""
    file.write_text(PTX[: PTX.index(".visible .entry fixed")], encoding="utf-8")
    [found] = answer(capsys, file, "--threads", 32, "--scratchpad", 4000)
    assert found["scratchpad_bytes"] == 7000 and found["limits"]["scratchpad"] == 49152 // 7040
    assert found["ctas"] == 6 and found["unused_scratchpad_bytes"] == 49152 - 6 * 7040


def test_more_registers(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    rows = answer(capsys, file, "--registers", 63)
    assert {row["registers"] for row in rows} == {63}
    [largest] = [row for row in rows if row["threads"] == 1024]
    assert largest["ctas"] == 0 and largest["limited_by"] == ["registers"]


def test_a_launch_has_as_many_ctas(file: Path) -> None:
    gpu = Gpu("gtx480", settings={"core.sms": 1})
    module = gpu.load(file)
    fit = module.occupancy("any", (64, 2), 9000)  # and 3000
    assert fit.ctas == 4 and fit.limited_by == ("scratchpad",)
    out = gpu.empty(64, np.uint32)
    run = module.launch("any", grid=40, block=(64, 2), args=[out], shared_bytes=9000)
    assert 1 < run.stats["occupancy.ctas"] <= 4


@pytest.mark.parametrize(("place", "percent"), [*enumerate(PERCENTS)])
@pytest.mark.parametrize("name", PUBLISHED_CTAS)
def test_table_5(capsys: pytest.CaptureFixture[str], name: str, place: int, percent: int) -> None:
    cta = LIMITED[name]
    needs = ("--gpu", "tesla-c2050", "--threads", cta.threads, "--registers", cta.registers, "--sharing", percent)
    assert cli.main(["occupancy", *map(str, needs), "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ctas"] == PUBLISHED_CTAS[name][place] == found["unshared"] + 2 * found["shared_pairs"]
    assert found["unshared"] + found["shared_pairs"] == PUBLISHED_CTAS[name][0], "progress as without sharing"
    assert 0 <= found["unused_registers"] < 32768


def test_what_is_needed_without_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    needs = ["occupancy", "--gpu", "tesla-c2050", "--threads", "256", "--registers", "36", "--json", "-"]
    assert cli.main(needs) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ctas"], found["unshared"], found["shared_pairs"]) == (3, 3, 0)
    assert (found["limited_by"], found["unused_registers"]) == (["registers"], 5120)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give a FILE or a KERNEL, or what a CTA needs: --threads and --registers"),
        (["--threads", "64", "--registers", "99"], "--registers 99: must be 1 to 63 on gtx480"),
        (["--threads", "4096", "--registers", "9"], "--threads 4096: must be 0 to 1024"),
        (["--threads", "64", "--registers", "9", "--scratchpad", "-1"], "--scratchpad -1: must be 0 to 49152"),
        (["--threads", "64", "--registers", "9", "--sharing", "100"], "sharing.percent = 100: must be 0 to 99 percent"),
    ],
)
def test_bad_needs(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert cli.main(["occupancy", *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threads", "0"], "--threads 0: must be 1 or more"),
        (["--threads", "1025"], "gtx480 allows 1024"),
        (["--registers", "64"], "--registers 64: must be 1 to 63 on gtx480"),
        (["--scratchpad", "-1"], "shared_bytes = -1: must be an integer, 0 or more"),
        (["--scratchpad", "50000"], "allows 49152 per CTA"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    assert cli.main(["occupancy", "saxpy", *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_api_refuses_what_a_launch_refuses(file: Path) -> None:
    module = Gpu("gtx480").load(file)
    for name, block in (("fixed", 64), ("few", 256), ("none", 32), ("any", (0, 1))):
        with pytest.raises(UsageError):
            module.occupancy(name, block)
