"""The load-store order, case by case; ``bench_load_store_order.py`` has the random runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.models.jit import view
from lockstep.models.time import NEVER
from lockstep.models.warppool import load_store_order
from lockstep.rtl.warppool.load_store_order import LoadStoreOrder
from lockstep.verif.bench import Bench, seeded
from lockstep.verif.warppool.bench_load_store_order import CONFIGURATIONS, SHAPES, Environment


class Order(Bench):
    """The model with its ports as plain records, one event per cycle at a time."""

    def __init__(self, **parameters: int) -> None:
        super().__init__(load_store_order, **parameters)
        self.ports: Any = view(self.io)

    def clock(self) -> None:
        self.step()
        i = self.ports.i
        i.enter = i.enter_load = i.access.valid = i.line[0].valid = i.line[1].valid = 0

    def enter(self, warp: int, kind: str = "load") -> None:
        self.ports.i.enter |= 1 << warp
        self.ports.i.enter_load |= (kind == "load") << warp

    def line(self, warp: int, last: int, port: int = 0, ready: int = 1) -> None:
        line = self.ports.i.line[port]
        line.valid, line.ready = 1, ready
        line.payload.warp, line.payload.last = warp, last

    def send(self, *warps: int, last: int = 0, kind: str = "load", ready: int = 1) -> None:
        access = self.ports.i.access
        access.valid, access.ready = 1, ready
        access.payload.store, access.payload.atomic = kind == "store", kind == "atomic"
        access.payload.last, access.payload.count = last, len(warps)
        for slot, warp in enumerate(warps):
            access.payload.warps[slot] = warp

    @property
    def busy(self) -> set[int]:
        """The warps that are not drained."""
        return {warp for warp in range(self.parameters["warps"]) if not self.ports.o.drained >> warp & 1}

    @property
    def load_ready(self) -> set[int]:
        return {warp for warp in range(self.parameters["warps"]) if self.ports.o.load_ready >> warp & 1}


PAPER = CONFIGURATIONS["paper"]
EVERY = set(range(PAPER["warps"]))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_counters_reach_the_limit_and_keep_to_it(configuration: str) -> None:
    parameters = CONFIGURATIONS[configuration]
    rng = seeded()
    most = 0
    for shape in SHAPES:
        bench, environment = Order(**parameters), Environment(parameters, shape, rng)
        for _ in range(3000):
            environment.drive(bench.ports.i, bench.ports.o)
            environment.observe(bench.ports.i, bench.ports.o, None)
            bench.step()
            most = max(most, *bench.state["count"])
            assert bench.state["count"].min() >= 0
    assert most == parameters["limit"] or configuration == "large"


def test_a_divergent_load_is_drained_when_its_last_request_is_sent() -> None:
    bench = Order(**PAPER)
    bench.enter(7)
    bench.clock()
    assert bench.busy == {7} and bench.load_ready == EVERY
    for last in (0, 0, 1):
        bench.line(7, last)
        bench.clock()
    assert bench.busy == {7}
    bench.send(7, 7)  # two loads of a warp merged
    bench.clock()
    assert bench.busy == {7}
    bench.send(7)
    bench.clock()
    assert bench.busy == {7}
    bench.clock()
    assert bench.busy == set()


@pytest.mark.parametrize("kind", ["store", "atomic"])
def test_a_store_is_drained_when_the_cache_has_its_last_line(kind: str) -> None:
    bench = Order(**PAPER)
    bench.enter(3, kind)
    bench.clock()
    assert bench.busy == {3} and bench.load_ready == EVERY - {3}
    bench.send(3, kind=kind, last=0)
    bench.clock()
    assert bench.busy == {3}
    bench.send(3, kind=kind, last=1)
    bench.clock()
    assert bench.busy == {3}
    bench.clock()
    assert bench.busy == set() and bench.load_ready == EVERY


def test_loads_follow_loads_and_nothing_follows_a_store() -> None:
    bench = Order(**PAPER)
    bench.enter(1)
    bench.enter(2, "store")
    bench.clock()
    assert bench.busy == {1, 2} and bench.load_ready == EVERY - {2}
    bench.enter(1)
    bench.clock()
    assert bench.load_ready == EVERY - {2}
    bench.enter(1, "store")
    bench.clock()
    assert bench.load_ready == EVERY - {1, 2}


def test_only_what_is_transferred_counts() -> None:
    bench = Order(**PAPER)
    bench.enter(4)
    bench.clock()
    bench.line(4, 0, ready=0)
    bench.clock()
    bench.line(4, 1)
    bench.clock()
    bench.send(4, ready=0)
    bench.clock()
    assert bench.busy == {4}
    bench.send(4)
    bench.clock()
    bench.clock()
    assert bench.busy == set()


def test_everything_at_once_for_one_warp() -> None:
    bench = Order(**PAPER)
    for _ in range(2):
        bench.enter(9)
        bench.clock()
    bench.line(9, 0, port=0)
    bench.line(9, 0, port=1)
    bench.clock()
    bench.enter(9)
    bench.line(9, 0, port=0)
    bench.line(9, 1, port=1)
    bench.send(9, 9)
    bench.clock()
    assert bench.state["count"][9] == 5  # 2 + 2 + 1
    bench.clock()
    assert bench.state["count"][9] == 4  # + 1 - 2


def test_an_empty_block_is_idle_for_ever() -> None:
    bench = Order(**PAPER)
    assert bench.idle() == NEVER
    bench.enter(1)
    assert bench.idle() == 0
    bench.clock()
    assert bench.idle() == NEVER
    bench.send(1, last=1, kind="store")
    bench.clock()
    assert bench.idle() == 0  # it is counted now


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(warps=65), "warps must be 1 to 64, not 65"),
        (dict(coalescers=0), "coalescers must be 1 to 4, not 0"),
        (dict(merges=9), "merges must be 1 to 8, not 9"),
        (dict(limit=1024), "limit must be 1 to 1023, not 1024"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LoadStoreOrder(**arguments)
