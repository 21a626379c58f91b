"""Results that are kept: what they depend on, and what damage does to them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep.sim import kernels
from lockstep.sim.errors import UsageError
from lockstep.sim.study import sources, store
from lockstep.sim.study.job import Job
from lockstep.verif.cli.test_cli import KERNEL, PTX

JOB = Job("saxpy", size="tiny")
RESULT = {"kernel": "saxpy", "checked": False, "message": "out of bounds"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store."""
    place = tmp_path / "kept"
    place.mkdir()
    monkeypatch.setattr(store, "folder", lambda: place)
    return place


@pytest.fixture
def fill(tmp_path: Path) -> Path:
    (tmp_path / "fill.ptx").write_text(PTX, encoding="utf-8")
    (tmp_path / "fill.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path / "fill.py"


@pytest.mark.parametrize(
    "other",
    [
        replace(JOB, kernel="gemm"),
        replace(JOB, size="small"),
        replace(JOB, seed=2),
        replace(JOB, gpu="gtx980"),
        replace(JOB, settings={"l1.mshrs": 64}),
        replace(JOB, mechanisms=("warppool",)),
        replace(JOB, strict=True),
    ],
)
def test_whatever_changes_a_run_changes_its_key(other: Job) -> None:
    assert store.key(other) != store.key(JOB)


def test_the_same_run_in_other_words_has_the_same_key(tmp_path: Path) -> None:
    assert store.key(replace(JOB, settings={"l1.mshrs": 32})) == store.key(JOB)  # as the GTX 480 has it
    assert store.key(replace(JOB, mechanisms=("dyncore", "dyncta"))) == store.key(
        replace(JOB, mechanisms=("dyncta", "dyncore"))
    )
    gpu = tmp_path / "gtx480.toml"
    gpu.write_text('base = "gtx480"\nsource = "mine"\n[l1]\nmshrs = 64\n', encoding="utf-8")
    mine = store.key(replace(JOB, gpu=str(gpu)))
    gpu.write_text('base = "gtx480"\nsource = "mine"\n\n# a comment\n[l1]\nmshrs = 0x40\n', encoding="utf-8")
    assert store.key(replace(JOB, gpu=str(gpu))) == mine
    gpu.write_text('base = "gtx480"\nsource = "mine"\n[l1]\nmshrs = 65\n', encoding="utf-8")
    assert store.key(replace(JOB, gpu=str(gpu))) != mine


def test_the_code_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.key(JOB)
    monkeypatch.setattr(store, "code_version", lambda: "other")
    assert store.key(JOB) != before


@pytest.mark.parametrize("kernel", kernels.names())
def test_a_kernel_depends_on_its_file_and_its_ptx(kernel: str) -> None:
    loaded = kernels.find(kernel)
    assert {kernels.FOLDER / kernel / "kernel.py", loaded.ptx} <= set(sources.kernel_files(kernel))


@pytest.mark.parametrize(
    ("edit", "counts"),
    [
        (lambda folder: (folder / "fill.py").write_text(KERNEL + "\n# edited\n", encoding="utf-8"), True),
        (lambda folder: (folder / "fill.ptx").write_text(PTX + "\n// edited\n", encoding="utf-8"), True),
        (lambda folder: (folder / "helper.py").write_text("N = 2\n", encoding="utf-8"), True),
        (lambda folder: (folder / "data" / "input.npy").write_text("others", encoding="utf-8"), True),
        (lambda folder: (folder / "other.py").write_text("N = 2\n", encoding="utf-8"), False),
        (lambda folder: (folder / "fill.csv").write_text("results\n", encoding="utf-8"), False),
    ],
)
def test_what_a_users_kernel_names_counts(fill: Path, edit: Callable[[Path], object], counts: bool) -> None:
    """In strings or as modules, directly or in a file that it names."""
    (fill.parent / "data").mkdir()
    (fill.parent / "data" / "input.npy").write_text("some", encoding="utf-8")
    (fill.parent / "helper.py").write_text('N = 1\nINPUT = "data/input.npy"\n', encoding="utf-8")
    fill.write_text(f"{KERNEL}\n# helper\n", encoding="utf-8")
    job = Job(str(fill))
    before = store.key(job)
    if fill.read_text(encoding="utf-8") != KERNEL:
        edit(fill.parent)
    assert (store.key(job) != before) == counts


def test_a_result_says_how_this_job_asked_for_it() -> None:
    key = store.key(JOB)
    store.keep(key, {**RESULT, **JOB.asked})
    same = replace(JOB, settings={"l1.mshrs": 32})
    assert store.find(JOB, key) == {**RESULT, **JOB.asked}
    assert store.find(same, key) == {**RESULT, **same.asked}
    store.drop(key)
    assert store.find(JOB, key) is None


def test_damage_is_found(folder: Path) -> None:
    """Any byte that is changed, and any cut."""
    store.keep("a" * 64, RESULT)
    [file] = folder.iterdir()
    whole = file.read_bytes()
    assert store.find(JOB, "a" * 64)
    for place in range(len(whole)):
        for damaged in (whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], whole[:place]):
            file.write_bytes(damaged)
            assert store.find(JOB, "a" * 64) is None, damaged
    file.write_bytes(whole + b"\0")
    assert store.find(JOB, "a" * 64) is None
    store.keep("a" * 64, RESULT)
    assert store.find(JOB, "a" * 64)


def test_an_entry_is_json(folder: Path) -> None:
    store.keep("a" * 64, RESULT)
    [file] = folder.iterdir()
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()][1] == RESULT


def test_an_entry_is_on_the_disk_before_it_has_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(function: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            calls.append(function.__name__)
            function(*arguments)

        return call

    for function in (os.fsync, os.replace):
        monkeypatch.setattr(os, function.__name__, noted(function))
    store.keep("a" * 64, RESULT)
    assert calls == ["fsync", "replace"]


def test_what_was_not_finished_is_removed_after_a_day(folder: Path) -> None:
    for name, age in ((".0123", 2 * store.STALE), (".4567", 60), (f"{'a' * 64}.jsonl", 2 * store.STALE)):
        (folder / name).write_text("{", encoding="utf-8")
        os.utime(folder / name, (time.time() - age,) * 2)
    store.tidy()
    assert {file.name for file in folder.iterdir()} == {".4567", f"{'a' * 64}.jsonl"}


def test_an_edit_is_noticed(fill: Path) -> None:
    job = Job(str(fill), size="tiny")
    key = store.key(job)
    store.unchanged(job, key)
    fill.write_text(KERNEL + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has changed since the sweep began"):
        store.unchanged(job, key)
