"""Chapters: what is run again and what is kept, how pages look, and that the documentation is up to date."""

from __future__ import annotations

import csv
import html.parser
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep.cli import main as cli
from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.device import description
from lockstep.sim.errors import UsageError
from lockstep.sim.study import page, reproduce, store
from lockstep.sim.study.job import Job, execute
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import validation
from lockstep.sim.study.sweep import runner
from lockstep.sim.watch import Watch

DOCUMENT = cache.ROOT / "docs" / "validation.md"
JOB = Job("saxpy", size="tiny")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store, also of results as short as those below."""
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    monkeypatch.setattr(store.saved, "check", lambda text, key: None)
    return tmp_path


def result(cycles: int, checked: bool = True) -> dict[str, Any]:
    return {"cycles": cycles, "checked": checked, "message": "x[3] differs"}


class Ran(list[Job]):
    """Takes the place of the runs."""

    def __call__(self, job: Job, watch: Watch | None = None) -> dict[str, Any]:
        self.append(job)
        return result(len(self))


def test_a_chapter_goes_on_where_it_was_interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Ran()
    monkeypatch.setattr(runner, "execute", ran)
    other = replace(JOB, seed=2)
    assert run.run({"a": JOB}, Watch(), 1) == {"a": result(1) | JOB.asked}
    assert run.run({"a": JOB, "b": other}, Watch(), 1) == {"a": result(1) | JOB.asked, "b": result(2) | other.asked}
    assert [job.seed for job in ran] == [1, 2]


def test_a_wrong_result_stops_a_chapter_and_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "execute", lambda job, watch: result(3, checked=False))
    with pytest.raises(UsageError, match=r"^a: wrong result: x\[3\] differs$"):
        run.run({"a": JOB}, Watch(), 1)
    monkeypatch.setattr(runner, "execute", lambda job, watch: result(4))
    assert run.run({"a": JOB}, Watch(), 1) == {"a": result(4) | JOB.asked}


@pytest.mark.long
def test_runs_in_several_processes_give_the_same(folder: Path) -> None:
    jobs = {str(seed): replace(JOB, seed=seed) for seed in (1, 2, 3)}
    alone = {name: execute(job, Watch())["cycles"] for name, job in jobs.items()}
    assert {name: each["cycles"] for name, each in run.run(jobs, Watch(), 2).items()} == alone


PAGE = page.Page(
    "A <page>",
    [
        page.Text("What `--size` and *that* mean: a < b. See [Timing](../timing.md)."),
        page.Table("counts", "Counts", ("name", "cycles", "ratio"), [("a|b", 1234567, 0.5), ("c", None, 2.0)]),
        page.Plot("line", "A line", lambda: "<?xml?><svg xmlns='http://www.w3.org/2000/svg'><path d='M0 0'/></svg>"),
    ],
)


class Tags(html.parser.HTMLParser):
    """Checks that every element is closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_is_one_html_file() -> None:
    text = page.html(PAGE)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    for shown in ("A <page>", "a < b.", "1,234,567", "0.500", "a|b"):
        assert shown in tags.text
    assert "<code>--size</code>" in text and "<em>that</em>" in text and "<path d=" in text
    assert "See <em>Timing</em> in the documentation." in text, "a page of its own has no other beside it"
    assert not re.search(r"https?:", re.sub(r"http://www.w3.org/\S+", "", text)), "nothing is loaded from elsewhere"


def test_a_page_is_markdown_with_its_plots_beside(tmp_path: Path) -> None:
    page.write(PAGE, tmp_path / "new", "it")
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"it.html", "it.md", "it-counts.csv", "it-line.svg"}
    text = (tmp_path / "new" / "it.md").read_text(encoding="utf-8")
    assert "| name | cycles | ratio |\n| --- | --: | --: |" in text and "![A line](it-line.svg)" in text
    with (tmp_path / "new" / "it-counts.csv").open() as file:
        assert list(csv.reader(file)) == [["name", "cycles", "ratio"], ["a|b", "1234567", "0.5"], ["c", "", "2.0"]]


@pytest.mark.long
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page"
    assert cli.main(["reproduce", "validation", "--quick", "-o", str(target), "--json", str(tmp_path / "it.json")]) == 0
    assert "Agreement of cycles" in capsys.readouterr().out
    ElementTree.fromstring((target / "validation-cycles.svg").read_text(encoding="utf-8"))
    assert cli.main(["reproduce", "nothing"]) == 2
    assert cli.main(["reproduce", "validation", "--jobs", "0"]) == 2
    assert "--jobs must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", reproduce.CHAPTERS)
def test_runs_are_of_kernels_and_configurations_that_exist(name: str, quick: bool) -> None:
    jobs = reproduce.chapter(name).jobs(quick)
    assert jobs
    for job in jobs.values():
        assert not isinstance(job, Job) or job.size in kernels.find(job.kernel).sizes
        if hasattr(job, "mechanisms"):
            description.load(job.gpu, job.settings, job.mechanisms)


# ----------------------------------------------------------------------------------------------------------- validation


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    return run.run(validation.jobs(False), Watch(), 1)


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does(full: dict[str, Any]) -> None:
    again = "lockstep reproduce validation; its validation.md and validation-cycles.svg belong to docs/"
    assert DOCUMENT.read_text(encoding="utf-8") == page.markdown(validation.page(full), "validation"), again


@pytest.mark.exhaustive
@pytest.mark.long
def test_results_equal_those_of_the_other_simulator(full: dict[str, Any]) -> None:
    """As many warp instructions; cycles as near as they have been found, with what is known taken away."""
    far = {}
    for kernel, theirs in validation.reference().items():
        more = full[f"{kernel}, ideal"]["warp_instructions"] - theirs["warp_instructions"]
        assert more == (-60 if kernel == "RAY" else 0)
        for case in validation.SETTINGS:
            name = f"{kernel}, {case}, further"
            cycles = full[name if name in full else f"{kernel}, {case}, alike"]["cycles"]
            if theirs[f"cycles_{case}"] and abs(cycles / theirs[f"cycles_{case}"] - 1) > validation.FAR:
                far[kernel, case] = round(cycles / theirs[f"cycles_{case}"], 2)
    assert far == {
        ("histogram-atomics", "shipped"): 0.82,
        ("histogram-atomics", "ideal"): 0.82,
        ("stencil", "shipped"): 0.87,
    }


@pytest.mark.exhaustive
@pytest.mark.long
def test_every_kernel_that_differs_has_a_reason(full: dict[str, Any]) -> None:
    text = page.markdown(validation.page(full), "validation")
    assert "*unexplained*" not in text
    for case, reasons in validation.REASONS.items():
        for kernel in reasons:
            assert f"| {kernel}, {case} |" in text, "a reason that is not needed"
