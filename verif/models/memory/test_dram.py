"""DRAM: bandwidth at saturation, the limits of one bank, and what FR-FCFS prefers."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from lockstep.models.memory.dram import PATIENCE, ROW_CONFLICT, ROW_HIT
from lockstep.models.memory.l1 import LOAD_BYPASS, STORE
from lockstep.models.memory.timing import dram_latency
from lockstep.verif.models.memory.traffic import BASE, Traffic, gpu, latencies, lines, script

LINE = 128


def run(traffic: Traffic, accesses: np.ndarray, **how) -> np.ndarray:
    result = traffic.run(accesses, **how)
    assert traffic.broken() == []
    return result


def stream(sms: int, length: int) -> list[list[int]]:
    return [[BASE + LINE * (n * sms + s) for n in range(length)] for s in range(sms)]


def core(traffic: Traffic, dram_cycles: float) -> float:
    return dram_cycles * traffic.gpu.clocks.core / traffic.gpu.clocks.dram


@pytest.mark.parametrize("bus,clock", [(8, 924), (16, 924), (8, 1848), (4, 700)])
def test_read_bandwidth(bus: int, clock: int) -> None:
    """A stream of reads keeps the data bus busy: two transfers per DRAM cycle, rows being opened ahead."""
    traffic = Traffic(gpu(dram__bus_bytes=bus, clocks__dram=clock, l1__mshrs=64, l2__mshrs=64, dram__queue=64))
    result = run(traffic, script(stream(15, 1500), kind=LOAD_BYPASS))
    done = np.sort(result["done"].reshape(-1))
    quarter = len(done) // 4
    per_line = (done[3 * quarter] - done[quarter]) / (2 * quarter)
    assert per_line == pytest.approx(core(traffic, LINE / (2 * bus)) / 6, rel=0.03)


@pytest.mark.parametrize("bus,sector,ccd", [(8, 32, 2), (16, 32, 2), (16, 32, 1), (16, 64, 2), (4, 32, 2), (8, 64, 9)])
def test_bandwidth_of_sectors(bus: int, sector: int, ccd: int) -> None:
    """A sector takes the bus for its data, and for tCCD at least: of a longer burst, the rest is thrown away."""
    settings = dict(l1__mshrs=64, l2__mshrs=64, dram__queue=64, dram__latency=700)
    traffic = Traffic(gpu(dram__bus_bytes=bus, l2__sector_bytes=sector, dram__tCCD=ccd, **settings))
    result = run(traffic, script(stream(15, 1500), kind=LOAD_BYPASS, size=LINE))
    done = np.sort(result["done"].reshape(-1))
    quarter = len(done) // 4
    per_line = (done[3 * quarter] - done[quarter]) / (2 * quarter)
    cycles = max(ceil(sector / (2 * bus)), ccd)
    assert per_line == pytest.approx(core(traffic, LINE // sector * cycles) / 6, rel=0.03)
    stats = traffic.memory.channels["stats"]
    assert stats["reads"].sum() * sector == stats["bytes_read"].sum() == len(done) * LINE


def test_write_bandwidth() -> None:
    """So does a stream of writes, once the L2 has to write them back."""
    traffic = Traffic(gpu(l2__sets=4))
    run(traffic, script(stream(15, 1500), kind=STORE, size=LINE))
    stats = traffic.memory.channels["stats"]
    assert stats["writes"].sum() > 20_000
    assert core(traffic, 8) * stats["writes"].sum() / 6 == pytest.approx(traffic.cycles, rel=0.03)


@pytest.mark.parametrize("change", [{}, dict(dram__tRC=60), dict(dram__tRAS=40, dram__tRP=25)])
def test_one_bank(change: dict) -> None:
    """A new row of one bank takes tRC, or tRAS + tRP."""
    description = gpu(**change)
    dram = description.dram
    traffic = Traffic(description)
    rows = [lines(description, 1, channel=0, bank=3, row=row)[0] for row in range(4000, 4150)]
    done = run(traffic, script([rows], kind=LOAD_BYPASS))["done"][0]
    stats = traffic.memory.channels["stats"][0]
    assert stats["rows"][ROW_CONFLICT] == 149
    cycle = max(dram.tRC, dram.tRAS + dram.tRP)
    assert (done[-1] - done[0]) / 149 == pytest.approx(core(traffic, cycle), rel=0.03)


@pytest.mark.parametrize("rrd", [10, 20, 40])
def test_activates_of_different_banks(rrd: int) -> None:
    """Rows of different banks open tRRD apart, if the data take less."""
    description = gpu(dram__tRRD=rrd, dram__bus_bytes=64, dram__banks=32, l1__mshrs=64, l2__mshrs=64)
    traffic = Traffic(description)
    rows = [lines(description, 1, channel=0, bank=n % 32, row=1300 + n // 32)[0] for n in range(320)]
    done = np.sort(run(traffic, script([rows[s::4] for s in range(4)], kind=LOAD_BYPASS))["done"].reshape(-1))
    assert (done[300] - done[20]) / 280 == pytest.approx(core(traffic, rrd), rel=0.03)


def test_row_hits_go_first() -> None:
    """Of the requests that wait for a bank, one for the open row overtakes an older one for another row."""
    description = gpu()
    traffic = Traffic(description)
    first, hit = lines(description, 2, channel=0, bank=0, row=4000)
    (other,) = lines(description, 1, channel=0, bank=0, row=4001)
    done = run(traffic, script([[first, other, hit]], kind=LOAD_BYPASS))["done"][0]
    assert done[0] < done[2] < done[1]
    assert traffic.memory.channels["stats"]["rows"].sum(0)[ROW_HIT] == 1


def test_a_late_row_hit_still_overtakes() -> None:
    """Also one that comes when the bank has chosen the other row, but may not close its own yet (tRAS)."""
    description = gpu(dram__tRAS=200, dram__tRC=250)
    traffic = Traffic(description)
    first, hit = lines(description, 2, channel=0, bank=0, row=4000)
    (other,) = lines(description, 1, channel=0, bank=0, row=4001)
    done = run(traffic, script([[first, other, hit]], kind=LOAD_BYPASS, at=[[0, 0, 100]]))["done"][0]
    assert done[0] < done[2] < done[1]


def test_nobody_waits_for_ever() -> None:
    """A read is served within ``PATIENCE`` although an endless stream of writes to open rows could go on."""
    description = gpu(l2__sets=1, l2__ways=2, dram__channels=1, l2__slices=1, dram__row_bytes=16384, dram__tCDLR=255)
    traffic = Traffic(description)
    writes = stream(14, 600)
    accesses = script([*writes, [0] * 600], kind=STORE, size=LINE)
    accesses["kind"][14] = LOAD_BYPASS
    accesses["address"][14] = [BASE + (1 << 26) + (1 << 20) * n for n in range(600)]
    accesses["at"][14] = 4000 + 3000 * np.arange(600)
    result = traffic.run(accesses, limit=60_000)[14:15]
    answered = result[result["done"] >= 0]
    assert len(answered) >= 10
    assert latencies(answered).max() < description.dram.latency + PATIENCE + 1000


@pytest.mark.parametrize("write_recovery", [12, 40, 90])
def test_write_recovery(write_recovery: int) -> None:
    """A row that was written closes tWR after the data."""
    description = gpu(dram__tWR=write_recovery, l2__sets=1, l2__ways=1, dram__channels=1, l2__slices=1)
    dram = description.dram
    traffic = Traffic(description)
    rows = [lines(description, 1, bank=0, row=30_000 + n)[0] for n in range(100)]
    run(traffic, script([rows], kind=STORE, size=LINE))
    cycle = max(dram.tRC, dram.tRCD + dram.tWL + 8 + write_recovery + dram.tRP)
    writes = traffic.memory.channels["stats"]["writes"][0]
    assert writes == 99
    assert traffic.cycles == pytest.approx(core(traffic, cycle) * writes, rel=0.05)


@pytest.mark.parametrize("turn", [5, 30, 80])
def test_write_to_read(turn: int) -> None:
    """A read command goes tCDLR after the last data of a write."""
    description = gpu(dram__tCDLR=turn, l2__sets=1, l2__ways=1, dram__channels=1, l2__slices=1)
    a, b, c = lines(description, 3, bank=0, row=30_000)
    traffic = Traffic(description)
    # a opens the row, b takes its place in the L2, c evicts b: its read follows the write in the same row.
    accesses = script([[a, b, c]], at=[[0, 3000, 6000]], size=LINE)
    accesses["kind"] = [[LOAD_BYPASS, STORE, LOAD_BYPASS]]
    result = run(traffic, accesses)
    dram = description.dram
    hit = ceil(core(traffic, dram.tCL + 8))
    waited = ceil(core(traffic, dram.tWL + 8 + turn + dram.tCL + 8))
    assert latencies(result)[0, 2] == dram_latency(description, "hit") - hit + waited
