"""Profiles as users see them: lines of the CUDA file, tables, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models.observe.profile import ROW
from lockstep.sim import Gpu
from lockstep.sim.device.profile import Place, Profile, hot_lines, reasons
from lockstep.spec.causes import CAUSES

CUDA = """// Columns of a tile in the scratchpad: every access conflicts.
__device__ float twice(float x) { return 2 * x; }
__global__ void columns(float *out, const float *in) {
    __shared__ float tile[32][32];
    tile[threadIdx.x][threadIdx.y] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = twice(tile[threadIdx.y][threadIdx.x]);
}
"""
STORE, BARRIER, LOAD = 5, 6, 7
DOCUMENT = Path(__file__).parents[3] / "docs" / "profiles.md"


@pytest.mark.parametrize("name", CAUSES)
def test_the_document_explains_each_cause(name: str) -> None:
    assert f"\n| `{name}` | {CAUSES[name]} |\n" in DOCUMENT.read_text(encoding="utf-8")


def test_lines_of_a_cuda_file(tmp_path: Path) -> None:
    file = tmp_path / "columns.cu"
    file.write_text(CUDA, encoding="utf-8")
    gpu = Gpu(core_sms=1, profile=True)
    data = np.arange(1024, dtype=np.float32)
    out, values = gpu.empty(1024, np.float32), gpu.to_device(data)
    run = gpu.load(file).launch("columns", 1, (32, 32), [out, values])
    assert (gpu.from_device(out) == 2 * data.reshape(32, 32).T.reshape(-1)).all()
    assert run.profile is not None
    lines = {cost.place.line: cost for cost in run.profile.lines if cost.place.file == str(file)}
    assert {STORE, BARRIER, LOAD} <= lines.keys()
    assert [lines[number].place.text for number in (STORE, BARRIER)] == [
        CUDA.splitlines()[number - 1].strip() for number in (STORE, BARRIER)
    ]
    assert (lines[STORE].conflict_core_cycles, lines[LOAD].conflict_core_cycles) == (32 * 31, 0)
    assert lines[STORE].requests == lines[LOAD].requests == 32
    assert lines[BARRIER].stalls["barrier"] > 31 * 31 and lines[BARRIER].issues == 32
    assert lines[STORE].lanes == 32
    assert sum(cost.warp_cycles for cost in run.profile.lines) == run.profile.warp_cycles
    assert sum(cost.warp_cycles for cost in run.profile.instructions) == run.profile.warp_cycles
    assert [cost.warp_cycles for cost in run.profile.lines] == sorted(
        (cost.warp_cycles for cost in run.profile.lines), reverse=True
    )


def test_profiles_are_added_field_by_field() -> None:
    rows = np.zeros(2, ROW)
    for number, name in enumerate(rows.dtype.names or (), 1):
        rows[name] = number
    place = Place("k.ptx", 1, "ret;", 1, "ret;")
    one = Profile("k", rows, lambda: [place, place])
    both = one + one
    assert all((both.rows[name] == 2 * rows[name]).all() for name in rows.dtype.names or ())
    assert both.warp_cycles == 2 * one.warp_cycles > 2 * one.issues and one.issues == 2


def test_run_shows_hot_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    command = ["run", "transpose-naive", "--size", "tiny", "--set", "core.sms=2"]
    assert cli.main([*command, "--profile", "--json", str(target)]) == 0
    out = capsys.readouterr().out
    assert "waits for" in out and "st.global" in out and "memory" in out
    result = json.loads(target.read_text(encoding="utf-8"))
    assert result["profile"]["causes"] == CAUSES
    [function] = result["profile"]["functions"]
    assert function["issues"] == result["warp_instructions"]
    assert function["warp_cycles"] == function["issues"] + sum(function["stalls"].values())
    for part in ("lines", "instructions"):
        assert sum(cost["issues"] for cost in function[part]) == function["issues"]
        assert sum(cost["requests"] for cost in function[part]) == result["stats"]["lsu.requests"]
    assert cli.main([*command, "--json", str(target)]) == 0
    assert "waits for" not in capsys.readouterr().out and "profile" not in json.loads(
        target.read_text(encoding="utf-8")
    )


def test_launches_of_a_function_are_added_up(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    assert cli.main(["run", "nw", "--size", "tiny", "--set", "core.sms=2", "--profile", "--json", str(target)]) == 0
    result = json.loads(target.read_text(encoding="utf-8"))
    issued = {each["name"]: each["stats"]["issue.warp_instructions"] for each in result["functions"]}
    assert {each["kernel"]: each["issues"] for each in result["profile"]["functions"]} == issued
    assert result["launches"] > len(issued)


def profile() -> Profile:
    """Of two instructions of a line, one of the same line of another file, and one that is never reached."""
    rows = np.zeros(4, ROW)
    rows["issues"], rows["lanes"] = [2, 1, 1, 0], [64, 2, 32, 0]
    names = list(CAUSES)
    for row, cause, cycles in ((0, "memory", 5), (0, "lsu", 30), (1, "memory", 7), (2, "memory", 90)):
        rows["stalls"][row, names.index(cause)] = cycles
    places = [Place(file, 3, "x = y;", line, "ld;") for line, file in enumerate(("a.cu", "a.cu", "b.cu", "b.cu"), 5)]
    return Profile("f", rows, lambda: places)


def test_a_line_is_the_sum_of_its_instructions() -> None:
    other, own = profile().lines
    assert (other.place.file, other.pc, other.instructions, other.issues, other.warp_cycles) == ("b.cu", 2, 2, 1, 91)
    assert (own.place.ptx_line, own.pc, own.instructions, own.issues, own.warp_cycles) == (5, 0, 2, 3, 45)
    assert own.lanes == 22 and [*own.stalls.items()] == [("lsu", 30), ("memory", 12)]


def test_json_leaves_out_what_was_never_reached() -> None:
    result = profile().as_json()
    assert [cost["pc"] for cost in result["instructions"]] == [0, 1, 2]
    assert [cost["ptx_line"] for cost in result["lines"]] == [7, 5]


LINE = dict(file="a/b.cu", line=3, text="x =\ty;", warp_cycles=500, issues=2, lanes=32.0, requests=1,
            stalls={"memory": 440, "not_selected": 20, "lsu": 4})  # fmt: skip


def test_the_table_says_what_it_leaves_out() -> None:
    title, columns, rows = hot_lines(dict(kernel="f", warp_cycles=1000, lines=[LINE, LINE | {"line": 4}]), 1)
    assert title == "f, b.cu: 1,000 warp cycles; 1 line of lower cost left out"
    assert dict(zip(columns, rows[0], strict=True)) == {
        "line": "3", "cycles": "50.0%", "issues": 2, "lanes": "32.0", "requests": 1,
        "waits for": "memory 88%, not selected 4%", "text": "x = y;",
    }  # fmt: skip


def test_the_table_names_the_files_of_lines_where_there_are_several() -> None:
    added = LINE | {"file": "k.ptx", "line": 0}
    for lines, shown in (
        ([LINE, added], ["3", "added"]),
        ([LINE, LINE | {"file": "a/c.cu"}, added], ["b.cu:3", "c.cu:3", "added"]),
    ):
        title, _, rows = hot_lines(dict(kernel="f", warp_cycles=1000, lines=lines))
        assert [row[0] for row in rows] == shown and title == "f, b.cu: 1,000 warp cycles"


def test_the_table_shows_the_causes_that_matter() -> None:
    stalls = {"memory": 40, "lsu": 30, "barrier": 20, "fetch": 10}
    assert reasons(LINE | {"warp_cycles": 100, "stalls": stalls}) == "memory 40%, lsu 30%, barrier 20%"
