"""Statistics over time: they add up to those of the launch, and do not depend on whether cycles are skipped."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models.observe import intervals as model
from lockstep.sim import Gpu, kernels
from lockstep.sim.device import timeline
from lockstep.sim.device.run import Run
from lockstep.sim.device.statistics import STATISTICS, compute
from lockstep.sim.device.trace import intervals
from lockstep.sim.errors import UsageError
from lockstep.spec.statistics import RATIO

ADDED_UP = [name for name in timeline.COLUMNS if STATISTICS[name].unit not in (RATIO, "warps", "CTAs")]
GAUGES = {"dyncta": "dyncta.limit", "dyncore": "dyncore.off"}


def launches(name: str, mechanisms: Sequence[str] = (), skip: bool = True, every: int | None = 100) -> list[Run]:
    """Those of a kernel at size tiny on two SMs."""
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, core_sms=2)
    gpu.machine.skip, gpu.every = skip, every
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    return list(gpu.runs)


@pytest.mark.parametrize(
    ("kernel", "mechanisms"), [("bfs", ()), ("spmv", ("warppool",)), ("gemm", ("dyncta", "dyncore"))]
)
def test_intervals_add_up_and_skipping_changes_none(kernel: str, mechanisms: tuple[str, ...]) -> None:
    both = [launches(kernel, mechanisms, skip) for skip in (True, False)]
    assert len(both[0]) == len(both[1]) and all(run.cycles > 300 for run in both[0])
    for run, stepped in zip(*both, strict=True):
        timeline = run.timeline
        assert timeline["core_cycle"].tolist() == [*range(100, run.cycles, 100), run.cycles]
        for name in ADDED_UP:
            assert timeline[name].sum() == run.stats[name], name
        assert {*timeline} >= {GAUGES[name] for name in mechanisms if name in GAUGES}
        for name, column in timeline.items():
            assert np.array_equal(column, stepped.timeline[name]), name


def test_columns_are_the_statistics_of_their_interval() -> None:
    """Also ratios: each is what the formula gives for the counts of the interval alone."""
    kernel = kernels.find("saxpy")
    gpu = Gpu("gtx480", core_sms=2)
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    taken = gpu.machine.rows.intervals()
    for k in range(len(taken.ends)):
        raw = {name: rows[k : k + 1] for name, rows in taken.counts.items()}
        alone = compute(raw, gpu.description)
        assert all(alone[name] == gpu.runs[-1].timeline[name][k] for name in timeline.COLUMNS)
    run = gpu.runs[-1]
    instructions, warps = (run.timeline[name] * run.timeline["gpu.core_cycles"] for name in ("ipc", "occupancy"))
    assert instructions.sum() == pytest.approx(run.warp_instructions)
    slots = gpu.description.core.sms * gpu.description.core.warps
    assert slots * warps.sum() == pytest.approx(run.raw["sm.resident_warp_cycles"].sum())


def test_gauges_are_means_over_sms_at_the_end_of_an_interval() -> None:
    recorder = model.Recorder({"gpu.x": np.zeros((2, 3), np.int64)}, {"g": np.zeros(2, np.int64)}, {})
    recorder._room[:2] = [[10, 1, 2, 3, 8], [30, 1, 4, 8, 6]]
    recorder.record["taken"] = 2
    recorder.fetch(ended=False)
    taken = recorder.intervals()
    assert taken.counts["gpu.x"].tolist() == [[1, 2, 3], [0, 2, 5]]
    assert (taken.counts["gpu.cycles"].tolist(), taken.gauges["g"].tolist()) == ([10, 20], [8, 6])
    gpu = Gpu("gtx480", core_sms=2)
    kernel = kernels.find("saxpy")
    kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    own = gpu.runs[-1].intervals
    gauge = np.resize([0, 8, 6], (len(own.rows), 1))
    shown = timeline.columns(replace(own, rows=np.hstack([own.rows, gauge]), shown=["g"]), gpu.description)
    assert len(own.ends) > 1 and shown["g"][:2].tolist() == [4, 3]


def test_a_run_without_launches_has_the_same_columns(tmp_path: Path) -> None:
    for name, runs in (("none", []), ("one", launches("saxpy"))):
        intervals.write(str(tmp_path / f"{name}.csv"), runs)
    header, none = ((tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines() for name in ("one", "none"))
    assert none == header[:1]


@pytest.mark.parametrize(("every", "first"), [(None, 20), (20, 20), (30, 30)])
def test_intervals_grow_instead_of_their_number(
    monkeypatch: pytest.MonkeyPatch, every: int | None, first: int
) -> None:
    """With intervals of 30 cycles, the number of rows is even when pairs become one at the end."""
    monkeypatch.setattr(model, "INTERVAL", 20)
    monkeypatch.setattr(model, "ROWS" if every is None else "MOST_ROWS", 10)
    [run] = launches("saxpy", every=every)
    lengths = run.timeline["gpu.core_cycles"]
    assert 5 <= len(lengths) <= 10 and {*lengths[:-1] % first} == {0} and {*lengths[:-1]} == {lengths[0]}
    assert lengths[0] > first and lengths.sum() == run.cycles
    assert run.timeline["issue.warp_instructions"].sum() == run.warp_instructions


def test_files(tmp_path: Path) -> None:
    import pyarrow.parquet

    places = [tmp_path / f"bfs.{ending}" for ending in ("csv", "parquet")]
    for place in places:
        options = ["--size", "tiny", "--every", "200", "--json", str(tmp_path / "bfs.json")]
        assert cli.main(["run", "bfs", "--intervals", str(place), *options]) == 0
    result = json.loads((tmp_path / "bfs.json").read_text(encoding="utf-8"))
    with places[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["launch"]) for row in rows] == sorted(int(row["launch"]) for row in rows)
    assert int(rows[-1]["launch"]) == result["launches"] - 1 and rows[0]["kernel"] == result["functions"][0]["name"]
    named = dict.fromkeys((int(row["launch"]), row["kernel"]) for row in rows)
    assert [*named] == [(number, run.kernel) for number, run in enumerate(launches("bfs"))]
    for name in ADDED_UP:
        assert sum(int(row[name]) for row in rows) == result["stats"][name]
    table = pyarrow.parquet.read_table(places[1])
    assert table.column_names == list(rows[0])
    for name in table.column_names:
        column = table[name].to_pylist()
        assert column == [type(value)(row[name]) for row, value in zip(rows, column, strict=True)]
    flat = [value for launch in result["timeline"] for value in launch["l1.accesses"]]
    assert flat == table["l1.accesses"].to_pylist()


def test_a_pipe_gets_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "saxpy", "--size", "tiny", "--intervals", "/dev/null"]) == 0
    assert capsys.readouterr().err == ""


def test_a_list_of_numbers_stands_on_one_line(tmp_path: Path) -> None:
    from lockstep.sim.output import write_json

    value = {"a": [1, -2.5, 1e-7], "b": ["[\n1\n]"], "c": [], "d": [[1], [2, 3]], "e": [True]}
    write_json(str(tmp_path / "x.json"), value)
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    assert json.loads(text) == value and '"a": [1, -2.5, 1e-07]' in text and "\n    [2, 3]\n" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--intervals", "x.txt"], ["x.txt", ".csv", ".parquet"]),
        (["--intervals", "/nowhere/x.csv"], ["/nowhere/x.csv", "cannot be written"]),
        (["--every", "0"], ["--every 0", "1 core cycle or more"]),
        (["--every", "x"], ["--every", "'x'"]),
    ],
)
def test_mistakes(options: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "saxpy", "--size", "tiny", *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and all(word in error for word in words)


def test_parquet_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match="lockstep-sm\\[parquet\\]"):
        intervals.check("x.parquet", None)
