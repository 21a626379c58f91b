"""Writeback, case by case; ``bench_writeback.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.warppool import writeback
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_writeback import CONFIGURATIONS


def stream(counts: list[int], ready: int = 1, cycles: int = 40) -> tuple[list[int], list[int]]:
    """Offer answers with so many slots as fast as they are taken: the cycles of acceptance, and of the results."""
    bench = Bench(writeback, **CONFIGURATIONS["paper"])
    accepted: list[int] = []
    left: list[int] = []
    for cycle in range(cycles):
        bench.i["answer"]["valid"] = len(accepted) < len(counts)
        bench.i["result"]["ready"] = ready
        if bench.o["result"]["valid"] and ready:
            left.append(cycle)
        enters = bool(bench.i["answer"]["valid"] and bench.o["answer"]["ready"])
        bench.step()
        if enters:
            bench.i["slots"]["count"] = counts[len(accepted)]
            accepted.append(cycle)
    return accepted, left


def test_single_slots_flow_without_a_gap() -> None:
    assert stream([1] * 10) == (list(range(10)), list(range(2, 12)))


def test_answers_of_several_slots_stall_the_l1_but_leave_no_gap() -> None:
    accepted, left = stream([4] * 5)
    assert accepted == [0, 1, 5, 9, 13]
    assert left == list(range(2, 22))
    accepted, left = stream([1, 3, 1, 2, 4, 1])
    assert left == list(range(2, 14))


def test_two_answers_and_the_result_are_held() -> None:
    """The first answer's only slot is in the output register, two more answers are behind it."""
    assert stream([1] * 10, ready=0) == ([0, 1, 2], [])
    assert stream([2] * 10, ready=0) == ([0, 1], [])
