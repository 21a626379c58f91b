"""The crossbar: bandwidth of each port, fairness, back-pressure, shared ports."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from lockstep.models.memory.l1 import LOAD_BYPASS, STORE
from lockstep.verif.models.memory.traffic import BASE, Traffic, gpu, lines, script

LINE = 128


def warm(traffic: Traffic, addresses: list[int]) -> None:
    """Bring lines into the L2 and forget the statistics."""
    traffic.run(script([addresses], kind=LOAD_BYPASS))
    assert traffic.broken() == []
    traffic.launch()


def rate(accepted: np.ndarray) -> float:
    """Core cycles per access, without the start and the end."""
    quarter = len(accepted) // 4
    return (accepted[3 * quarter] - accepted[quarter]) / (2 * quarter)


@pytest.mark.parametrize("flit,interconnect", [(32, 1400), (16, 1400), (32, 900), (64, 1050)])
def test_reply_bandwidth_of_an_sm(flit: int, interconnect: int) -> None:
    """A line takes its flits in interconnect cycles, whatever the two clocks' ratio is."""
    traffic = Traffic(gpu(crossbar__flit_bytes=flit, clocks__interconnect=interconnect, l1__mshrs=128))
    addresses = [BASE + LINE * n for n in range(400)]
    warm(traffic, addresses)
    done = np.sort(traffic.run(script([addresses * 3], kind=LOAD_BYPASS))["done"][0])
    assert traffic.broken() == []
    assert rate(done) == pytest.approx(ceil((LINE + 8) / flit) * 1400 / interconnect, rel=0.03)


@pytest.mark.parametrize("size", [4, 32, 128])
def test_request_bandwidth_of_an_sm(size: int) -> None:
    """A store takes the flits of its header and its data."""
    traffic = Traffic(gpu(clocks__l2=1400))
    addresses = [BASE + LINE * n for n in range(400)]
    warm(traffic, addresses)
    accepted = traffic.run(script([addresses * 2], kind=STORE, size=size))["accepted"][0]
    assert rate(accepted) == pytest.approx(ceil((size + 8) / 32), rel=0.03)


def test_reply_bandwidth_of_a_slice() -> None:
    """All SMs read from one slice: its port gives one flit per cycle, in equal shares."""
    description = gpu()
    traffic = Traffic(description)
    addresses = lines(description, 60, slice=3)
    warm(traffic, addresses)
    result = traffic.run(script([addresses * 6] * 15, kind=LOAD_BYPASS), limit=20_000)
    done = np.sort(result["done"][result["done"] >= 0])
    assert rate(done) == pytest.approx(5, rel=0.03)
    shares = (result["done"] >= 0).sum(1)
    assert shares.max() - shares.min() <= 0.02 * shares.mean() + description.crossbar.buffers


def test_all_ports_at_once() -> None:
    """Twelve slices send to fifteen SMs at the slices' full bandwidth."""
    traffic = Traffic(gpu(l1__mshrs=128))
    addresses = [BASE + LINE * n for n in range(600)]
    warm(traffic, addresses)
    result = traffic.run(script([addresses[40 * s :] + addresses[: 40 * s] for s in range(15)], kind=LOAD_BYPASS))
    assert traffic.broken() == []
    assert rate(np.sort(result["done"].reshape(-1))) == pytest.approx(5 / 12, rel=0.03)


def test_waiting_ports_take_turns() -> None:
    """SMs that store to one slice without pause are served round robin."""
    description = gpu(core__sms=7, l2__slices=6)
    traffic = Traffic(description)
    addresses = lines(description, 300, slice=2)
    result = traffic.run(script([addresses] * 7, kind=STORE, size=4), limit=1500)
    shares = (result["accepted"] >= 0).sum(1)
    assert shares.min() > 50 and shares.max() - shares.min() <= 1


@pytest.mark.parametrize("together", [1, 2, 3])
def test_shared_port(together: int) -> None:
    """SMs that share a port share its bandwidth, equally."""
    traffic = Traffic(gpu(core__sms=6, crossbar__concentration=together, l1__mshrs=128))
    addresses = [BASE + LINE * n for n in range(400)]
    warm(traffic, addresses)
    result = traffic.run(script([addresses * 2] * together, kind=LOAD_BYPASS))
    assert traffic.broken() == []
    for done in np.sort(result["done"], axis=1):
        assert rate(done) == pytest.approx(5 * together, rel=0.03)


@pytest.mark.parametrize("buffers", [1, 2, 4])
def test_credits(buffers: int) -> None:
    """With few buffers a slice takes so many packets per round trip of a credit."""
    description = gpu(crossbar__buffers=buffers, crossbar__latency=20, clocks__l2=1400)
    traffic = Traffic(description)
    addresses = lines(description, 300, slice=0)
    warm(traffic, addresses)
    accepted = traffic.run(script([addresses], kind=STORE, size=4))["accepted"][0]
    assert rate(accepted) == pytest.approx((20 + 1) / buffers, rel=0.03)
    assert traffic.memory.record["requests"]["blocked"][0] > 0
