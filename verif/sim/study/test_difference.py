"""`lockstep diff`: what two saved runs differ in; its parts add up, and its tables fit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.cli.diff import _change
from lockstep.sim.study import saved
from lockstep.sim.study.difference import difference
from lockstep.sim.study.energy import account, load
from lockstep.spec.registry import MECHANISMS
from lockstep.spec.statistics import CYCLES
from lockstep.verif.conftest import Shared

RUN = ("run", "spmv", "--size", "tiny", "--profile")
OTHER = (*RUN, "--with", "warppool", "--set", "l1.mshrs=8", "--set", "core.sms=2", "--gpu", "gtx980")


def _runs(folder: Path) -> list[dict[str, Any]]:
    results = []
    for arguments in (RUN, OTHER):
        assert cli.main([*arguments, "--json", str(folder / "run.json")]) == 0
        results.append(json.loads((folder / "run.json").read_text(encoding="utf-8")))
    return results


@pytest.fixture
def runs(shared: Shared, tmp_path: Path) -> list[dict[str, Any]]:
    return shared("differing", lambda: _runs(tmp_path))


@pytest.fixture
def files(runs: list[dict[str, Any]], tmp_path: Path) -> tuple[str, str]:
    places = tmp_path / "first.json", tmp_path / "second.json"
    for place, run in zip(places, runs, strict=True):
        place.write_text(json.dumps(run), encoding="utf-8")
    return str(places[0]), str(places[1])


def test_cycles_add_up(runs: list[dict[str, Any]]) -> None:
    found = difference(*runs)
    for side, run in zip(("first", "second"), runs, strict=True):
        assert sum(row[side] for row in found["breakdown"]) == pytest.approx(run["cycles"])
        functions = run["profile"]["functions"]
        assert sum(row[side] for row in found["stalls"]) == sum(function["warp_cycles"] for function in functions)
    changes = sum(row["difference"] for row in found["breakdown"])
    assert changes == pytest.approx(runs[1]["cycles"] - runs[0]["cycles"])


def test_configuration_and_statistics(runs: list[dict[str, Any]]) -> None:
    found = difference(*runs)
    rows = {row["parameter"]: row for row in found["configuration"]}
    assert (rows["l1.mshrs"]["first"], rows["l1.mshrs"]["second"]) == (32, 8)
    assert (rows["l1.mshrs"]["unit"], rows["l1.mshrs"]["meaning"]) == ("MSHRs", "lines in flight")
    one, other = (run["configuration"] for run in runs)
    assert all(one.get(key) != other.get(key) for key in rows)
    one, other = (run["stats"] for run in runs)
    shown = {row["statistic"] for row in found["statistics"]}
    assert shown == {name for name in one if name in other and one[name] != other[name]}
    of_cycles = [abs(row["second"] - row["first"]) for row in found["statistics"] if row["unit"] == CYCLES]
    assert of_cycles == sorted(of_cycles, reverse=True)
    others = [(row["first"], row["second"]) for row in found["statistics"] if row["unit"] != CYCLES]
    times = [max(pair) / min(pair) if min(pair) else math.inf for pair in others]
    assert len(times) > 20 and times == pytest.approx(sorted(times, reverse=True))
    assert [row["unit"] == CYCLES for row in found["statistics"]] == [True] * len(of_cycles) + [False] * len(others)


def test_stalls_are_those_of_all_functions(runs: list[dict[str, Any]]) -> None:
    [function] = runs[0]["profile"]["functions"]
    twice = {**runs[0], "profile": {"functions": [function, function]}}
    rows = difference(runs[0], twice)["stalls"]
    assert len(rows) > 3 and all(row["second"] == 2 * row["first"] for row in rows)


def test_energy_by_component(runs: list[dict[str, Any]]) -> None:
    """Those that differ, and the total; none where a run of another version does not count all that takes energy."""
    first, second = (account(run, load("45nm")) for run in runs)
    rows = {row["part"]: row for row in difference(*runs)["energy"]}
    assert rows["total"]["second"] - rows["total"]["first"] == second.total - first.total != 0
    assert rows.keys() == {"total"} | {name for name in first.energies if first.energies[name] != second.energies[name]}
    stats = {name: value for name, value in runs[0]["stats"].items() if name != "registers.reads"}
    assert difference({**runs[0], "stats": stats}, runs[1])["energy"] == []
    assert difference(runs[0], runs[0])["energy"] == []


def test_changes_as_they_are_shown() -> None:
    shown = [_change({"first": first, "second": second}) for first, second in ((0, 3), (4, 3), (100, 999), (100, 1000))]
    assert shown == ["from 0", "-25.0%", "+899.0%", "10 times"]


def test_a_run_beside_itself(runs: list[dict[str, Any]]) -> None:
    found = difference(runs[0], runs[0])
    assert found["notes"] == found["configuration"] == found["statistics"] == []
    assert not any(row["difference"] for row in found["breakdown"] + found["stalls"])


@pytest.mark.parametrize(
    ("key", "value", "note"),
    [
        ("kernel", "bfs", "kernel: spmv and bfs: these are different kernels"),
        ("size", "small", "size: tiny and small: the inputs have different sizes"),
        ("seed", 7, "seed: 1 and 7: the inputs are different"),
        ("code_version", "0.0.1+0", "other versions of Lockstep"),
        ("mechanisms", ["mrpb"], "with: baseline and mrpb"),
        ("mechanisms", ["mrpb"], f"mrpb: {MECHANISMS['mrpb'].doc}"),
        ("gpu", "mine", "gpu: gtx480 and mine"),
    ],
)
def test_what_makes_a_comparison_doubtful(runs: list[dict[str, Any]], key: str, value: Any, note: str) -> None:
    assert any(note in found for found in difference(runs[0], {**runs[0], key: value})["notes"])


def test_wrong_results_and_other_clocks(runs: list[dict[str, Any]]) -> None:
    wrong = {**runs[0], "checked": False, "message": "y[3]: got 1, expected 2"}
    assert difference(wrong, runs[0])["notes"] == ["first run: wrong result: y[3]: got 1, expected 2"]
    clock = {**runs[0]["configuration"], "clocks.core": 2 * runs[0]["configuration"]["clocks.core"]}
    [note] = difference(runs[0], {**runs[0], "configuration": clock})["notes"]
    times = [runs[0]["cycles"] / (700 * factor) for factor in (1, 2)]
    assert note == f"core clocks differ: the runs take {times[0]:.3f} and {times[1]:.3f} microseconds"


@pytest.mark.parametrize("columns", ["60", "80"])
def test_tables_fit(
    files: tuple[str, str], columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["diff", *files]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= int(columns)
    for part in ("l1.mshrs", "What a mean SM did", "what each waited for", "Not shown:", "! gpu: gtx480 and gtx980"):
        assert part in text


def test_json(files: tuple[str, str], runs: list[dict[str, Any]], tmp_path: Path) -> None:
    target = tmp_path / "difference.json"
    assert cli.main(["diff", *files, "--json", str(target)]) == 0
    assert json.loads(target.read_text(encoding="utf-8")) == json.loads(json.dumps(difference(*runs)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "first.json: not JSON"),
        ("[]", "first.json: has no runs"),
        ("3", "first.json: 3: must be an object"),
        ('{"kernel": "x", "message": "no memory"}', "first.json: x: the run failed: no memory"),
    ],
)
def test_files_that_are_no_run(
    files: tuple[str, str], text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files[0]).write_text(text, encoding="utf-8")
    assert cli.main(["diff", *files]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_files_of_several_runs(
    files: tuple[str, str], runs: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path(files[1]).write_text(json.dumps([*runs, *runs]), encoding="utf-8")
    assert len(saved.read(files[1])) == 4
    assert cli.main(["diff", *files]) == 2
    assert "second.json: has 4 runs" in capsys.readouterr().err
    assert cli.main(["diff", files[0], "nowhere.json"]) == 2
    assert "nowhere.json: cannot be read" in capsys.readouterr().err
