"""The L2: replacement, writes, atomics, limits, bandwidth."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from lockstep.models.jit import argument, jit
from lockstep.models.memory import system
from lockstep.models.memory.clock import core_cycles
from lockstep.models.memory.fabric import READ
from lockstep.models.memory.interconnect import send_request
from lockstep.models.memory.l1 import ATOMIC_ACCESS, LOAD, LOAD_BYPASS, STORE
from lockstep.models.memory.l2 import STALLS
from lockstep.models.memory.read_cache import CODE, CONSTANTS
from lockstep.models.memory.tags import COMPLETE, WAY, line_of
from lockstep.models.memory.timing import atomic_latency, burst, dram_access, transfer
from lockstep.spec.parameters import Gpu
from lockstep.verif.bench import mask, seeded
from lockstep.verif.models.memory.traffic import (
    BASE,
    Traffic,
    gpu,
    latencies,
    lines,
    mask_of,
    place,
    script,
    sequence,
    words,
)

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


def test_who_is_charged() -> None:
    """Who evicts a dirty line is charged with its write-back, and who asks for sectors with their fetch."""
    description = gpu(**SMALL)
    a, b, c = lines(description, 3, slice=4)
    traffic = Traffic(description)
    accesses = mixed([a, b, b, c, a], [STORE, LOAD_BYPASS, LOAD_BYPASS, LOAD_BYPASS, LOAD_BYPASS], [128, 4, 4, 4, 4])
    accesses["grid"] = [[0, 0, 1, 1, 0]]
    run(traffic, accesses)
    memory, header, line = traffic.memory, description.crossbar.header_bytes, 128
    share = {name: int(memory.slices["share"][name].sum()) for name in memory.slices["share"].dtype.names or ()}
    own = {"reads": 2, "hits": 1, "misses": 1, "evictions": 1, "write_backs": 1, "written": 1, "fetches": 1, "fills": 1,
           "replies": 2, "bytes_out": 2 * line, "busy": 2}  # fmt: skip
    assert {name: count for name, count in share.items() if count} == own
    assert totals(traffic, "reads", "writes", "evictions", "write_backs", "fetches") == [4, 1, 2, 1, 3]
    whole = {name: int(memory.channels["stats"][name].sum()) for name in ("reads", "writes")}
    parts = {name: int(memory.channels["share"][name].sum()) for name in ("reads", "writes")}
    assert (whole, parts) == ({"reads": 3, "writes": 1}, {"reads": 1, "writes": 1})
    sent = {way: memory.record[way]["share"][0] for way in ("requests", "replies")}
    assert (int(sent["requests"]["packets"]), int(sent["requests"]["bytes"])) == (2, 2 * header)
    assert (int(sent["replies"]["packets"]), int(sent["replies"]["bytes"])) == (2, 2 * (header + line))


def test_writes_never_fetch() -> None:
    """A line that has been written in full is read from the L2; an incomplete one has to be fetched."""
    description = gpu()
    a, b = lines(description, 2, slice=0)
    traffic = Traffic(description)
    run(traffic, mixed([a, a + 64, a], [STORE, STORE, LOAD_BYPASS], [64, 64, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [0, 2, 1]
    run(traffic, mixed([b, b, b], [STORE, LOAD_BYPASS, LOAD_BYPASS], [64, 4, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [1, 3, 3]


def test_rewritten_bytes_count_once() -> None:
    """Half of a line, written twice, does not make it whole; the two halves do, whoever overwrites what."""
    description = gpu()
    a, b = lines(description, 2, slice=0)
    traffic = Traffic(description)
    run(traffic, mixed([a, a, a], [STORE, STORE, LOAD_BYPASS], [64, 64, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [1, 1, 2]
    traffic = Traffic(description)
    run(traffic, mixed([b, b + 64, b + 32, b], [STORE] * 3 + [LOAD], [64, 64, 64, 4]))
    assert totals(traffic, "fetches", "hits", "misses") == [0, 3, 1]


def test_an_atomic_needs_its_own_bytes() -> None:
    """What has been written before an atomic on it need not be fetched for it."""
    description = gpu()
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    run(traffic, mixed([a, a, a + 4], [STORE, ATOMIC_ACCESS, ATOMIC_ACCESS], [4] * 3))
    assert totals(traffic, "fetches", "hits", "misses") == [1, 1, 2]


def test_a_line_on_its_way_gives_what_is_valid() -> None:
    """A read of bytes that were written while their line is fetched does not wait for DRAM."""
    description = gpu()
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    accesses = script([[a + 64, a], [a, a]], size=64, at=[[0, 1], [0, 100]])
    accesses["kind"] = [[LOAD_BYPASS, STORE], [STORE, ATOMIC_ACCESS]]
    accesses["at"][0, 1] = 5000
    result = run(traffic, accesses)
    assert totals(traffic, "fetches", "merges") == [1, 0]
    assert latencies(result)[1, 1] == atomic_latency(description, 1, 64)


class Reference:
    """The lines of an L2 by their bytes, masks of a line as whole integers; one access after the other."""

    def __init__(self, description: Gpu) -> None:
        self.gpu = description
        self.sets: dict[tuple[int, int], dict[int, list[int]]] = {}  # line: valid and dirty bytes, by age
        self.counts: Counter[str] = Counter()

    def sectors(self, of: int) -> list[int]:
        """Masks of the sectors in which bytes lie."""
        size = self.gpu.l2.sector_bytes
        whole = [(1 << size) - 1 << first for first in range(0, self.gpu.l1.line_bytes, size)]
        return [sector for sector in whole if sector & of]

    def where(self, address: int) -> tuple[int, int]:
        """Slice, and line within it."""
        chunk, offset = divmod(address, self.gpu.dram.interleave)
        at = chunk // self.gpu.l2.slices * self.gpu.dram.interleave + offset
        return place(self.gpu, address)[0], at // self.gpu.l1.line_bytes

    def access(self, address: int, kind: int, of: int) -> None:
        target, line = self.where(address)
        ways = self.sets.setdefault((target, line % self.gpu.l2.sets), {})
        if line not in ways and len(ways) == self.gpu.l2.ways:
            dirty = ways.pop(next(iter(ways)))[1]
            self.counts["evictions"] += 1
            self.counts["write_backs"] += dirty != 0
            self.counts["written"] += len(self.sectors(dirty))
        known = line in ways
        valid, dirty = ways.pop(line, [0, 0])
        if kind == LOAD_BYPASS:
            of = sum(self.sectors(of))
        missing = [] if kind == STORE else self.sectors(of & ~valid)
        self.counts["hits" if (known if kind == STORE else not missing) else "misses"] += 1
        self.counts["fetches"] += len(missing)
        ways[line] = [valid | sum(missing) | of, dirty if kind == LOAD_BYPASS else dirty | of]

    def valid(self) -> dict[tuple[int, int], int]:
        return {(target, line): v for (target, _), ways in self.sets.items() for line, (v, _) in ways.items()}


def valid_bytes(traffic: Traffic) -> dict[tuple[int, int], int]:
    """The valid bytes of all lines, by slice and line."""
    l1, l2 = traffic.gpu.l1, traffic.gpu.l2
    found = {}
    for target in range(l2.slices):
        for at, word in enumerate(map(int, traffic.memory.lines[target])):
            if line_of(word) >= 0:
                kept = mask_of(traffic.memory.valid[target][at - at % l2.ways + (word & WAY)])
                found[target, line_of(word)] = (1 << l1.line_bytes) - 1 if word & COMPLETE else kept
    return found


@pytest.mark.parametrize("line,sector", [(32, 32), (64, 32), (64, 64), (128, 32), (128, 64), (128, 128)])
def test_bytes_and_sectors_against_a_reference(line: int, sector: int) -> None:
    """Random reads, writes and atomics of random bytes, one after the other: every count, and every valid byte."""
    rng = seeded()
    for _ in range(4):
        description = gpu(
            l1__line_bytes=line, l2__sector_bytes=sector, l2__sets=rng.choice([1, 4]), l2__ways=rng.choice([1, 2, 5]),
            l2__slices=2, dram__channels=rng.choice([1, 2]), dram__latency=600,
        )  # fmt: skip
        reference, traffic = Reference(description), Traffic(description)
        accesses = sequence([BASE + line * rng.randrange(24) for _ in range(300)])
        for access in accesses[0]:
            of = mask(rng, line) or 1
            access["kind"] = rng.choice([STORE, STORE, LOAD_BYPASS, ATOMIC_ACCESS])
            access["mask"], access["size"] = words(of), of.bit_count()
            reference.access(int(access["address"]), int(access["kind"]), of)
        run(traffic, accesses)
        names = ("hits", "misses", "fetches", "evictions", "write_backs", "written")
        assert totals(traffic, *names) == [reference.counts[name] for name in names]
        assert valid_bytes(traffic) == reference.valid()
        dram = traffic.memory.channels["stats"]
        assert dram["bytes_read"].sum() == sector * reference.counts["fetches"]
        assert dram["bytes_written"].sum() == sector * reference.counts["written"]


SECTORED = dict(l2__sector_bytes=32, dram__bus_bytes=8)


def sector_latency(description: Gpu, count: int) -> int:
    """Core cycles of a load of so many sectors from a closed row, unloaded."""
    clocks, size = description.clocks, description.l2.sector_bytes
    not_read = (description.l1.line_bytes // size - count) * burst(description)
    dram = description.dram
    all_data = dram.tRCD + dram.tCL + description.l1.line_bytes // size * burst(description)
    assert core_cycles(clocks.core, clocks.dram, all_data) == dram_access(description)
    sooner = dram_access(description) - core_cycles(clocks.core, clocks.dram, all_data - not_read)
    shorter = transfer(description, description.l1.line_bytes) - transfer(description, count * size)
    return description.dram.latency - sooner - shorter


@pytest.mark.parametrize("first,count", [(0, 1), (1, 2), (3, 1), (1, 3), (0, 4)])
def test_sectors_that_a_load_needs(first: int, count: int) -> None:
    """A load that bypasses the L1 gets the sectors of its bytes, and nothing else travels; the next one finds them."""
    description = gpu(**SECTORED)
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    size = 32 * count - 16
    result = run(traffic, script([[a + 32 * first + 8] * 2], kind=LOAD_BYPASS, size=size, at=[[0, 3000]]))
    shorter = transfer(description, 128) - transfer(description, 32 * count)
    assert latencies(result).tolist() == [[sector_latency(description, count), description.l2.latency - shorter]]
    assert totals(traffic, "fetches", "bytes_out") == [count, 2 * 32 * count]


def test_a_load_that_fills_the_l1_takes_the_line() -> None:
    description = gpu(**SECTORED)
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    assert latencies(run(traffic, script([[a]]))).tolist() == [[description.dram.latency]]
    assert totals(traffic, "fetches", "bytes_out") == [4, 128]


def test_loads_of_other_sectors_do_not_merge_in_the_l1() -> None:
    """One SM's loads of other sectors send a request of their own; what has been asked for serves the rest."""
    description = gpu(**SECTORED)
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    run(traffic, script([[a, a + 64, a, a + 64, a]], kind=LOAD_BYPASS))
    assert traffic.l1["stats"][["misses", "merges"]].tolist()[0] == (2, 3)
    assert totals(traffic, "fetches", "misses", "merges") == [2, 1, 1]


def test_a_store_passes_all_loads_of_its_line() -> None:
    """Loads after a store fetch anew, whichever of the requests before it has asked for their sectors."""
    description = gpu(**SECTORED)
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    accesses = script([[a, a + 64, a, a, a + 64]], kind=LOAD_BYPASS)
    accesses["kind"][0, 2] = STORE
    run(traffic, accesses)
    assert traffic.l1["stats"][["misses", "merges"]].tolist()[0] == (4, 0)


def test_sectors_merge_in_the_l2() -> None:
    """SMs that want different sectors of a line share its MSHR, and are answered when all of them are there."""
    description = gpu(**SECTORED)
    (a,) = lines(description, 1)
    traffic = Traffic(description)
    result = run(traffic, script([[a], [a + 32], [a], [a + 96]], kind=LOAD_BYPASS))
    assert totals(traffic, "misses", "merges", "fetches", "fills") == [1, 3, 3, 3]
    assert latencies(result).min() > sector_latency(description, 1)


@pytest.mark.parametrize("sector", [32, 64, 128])
def test_dirty_sectors_go_back(sector: int) -> None:
    """A victim's clean sectors are not written."""
    description = gpu(**SMALL | dict(l2__sector_bytes=sector))
    a, b, c, d = lines(description, 4, slice=4)
    traffic = Traffic(description)
    # a: bytes of the first and the third 32 bytes; b is only read, but for an atomic on its last word.
    accesses = mixed([a, a + 64, b, b + 124, c, d], [STORE, STORE, LOAD, ATOMIC_ACCESS, LOAD, LOAD], [4] * 6)
    run(traffic, accesses)
    expected = {32: 3, 64: 3, 128: 2}[sector]
    assert totals(traffic, "write_backs", "written") == [2, expected]
    assert traffic.memory.channels["stats"]["bytes_written"].sum() == expected * sector


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


@jit
def ask(memory, config, entries, gap, arrivals):
    """SMs ask for one line, each ``gap`` cycles after the one before; notes when the replies are there."""
    for now in range(5000):
        for sm in range(len(entries)):
            if now == sm * gap:
                send_request(memory.ports[sm], now, READ, BASE, -1, -1, 128, 0, entries[sm])
        system.memory_step(memory, config, now)
    for sm in range(len(entries)):
        arrivals[sm] = memory.ports[sm].reply_ready


@pytest.mark.parametrize("lead", [0, 10])
@pytest.mark.parametrize("entries", [(0, CODE, 1), (CODE, 0, CODE + 1), (0, CONSTANTS, CODE), (CONSTANTS, 0, 1)])
def test_replies_of_one_cycle_leave_in_order(entries: tuple[int, ...], lead: int) -> None:
    """Of all who wait for a line, who asked first gets it first; with a lead, read-only caches before the others."""
    traffic = Traffic(gpu(l2__read_only_lead=lead))
    arrivals = np.zeros(len(entries), np.int64)
    ask(traffic.memory.argument, traffic._config, argument(np.array(entries)), 20, argument(arrivals))
    first = sorted(range(len(entries)), key=lambda sm: lead > 0 and entries[sm] < CODE)
    assert np.argsort(arrivals).tolist() == first
