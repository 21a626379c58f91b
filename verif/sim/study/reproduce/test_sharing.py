"""Register sharing's chapter: which runs it needs, what its tables are made of, and what it says of the paper."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from functools import partial
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.device import description
from lockstep.sim.study.page import Plot, Table, Text, markdown
from lockstep.sim.study.reproduce import run
from lockstep.sim.study.reproduce.chapters import sharing
from lockstep.sim.watch import Watch
from lockstep.spec.frame import free_registers
from lockstep.verif.sim.study.reproduce.tables import Results, rows

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "sharing.md"

APPLICATIONS = sharing.LIMITED | sharing.OTHERS
STATS = {
    "sm.ctas": 280.0,
    "sm.active_core_cycles": 14000.0,
    "issue.thread_instructions": 100000.0,
    "issue.issued_core_cycles": 8000.0,
    "issue.idle_core_cycles": 4000.0,
    "issue.stall_core_cycles": 2000.0,
    "sharing.waiting_core_cycles": 7000.0,
    "sharing.lock_waiters": 3.0,
    "sharing.throttled_core_cycles": 3500.0,
    "occupancy.warps": 20.0,
    "lsu.waiting": 0.5,
    "l1.miss_rate": 0.25,
    "l2.miss_rate": 0.5,
    "l1.lat_rt_core_cycles": 300.0,
    "dram.row_hit_rate": 0.75,
}


def result(job: sharing.Job) -> dict[str, Any]:
    """A run in which every function takes 1,000 cycles in two launches."""
    names = {each.function for each in APPLICATIONS.values() if each.kernel == job.kernel}
    functions = [{"name": name, "cycles": 1000, "launches": 2, "stats": dict(STATS)} for name in sorted(names)]
    return {"cycles": 1000, "functions": functions}


@pytest.fixture
def results() -> Results:
    return {name: result(job) for name, job in sharing.jobs(False).items()}


def change(results: Results, name: str, *schemes: str, **stats: float) -> None:
    """Set statistics, or ``cycles``, of an application in schemes; ``sm__ctas`` is ``sm.ctas``."""
    for scheme in schemes:
        functions = results[sharing._run(name, scheme)]["functions"]
        (each,) = (f for f in functions if f["name"] == APPLICATIONS[name].function)
        for key, value in stats.items():
            (each if key == "cycles" else each["stats"])[key.replace("__", ".")] = value


table = partial(rows, sharing.CHAPTER)


def test_functions_and_registers_are_those_of_the_kernels() -> None:
    for name, application in APPLICATIONS.items():
        kernel = kernels.find(application.kernel)
        assert f".entry {application.function}(" in kernel.ptx.read_text(encoding="utf-8")
        assert sharing._needs(name)[0] == application.registers


@pytest.mark.long
def test_resident_ctas_are_the_papers(results: Results) -> None:
    """All 48 cells of table 5."""
    for name, row in table(results, "ctas").items():
        assert row[:-1] == (*sharing.PUBLISHED_CTAS[name], True)
    assert table(results, "statements")["Resident CTAs are those of table 5"] == (True, "48 of 48")


FREE = free_registers(description.load("tesla-c2050").core)


def test_registers_that_code_needs(results: Results) -> None:
    """No more than PTX has or a full SM leaves to each thread, and no more than the paper's, which all are given."""
    registers = table(results, "registers")
    assert registers.keys() == APPLICATIONS.keys()
    for name, (ptx, machine, given, theirs) in registers.items():
        assert machine <= min(max(ptx, FREE), theirs) and given == theirs == APPLICATIONS[name].registers
    assert registers["b+tree"][0] > registers["b+tree"][3], "as PTX, b+tree is the exception"


def test_nothing_is_shared_in_set_2(results: Results) -> None:
    limits = {"Threads": "threads", "Blocks": "ctas", "Shared Memory": "scratchpad"}
    for row in table(results, "second").values():
        assert row[3] == 0 and limits[row[5]] in row[4]


def test_a_quick_look_has_no_statements(results: Results) -> None:
    few = {name: results[name] for name in sharing.jobs(True)}
    keys = {block.key for block in sharing.page(few).blocks if isinstance(block, Table)}
    assert not keys & {"statements", "second"}
    assert set(table(few, "ctas")) == set(sharing.QUICK)


def test_how_often_sms_are_filled(results: Results) -> None:
    change(results, "hotspot", "LRR", sm__ctas=2 * 14 * 6 * 3)
    change(results, "sgemm", "LRR", sm__ctas=2 * 14 * 8 * 5)
    runs = table(results, "runs")
    assert runs["hotspot"][-2:] == (252, 3.0)
    assert runs["sgemm"][-2:] == (560, 5.0)


def test_speedups_are_over_lrr(results: Results) -> None:
    change(results, "hotspot", sharing.OWF, cycles=500)
    change(results, "hotspot", sharing.PARTS[0], cycles=800)
    speedups = table(results, "speedups")
    assert speedups["hotspot"][7:9] == (2.0, 1.2176)
    assert speedups["hotspot"][9:] == pytest.approx((1.25, 1.2176 * 489.5 / 503.59, 1.6, 503.59 / 489.5))
    assert speedups["backprop"][1:9] == (1.0, None, 1.0, None, 1.0, None, 1.0, 1.0582)
    assert speedups["mean"][7] == pytest.approx(2 ** (1 / 8))


def test_other_baselines(results: Results) -> None:
    change(results, "MUM", sharing.GTO, cycles=1100)
    change(results, "MUM", sharing.TWO_LEVEL, cycles=1200)
    change(results, "MUM", sharing.TWICE, cycles=900)
    assert table(results, "schedulers")["MUM"] == (1.1, 1.2, 0.9)


def test_instructions_per_cycle_are_those_of_threads(results: Results) -> None:
    change(results, "LIB", sharing.PARTS[30], cycles=500)
    parts = table(results, "parts")
    assert parts["hotspot"] == (100.0,) * 7
    assert parts["LIB"] == (100.0, 100.0, 100.0, 200.0, 100.0, 100.0, 100.0)
    assert parts["Jatala: LIB"] == (None, 218.0, 218.0, 203.0, 203.0, 216.3, 223.3)


def test_cycles_without_an_instruction(results: Results) -> None:
    change(results, "LIB", sharing.OWF, issue__idle_core_cycles=1000, issue__stall_core_cycles=3000)
    assert table(results, "cycles")["LIB"] == (4000, 1000, 0.75, 2000, 3000, -0.5)


def test_warps_that_wait_for_locks_are_not_able(results: Results) -> None:
    """Three wait in half of the cycles; of the two that sharing adds, half of one is left."""
    for name in sharing.LIMITED:
        change(results, name, sharing.OWF, occupancy__warps=22)
    assert table(results, "warps")["MUM"] == (20.0, 20.0, 22.0, 20.5, 0.25)
    texts = [block.text for block in sharing.page(results).blocks if isinstance(block, Text)]
    assert any("in all kernels together, 75% wait" in text for text in texts)


def test_all_cycles_of_all_sms_are_accounted_for(results: Results) -> None:
    """In percent of LRR's 14,000: after the order, a quarter of the time goes, all of it without a CTA."""
    for scheme in (sharing.LRR, sharing.PARTS[0], sharing.OWF):
        change(results, "MUM", scheme, sm__active_core_cycles=7000, issue__issued_core_cycles=1000)
    change(results, "MUM", sharing.PARTS[0], cycles=750)
    change(results, "MUM", sharing.OWF, cycles=750, issue__idle_core_cycles=3300, sm__active_core_cycles=6300)
    row = table(results, "time")["MUM"]
    assert row[:4] == pytest.approx((100 / 14, 200 / 14, 400 / 14, 50))
    assert row[4:9] == pytest.approx((0, 0, 0, -25, -25))
    assert row[9:] == pytest.approx((0, 0, -5, 5, 0))


def test_options_are_taken_away_one_by_one(results: Results) -> None:
    for scheme, cycles in ((sharing.OWF, 500), ("without unroll", 800), ("without dynamic", 1250), ("dynamic", 2000)):
        change(results, "MUM", scheme, cycles=cycles)
    assert table(results, "apart")["MUM"] == (2.0, 1.25, 0.8, 0.5)
    assert table(results, "apart")["mean"][0] == pytest.approx(2 ** (1 / 8))


def test_causes_are_the_largest_changes(results: Results) -> None:
    """A line waits in half of the cycles, and MUM alone is slower: 2,000 cycles on 14 SMs, 1,000 under LRR."""
    change(results, "MUM", sharing.OWF, cycles=2000, issue__stall_core_cycles=9000, sm__active_core_cycles=28000)
    change(results, "LIB", sharing.LRR, lsu__waiting=0.95)
    text = sharing._causes(sharing._figures(results, sharing.LIMITED))
    assert "time: MUM (stall by the pairs +50.0, issuing by the order +0.0). Where" in text
    assert text.endswith("warps cannot help: LIB.")
    change(results, "LIB", sharing.UNROLL, cycles=1250)
    assert sharing._causes(sharing._figures(results, sharing.LIMITED)).endswith(
        "in LIB, SMs have no CTA in 25.0 % of LRR's cycles, without it in 0.0."
    )


def test_unroll_and_dynamic_under_lrr(results: Results) -> None:
    def text() -> str:
        (found,) = (b.text for b in sharing.page(results).blocks if isinstance(b, Text) and "under LRR:" in b.text)
        return found

    assert "first 10 micro-operations" in text() and text().endswith("not a cycle changes.")
    change(results, "MUM", sharing.DYNAMIC, cycles=900)
    assert text().endswith("it changes MUM.")


def test_plots_are_whole(results: Results) -> None:
    plots = [block for block in sharing.page(results).blocks if isinstance(block, Plot)]
    assert [plot.key for plot in plots] == ["speedups", "cycles"]
    for plot in plots:
        ElementTree.fromstring(plot.svg)


SHARED = (sharing.NO_OPTIONS, sharing.UNROLL, sharing.DYNAMIC, sharing.OWF)


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("b+tree, hotspot", [(n, ["OWF"], {"cycles": 800}) for n in ("b+tree", "hotspot", "MUM", "stencil")]),
        ("11 % on", [(name, ["OWF"], {"cycles": 900}) for name in sharing.LIMITED]),
        ("hotspot gains", [("hotspot", SHARED, {"cycles": 900}), ("hotspot", ["OWF"], {"cycles": 800})]),
        (
            "MUM loses",
            [("MUM", [s], {"cycles": n}) for s, n in (("no options", 1001), ("dynamic", 900), ("OWF", 800))],
        ),
        ("sgemm, backprop", [(name, ["OWF"], {"cycles": 900}) for name in sharing.ONLY_OWF]),
        ("Idle cycles", [(name, ["OWF"], {"issue__idle_core_cycles": 3999}) for name in sharing.LIMITED]),
        (
            "Stall cycles decrease",
            [(name, ["OWF"], {"issue__stall_core_cycles": 1999}) for name in sharing.FEWER_STALLS],
        ),
        (
            "Stall cycles increase",
            [(name, ["OWF"], {"issue__stall_core_cycles": 2001}) for name in sharing.MORE_STALLS],
        ),
        ("Up to 3.9 %", [("LIB", ["GTO"], {"cycles": 1039})]),
        ("Up to 27.22 %", [("LIB", ["two-level"], {"cycles": 1272})]),
        (
            "All but",
            [(n, [sharing.TWICE], {"cycles": 1001}) for n in sharing.LIMITED if n not in sharing.BETTER_TWICE],
        ),
    ],
)
def test_statements_come_to_be(
    results: Results, statement: str, changes: list[tuple[str, list[str], dict[str, float]]]
) -> None:
    assert not holds(results, statement)
    for name, schemes, stats in changes:
        change(results, name, *schemes, **stats)
    assert holds(results, statement)


@pytest.mark.parametrize(
    ("statement", "name", "scheme"),
    [
        ("LIB gains less", "LIB", sharing.OWF),
        ("*unroll*", "LIB", sharing.UNROLL),
        ("0 and 10 %", "stencil", sharing.PARTS[10]),
        ("Set 2 is the same", "STO", sharing.SAME_LRR),
        ("Set 2 is the same", "BFS", sharing.SAME_GTO),
        ("In set 2, OWF", "lavaMD", sharing.OWF),
    ],
)
def test_statements_cease_to_be(results: Results, statement: str, name: str, scheme: str) -> None:
    assert holds(results, statement)
    change(results, name, scheme, cycles=900)
    assert not holds(results, statement)


def test_90_percent_is_best_for_most(results: Results) -> None:
    names = list(sharing.LIMITED)
    for name in names[:4]:
        change(results, name, sharing.PARTS[0], cycles=999)
    assert not holds(results, "90 %")
    change(results, names[0], sharing.OWF, cycles=998)
    assert holds(results, "90 %")


def holds(results: Results, statement: str) -> bool:
    (found,) = (row for name, row in table(results, "statements").items() if name.startswith(statement))
    return bool(found[0])


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does() -> None:
    """On the quick runs; all of them take some minutes."""
    text = markdown(sharing.page(run.run(sharing.jobs(True), Watch(), 1)), "sharing")
    names = tuple(start for name in sharing.QUICK for start in (f"| {name} |", f"| Jatala: {name} |"))
    rows = [line for line in text.split("\n") if line.startswith(names)]
    assert len(rows) == 13 * len(sharing.QUICK)
    again = "lockstep reproduce sharing; its sharing.md and plots belong to docs/reproduce/"
    assert set(rows) <= set(DOCUMENT.read_text(encoding="utf-8").split("\n")), again
