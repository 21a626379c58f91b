"""`lockstep compare`: axes, tables, files, processes, and runs that fail."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from lockstep.sim import columns, output
from lockstep.sim.device.description import PARAMETERS
from lockstep.sim.device.statistics import STATISTICS
from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job, Result, failed
from lockstep.sim.study.sweep import runner, table
from lockstep.sim.study.sweep.axes import Axes, setting_axes
from lockstep.sim.study.sweep.schedulers import LOST, local
from lockstep.sim.watch import Watch
from lockstep.verif.cli.test_cli import KERNEL, PTX, RUN_KEYS, lockstep

TWO = ("--size", "tiny", "--set", "core.sms=2")


@pytest.fixture
def fill(tmp_path: Path) -> Path:
    (tmp_path / "fill.ptx").write_text(PTX, encoding="utf-8")
    (tmp_path / "fill.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path / "fill.py"


# ---------------------------------------------------------------------------------------------------------------- axes


def test_the_first_axis_changes_slowest() -> None:
    axes = Axes(["a", "b"], ["x", "y"], [(), ("m",)], {"p": [1, 2], "q": ["r"]})
    jobs = axes.jobs()
    assert [(j.kernel, j.gpu, j.mechanisms, dict(j.settings)) for j in jobs] == [
        (kernel, gpu, names, {"p": p, "q": "r"})
        for kernel, gpu, names, p in itertools.product("ab", "xy", ((), ("m",)), (1, 2))
    ]


def test_settings_with_commas_are_axes() -> None:
    axes = setting_axes(["l1.mshrs=16,0x20, 64", "core.scheduler=gto,lrr"])
    assert axes == {"l1.mshrs": [16, 32, 64], "core.scheduler": ["gto", "lrr"]}


def test_no_parameter_has_values_with_commas() -> None:
    """For such a parameter, ``--set`` would need a way to tell a value from several."""
    for key, parameter in PARAMETERS.items():
        allowed = parameter.metadata.get("allowed", ())
        assert isinstance(parameter.default, int | str), key
        assert not [value for value in allowed if "," in value], key


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("saxpy", "saxpy"), "kernel: saxpy is given twice"),
        (("saxpy", "--gpu", "gtx480", "--gpu", "gtx480"), "gpu: gtx480 is given twice"),
        (("saxpy", "--with", "mrpb", "--with", "mrpb"), "with: mrpb is given twice"),
        (("saxpy", "--with", "baseline", "--with", ""), "with: baseline is given twice"),
        (("saxpy", "--set", "l1.mshrs=16,32,16"), "l1.mshrs: 16 is given twice"),
        (("saxpy", "--set", "l1.mshrs=16", "--set", "l1.mshrs=32"), "--set l1.mshrs: given twice; put commas"),
        (("saxpy", "--set", "l1.mshrs=16,,32"), "'' is not an integer"),
        (("saxpy", "--set", "l1.mshrs=16,9999"), "l1.mshrs = 9999: must be 1 to 256"),
        (("saxpy", "--set", "l1.mshr=16,32"), "did you mean l1.mshrs"),
        (("saxpy", "--with", "baseline", "--with", "warpool"), "did you mean warppool"),
        (("saxpy", "--with", "warppool,mrpb"), "exclude each other"),
        (("saxpy", "saxpi"), "did you mean saxpy"),
        (("saxpy", "nowhere.py"), "nowhere.py: no such file"),
        (("saxpy", "--size", "steady"), "saxpy: has no size 'steady'"),
        (("saxpy", "--gpu", "gtx48"), "did you mean gtx480"),
        (("saxpy", "--jobs", "0"), "--jobs must be at least 1"),
        (("saxpy", "--show", "l1.mpk"), "--show l1.mpk: no such statistic; did you mean l1.mpki"),
        (("saxpy", "--csv", "nowhere/a.csv"), "nowhere/a.csv: cannot be written"),
        (("saxpy", "--csv", "-", "--json", "-"), "only one of them"),
        (("saxpy", "--parquet", "-"), "needs a file"),
        (("saxpy", *(x for key in ("sets", "ways", "mshrs", "merges", "latency")
                     for x in ("--set", f"l1.{key}={','.join(str(n) for n in range(16, 32))}"))),
         "1,048,576 runs: at most 1,000,000"),
    ],
)  # fmt: skip
def test_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    code, out, error = lockstep(capsys, "compare", *arguments)
    assert code == 2 and not out and error.count("\n") == 1 and words in error


# --------------------------------------------------------------------------------------------------------------- table


def result(job: Job, cycles: int, checked: bool = True) -> Result:
    stats = dict.fromkeys(STATISTICS, 0.25)
    measured = {"cycles": cycles, "warp_instructions": 3, "thread_instructions": 90, "ipc": 3 / cycles}
    configuration = {"clocks.core": {"gtx480": 700}.get(job.gpu, 1400)}
    return {**job.asked, **measured, "stats": stats, "configuration": configuration, "checked": checked, "message": "m"}


def shown(capsys: pytest.CaptureFixture[str], jobs: list[Job], results: list[Result], *statistics: str) -> str:
    table.show(jobs, results, statistics)
    return capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_table_fits_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """What is not among the columns is in the line below, and nothing is cut off."""
    monkeypatch.setenv("COLUMNS", str(width))
    jobs = Axes(["k"], ["gtx480"], settings={"l1.mshrs": [1, 2], "core.sms": [15]}).jobs()
    text = shown(capsys, jobs, [result(job, 1000) for job in jobs], "l1.mpki")
    lines = text.splitlines()
    assert max(map(len, lines)) <= width and "…" not in text
    above, below = text.split("Not shown:")
    for measure in table.MEASURES:
        assert (f" {measure} " in above) != (measure in " ".join(below.split())), measure
    assert " l1.mpki " in above and "cycles" in above
    assert f"{len(STATISTICS)} statistics" in " ".join(below.split())


def test_columns_are_what_differs_and_the_rest_is_said_above(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    jobs = Axes(["k"], ["gtx480", "other/mine.toml"], settings={"l1.mshrs": [16]}).jobs()
    text = shown(capsys, jobs, [result(jobs[0], 1000), result(jobs[1], 500)])
    title, *_, last = text.splitlines()
    assert title.startswith("2 runs, with baseline, size small, seed 1, l1.mshrs 16. Speed-up: in time")
    assert "┃ kernel ┃ gpu       ┃ cycles ┃ speed-up ┃" in text
    assert "│ k      │ mine.toml │    500 │    4.000 │" in text, "the second GPU has twice the clock"
    assert last == "All results are right."


def test_a_speed_up_is_beside_the_same_input() -> None:
    jobs = Axes(["k"], ["gtx480"], seeds=[1, 2], settings={"l1.mshrs": [16, 32]}).jobs()
    assert table._speed_ups(jobs, list(map(result, jobs, (1000, 500, 100, 50)))) == [1, 2, 1, 2]


def test_files_are_told_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    jobs = Axes(["a/kernel.py", "b/kernel.py"]).jobs()
    text = shown(capsys, jobs, [result(job, 1000) for job in jobs])
    assert "│ a/kernel.py │" in text and "│ b/kernel.py │" in text


def test_failed_runs_are_rows(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = Axes(["saxpy"], settings={"l1.mshrs": [1, 2, 3]}).jobs()
    text = shown(capsys, jobs, [failed(jobs[0], "why"), result(jobs[1], 1000), result(jobs[2], 500, False)])
    assert "failed │        │          │" in text
    assert "right  │  1,000 │    1.000 │" in text, "the first that did not fail is what others are compared with"
    assert "wrong  │    500 │    2.000 │" in text and "All results" not in text


def test_csv_and_parquet_have_everything(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs PyArrow: pip install 'lockstep-sm[parquet]'")
    jobs = Axes(["saxpy"], settings={"l1.merges": [1, 2]}).jobs()  # there is a statistic with this name
    results = [failed(jobs[0], "why, then"), result(jobs[1], 1000)]
    rows = list(csv.DictReader(io.StringIO(columns.csv_text(table.flat(jobs, results)))))
    assert [row["result"] for row in rows] == ["failed", "right"] and rows[0]["message"] == "why, then"
    assert rows[0]["cycles"] == "" and rows[1]["ipc"] == "0.003" and rows[1]["set.l1.merges"] == "2"
    assert set(STATISTICS) <= rows[0].keys() and rows[1]["l1.merges"] == "0.25"
    (tmp_path / "it.parquet").write_bytes(columns.parquet(table.flat(jobs, results)))
    again = parquet.read_table(tmp_path / "it.parquet").to_pylist()
    assert [{name: "" if value is None else str(value) for name, value in row.items()} for row in again] == rows


# --------------------------------------------------------------------------------------------------------- the command


@pytest.mark.exhaustive
@pytest.mark.long
def test_compare(capsys: pytest.CaptureFixture[str], fill: Path, tmp_path: Path) -> None:
    """Two processes, a bad combination, a wrong result, and the same in every form of output."""
    fill.write_text(KERNEL.replace("np.arange(data", '(data["n"] > 64) + np.arange(data'), encoding="utf-8")
    files = [tmp_path / f"it.{kind}" for kind in ("json", "csv", "parquet")]
    options = [
        item for kind, file in zip(("json", "csv", "parquet"), files, strict=True) for item in (f"--{kind}", file)
    ]
    code, out, error = lockstep(
        capsys,
        "compare",
        fill,
        "saxpy",
        *TWO,
        "--set",
        "dram.tRC=10,40,41",
        "--jobs",
        "2",
        "--show",
        "l1.mpki",
        *options,
    )
    assert code == 1 and re.search(r"│ saxpy +│ +40 │ right +│", out) and "mpki" in out
    assert re.search(r"│ fill.py +│ +10 │ failed +│", out) and out.count("failed") == 2
    lines = [line for line in error.splitlines() if line.startswith("lockstep: ")]
    assert len(lines) == 2 and all("must not exceed" in line and "--set dram.tRC=10)" in line for line in lines)
    results = json.loads(files[0].read_text(encoding="utf-8"))
    assert [(r["kernel"], r["settings"]["dram.tRC"]) for r in results] == [
        (kernel, value) for kernel in ("fill", "saxpy") for value in (10, 40, 41)
    ]
    assert all(key in each for each in results if each["checked"] for key in RUN_KEYS)
    rows = list(csv.DictReader(files[1].read_text(encoding="utf-8").splitlines()))
    assert [row["cycles"] for row in rows] == [str(each.get("cycles", "")) for each in results]


def test_wrong_results_exit_1(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    fill.write_text(KERNEL.replace("np.arange(data", "1 + np.arange(data"), encoding="utf-8")
    code, out, error = lockstep(capsys, "compare", fill, *TWO)
    assert code == 1 and "│ fill.py │ wrong  │" in out
    assert "lockstep: wrong result: out[0]: got 0, expected 1" in error.splitlines()[-1]


def test_csv_alone_on_standard_output(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    code, out, _ = lockstep(capsys, "compare", fill, *TWO, "--csv", "-")
    [row] = csv.DictReader(io.StringIO(out))
    assert code == 0 and row["kernel"] == "fill.py" and row["result"] == "right"


def test_parquet_without_pyarrow_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, out, error = lockstep(capsys, "compare", "saxpy", "--parquet", tmp_path / "it.parquet")
    assert code == 2 and not out and "pip install 'lockstep-sm[parquet]'" in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_equal_runs_are_run_once(fill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(job: Job, watch: Watch) -> Result:
        ran.append(job)
        return result(job, 1000)

    monkeypatch.setattr(runner, "execute", run)
    jobs = [Job(str(fill)), Job(str(fill), settings={"l1.mshrs": 32}), Job(str(fill), settings={"l1.mshrs": 16})]
    found = dict(runner.results(jobs, local(1), Watch(), kept=False))
    assert ran == [jobs[0], jobs[2]]
    assert [found[number]["settings"] for number in range(3)] == [job.settings for job in jobs]


# ----------------------------------------------------------------------------------------------------------- processes


def with_lines(kernel: str, *lines: str) -> str:
    """A kernel whose ``setup`` begins with these lines."""
    head = "def setup(size, seed):\n"
    return kernel.replace(head, head + "".join(f"    {line}\n" for line in lines))


def jobs_of(fill: Path, seeds: int) -> list[Job]:
    return [Job(str(fill), size="tiny", seed=seed, settings={"core.sms": 2}) for seed in range(1, seeds + 1)]


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_killed_process_costs_a_run_again(fill: Path) -> None:
    """Once, it is made anew; twice, it is given up, and named; the other runs do not notice."""
    (fill.parent / "runs").mkdir()
    fill.write_text(with_lines(
        KERNEL, "import os, pathlib, signal",
        f"marks = pathlib.Path({str(fill.parent / 'runs')!r})",
        "again = len(list(marks.glob(f'{seed}.*')))",
        "(marks / f'{seed}.{again}').touch()",
        "if seed == 3 or (seed == 2 and not again): os.kill(os.getpid(), signal.SIGKILL)",
    ), encoding="utf-8")  # fmt: skip
    found: dict[int, Any] = dict(runner.results(jobs_of(fill, 5), local(2), Watch(), kept=False))
    assert [found[number]["message"] for number in range(5)] == [
        LOST if number == 2 else "64 elements agree" for number in range(5)
    ]
    assert sorted(os.listdir(fill.parent / "runs")) == ["1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "5.0"]


def test_an_edit_while_runs_are_made_is_noticed(fill: Path) -> None:
    fill.write_text(with_lines(KERNEL, "open(__file__, 'a').write('#')"), encoding="utf-8")
    found = dict(runner.results(jobs_of(fill, 2), local(1), Watch(), kept=False))
    assert "64 elements" in found[0]["message"] and "has changed since" in found[1]["message"]


def test_runs_are_counted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.05)
    now = 100.0
    with output.Display() as display:
        with monkeypatch.context() as patch:
            patch.setattr(output.time, "monotonic", lambda: now)
            display.runs(100, 200, 0)
            for ended in range(101, 161):
                now += 300 if ended == 101 else 2  # the first one compiles the model
                display.runs(ended, 200, 1)
        stop = output.time.monotonic() + 0.3
        while output.time.monotonic() < stop:
            pass
    assert capsys.readouterr().err == "160 of 200 runs, 1 failed, about 80 s left\n"


def test_the_time_that_is_left_is_not_that_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """14 runs of 10 s in two processes, after two minutes of compiling: nothing is said until something is known."""
    now, said = 0.0, {}
    display = output.Display(processes=2)
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    display.runs(0, 14, 0)
    for ended in range(1, 15):
        now = 120.0 + 10 * ((ended + 1) // 2) + ended % 2 / 10
        display.runs(ended, 14, 0)
        said[ended] = display._runs.partition("runs")[2]
    assert {said[ended] for ended in (1, 2, 14)} == {""}
    left = {ended: int(said[ended].split()[2]) for ended in range(4, 14)}
    assert all(0.5 < seconds / (10 * (14 - ended) / 2) < 2 for ended, seconds in left.items()), left


def test_many_complaints_are_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    values = ",".join(str(value) for value in range(10, 25))
    code, out, error = lockstep(capsys, "compare", "saxpy", "--size", "tiny", "--set", f"dram.tRC={values}")
    assert code == 1 and out.count("failed") == 15
    assert error.splitlines()[-1] == "lockstep: 5 more runs failed or were wrong"
    assert len(error.splitlines()) == 11


def test_usage_errors_name_no_place_twice() -> None:
    with pytest.raises(UsageError, match=r"^here: gpu: needs at least one value$"):
        Axes(["saxpy"], []).check("here")
