"""`lockstep power`: samples from runs and recordings, the four steps, and what is wrong with a file, in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim.device import description, statistics
from lockstep.sim.errors import UsageError
from lockstep.sim.study import energy
from lockstep.sim.study.power import characteristics
from lockstep.sim.study.power.sample import CHARACTERISTICS, Sample, per_second, read, text

CONFIGURATION = description.values(description.load("gtx480"))
GIVEN = "kernel,watts,origin,a,b\none,100,measured on a GPU,1,2\ntwo,150.5,measured on a GPU,3,4e1\n"
MODELLED = "modelled from events at 45 nm: errors say nothing about a real GPU"


def run(kernel: str, size: str = "tiny", cycles: int = 700, **counts: float) -> dict[str, Any]:
    """A saved run; 700 cycles of a gtx480 are a microsecond."""
    stats = dict.fromkeys(statistics.STATISTICS, 0.0) | {key.replace("__", "."): n for key, n in counts.items()}
    return {"kernel": kernel, "size": size, "cycles": cycles, "mechanisms": [], "stats": stats,
            "configuration": CONFIGURATION}  # fmt: skip


def made(size: int = 9, origin: str = "modelled by hand") -> Sample:
    random = np.random.default_rng(2)
    values = random.uniform(1, 100, (size, len(CHARACTERISTICS)))
    return Sample(tuple(f"k{n}" for n in range(size)), 50 + values[:, 8], origin, CHARACTERISTICS, values)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sample.csv"
    path.write_text(text(made()), encoding="utf-8")
    return path


# -------------------------------------------------------------------------------------------------------------- samples


def test_a_sample_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(GIVEN, encoding="utf-8")
    found = read(str(tmp_path / "own.csv"))
    assert (found.kernels, found.origin, found.characteristics) == (("one", "two"), "measured on a GPU", ("a", "b"))
    assert (
        found.watts is not None and found.watts.tolist() == [100, 150.5] and found.values.tolist() == [[1, 2], [3, 40]]
    )
    assert found.note == "Watts are measured on a GPU."
    bare = GIVEN.replace(",measured on a GPU", "").replace(",origin", "")
    (tmp_path / "own.csv").write_text(bare, encoding="utf-8")
    assert read(str(tmp_path / "own.csv")).note == "The sample doesn't say where its watts come from."


def test_a_sample_is_written_as_it_is_read(file: Path) -> None:
    found = read(str(file))
    assert text(found) == file.read_text(encoding="utf-8")
    assert (found.values == made().values).all()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("watts", "watt", "has no column 'watts'; did you mean watt?"),
        ("kernel", "name", "has no column 'kernel'"),
        ("150.5", "-150.5", "line 3: watts = '-150.5': must be a number, above 0 to 1e+30"),
        ("150.5", "0", "line 3: watts = '0': must be a number, above 0"),
        ("150.5", "nan", "line 3: watts = 'nan': must be a number"),
        ("150.5", "many", "line 3: watts = 'many': must be a number"),
        ("4e1", "", "line 3: b = '': must be a number, from 0 to 1e+30"),
        ("4e1", "-4", "line 3: b = '-4': must be a number"),
        ("4e1", "inf", "line 3: b = 'inf': must be a number"),
        ("4e1", "1e31", "line 3: b = '1e31': must be a number"),
        ("4e1", "1_0", "line 3: b = '1_0': must be a number"),
        ("4e1", "4,5", "line 3: has 6 cells: must have 5, as the first"),
        ("two", "one", "line 3: kernel 'one': is on line 2, too"),
        ("two", "", "line 3: kernel '': must be a name"),
        ("two", "t\x1bwo", "line 3: kernel 't\\x1bwo': must be a name"),
        (",a,b", ",a,a", "column 'a' is there twice"),
        (",a,b", ",a,", "column 5 has no name"),
        (",a,b", ",a,b/s", "has 'b/s' and 'a': must have rates or totals, not both"),
        (",a,b", ",Register,b", "has no column 'ShMInst'; a sample has all of table 3-1, or none"),
        (",a,b", ",Register/s,b/s", "has no column 'ShMInst/s'; a sample has all of table 3-1, or none"),
        ("two,150.5,measured", "two,150.5,modelled", "origin: is 'measured on a GPU' and 'modelled on a GPU'"),
        ("measured", "guessed", "origin = 'guessed on a GPU': must begin with measured or modelled"),
        (GIVEN, "", "has no rows"),
        (GIVEN, "kernel,watts\none,1\n", "has no characteristics, only kernel, watts and origin"),
        ("two", '"two', "not a CSV file"),
        ("two", "t\0wo", "must be a name"),
        ("two", "t\udcffwo", "not a CSV file"),
    ],
)  # fmt: skip
def test_a_sample_that_is_wrong(
    tmp_path: Path, old: str, new: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, out = tmp_path / "wrong.csv", tmp_path / "out"
    assert old in GIVEN
    wrong.write_bytes(GIVEN.replace(old, new).encode("utf-8", "surrogateescape"))
    for step in ("fit", "report"):
        assert cli.main(["power", step, str(wrong), "-o", str(out)]) == 2
        printed = capsys.readouterr()
        assert printed.err.startswith(f"lockstep: {wrong}: ") and expected in printed.err
        assert printed.err.count("\n") == 1 and not printed.out and not out.exists()


def test_too_few_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own.csv").write_text(GIVEN, encoding="utf-8")
    assert cli.main(["power", "fit", str(tmp_path / "own.csv"), "-o", str(tmp_path / "out")]) == 2
    assert "has 2 kernels: needs at least 3" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------------- features of saved runs

PROCESS = energy.load("45nm")
COUNTS: dict[str, Any] = {"registers__reads": 10.0, "chen__Register": 640.0, "chen__Occupancy": 0.5}


def test_modelled_watts_by_hand() -> None:
    """The energy of the account over the time of the run."""
    given = run("saxpy", **COUNTS)
    found = characteristics.sample([given], PROCESS, None, rates=False)
    femtojoules = energy.account(given, PROCESS).total
    assert femtojoules > 0 and found.watts == pytest.approx([femtojoules * 1e-15 / 1e-6])
    assert (found.kernels, found.origin) == (("saxpy tiny",), "modelled from events at 45 nm")
    assert dict(zip(CHARACTERISTICS, found.values[0], strict=True))["Register"] == 640


def test_rates_by_hand() -> None:
    """Per second of the run; occupancy is none."""
    found = characteristics.sample([run("saxpy", **COUNTS)], PROCESS, None, rates=True)
    assert found.characteristics == per_second(CHARACTERISTICS) and "Register/s" in found.characteristics
    values = dict(zip(found.characteristics, found.values[0], strict=True))
    assert values["Register/s"] == pytest.approx(640e6) and values["Occupancy"] == 0.5


RECORDING = (
    "kernel,size,watts,origin,seconds,sm_mhz\nsaxpy,tiny,90,measured on it,2e-6,1\nsaxpy,small,95,measured on it,1,1\n"
)


def test_recorded_watts_are_joined(tmp_path: Path) -> None:
    """By kernel and size; rates are those of the recording's seconds."""
    (tmp_path / "watts.csv").write_text(RECORDING, encoding="utf-8")
    recorded = characteristics.read_recorded(str(tmp_path / "watts.csv"))
    found = characteristics.sample([run("saxpy", **COUNTS)], PROCESS, recorded, rates=True)
    assert found.watts is not None and found.watts.tolist() == [90] and found.origin == "measured on it"
    assert dict(zip(found.characteristics, found.values[0], strict=True))["Register/s"] == pytest.approx(320e6)
    with pytest.raises(UsageError, match=r"watts\.csv: has no watts of bfs tiny"):
        characteristics.sample([run("bfs")], PROCESS, recorded, rates=False)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("2e-6", "0", "line 2: seconds = '0': must be a number, above 0"), ("small", "tiny", "saxpy tiny: is there twice"),
     ("seconds", "second", "has no column 'seconds'"), ("95", "-1", "line 3: watts = '-1'")],
)  # fmt: skip
def test_a_recording_that_is_wrong(tmp_path: Path, old: str, new: str, expected: str) -> None:
    (tmp_path / "watts.csv").write_text(RECORDING.replace(old, new), encoding="utf-8")
    with pytest.raises(UsageError, match=expected.replace("'", "'")):
        characteristics.read_recorded(str(tmp_path / "watts.csv"))


def test_runs_that_make_no_sample() -> None:
    with pytest.raises(UsageError, match="saxpy tiny: there are two runs: give one"):
        characteristics.sample([run("saxpy"), run("saxpy")], PROCESS, None, rates=False)
    with pytest.raises(UsageError, match="saxpy tiny: the run has no cycles"):
        characteristics.sample([run("saxpy", cycles=0)], PROCESS, None, rates=False)


# ------------------------------------------------------------------------------------------------------------ the steps


def test_fit_and_predict(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model.json")
    assert cli.main(["power", "fit", str(file), "-o", model, "--trees", "20"]) == 0
    assert "modelled by hand: errors say nothing" in " ".join(capsys.readouterr().out.split())
    found = made()
    (tmp_path / "new.csv").write_text(text(Sample(found.kernels, None, "", found.characteristics[::-1],
                                                  found.values[:, ::-1])), encoding="utf-8")  # fmt: skip
    assert cli.main(["power", "predict", model, str(tmp_path / "new.csv"), "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert cli.main(["power", "predict", model, str(file), "--json", str(tmp_path / "out.json")]) == 0
    assert "modelled by hand: errors say nothing" in " ".join(capsys.readouterr().out.split())
    result = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert result["origin"] == "modelled by hand"
    assert [{**row, "watts": 0} for row in again["kernels"]] == [{**row, "watts": 0} for row in result["kernels"]]
    assert result["kernels"][0]["watts"] == found.watts[0]  # type: ignore[index]
    assert result["kernels"][0]["linear"] == pytest.approx(result["kernels"][0]["watts"])


def test_predict_needs_the_model_s_columns(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, other = str(tmp_path / "model.json"), tmp_path / "other.csv"
    assert cli.main(["power", "fit", str(file), "-o", model, "--trees", "2"]) == 0
    found = made()
    other.write_text(text(Sample(found.kernels, None, "", per_second(CHARACTERISTICS), found.values)), encoding="utf-8")
    capsys.readouterr()
    assert cli.main(["power", "predict", model, str(other)]) == 2
    assert capsys.readouterr().err == f"lockstep: {other}: has no column 'ShMInst', which {model} was fitted to\n"


def test_the_report(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, tables = tmp_path / "power.html", tmp_path / "power.json"
    arguments = ["power", "report", str(file), "--trees", "8", "--seeds", "2", "-o", str(page), "--json", str(tables)]
    assert cli.main(arguments) == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = json.loads(tables.read_text(encoding="utf-8"))
    html = page.read_text(encoding="utf-8")
    assert all("modelled by hand: errors say nothing about a real GPU" in each for each in (printed, html))
    assert found["origin"] == "modelled by hand"
    by_title = {each["title"]: each["rows"] for each in found["tables"]}
    assert [row[0] for row in by_title["Errors for each kernel by models of all others"]] == [
        "random forest", "regression tree", "linear regression",
    ]  # fmt: skip
    importance = next(rows for title, rows in by_title.items() if title.startswith("Importance"))
    assert len(importance) == 22 and sum(row[1] for row in importance) == pytest.approx(100)
    assert by_title["Regression tree"] == [["all", pytest.approx(float(np.mean(made().watts))), 9]]  # type: ignore[arg-type]
    assert "Over 2 seeds" in html and html.count("<svg") == 3
    assert cli.main([*arguments, "--at-mean"]) == 0
    assert "all others at their means" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("step", ["fit", "report"])
def test_without_scikit_learn(
    step: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.tree", None)
    assert cli.main(["power", step, str(file), "-o", str(tmp_path / "out")]) == 2
    expected = "lockstep: the power models need scikit-learn: pip install 'lockstep-sm[power]'\n"
    assert capsys.readouterr().err == expected and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "expected"),
    [(["--trees", "0"], "--trees must be at least 1"), (["--seeds", "0"], "--seeds must be at least 1"),
     (["--seed", "x"], "'x': must be an integer, 0 or more"), (["--tree", "1"], "unrecognized arguments: --tree 1")],
)  # fmt: skip
def test_wrong_options(options: list[str], expected: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["power", "report", str(file), *options]) == 2
    assert expected in capsys.readouterr().err
