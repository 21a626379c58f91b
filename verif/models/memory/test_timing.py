"""Unloaded latencies are those of the description, at three settings of each, whatever the clocks are."""

from __future__ import annotations

from math import ceil

import pytest

from lockstep.models.memory.l1 import ATOMIC_ACCESS, LOAD_BYPASS, STORE
from lockstep.models.memory.timing import BACK_END, FRONT_END, atomic_latency, check, slice_delay, transfer
from lockstep.verif.models.memory.traffic import BASE, Traffic, gpu, latencies, lines, sequence

CLOCKS = [
    {},
    dict(clocks__interconnect=700, clocks__l2=1400, clocks__dram=1848),
    dict(clocks__core=1147, clocks__interconnect=575, clocks__l2=613, clocks__dram=1100, crossbar__flit_bytes=16),
]


def measured(description, addresses, **how) -> list[int]:
    traffic = Traffic(description)
    result = latencies(traffic.run(sequence(addresses, **how)))[0].tolist()
    assert traffic.broken() == []
    return result


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("latency", [20, 30, 77])
def test_l1_hit(latency: int, clocks: dict) -> None:
    assert measured(gpu(l1__latency=latency, **clocks), [BASE, BASE + 4])[1] == latency


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("latency", [120, 133, 250])
def test_l2_hit(latency: int, clocks: dict) -> None:
    description = gpu(l2__latency=latency, dram__latency=600, **clocks)
    assert measured(description, [BASE, BASE + 64], kind=LOAD_BYPASS) == [600, latency]


@pytest.mark.parametrize("clocks", CLOCKS)
@pytest.mark.parametrize("latency", [460, 500, 999])
def test_dram_rows(latency: int, clocks: dict) -> None:
    """A closed row takes the configured total, a hit tRCD less and a conflict tRP more, in whole core cycles."""
    description = gpu(dram__latency=latency, **clocks)
    first, again = lines(description, 2, channel=1, bank=2, row=5000)
    (other,) = lines(description, 1, channel=1, bank=2, row=5001)
    dram = description.dram

    def core(cycles: int) -> int:
        return ceil(cycles * description.clocks.core / description.clocks.dram)

    burst = description.l1.line_bytes // (2 * dram.bus_bytes)
    closed = core(dram.tRCD + dram.tCL + burst)
    expected = [latency, latency - closed + core(dram.tCL + burst)]
    expected.append(latency - closed + core(dram.tRP + dram.tRCD + dram.tCL + burst))
    assert measured(description, [first, again, other]) == expected


@pytest.mark.parametrize("lanes,operation", [(1, 1), (7, 1), (32, 4)])
def test_atomic(lanes: int, operation: int) -> None:
    """An atomic on a line in the L2 takes its packets' time and ``l2.atomics`` L2 cycles per lane on one address."""
    description = gpu(l2__atomics=operation)
    result = measured(description, [BASE, BASE], kind=ATOMIC_ACCESS, size=4, lanes=lanes)
    assert result[1] == atomic_latency(description, lanes, 4)
    # By hand: as a load that hits, with a reply of one flit instead of five, and the operations at half the core clock.
    assert result[1] == description.l2.latency - 4 + 2 * lanes * operation


@pytest.mark.parametrize("clocks", CLOCKS)
def test_writes_are_acknowledged(clocks: dict) -> None:
    """All has ended when the last packet is back, which takes as long as a reply without data; it counts as one."""
    ends = []
    for acknowledges in (0, 1):
        traffic = Traffic(gpu(l2__acknowledges=acknowledges, **clocks))
        traffic.run(sequence([BASE, BASE + 4096, BASE], kind=STORE, size=4))
        assert traffic.broken() == []
        assert traffic.memory.record["replies"]["packets"][0] == 3 * acknowledges
        ends.append(traffic.cycles)
    description = traffic.gpu
    assert ends[1] - ends[0] == slice_delay(description) + transfer(description, 0)


@pytest.mark.parametrize(
    "change,message",
    [
        (dict(l1__latency=FRONT_END + BACK_END), "l1.latency = "),
        (dict(l2__latency=25), "l2.latency = 25: "),
        (dict(dram__latency=130), "dram.latency = 130: "),
        (dict(l2__slices=13), "l2.slices = 13: must be a multiple of dram.channels = 6"),
        (dict(l1__sets=48), "l1.sets = 48: must be a power of two"),
        (dict(l1__sets=1024), "l1.sets * l1.ways = 4096: at most 2048 lines"),
        (dict(dram__interleave=64), "dram.interleave = 64: must be at least l1.line_bytes = 128"),
        (dict(l1__queue=1), "l1.queue = 1: must be at least 2"),
    ],
)
def test_impossible_descriptions_are_refused(change: dict, message: str) -> None:
    assert check(gpu()) == []
    errors = check(gpu(**change))
    assert len(errors) == 1 and errors[0].startswith(message)


def test_the_smallest_totals_work() -> None:
    """The least latency that is not refused is also what a load takes."""
    for name in ("l1__latency", "l2__latency", "dram__latency"):
        least = next(n for n in range(700) if not check(gpu(**{name: n})))
        description = gpu(**{name: least})
        closed, l2 = measured(description, [BASE, BASE], kind=LOAD_BYPASS)
        assert (closed, l2) == (description.dram.latency, description.l2.latency)
