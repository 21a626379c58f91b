"""The chapter on solvers: what it runs, what its tables are made of, and what it says of the thesis."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim.study.page import Table, markdown
from lockstep.sim.study.pde import tasks
from lockstep.sim.study.pde.machines import C1060, GTX580
from lockstep.sim.study.pde.tasks import (
    POISSON,
    SHADING,
    Aging,
    Agreement,
    Emulation,
    Image,
    Search,
    Solving,
    Thresholds,
    Timing,
)
from lockstep.sim.study.reproduce.chapters import pde
from lockstep.sim.study.reproduce.chapters.pde import Case, Name
from lockstep.sim.watch import Watch
from lockstep.verif.sim.study.reproduce.tables import rows

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "pde.md"

Results = dict[str, dict[str, Any]]


def result(task: Any) -> dict[str, Any]:
    """Launches of 1,000 cycles and 100 for each step, all solved after 600 steps."""
    if isinstance(task, Timing):
        return {"cycles": 1000 + 100 * task.scheme.steps, "l2.accesses": 5.0}
    if isinstance(task, Emulation):
        return {"steps": 600, "converged": True, "residual": 1e-5}
    if isinstance(task, Agreement):
        return {"model": 100, "emulator": 110, "apart": 0.001}
    if isinstance(task, Image):
        return {"constants": [[[0.0, 1.0]]] * 3, "fields": [[[0.5, 0.5]]] * 2}
    if isinstance(task, Thresholds):
        return {"steps": [600 * k for k in range(1, len(task.epsilons))] + [None]}
    if isinstance(task, Solving):
        return {"steps": 100, "converged": True, "cycles": 5, "stale": 0}
    if isinstance(task, Aging):
        return {"counts": [1, 2, 3, 4], "cycles": 5, "stale": 0}
    assert isinstance(task, Search)
    return {"barriers": 100, "launches": 200, "levels": int(task.degree), "reached": 3, "edges": 4}


@pytest.fixture
def results() -> Results:
    return {name: result(task) for name, task in pde.jobs(False).items()}


def says(results: Results, statement: str) -> bool:
    ((so, _),) = (row for text, row in rows(pde.CHAPTER, results, "statements").items() if statement in text)
    return so == "yes"


def test_it_has_all_schemes_and_points() -> None:
    found = list(pde.jobs(False).values())
    emulated = {(t.problem, t.machine, t.scheme.order, t.scheme.exchange) for t in found if isinstance(t, Emulation)}
    for problem in (POISSON, SHADING):
        assert {
            (problem, "C1060", order, kind) for order in ("stripe", "square") for kind in ("up-down", "four-way")
        } <= emulated
    assert {(SHADING, "gtx580", "random", "none"), (SHADING, "gtx580", "random", "four-way")} <= emulated
    assert len(pde.EIGHT) == 8 and len({*map(str, pde.EIGHT)}) == 8


def test_quick_is_a_part_of_the_page() -> None:
    results = {name: result(task) for name, task in pde.jobs(True).items()}
    tables = [block.key for block in pde.page(results).blocks if isinstance(block, Table)]
    assert tables == ["threads", "poisson-gtx580-4-sms", "3dshape-gtx580-4-sms", "agreement", "searches"]


def test_time_is_launches_of_so_many_cycles_and_the_host(results: Results) -> None:
    """A line through two launches; of Base, each step is a launch."""
    found = pde.Results(results)
    case = Case(SHADING, C1060, Name(pde.FOUR, pde.SQUARE), 60)
    assert found.cycles(case) == 1000 + 100 * 60
    assert found.seconds(case) == pytest.approx(10 * (7000 / 648e6 + pde.HOST))
    base = Case(SHADING, C1060, pde.THE_BASE, 60)
    assert found.seconds(base, 0.0) == pytest.approx(600 * 1100 / 648e6)
    host = found.host(base, case)
    assert found.per_step(base, host) == pytest.approx(5 * found.per_step(case, host))


def test_scratchpad_and_boundary_are_the_thesis_s(results: Results) -> None:
    assert rows(pde.CHAPTER, results, "threads") == {
        "gtx580": ("32 x 60", 960, 64, 184, 42_160), "C1060": ("32 x 20", 320, 32, 104, 14_960),
    }  # fmt: skip


def test_statements_turn_with_what_they_are_about(results: Results) -> None:
    """Each from figures that make it so, and from those that do not."""

    def steps(case: Case, count: int) -> None:
        results[repr(case.emulation())]["steps"] = count

    steps(Case(POISSON, GTX580, pde.THE_BEST, 40), 1200)
    assert not says(results, "Poisson on gtx580: 4W-combine square is 5.2 times")
    steps(Case(POISSON, GTX580, pde.THE_BEST, 40), 580)
    assert says(results, "Poisson on gtx580: 4W-combine square is 5.2 times")
    assert not says(results, "Poisson: Base needs the fewest steps")
    steps(Case(POISSON, C1060, pde.THE_BASE, 60), 500)
    assert says(results, "Poisson: Base needs the fewest steps")
    order = "3DShape on C1060, n = 60: fastest are"
    assert not says(results, order)
    for k, name in enumerate(
        (Name(pde.FOUR, "square"), Name(pde.FOUR, "stripe"), Name(pde.UD, "stripe"), Name(pde.COARSE, "stripe"))
    ):
        steps(Case(SHADING, C1060, name, 60), 600 + 60 * k)
    assert says(results, order)
    assert says(results, "in random order, communication gains nothing")
    steps(Case(SHADING, GTX580, Name(pde.COMBINED, "random"), 40), 500)
    assert not says(results, "in random order, communication gains nothing")


def test_l1s_that_are_on(results: Results) -> None:
    """More steps in every case, of which each takes as long, to two per cent."""
    lines = [task for task in pde.jobs(False).values() if isinstance(task, Solving) and task.scheme.plain]
    timed = [task for task in pde.jobs(False).values() if isinstance(task, Timing) and task.scheme.plain]
    assert len(lines) == 6 and {task.machine for task in lines + timed} == {"gtx580, L1s on"}
    more, slower, alike = "with L1s on, more steps", "so that L1s make it slower", "with L1s on, a step takes as long"
    assert (says(results, more), says(results, slower), says(results, alike)) == (False, False, True)
    for task in lines:
        results[repr(task)]["steps"] = 101
    assert (says(results, more), says(results, slower)) == (True, True)
    for timing in timed:
        results[repr(timing)]["cycles"] = 1000 + 103 * timing.scheme.steps
    assert (says(results, more), says(results, alike)) == (True, False)
    results[repr(lines[0])]["steps"] = 100
    assert not says(results, more)


def test_thresholds_and_ages(results: Results) -> None:
    table = rows(pde.CHAPTER, results, "thresholds")
    assert table["0.0005"][:2] == ("600", "600") and table["2e-06"][0] == "more than 400,000"
    shares = rows(pde.CHAPTER, results, "ages")
    assert shares["gtx580, L1s on"] == ("square", 0.1, 0.2, 0.3, 0.4)


def test_a_limit_that_is_reached_is_told(results: Results) -> None:
    case = Case(SHADING, C1060, Name(pde.COARSE, "stripe"), 20)
    results[repr(case.emulation())] |= {"steps": 200_000, "converged": False}
    assert rows(pde.CHAPTER, results, "3dshape-c1060")["Coarse stripe"][1] == "more than 200,000"


@pytest.mark.long
def test_what_has_ended_is_kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    task = Emulation(SHADING, "C1060", pde.scheme(Name(pde.FOUR, "square"), C1060, 20, threads=0), (40, 64))
    first = tasks.run({"one": task}, Watch(), 1)
    monkeypatch.setattr(Emulation, "result", lambda _: pytest.fail("made again"))
    assert tasks.run({"one": task}, Watch(), 1) == first


def test_the_document_is_the_chapter_s(results: Results) -> None:
    """Its statements are those that the code judges, in their order."""
    statements = [
        row[0]
        for block in pde.page(results).blocks
        if isinstance(block, Table) and block.key == "statements"
        for row in block.rows
    ]
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [text.index(f"| {statement} |") for statement in statements] == sorted(
        text.index(f"| {s} |") for s in statements
    )
    assert markdown(pde.page(results), "pde").split("\n", 1)[0] == text.split("\n", 1)[0]
