"""The capacity manager, case by case; ``bench_capacity_manager.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.regless import capacity_manager
from lockstep.rtl import registry
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_capacity_manager import CONFIGURATIONS


def bench(patience: int = 15) -> Bench:
    return Bench(capacity_manager, **CONFIGURATIONS["paper"] | {"lines": 4, "patience": patience})


def tell(made: Bench, port: str, warp: int, bank: int | None = None, **fields: object) -> None:
    """An event, in a cycle of its own."""
    there = made.i[port] if bank is None else made.i[port][bank]
    there["valid"], there["payload"]["warp"] = 1, warp
    for name, value in fields.items():
        there["payload"][name] = value
    made.step()
    there["valid"] = 0


def announce(made: Bench, warp: int, usage: list[int]) -> None:
    tell(made, "begin", warp)
    assert int(made.o["wanted"]) >> warp & 1
    tell(made, "region", warp, usage=usage)


def wait(made: Bench, cycles: int = 4) -> list[int]:
    """The warps that start."""
    found = []
    for _ in range(cycles):
        made.step()
        if made.o["start"]["valid"]:
            found.append(int(made.o["start"]["payload"]["warp"]))
    return found


def test_usage_is_rotated_by_the_warp() -> None:
    made = bench()
    announce(made, 3, [4, 0, 0, 0, 0, 0, 0, 1])
    assert wait(made) == [3]
    assert made.state["free"].tolist() == [4, 4, 3, 0, 4, 4, 4, 4]


def test_a_region_waits_for_lines_and_gives_them_back_when_its_results_are_written() -> None:
    made = bench()
    announce(made, 0, [3] + [0] * 7)
    assert wait(made) == [0] and made.o["active"] == 0
    tell(made, "sent", 0, entries=1, last=0)
    tell(made, "answered", 0, bank=0)
    assert made.o["active"] == 0, "more entries may follow"
    tell(made, "sent", 0, entries=1, last=1)
    assert made.o["active"] == 0
    tell(made, "answered", 0, bank=0)
    assert made.o["active"] == 1
    announce(made, 8, [2] + [0] * 7)
    assert wait(made) == []
    tell(made, "reserved", 0, bank=0)
    tell(made, "last", 0, end=1)
    assert made.o["active"] == 0 and wait(made) == []
    tell(made, "delivered", 0)
    assert made.state["free"][0] == 3 and wait(made) == [8], "all lines but one"
    assert made.state["free"][0] == 1
    tell(made, "written", 0, bank=0)
    assert made.o["ended"] == 1 and made.state["free"][0] == 2


def test_the_last_on_the_stack_is_first_and_who_is_barred_does_not_come() -> None:
    made = bench()
    announce(made, 0, [4] + [0] * 7)
    assert wait(made) == [0]
    tell(made, "sent", 0, entries=0, last=1)
    assert made.o["active"] == 1
    made.i["barred"] = 1 << 3
    for warp in (1, 2, 3):  # all need all of bank 0
        announce(made, warp, [4 * (bank == -warp % 8) for bank in range(8)])
    assert wait(made) == []
    tell(made, "last", 0, end=1)
    tell(made, "delivered", 0)
    assert wait(made) == [2]


def run(made: Bench, warp: int) -> None:
    """The region of a warp that has started needs no entries, and ends; the next needs all of bank 0."""
    tell(made, "sent", warp, entries=0, last=1)
    tell(made, "last", warp, end=0)
    tell(made, "delivered", warp)


@pytest.mark.parametrize(("patience", "others"), [(0, 8), (1, 1), (3, 3), (15, 8)])
def test_the_bottom_of_the_stack_waits_as_long_as_patience_says(patience: int, others: int) -> None:
    made = bench(patience)
    all_of_one = {warp: [4 * (bank == -warp % 8) for bank in range(8)] for warp in range(10)}
    announce(made, 9, all_of_one[9])
    assert wait(made) == [9]
    announce(made, 0, all_of_one[0])
    runs, passed = 9, 0
    for warp in range(1, 9):
        announce(made, warp, all_of_one[warp])
        assert wait(made) == []
        run(made, runs)
        [runs] = wait(made)
        passed += runs != 0
        if runs == 0:
            break
    assert passed == others


def test_a_region_is_known_while_the_one_before_writes_its_results() -> None:
    made = bench()
    announce(made, 0, [2] + [0] * 7)
    assert wait(made) == [0]
    tell(made, "sent", 0, entries=0, last=1)
    tell(made, "reserved", 0, bank=0)
    tell(made, "last", 0, end=0)
    assert made.o["wanted"] == 0
    tell(made, "delivered", 0)
    assert made.o["wanted"] == 1 and made.state["free"][0] == 3
    tell(made, "region", 0, usage=[4] + [0] * 7)
    assert made.o["wanted"] == 0 and wait(made) == [], "a result is due"
    tell(made, "written", 0, bank=0)
    assert made.state["free"][0] == 4 and wait(made, 2) == [0] and made.state["free"][0] == 0


def test_patience_has_bounds() -> None:
    with pytest.raises(ValueError, match="patience must be 0 to 255, not 256"):
        registry.component("regless.capacity_manager")(patience=256)
