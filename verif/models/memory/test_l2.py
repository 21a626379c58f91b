"""The L2: replacement, writes, atomics, limits, bandwidth."""

from __future__ import annotations

import numpy as np
import pytest

from lockstep.models.memory.l1 import ATOMIC_ACCESS, LOAD_BYPASS, STORE
from lockstep.models.memory.l2 import STALLS
from lockstep.verif.models.memory.traffic import Traffic, gpu, latencies, lines, script, sequence

SMALL = dict(l2__sets=1, l2__ways=2)


def mixed(addresses: list[int], kinds: list[int], sizes: list[int], gap: int = 2000) -> np.ndarray:
    result = sequence(addresses, gap)
    result["kind"], result["size"] = [kinds], [sizes]
    return result


def run(traffic: Traffic, accesses: np.ndarray, **how) -> np.ndarray:
    result = traffic.run(accesses, **how)
    assert traffic.broken() == []
    return result


def totals(traffic: Traffic, *names: str) -> list[int]:
    return [int(traffic.memory.slices["stats"][name].sum()) for name in names]


def stalls(traffic: Traffic) -> dict[str, int]:
    return dict(zip(STALLS, traffic.memory.slices["stats"]["stalls"].sum(0).tolist(), strict=True))


def test_lru_and_write_back() -> None:
    """A clean victim is dropped, a dirty one is written to DRAM."""
    description = gpu(**SMALL)
    a, b, c = lines(description, 3, slice=4)
    traffic = Traffic(description)
    run(traffic, mixed([a, b, a, c, a, b], [LOAD_BYPASS] * 6, [4] * 6))
    assert totals(traffic, "hits", "misses", "evictions", "write_backs") == [2, 4, 2, 0]
    traffic = Traffic(description)
    run(traffic, mixed([a, b, c], [STORE, LOAD_BYPASS, LOAD_BYPASS], [4] * 3))
    assert totals(traffic, "evictions", "write_backs") == [1, 1]
    assert traffic.memory.channels["stats"]["writes"].sum() == 1


def test_writes_never_fetch() -> None:
    """A line that has been written in full is read from the L2; an incomplete one has to be fetched."""
    description = gpu()
    a, b = lines(description, 2, slice=0)
    traffic = Traffic(description)
    run(traffic, mixed([a, a + 64, a], [STORE, STORE, LOAD_BYPASS], [64, 64, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [0, 2, 1]
    run(traffic, mixed([b, b, b], [STORE, LOAD_BYPASS, LOAD_BYPASS], [64, 4, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [1, 3, 3]


def test_contents_outlive_a_launch() -> None:
    description = gpu()
    traffic = Traffic(description)
    (address,) = lines(description, 1)
    for expected in (description.dram.latency, description.l2.latency):
        assert latencies(run(traffic, sequence([address]))).tolist() == [[expected]]
        traffic.launch()


@pytest.mark.parametrize("mshrs", [1, 3, 16])
def test_mshr_limit(mshrs: int) -> None:
    """A slice has so many lines on their way."""
    description = gpu(l2__mshrs=mshrs)
    traffic = Traffic(description)
    run(traffic, script([lines(description, 30, slice=0)], kind=LOAD_BYPASS))
    occupancy = traffic.memory.slices["in_flight"][0]
    assert occupancy["entered"] == 30
    assert stalls(traffic)["mshrs"] > 0
    # While the limit holds, the mean occupancy stays below it, and close to it.
    assert 0.7 * mshrs < occupancy["integral"] / traffic.cycles <= mshrs


@pytest.mark.parametrize("merges", [1, 4])
def test_merges(merges: int) -> None:
    """SMs that want one line share its fetch, as far as the MSHR goes."""
    description = gpu(l2__merges=merges)
    traffic = Traffic(description)
    (address,) = lines(description, 1)
    run(traffic, script([[address]] * 6, kind=LOAD_BYPASS))
    assert totals(traffic, "misses", "merges", "hits") == [1, merges - 1, 6 - merges]
    assert stalls(traffic)["merges"] > 0


def test_ways() -> None:
    """A set whose lines are all on their way stops the look-ups."""
    description = gpu(**SMALL)
    traffic = Traffic(description)
    run(traffic, script([lines(description, 6, slice=0)], kind=LOAD_BYPASS))
    assert stalls(traffic)["ways"] > 0


@pytest.mark.parametrize("l2", [700, 350, 460])
def test_look_ups(l2: int) -> None:
    """One request per L2 cycle and slice."""
    description = gpu(clocks__l2=l2, crossbar__flit_bytes=256, l1__mshrs=64)
    traffic = Traffic(description)
    addresses = lines(description, 100, slice=0)
    run(traffic, script([addresses], kind=LOAD_BYPASS))
    traffic.launch()
    done = np.sort(run(traffic, script([addresses * 4] * 8, kind=LOAD_BYPASS))["done"].reshape(-1))
    assert (done[-400] - done[400]) / (len(done) - 800) == pytest.approx(1400 / l2, rel=0.03)
    busy = totals(traffic, "busy")[0] * 1400 / l2
    assert busy == len(done) * 1400 / l2


@pytest.mark.parametrize("lanes,operation", [(1, 2), (4, 1), (32, 3)])
def test_atomic_throughput(lanes: int, operation: int) -> None:
    """Operations on one address follow each other, ``l2.atomics`` L2 cycles each."""
    description = gpu(l2__atomics=operation)
    traffic = Traffic(description)
    (address,) = lines(description, 1)
    accesses = script([[address] * 30] * 6, kind=ATOMIC_ACCESS, lanes=lanes)
    run(traffic, accesses)
    traffic.launch()
    done = np.sort(run(traffic, accesses)["done"].reshape(-1))
    assert (done[-20] - done[20]) / (len(done) - 40) == pytest.approx(2 * lanes * operation, rel=0.03)


def test_slices_share_the_channel() -> None:
    """Two slices whose channel's queue is full get room in turn."""
    description = gpu(dram__channels=1, l2__slices=2, dram__queue=2)
    traffic = Traffic(description)
    scripts = [lines(description, 200, slice=s) for s in (0, 1)]
    result = run(traffic, script(scripts, kind=LOAD_BYPASS))
    assert stalls(traffic)["dram"] > 0
    middle = np.sort(result["done"].reshape(-1))[200]
    served = (result["done"] < middle).sum(1)
    assert abs(int(served[0]) - int(served[1])) <= 4
