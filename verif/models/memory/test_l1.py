"""The L1: what each access becomes, what refuses it, and for how long."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.memory.l1 import (
    ATOMIC_ACCESS,
    HIT,
    LOAD,
    LOAD_BYPASS,
    LOCAL_DROP,
    LOCAL_LAST,
    LOCAL_LOAD,
    LOCAL_STORE,
    MERGED,
    MISS,
    REFUSALS,
    STORE,
    STORED,
)
from lockstep.models.memory.timing import BACK_END, FRONT_END, hit_delay
from lockstep.verif.models.memory.traffic import BASE, Traffic, gpu, lines, script, sequence

LINE = 128


def line(*numbers: int) -> list[int]:
    return [BASE + LINE * n for n in numbers]


def mixed(accesses: list[tuple[int, int, int]], gap: int) -> np.ndarray:
    """(kind, line, bytes), ``gap`` cycles apart."""
    result = sequence(line(*(number for _, number, _ in accesses)), gap)
    result["kind"], result["size"] = [[kind for kind, _, _ in accesses]], [[size for _, _, size in accesses]]
    return result


def run(traffic: Traffic, accesses: np.ndarray, **how) -> np.ndarray:
    result = traffic.run(accesses, **how)[0]
    assert traffic.broken() == []
    return result


def stalls(traffic: Traffic) -> dict[str, int]:
    return dict(zip(REFUSALS, traffic.l1["stats"]["stalls"].sum(0).tolist(), strict=True))


def test_codes() -> None:
    traffic = Traffic(gpu())
    result = run(traffic, script([line(0, 0, 1, 0)], at=[[0, 1, 2, 1000]]))
    assert result["code"].tolist() == [MISS, MERGED, MISS, HIT]


@pytest.mark.parametrize("mshrs", [1, 5, 32])
def test_mshr_limit(mshrs: int) -> None:
    """So many lines can be on their way; the next load waits for a reply, and the wait is counted."""
    traffic = Traffic(gpu(l1__mshrs=mshrs))
    result = run(traffic, script([line(*range(40))]))
    first = result["done"].min()
    assert (result["accepted"] < first).sum() == mshrs
    assert stalls(traffic)["mshrs"] == result["accepted"][-1] - 39


@pytest.mark.parametrize("merges", [1, 3, 8])
def test_merge_limit(merges: int) -> None:
    """An MSHR serves so many loads, one per cycle and in order; then it is the line that answers."""
    traffic = Traffic(gpu(l1__merges=merges))
    result = run(traffic, script([line(*[0] * 12)]))
    assert result["code"].tolist() == [MISS] + [MERGED] * (merges - 1) + [HIT] * (12 - merges)
    assert np.diff(result["done"][:merges]).tolist() == [1] * (merges - 1)
    assert stalls(traffic)["merges"] == result["accepted"][merges] - merges


def test_reserved_ways() -> None:
    """A set whose lines are all on their way takes no other."""
    traffic = Traffic(gpu(l1__sets=1, l1__ways=3))
    result = run(traffic, script([line(0, 1, 2, 3)]))
    assert result["accepted"][2] == 2 and result["accepted"][3] >= result["done"][0]
    assert stalls(traffic)["ways"] == result["accepted"][3] - 3


def test_queue_to_the_crossbar() -> None:
    """Stores of whole lines leave one per five flits; the queue holds ``l1.queue`` of them."""
    traffic = Traffic(gpu(l1__queue=4))
    result = run(traffic, script([line(*range(20))], kind=STORE, size=LINE))
    steady = np.diff(result["accepted"])[6:]
    assert set(steady.tolist()) == {5}
    assert stalls(traffic)["queue"] == result["accepted"][-1] - 19


def test_lru() -> None:
    """A miss evicts the least recently used line; a line that was touched stays."""
    traffic = Traffic(gpu(l1__sets=1, l1__ways=4))
    result = run(traffic, sequence(line(0, 1, 2, 3, 0, 4, 0, 2, 3, 1)))
    assert result["code"].tolist() == [MISS] * 4 + [HIT, MISS, HIT, HIT, HIT, MISS]
    assert traffic.l1["stats"]["evictions"][0] == 2


@pytest.mark.parametrize(
    "index, sets, near, far",
    [
        ("linear", 1, 0, 1), ("linear", 8, 1, 8), ("linear", 64, 65, 64),
        ("fold", 8, 8, 9), ("fold", 64, 64, 65), ("fold", 64, 4096, 4097),
        # Of the number's bits, 6, 7, 8, 10 and 12 choose the set with bits 0 to 4; 5 stands above them, then 6 again.
        ("fermi", 64, 64, 65), ("fermi", 64, 1 << 7, 1 << 7 | 2), ("fermi", 64, 1 << 8, 1 << 8 | 4),
        ("fermi", 64, 1 << 10, 1 << 10 | 8), ("fermi", 64, 1 << 12, 1 << 12 | 16), ("fermi", 64, 32, 1 << 9),
        ("fermi", 64, 1 << 6, 1 << 11), ("fermi", 32, 1 << 6, 1 << 5), ("fermi", 64, 1 << 5, 1 << 13),
        ("fermi", 128, 1 << 6 | 1, 1 << 7 | 2), ("fermi", 8, 1 << 6, 1 << 10),
    ],
)  # fmt: skip
def test_sets(index: str, sets: int, near: int, far: int) -> None:
    """The line ``far`` shares a set with line 0, and ``near`` does not."""
    traffic = Traffic(gpu(l1__sets=sets, l1__ways=1, l1__index=index))
    found = run(traffic, sequence(line(0, far, 0)))["code"].tolist()
    assert found == [MISS, MISS, MISS]
    if near:
        found = run(Traffic(gpu(l1__sets=sets, l1__ways=1, l1__index=index)), sequence(line(0, near, 0)))["code"]
        assert found.tolist() == [MISS, MISS, HIT]


def test_a_store_evicts_the_line() -> None:
    traffic = Traffic(gpu())
    result = run(traffic, mixed([(LOAD, 0, 4), (LOAD, 0, 4), (STORE, 0, 4), (LOAD, 0, 4), (LOAD, 0, 4)], 2000))
    assert result["code"].tolist() == [MISS, HIT, STORED, MISS, HIT]
    assert traffic.l1["stats"]["store_evictions"][0] == 1


@pytest.mark.parametrize("kind", [STORE, ATOMIC_ACCESS])
def test_a_store_passes_a_fetch(kind: int) -> None:
    """The fetched line is older than the store: it serves its loads and is dropped, and later loads fetch anew."""
    traffic = Traffic(gpu())
    result = run(traffic, mixed([(LOAD, 0, 4), (kind, 0, 4), (LOAD, 0, 4), (LOAD, 0, 4)], 3))
    assert result["code"].tolist() == [MISS, STORED if kind == STORE else MISS, MISS, MERGED]
    assert traffic.l1["stats"]["fetches"][0] == 2
    assert run(traffic, sequence(line(0)))["code"].tolist() == [HIT]
    # Between the two replies the line is still on its way.
    old, new = result["done"][0], result["done"][2]
    accesses = mixed([(LOAD, 0, 4), (kind, 0, 4), (LOAD, 0, 4), (LOAD, 0, 4)], 3)
    accesses["at"][0, 3] = old + 1
    again = run(Traffic(gpu()), accesses)
    assert old + 1 < new and again["code"][3] == MERGED


@pytest.mark.parametrize("data", [0, 1])
def test_bypass(data: int) -> None:
    """Loads that bypass merge, but neither hit nor fill."""
    traffic = Traffic(gpu(l1__data=data))
    result = run(traffic, script([line(0, 0, 0, 0)], kind=LOAD_BYPASS, at=[[0, 5, 2000, 4000]]))
    assert result["code"].tolist() == [MISS, MERGED, MISS, MISS]
    assert traffic.l1["stats"]["bypass_loads"][0] == 4
    assert traffic.l1["stats"]["evictions"][0] == 0


def test_local_memory_is_written_back() -> None:
    """A store of a whole line needs no fetch, of a part it does; a dirty line that goes is written to the L2."""
    traffic = Traffic(gpu(l1__sets=1, l1__ways=2))
    accesses = [(LOCAL_STORE, 0, LINE), (LOCAL_LOAD, 0, 4), (LOCAL_STORE, 1, 4), (LOCAL_LOAD, 1, 4), (LOCAL_LOAD, 2, 4)]
    result = run(traffic, mixed(accesses, 2000))
    assert result["code"].tolist() == [STORED, HIT, STORED, HIT, MISS]
    stats = traffic.l1["stats"][0]
    assert (stats["fetches"], stats["write_backs"], stats["evictions"]) == (2, 1, 1)
    assert traffic.memory.slices["stats"]["writes"].sum() == 1
    assert traffic.memory.slices["stats"]["bytes_in"].sum() == LINE


def test_a_line_that_nobody_reads_again_leaves() -> None:
    """It is not written back, and takes no way when it has to be fetched; what is fetched again is a miss."""
    traffic = Traffic(gpu(l1__sets=1, l1__ways=1))
    accesses = [(LOCAL_STORE, 0, LINE), (LOCAL_LAST, 0, LINE), (LOCAL_LAST, 0, LINE), (LOCAL_STORE, 1, LINE),
                (LOCAL_LAST, 0, LINE), (LOCAL_LOAD, 1, LINE), (LOCAL_DROP, 1, LINE), (LOCAL_LOAD, 1, LINE)]  # fmt: skip
    result = run(traffic, mixed(accesses, 2000))
    assert result["code"].tolist() == [STORED, HIT, MISS, STORED, MISS, HIT, STORED, MISS]
    stats = traffic.l1["stats"][0]
    assert (stats["write_backs"], stats["evictions"], stats["local_drops"]) == (0, 0, 1)


def test_a_dropped_line_on_its_way_is_not_filled() -> None:
    traffic = Traffic(gpu(l1__sets=1, l1__ways=1))
    result = run(traffic, mixed([(LOCAL_LOAD, 0, LINE), (LOCAL_DROP, 0, LINE), (LOCAL_LOAD, 0, LINE)], 3))
    assert result["code"].tolist() == [MISS, STORED, MISS]


def test_a_local_store_merges_into_a_fetch() -> None:
    """The line is dirty when it comes: it is written back when it goes."""
    traffic = Traffic(gpu(l1__sets=1, l1__ways=1))
    result = run(traffic, mixed([(LOCAL_LOAD, 0, 4), (LOCAL_STORE, 0, 4), (LOCAL_LOAD, 1, 4)], 3))
    assert result["code"].tolist() == [MISS, STORED, MISS]
    assert traffic.l1["stats"]["write_backs"][0] == 1


def test_hits_and_fills_share_the_port() -> None:
    """One answer per cycle: while a fill serves eight loads, hits get every other cycle."""
    description = gpu()
    traffic = Traffic(description)
    (cold,), (warm,) = lines(description, 1, channel=0), lines(description, 1, channel=3)
    run(traffic, sequence([warm]))
    line_there = description.dram.latency - FRONT_END - BACK_END
    accesses = script([[cold] * 8 + [warm] * 12])
    accesses["at"][0, 8:] = line_there - hit_delay(description) + np.arange(12)
    done = run(traffic, accesses)["done"]
    assert sorted(done.tolist()) == list(range(line_there, line_there + 20))
    assert np.diff(done[:8]).tolist() == [2] * 7


def test_round_trip_statistics() -> None:
    """Kayiran's lat_rt: the mean of the fetches' times from request to reply."""
    traffic = Traffic(gpu())
    result = run(traffic, sequence(line(0, 1)))
    stats = traffic.l1["stats"][0]
    assert stats["round_trip"] == (result["done"] - result["accepted"]).sum()
    occupancy = traffic.l1["in_flight"][0]
    assert (occupancy["entered"], occupancy["residence"]) == (2, stats["round_trip"])
