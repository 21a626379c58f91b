"""The metadata table, case by case; ``bench_mshr_metadata.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.warppool import mshr_metadata
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_mshr_metadata import CONFIGURATIONS


class Table(Bench):
    def __init__(self) -> None:
        super().__init__(mshr_metadata, **CONFIGURATIONS["odd"])

    def send(self, request: int | None = None, answer: int | None = None) -> int:
        """A cycle in which a request of two slots for warp ``request`` is sent, and entry ``answer`` answered."""
        access, answers = self.i["access"], self.i["answer"]
        access["valid"] = access["ready"] = request is not None
        access["payload"]["count"] = 2
        access["payload"]["slots"]["warp"][:3] = request or 0, 7, 9
        answers["valid"] = answers["ready"] = answer is not None
        answers["payload"]["id"] = answer or 0
        entry = int(self.o["id"])
        self.step()
        return entry

    @property
    def warps(self) -> tuple[int, list[int]]:
        return int(self.o["slots"]["count"]), list(map(int, self.o["slots"]["slots"]["warp"]))[:3]


def test_new_entries_first_and_then_the_longest_free() -> None:
    bench = Table()
    assert [bench.send(request=1) for _ in range(10)] == list(range(10))
    for entry in (7, 2, 5):
        bench.send(answer=entry)
    assert [bench.send(request=1) for _ in range(5)] == [10, 11, 12, 7, 2]
    assert (bench.o["free"], bench.o["id"]) == (1, 5)
    assert bench.send(request=1, answer=12) == 5
    assert (bench.o["free"], bench.o["id"]) == (1, 12)
    bench.send(request=1)
    assert (bench.o["free"], bench.o["id"]) == (0, 0)


def test_an_answer_shows_its_slots_one_cycle_later_until_the_next() -> None:
    bench = Table()
    assert bench.warps == (0, [0, 0, 0])
    for warp in (4, 6):
        bench.send(request=warp)
    bench.send(answer=1)
    assert bench.warps == (2, [6, 7, 0])  # the third was beyond its count
    bench.send(request=3)
    assert bench.warps == (2, [6, 7, 0])
    bench.send(answer=0)
    assert bench.warps == (2, [4, 7, 0])


def test_a_store_takes_no_entry() -> None:
    bench = Table()
    bench.i["access"]["payload"]["store"] = 1
    bench.send(request=1)
    assert (bench.o["free"], bench.o["id"]) == (13, 0)
