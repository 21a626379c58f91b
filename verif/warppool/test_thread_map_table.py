"""The thread-map table, case by case; ``bench_thread_map_table.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.warppool import thread_map_table
from lockstep.rtl.warppool.thread_map_table import ThreadMapTable
from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_thread_map_table import CONFIGURATIONS

ALL = 0xFFFF_FFFF


class Table(Bench):
    """The model with lines of its coalescers and results."""

    def __init__(self, configuration: str = "paper", **parameters: int) -> None:
        super().__init__(thread_map_table, **{**CONFIGURATIONS[configuration], **parameters})

    def present(self, k: int, words: list[int] | None = None, lanes: int = ALL, last: int = 1) -> None:
        """Show coalescer k's line, which is random if it has words."""
        line, p = self.i["line"][k], self.i["line"][k]["payload"]
        line["valid"], line["ready"] = 1, 0
        p["mapping"] = Mapping.SINGLE if words is None else Mapping.RANDOM
        p["words"] = words or [0] * 32
        p["mask"], p["thread"], p["last"] = lanes, (lanes & -lanes).bit_length() - 1, last
        self.comb()

    def offered(self, k: int) -> int | None:
        """The entry for the line that coalescer k presents."""
        return int(self.c["entry"][k]) if self.c["admits"][k] else None

    def clock(self) -> None:
        """A cycle in which every line that is presented and admitted leaves."""
        self.comb()
        self.i["line"]["ready"] = self.c["admits"]
        self.cycle()
        self.i["line"]["valid"] = 0
        self.i["result"]["valid"] = 0

    def take(self, k: int, words: list[int] | None = None, lanes: int = ALL, last: int = 1) -> int | None:
        self.present(k, words, lanes, last)
        entry = self.offered(k)
        self.clock()
        return entry

    def release(self, entry: int) -> None:
        """A result, and a cycle until what it frees can be taken."""
        result = self.i["result"]
        result["valid"] = result["ready"] = 1
        result["payload"]["mapping"], result["payload"]["word"] = Mapping.RANDOM, entry
        self.clock()
        self.clock()

    def looked_up(self, entry: int, thread: int = 0) -> tuple[int, list[int]]:
        self.i["lookup"]["entry"], self.i["lookup"]["thread"] = entry, thread
        self.comb()
        return int(self.c["map"]["mask"]), [int(word) for word in self.c["map"]["words"]]


ZERO = [0] * 32
WORDS = [lane ^ 9 for lane in range(32)]


def test_all_coalescers_take_the_lowest_entry() -> None:
    bench = Table()
    assert [bench.take(k, ZERO) for k in (1, 1, 0, 1, 0)] == [0, 1, 2, 3, 4]
    bench.release(3)
    bench.release(1)
    bench.present(1, ZERO)
    assert bench.offered(1) == 1
    bench.present(0, ZERO)
    assert [bench.offered(k) for k in range(2)] == [1, 3]


def test_the_last_entry_goes_to_the_lower_coalescer() -> None:
    bench = Table()
    for _ in range(7):
        bench.take(1, ZERO)
    bench.present(1, ZERO)
    assert bench.offered(1) == 7
    bench.present(0, ZERO)
    assert [bench.offered(k) for k in range(2)] == [7, None]
    bench.present(0)
    assert [bench.offered(k) for k in range(2)] == [0, 7], "a line without words needs no entry"


def test_what_is_released_is_taken_two_cycles_later() -> None:
    bench = Table("one", lanes=32, entries=1)
    assert bench.take(0, ZERO) == 0
    bench.i["result"]["valid"] = bench.i["result"]["ready"] = 1
    bench.i["result"]["payload"]["mapping"] = Mapping.RANDOM
    offered = []
    for _ in range(4):
        bench.present(0, ZERO)
        offered.append(bench.offered(0))
        bench.cycle()
        bench.i["result"]["valid"] = 0
    assert offered == [None, None, 0, 0]


def test_an_entry_is_kept_until_its_release() -> None:
    bench = Table()
    assert bench.take(0, WORDS, 0x00FF_FF00) == 0
    assert bench.take(1, WORDS[::-1]) == 1
    assert bench.looked_up(0) == (0x00FF_FF00, WORDS)
    assert bench.looked_up(1) == (ALL, WORDS[::-1])
    bench.release(0)
    assert bench.looked_up(0) == (0, ZERO)
    assert bench.looked_up(1) == (ALL, WORDS[::-1])
    assert bench.looked_up(31) == (0, ZERO)  # beyond the table


def test_the_lines_of_a_load_share_an_entry() -> None:
    bench = Table("by load")
    assert bench.take(0, WORDS, 0x0000_000F, last=0) == 0
    assert bench.take(1, ZERO) == 1, "another load's"
    assert bench.take(0, lanes=0x0000_0010, last=0) == 0, "a line without words needs no entry"
    assert bench.take(0, WORDS, 0xFFFF_FF00) == 0
    assert bench.take(0, ZERO) == 2, "the load before has ended"
    for lanes, thread in (0x0000_000F, 0), (0xFFFF_FF00, 8):
        mask, words = bench.looked_up(0, thread)
        assert mask == lanes
        assert all(words[lane] == WORDS[lane] for lane in range(32) if lanes >> lane & 1)


def test_a_loads_entry_is_free_when_all_lines_and_all_results_have_passed() -> None:
    bench = Table("by load")

    def in_use() -> bool:
        return bench.looked_up(0) != (0, ZERO)

    assert bench.take(0, WORDS, 0x0000_0003, last=0) == 0
    bench.release(0)
    assert in_use(), "the load has further lines"
    assert bench.take(0, WORDS, 0x0000_0030, last=0) == 0
    assert bench.take(0, lanes=0x0000_0100, last=1) == 0
    assert in_use(), "a result is due"
    bench.release(0)
    assert not in_use()
    assert bench.take(1, WORDS, 0x0000_0003, last=0) == 0
    bench.release(0)
    assert bench.take(1, lanes=0x0000_0004, last=1) == 0
    assert not in_use(), "its last line needs no entry"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(lanes=33), "lanes must be 1 to 32, not 33"),
        (dict(entries=0), "entries must be 1 to 32, not 0"),
        (dict(map_per=2), "map_per must be 0 to 1, not 2"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ThreadMapTable(**arguments)
