"""The thread-map table, case by case; ``bench_thread_map_table.py`` has the random runs."""

from __future__ import annotations

from lockstep.models.warppool import thread_map_table
from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_thread_map_table import CONFIGURATIONS


def take(bench: Bench, k: int, words: list[int]) -> int:
    """Let coalescer k transfer a line that needs an entry, alone, and say which it got."""
    line = bench.i["line"][k]
    line["valid"] = line["ready"] = 1
    line["payload"]["mapping"], line["payload"]["mask"] = Mapping.RANDOM, 0xFFFF_FFFF
    line["payload"]["words"] = words
    entry = int(bench.o["entry"][k])
    bench.cycle()
    line["valid"] = 0
    return entry


def release(bench: Bench, entry: int) -> None:
    result = bench.i["result"]
    result["valid"] = result["ready"] = 1
    result["payload"]["mapping"], result["payload"]["word"] = Mapping.RANDOM, entry
    bench.cycle()
    result["valid"] = 0


def looked_up(bench: Bench, entry: int) -> list[int]:
    bench.i["lookup"] = entry
    bench.comb()
    return [int(word) for word in bench.c["map"]["words"]]


def test_each_bank_hands_out_its_lowest_free_entry() -> None:
    bench = Bench(thread_map_table, **CONFIGURATIONS["paper"])
    assert [take(bench, 1, [0] * 32) for _ in range(4)] == [4, 5, 6, 7]
    assert [take(bench, 0, [0] * 32) for _ in range(3)] == [0, 1, 2]
    assert list(bench.o["free"])[:2] == [1, 0]
    assert list(bench.o["entry"])[:2] == [3, 4]  # the bank's first when none is free
    release(bench, 6)
    release(bench, 1)
    assert list(bench.o["free"])[:2] == [2, 1]
    assert list(bench.o["entry"])[:2] == [1, 6]


def test_an_entry_is_kept_until_its_release() -> None:
    bench = Bench(thread_map_table, **CONFIGURATIONS["paper"])
    words = [lane ^ 9 for lane in range(32)]
    assert take(bench, 0, words) == 0
    assert take(bench, 1, words[::-1]) == 4
    assert looked_up(bench, 0) == words
    assert looked_up(bench, 4) == words[::-1]
    release(bench, 0)
    assert looked_up(bench, 0) == [0] * 32
    assert looked_up(bench, 4) == words[::-1]
    assert looked_up(bench, 31) == [0] * 32  # beyond the table
