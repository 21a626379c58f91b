"""The capacity manager, case by case; ``bench_capacity_manager.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.regless import capacity_manager
from lockstep.verif.bench import Bench
from lockstep.verif.regless.bench_capacity_manager import CONFIGURATIONS


def bench() -> Bench:
    return Bench(capacity_manager, **CONFIGURATIONS["paper"] | {"lines": 4})


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
    made.step()
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
