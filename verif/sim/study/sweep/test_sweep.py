"""`lockstep sweep`: files, kept results, interruptions of every kind, schedulers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from lockstep.models import cache
from lockstep.sim.study import store
from lockstep.sim.study.job import Job, Result, failed
from lockstep.sim.study.sweep import runner
from lockstep.sim.study.sweep.file import load
from lockstep.sim.watch import Watch
from lockstep.verif.cli.test_cli import COMMAND, KERNEL, PTX, lockstep
from lockstep.verif.sim.study.sweep.test_compare import with_lines

RUNS = 100


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, for other processes, too; compiled code stays where it is."""
    home = tmp_path / "cache"
    home.mkdir()
    for entry in cache.folder().iterdir():
        if entry.name not in ("results", "locks"):
            (home / entry.name).symlink_to(entry)
    monkeypatch.setenv("LOCKSTEP_CACHE", str(home))
    cache._locks.cache_clear()
    return home / "results"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a kernel that notes its seed whenever it is run, in a file that it does not name."""
    place = tmp_path / "here"
    place.mkdir()
    (place / "fill.ptx").write_text(PTX, encoding="utf-8")
    monkeypatch.setenv("NOTES", str(place / "ran"))
    note = "with open(__import__('os').environ['NOTES'], 'a') as notes: notes.write(f'{seed}\\n')"
    (place / "fill.py").write_text(with_lines(KERNEL, note), encoding="utf-8")
    return place


def write(folder: Path, text: str) -> Path:
    (folder / "it.toml").write_text(text, encoding="utf-8")
    return folder / "it.toml"


def seeds(folder: Path, count: int, more: str = "") -> Path:
    """A sweep of so many runs."""
    return write(
        folder, f'kernel = "fill.py"\nsize = "tiny"\nseed = {list(range(1, count + 1))}\n{more}\n[set]\ncore.sms = 1\n'
    )


def ran(folder: Path) -> Counter[str]:
    file = folder / "ran"
    return Counter(file.read_text(encoding="utf-8").split()) if file.exists() else Counter()


# --------------------------------------------------------------------------------------------------------------- files


def test_a_file_has_the_axes_of_compare(folder: Path) -> None:
    (folder / "mine.toml").write_text('base = "gtx480"\n', encoding="utf-8")
    axes, slurm = load(write(folder, """
        kernel = ["saxpy", "fill.py"]
        gpu = ["gtx980", "mine.toml"]
        with = ["baseline", "dyncta,mrpb"]
        size = "tiny"
        seed = [1, 2]
        [set]
        l1.mshrs = [16, 32]
        "core.scheduler" = "lrr"
        [slurm]
        timeout_min = 5
    """))  # fmt: skip
    assert axes.kernels == ["saxpy", str(folder / "fill.py")] and axes.gpus == ["gtx980", str(folder / "mine.toml")]
    assert axes.mechanisms == [(), ("dyncta", "mrpb")] and axes.seeds == [1, 2] and not axes.strict
    assert axes.settings == {"l1.mshrs": [16, 32], "core.scheduler": ["lrr"]} and slurm == {"timeout_min": 5}
    assert len(axes.jobs()) == 32


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "kernel is missing"),
        ("kernel = ", "not a TOML file"),
        (f"seed = {'9' * 5000}", "not a TOML file"),
        ('kernels = "saxpy"', "unknown key kernels; did you mean kernel?"),
        ("kernel = 3", "kernel = 3: must be a text"),
        ("kernel = []", "kernel: needs at least one value"),
        ('kernel = "saxpi"', "did you mean saxpy"),
        ('kernel = "nowhere.py"', "nowhere.py: no such file"),
        ('kernel = "saxpy"\nsize = "tyny"', "did you mean tiny"),
        ('kernel = "saxpy"\nseed = [1, true]', "seed = True: must be an integer"),
        ('kernel = "saxpy"\nstrict = [true, false]', "strict: must be true or false"),
        ('kernel = "saxpy"\ngpu = "gtx48"', "did you mean gtx480"),
        ('kernel = "saxpy"\nwith = ["warpool"]', "did you mean warppool"),
        ('kernel = "saxpy"\nset = 3', "set: must be a table, [set]"),
        ('kernel = "saxpy"\n[gpu]\nx = 1', "gpu: must not be a table"),
        ('kernel = "saxpy"\n[set]\nl1.mshr = 3', "did you mean l1.mshrs"),
        ('kernel = "saxpy"\n[set]\nl1.mshrs = [3, 999]', "[set]: l1.mshrs = 999: must be 1 to 256"),
        ('kernel = "saxpy"\n[set]\nl1.mshrs = [3, 3]', "l1.mshrs: 3 is given twice"),
        ('kernel = "saxpy"\nsize = "steady"', "saxpy: has no size 'steady'"),
    ],
)
def test_refused(folder: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    code, out, error = lockstep(capsys, "sweep", write(folder, text))
    assert code == 2 and not out and error.count("\n") == 1 and words in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.toml",), "nowhere.toml: cannot read the sweep"),
        (("it.toml", "--scheduler", "dusk"), "did you mean dask"),
        (("it.toml", "--scheduler", "slurm=x"), "known are local"),
        (("status", "it.toml", "--csv", "-"), "--csv works with the sweep alone"),
        (("it.toml", "--scheduler", "dask=nowhere"), "--scheduler dask=nowhere: "),
    ],
)
def test_options_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    seeds(folder, 1)
    monkeypatch.chdir(folder)
    code, out, error = lockstep(capsys, "sweep", *arguments)
    assert code == 2 and not out and words in error.splitlines()[-1]


@pytest.mark.long
@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("slurm", "submitit")])
def test_a_missing_extra_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, module: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    code, out, error = lockstep(capsys, "sweep", seeds(folder, 1), "--scheduler", name)
    assert code == 2 and not out and f"pip install 'lockstep-sm[{name}]'" in error and error.count("\n") == 1


# ------------------------------------------------------------------------------------------------------------ the store


def test_failures_are_kept_until_asked_for_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong results, faults, and settings that contradict each other; others go on."""
    kernel = (folder / "fill.py").read_text(encoding="utf-8")
    (folder / "fill.py").write_text(
        kernel.replace("def run(", "def fill(").replace('{"out": np', '{"out": wrong + np')
        + """
wrong = 0
def run(gpu, module, data):
    global wrong
    wrong = int(data["n"] > 64)
    return fill(gpu, module, data)
""", encoding="utf-8"
    )  # fmt: skip
    file = write(folder, 'kernel = "fill.py"\nsize = ["tiny", "small"]\n[set]\ncore.sms = 1\ndram.tRC = [10, 40]\n')
    code, out, error = lockstep(capsys, "sweep", file, "--jobs", "1")
    assert code == 1 and out.count(" failed ") == 2 and out.count(" wrong ") == 1 and out.count(" right ") == 1
    assert "wrong result: out[0]: got 0, expected 1" in error and "--retry runs it again" in error
    assert ran(folder) == {"1": 2}
    assert lockstep(capsys, "sweep", file, "--jobs", "1")[1] == out and ran(folder) == {"1": 2}
    code, status, _ = lockstep(capsys, "sweep", "status", file)
    assert code == 1 and status.startswith("4 runs: 1 done, 0 missing, 3 failed\nfailed: ")
    assert lockstep(capsys, "sweep", file, "--jobs", "1", "--retry")[1] == out and ran(folder) == {"1": 3}


def test_status_loads_no_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = seeds(folder, 3)
    lockstep(capsys, "sweep", file, "--jobs", "1")
    seeds(folder, 5)
    (folder / "other.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    code, out, _ = lockstep(capsys, "sweep", "status", file, "--json", "-")
    assert code == 0 and [len(json.loads(out)[state]) for state in ("done", "missing", "failed")] == [3, 2, 0]
    code, out, _ = lockstep(capsys, "sweep", "status", write(folder, 'kernel = ["fill.py", "other.py"]\n'))
    assert code == 0 and out == "2 runs: 0 done, 2 missing, 0 failed\n"


def test_damaged_results_are_made_anew(folder: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = seeds(folder, 5)
    _, out, _ = lockstep(capsys, "sweep", file, "--jobs", "1")
    entries = sorted(kept.glob("*.jsonl"))
    entries[0].write_bytes(entries[0].read_bytes()[:-9])
    entries[1].write_bytes(entries[1].read_bytes().replace(b'"checked": true', b'"checked":false'))
    entries[2].write_bytes(b"")
    assert lockstep(capsys, "sweep", file, "--jobs", "1")[1] == out
    assert sorted(ran(folder).values()) == [1, 1, 2, 2, 2]


# -------------------------------------------------------------------------------------------------------- interruptions


def begin(folder: Path, *options: str) -> subprocess.Popen[str]:
    """The sweep as a process group of its own."""
    command = [*COMMAND, "sweep", str(folder / "it.toml"), "--jobs", "2", *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", start_new_session=True
    )


def after(folder: Path, kept: Path, count: int, process: subprocess.Popen[str]) -> None:
    """Wait until a process has kept so many results more."""
    before = len(list(kept.glob("*.jsonl")))
    end = time.monotonic() + 240
    while len(list(kept.glob("*.jsonl"))) < before + count:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.01)


def workers(process: subprocess.Popen[str]) -> list[int]:
    """The processes that make runs."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    threads = Path(f"/proc/{process.pid}/task").iterdir()
    found += [child for thread in threads for child in (thread / "children").read_text(encoding="utf-8").split()]
    return [int(p) for p in set(found) if "spawn_main" in Path(f"/proc/{p}/cmdline").read_text(encoding="utf-8")]


def catches_interrupts(process: int) -> bool:
    """Whether Python has got so far in a process that an interrupt would be an exception, unless it is blocked."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> signal.SIGINT - 1 & 1 != 0


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_sweep_that_is_killed_again_and_again_ends_as_one_that_is_not(
    folder: Path, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Driver, worker, everything; nothing that was kept is run twice, and the tables are equal byte for byte."""
    seeds(folder, RUNS)
    whole = begin(folder, "--csv", str(tmp_path / "whole.csv"), "--json", str(tmp_path / "whole.json"))
    expected, _ = whole.communicate()
    assert whole.returncode == 0 and ran(folder) == {str(seed): 1 for seed in range(1, RUNS + 1)}
    for file in kept.glob("*.jsonl"):
        file.unlink()
    (folder / "ran").unlink()

    made: set[str] = set()
    for kill in ("driver", "everything"):
        process = begin(folder)
        after(folder, kept, 20, process)
        children = workers(process)
        assert len(children) == 2
        if kill == "driver":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        end = time.monotonic() + 60
        while any(Path(f"/proc/{child}").exists() for child in children):
            assert time.monotonic() < end, "a worker outlives its driver"
            time.sleep(0.01)
        again = {seed for seed, times in ran(folder).items() if times > 1}
        assert not again & made, "what was kept has been run again"
        made = {
            str(json.loads(file.read_text(encoding="utf-8").split("\n")[1])["seed"]) for file in kept.glob("*.jsonl")
        }
        assert len(ran(folder)) <= len(made) + 2 + len(again), "more than the runs in flight were lost"
    process = begin(folder, "--csv", str(tmp_path / "again.csv"), "--json", str(tmp_path / "again.json"))
    after(folder, kept, 20, process)
    os.kill(workers(process)[0], signal.SIGKILL)
    table, _ = process.communicate()
    assert process.returncode == 0
    times = ran(folder)
    assert all(times[seed] <= 3 for seed in times) and sum(times.values()) <= RUNS + 2 + 2 + 1
    assert table.replace("again", "whole") == expected
    for kind in ("csv", "json"):
        assert (tmp_path / f"again.{kind}").read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("scheduler", ["local", "dask"])
def test_workers_leave_interrupts_to_the_driver(folder: Path, scheduler: str) -> None:
    """From their first instruction on: what comes to all, as from a terminal, is told by the driver alone."""
    if scheduler == "dask":
        pytest.importorskip("distributed", reason="needs pip install 'lockstep-sm[dask]'")
    seeds(folder, 4)
    process = begin(folder, "--scheduler", scheduler)
    begun: list[int] = []
    end = time.monotonic() + 60
    while not begun:
        assert process.poll() is None and time.monotonic() < end
        with suppress(FileNotFoundError):  # a thread or a process has ended meanwhile
            begun = [each for each in workers(process) if catches_interrupts(each)]
    for each in begun:
        os.kill(each, signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 0 and not [line for line in error.splitlines() if "runs" not in line]


def test_a_result_of_a_kernel_that_was_edited_meanwhile_is_not_kept(
    folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(str(folder / "fill.py"), size="tiny")
    key = store.key(job)

    def run(job: Job, _watch: Watch | None) -> Result:
        (folder / "fill.py").write_text(KERNEL, encoding="utf-8")
        return failed(job, "") | {"checked": True, "cycles": 1}

    monkeypatch.setattr(runner, "execute", run)
    assert "has changed since" in runner.make(job, key, True)["message"]
    assert store.find(job, key) is None and not list(kept.glob("*.jsonl"))


@pytest.mark.exhaustive
@pytest.mark.long
def test_two_sweeps_share_a_store(folder: Path, kept: Path) -> None:
    """At the same time, in the same order: they share the work."""
    seeds(folder, 30)
    both = [begin(folder), begin(folder)]
    tables = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0] and tables[0] == tables[1]
    assert ran(folder) == {str(seed): 1 for seed in range(1, 31)}


# ----------------------------------------------------------------------------------------------------------- schedulers


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize(("name", "module"), [("slurm", "submitit"), ("dask", "distributed")])
def test_schedulers_give_the_same(
    folder: Path, kept: Path, capsys: pytest.CaptureFixture[str], name: str, module: str
) -> None:
    """Also with a run that fails."""
    pytest.importorskip(module, reason=f"needs pip install 'lockstep-sm[{name}]'")
    kernel = (folder / "fill.py").read_text(encoding="utf-8")
    (folder / "fill.py").write_text(
        kernel.replace("    return {", "    assert seed != 3\n    return {", 1), encoding="utf-8"
    )
    file = seeds(folder, 4)
    code, out, _ = lockstep(capsys, "sweep", file, "--jobs", "2", "--scheduler", name)
    assert code == 1 and ran(folder) == {str(seed): 1 for seed in (1, 2, 3, 4)}
    assert lockstep(capsys, "sweep", file)[:2] == (code, out) and ran(folder).total() == 4
    assert len(list(kept.glob("*.jsonl"))) == 4 and store.folder() == kept
