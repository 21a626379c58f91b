"""Scratchpad sharing's chapter: which runs it needs, what its tables are made of, and what it says of the paper."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from functools import partial
from typing import Any

import pytest

from lockstep.models import cache
from lockstep.sim import kernels
from lockstep.sim.study import execution
from lockstep.sim.study.page import Plot, Table, Text, markdown
from lockstep.sim.study.reproduce.chapters import scratchpad
from lockstep.sim.study.reproduce.chapters.sharing import GTO, LRR, NO_OPTIONS, OWF, TWO_LEVEL
from lockstep.verif.sim.study.reproduce.tables import Results, rows, says

DOCUMENT = cache.ROOT / "docs" / "reproduce" / "scratchpad.md"
STATS = {
    "sm.ctas": 280.0,
    "sm.active_core_cycles": 14000.0,
    "issue.thread_instructions": 100000.0,
    "issue.idle_core_cycles": 4000.0,
    "issue.stall_core_cycles": 2000.0,
    "sharing.waiting_core_cycles": 7000.0,
    "sharing.lock_waiters": 3.0,
}


@pytest.fixture
def results() -> Results:
    """Every function takes 1,000 cycles in two launches."""
    return {
        name: {
            "functions": [
                {"name": each.function, "cycles": 1000, "launches": 2, "stats": dict(STATS)}
                for each in scratchpad.APPLICATIONS.values()
                if each.kernel == job.kernel
            ]
        }
        for name, job in scratchpad.jobs(False).items()
    }


def change(results: Results, name: str, scheme: str, cycles: int = 1000, **stats: float) -> None:
    """Set the cycles and some statistics of an application; ``sm__ctas`` is ``sm.ctas``."""
    application = scratchpad.APPLICATIONS[name]
    functions: list[dict[str, Any]] = results[scratchpad._run(application.kernel, scheme)]["functions"]
    (each,) = (function for function in functions if function["name"] == application.function)
    each["cycles"] = cycles
    each["stats"] |= {key.replace("__", "."): value for key, value in stats.items()}


table = partial(rows, scratchpad.CHAPTER)
holds = partial(says, scratchpad.CHAPTER)


def test_functions_are_those_of_the_kernels() -> None:
    for each in scratchpad.APPLICATIONS.values():
        kernel = kernels.find(each.kernel)
        assert f".entry {each.function}(" in kernel.ptx.read_text(encoding="utf-8")
        assert each.size in kernel.sizes


def test_scratchpad_limits_all(results: Results) -> None:
    """What a pair shares lets more CTAs in, and no share lets in fewer than a smaller one."""
    for limited_by, unused, *resident in table(results, "ctas").values():
        ctas, twice = resident[:-1], resident[-1]
        assert limited_by == "scratchpad" and 0 <= unused < 1
        assert ctas == sorted(ctas) and ctas[0] < ctas[-1] <= twice


def test_resident_ctas_by_hand(results: Results) -> None:
    """lavaMD's 7,200 bytes take 7,296: two fit into 16,384, of which 1,792 are left; a pair takes 8,025 at 90 %."""
    assert table(results, "ctas")["lavaMD"] == ("scratchpad", 1792 / 16384, 2, 2, 2, 2, 2, 4, 4)


def test_how_often_sms_are_filled(results: Results) -> None:
    change(results, "lavaMD", LRR, sm__ctas=2 * 14 * 4 * 3)
    assert table(results, "runs")["lavaMD"][-2:] == (168, 3.0)


def test_speedups(results: Results) -> None:
    for scheme, cycles in ((OWF, 500), (scratchpad.PARTS[0], 800), (GTO, 625), (TWO_LEVEL, 2000)):
        change(results, "SRAD, first", scheme, cycles)
    row = table(results, "speedups")["SRAD, first"]
    assert row == (1000, 1.6, 0.5, 1.0, 1.0, 1.25, 2.0, 1.6, 1.25, 4.0, 2.0)
    assert table(results, "speedups")["mean"][6] == pytest.approx(2 ** (1 / 7))


def test_cycles_and_waiting(results: Results) -> None:
    change(results, "NW, first", OWF, issue__idle_core_cycles=1.0, issue__stall_core_cycles=2.0)
    change(results, "NW, first", NO_OPTIONS, sharing__waiting_core_cycles=3500.0)
    assert table(results, "cycles")["NW, first"] == (4000, 4000, 1, 2000, 2000, 2)
    assert table(results, "locks")["NW, first"] == (0.25, 3.0, 0.5, 3.0)


def test_instructions_per_cycle_are_those_of_threads(results: Results) -> None:
    change(results, "NW, second", scratchpad.PARTS[30], cycles=500)
    assert table(results, "parts")["NW, second"] == (100.0, 100.0, 100.0, 200.0, 100.0, 100.0, 100.0)


@pytest.mark.parametrize(
    ("statement", "names", "scheme", "cycles"),
    [
        ("faster than LRR, on average", scratchpad.APPLICATIONS, OWF, 900),
        ("without any option", ["lavaMD"], NO_OPTIONS, 900),
        ("faster than GTO", ["NW, first"], GTO, 1020),
        ("faster than two-level", ["NW, first"], TWO_LEVEL, 1020),
        ("twice the scratchpad", ["lavaMD"], scratchpad.TWICE, 1001),
    ],
)
def test_statements_come_to_be(results: Results, statement: str, names: list[str], scheme: str, cycles: int) -> None:
    assert not holds(results, statement)
    for name in names:
        change(results, name, scheme, cycles)
    assert holds(results, statement)


def test_other_statements(results: Results) -> None:
    assert holds(results, "adds resident CTAs") and holds(results, "OWF makes no function slower")
    change(results, "SRAD, second", NO_OPTIONS, 980)
    assert not holds(results, "OWF makes no function slower")
    for name in scratchpad.APPLICATIONS:
        assert not holds(results, "Idle cycles")
        change(results, name, OWF, issue__idle_core_cycles=3999)
    assert holds(results, "Idle cycles")


def test_reasons_are_counts(results: Results) -> None:
    """Eight warps more in lavaMD, of which three wait in half of the cycles; 140 CTAs of NW a launch on 98 places."""
    texts = (block.text for block in scratchpad.page(results).blocks if isinstance(block, Text))
    (text,) = (text for text in texts if "NW" in text)
    assert "Of the 8 warps" in text and "3.0 wait for the lock in 50%" in text and "for 1.43 of the places" in text


def test_a_quick_look_has_no_statements(results: Results) -> None:
    few = {name: results[name] for name in scratchpad.jobs(True)}
    page = scratchpad.page(few)
    assert "statements" not in {block.key for block in page.blocks if isinstance(block, Table)}
    (plot,) = (block for block in page.blocks if isinstance(block, Plot))
    ElementTree.fromstring(plot.svg)
    assert len(few) == len(scratchpad.SCHEMES)


def test_the_documentation_has_the_ctas_that_sms_hold(results: Results) -> None:
    text = markdown(scratchpad.page(results), "scratchpad")
    lines = [line for line in text.split("\n") if "| scratchpad |" in line]
    assert len(lines) == len(scratchpad.APPLICATIONS)
    assert set(lines) <= set(DOCUMENT.read_text(encoding="utf-8").split("\n")), AGAIN


AGAIN = "lockstep reproduce scratchpad; its scratchpad.md and plots belong to docs/reproduce/"


@pytest.mark.exhaustive
@pytest.mark.long
def test_the_documentation_shows_what_the_model_does() -> None:
    """One of all runs, which together take some ten minutes."""
    run = execution.execute(scratchpad.jobs(False)[f"srad_v2, {OWF}"])
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, application in scratchpad.APPLICATIONS.items():
        for each in run["functions"]:
            if application.function == each["name"]:
                stats = each["stats"]
                counts = [int(stats[f"issue.{kind}_core_cycles"]) for kind in ("idle", "stall")]
                (line,) = (line for line in _section(text, "Idle and stall") if line.startswith(f"| {name} |"))
                cells = line.split(" | ")
                assert [cells[3], cells[6].removesuffix(" |")] == [f"{count:,}" for count in counts], AGAIN


def _section(text: str, title: str) -> list[str]:
    """The lines of the table below a title."""
    lines = text.split("\n")
    (first,) = (number for number, line in enumerate(lines) if line.startswith(title))
    return lines[first + 2 : lines.index("", first + 2)]
