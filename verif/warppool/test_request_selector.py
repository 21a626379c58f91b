"""The request selector, case by case; ``bench_request_selector.py`` has the random runs."""

from __future__ import annotations

import pytest

from lockstep.models.jit import view
from lockstep.models.warppool import request_selector
from lockstep.rtl.warppool.request_selector import RequestSelector
from lockstep.verif.bench import Bench
from lockstep.verif.warppool.bench_request_selector import CONFIGURATIONS

SMALL = dict(
    lanes=4, warps=8, tickets=2, tags=4, merges=2, coalescers=2, metadata=8, quantum=1000, store_wait=6
)  # fmt: skip


class Selector(Bench):
    """The model, its ports with plain integers, an L1 that takes everything, and queues that answer each pop."""

    def __init__(self, **parameters: int) -> None:
        super().__init__(request_selector, **SMALL | parameters)
        ports = view(self.io)
        self.inputs, self.outputs = ports.i, ports.o
        self.inputs.access.ready, self.inputs.metadata_free = 1, self.parameters["metadata"]
        self.step()  # metadata is seen

    def allocate(self, port: int, tag: int, warp: int, allocated: int = 1) -> None:
        insert = self.inputs.insert[port]
        insert.valid, insert.payload.tag, insert.payload.warp, insert.payload.allocated = 1, tag, warp, allocated

    def offer(self, port: int, number: int = 0, atomic: int = 0) -> None:
        store = self.inputs.store[port]
        store.valid, store.payload.number, store.payload.atomic = 1, number, atomic

    def advance(self) -> int | None:
        """A cycle; inserts last for one, stores until they are taken. The tag that was popped."""
        popped = self.outputs.pop.payload.tag if self.outputs.pop.valid else None
        taken = [port for port in range(self.parameters["coalescers"]) if self.outputs.store[port].ready]
        self.step()
        for port in range(self.parameters["coalescers"]):
            self.inputs.insert[port].valid = 0
        for port in taken:
            self.inputs.store[port].valid = 0
        request = self.inputs.request
        request.valid, request.payload.count = popped is not None, 1
        if popped is not None:
            request.payload.number = 100 + popped
        return popped

    def pops(self, cycles: int) -> list[int | None]:
        return [self.advance() for _ in range(cycles)]

    def fill(self, *warps: int) -> None:
        """Lines in tags 0, 1, ..., one per cycle, while the L1 and metadata let nothing out."""
        self.inputs.metadata_free = 0
        self.advance()
        for tag, warp in enumerate(warps):
            self.allocate(0, tag, warp)
            self.advance()

    def missing(self) -> None:
        """A quantum of misses, so that the next one selects by warp."""
        access = self.outputs.access
        self.inputs.miss = 1
        self.allocate(0, 0, 0)
        while not self.outputs.policy:
            self.advance()
        assert not access.valid


def test_latency_of_a_load() -> None:
    bench = Selector()
    bench.allocate(0, 3, 1)
    assert bench.pops(2) == [None, 3]  # inserted in cycle 0
    assert not bench.outputs.access.valid  # 2: the request arrives
    bench.advance()
    assert bench.outputs.access.valid and bench.outputs.access.payload.number == 103
    bench.advance()
    assert not bench.outputs.access.valid


def test_latency_of_a_store() -> None:
    bench = Selector()
    bench.offer(1, 7)
    assert bench.outputs.store[1].ready
    bench.advance()
    access = bench.outputs.access
    assert not access.valid
    bench.advance()
    assert access.valid and access.payload.number == 7 and access.payload.store


def test_a_port_holds_two_stores() -> None:
    bench = Selector()
    bench.inputs.access.ready = 0
    entered = []
    for number in range(8):
        bench.offer(0, number)
        entered.append(bench.outputs.store[0].ready)
        bench.advance()
    assert entered == [1, 1, 1, 1, 1, 0, 0, 0]  # three of them are on their way


def test_one_request_per_cycle() -> None:
    bench = Selector(tags=8)
    left = 0
    for cycle in range(20):
        bench.allocate(0, cycle % 4, 0)
        bench.advance()
        left += bench.outputs.access.valid
    assert left == 18


def test_stores_of_two_ports_fill_every_cycle() -> None:
    bench = Selector()
    left = 0
    for _ in range(20):
        bench.offer(0)
        bench.offer(1)
        bench.advance()
        left += bench.outputs.access.valid
    assert left == 19


def test_three_on_their_way_when_the_l1_refuses() -> None:
    bench = Selector()
    bench.fill(0, 0, 0, 0)
    bench.inputs.metadata_free, bench.inputs.access.ready = 8, 0
    assert [tag for tag in bench.pops(10) if tag is not None] == [0, 1, 2]


def test_oldest_first_port_0_before_1() -> None:
    bench = Selector()
    bench.fill()
    for tags in ((2, 0), (3, 1)):
        for port, tag in enumerate(tags):
            bench.allocate(port, tag, 7 - tag)
        bench.advance()
    bench.inputs.metadata_free = 8
    assert bench.pops(5) == [None, 2, 0, 3, 1]


def test_lines_of_the_lowest_warp_follow_oldest_first() -> None:
    bench = Selector(quantum=64, tags=8)
    bench.missing()
    bench.fill(5, 3, 4, 3, 3)
    bench.pops(20)
    bench.inputs.metadata_free = 8
    assert bench.pops(6) == [None, 0, 1, 3, 4, 2]  # the first came alone


def test_a_search_sees_what_waits_as_it_begins() -> None:
    bench = Selector(quantum=64)
    bench.missing()
    bench.fill(5, 5)
    bench.allocate(0, 2, 5)
    bench.pops(1)  # the search begins without it
    bench.inputs.metadata_free = 8
    assert bench.pops(11) == [*[None] * 4, 0, *[None] * 4, 1, 2]


def test_a_line_with_a_lower_warp_than_was_found_is_searched_for() -> None:
    bench = Selector(quantum=64, tags=8)
    bench.missing()
    bench.fill(5, 5, 5)
    bench.pops(10)
    bench.allocate(0, 3, 6)
    bench.pops(6)
    bench.allocate(0, 4, 3)
    bench.pops(10)
    bench.inputs.metadata_free = 8
    assert bench.pops(10) == [None, 0, 4, *[None] * 4, 1, 2, 3]


def test_a_merge_that_lowers_a_warp_begins_the_search_anew() -> None:
    bench = Selector(quantum=64)
    bench.missing()
    bench.fill(5, 5, 4)
    bench.pops(10)
    bench.allocate(0, 1, 2, allocated=0)
    bench.pops(8)
    bench.inputs.metadata_free = 8
    assert bench.pops(4) == [None, 0, 1, 2]


def test_a_merge_lowers_the_warp_and_never_raises_it() -> None:
    bench = Selector(quantum=64)
    bench.missing()
    bench.fill(5, 3, 4)
    bench.allocate(0, 0, 2, allocated=0)
    bench.allocate(1, 1, 7, allocated=0)
    bench.pops(20)
    bench.inputs.metadata_free = 8
    assert bench.pops(4) == [None, 0, 1, 2]


def test_a_line_that_waits_alone_needs_no_search() -> None:
    bench = Selector(quantum=64)
    bench.missing()
    bench.allocate(0, 2, 5)
    assert bench.pops(2) == [None, 2]


def test_positions_behind_the_head_are_free_only_with_it() -> None:
    bench = Selector(quantum=64, tags=5)
    bench.missing()
    bench.fill(1, 5, 3)
    bench.pops(20)
    bench.inputs.metadata_free = 8
    rooms = []
    for _ in range(5):
        bench.advance()
        rooms.append(bench.outputs.room)
    assert rooms == [2, 2, 3, 3, 5]  # tag 0 left, then 2, and then 1


def test_a_full_order_sends_the_oldest() -> None:
    bench = Selector(quantum=64)
    bench.missing()
    bench.fill(5, 3, 4, 1)
    assert bench.outputs.room == 0
    bench.inputs.metadata_free = 8
    assert bench.pops(4) == [None, 0, 1, None]  # once more, since room says a cycle later that there is some
    assert bench.pops(6) == [*[None] * 4, 3, 2]


@pytest.mark.parametrize("hits, lookups, toggles", [(0, 1, 1), (1, 100, 0), (1, 101, 1), (2, 200, 0), (2, 201, 1)])
def test_the_policy_toggles_above_99_percent(hits: int, lookups: int, toggles: int) -> None:
    bench = Selector(quantum=256, tags=8)
    done = 0
    for cycle in range(255):
        if cycle < lookups:
            bench.allocate(0, cycle % 8, 0)
        done += bench.outputs.access.valid
        bench.inputs.miss = done > hits
        assert not bench.outputs.policy
        bench.advance()
    assert done == lookups
    assert bench.outputs.policy == toggles


@pytest.mark.parametrize("bypass", [0, 1])
def test_loads_that_bypass_the_l1_are_no_misses(bypass: int) -> None:
    bench = Selector(quantum=16)
    bench.inputs.miss, bench.inputs.request.payload.bypass = 1, bypass
    bench.allocate(0, 1, 0)
    bench.pops(16)
    assert bench.outputs.policy == (not bypass)


def actions(bench: Selector, cycles: int) -> str:
    """What is done while there always are a load and a store at each port: *l*, *a*, *b*; capitals are overdue."""
    done = ""
    for cycle in range(cycles):
        bench.offer(0)
        bench.offer(1)
        if bench.outputs.room > 1:
            bench.allocate(0, cycle % 4, 0)
        action = "l" if bench.outputs.pop.valid else "ab."[bench.state["taken"]]
        done += action.upper() if bench.outputs.overdue else action
        bench.advance()
    return done


def test_overdue_stores_go_before_loads_in_turn() -> None:
    assert actions(Selector(), 24) == ".llllllBlAllllBlAllllBlA"


def test_a_store_waits_for_store_wait_cycles() -> None:
    bench = Selector()
    bench.fill(0, 0, 0)
    bench.inputs.metadata_free = 8
    bench.advance()
    bench.offer(1)
    bench.advance()
    waited = 0
    while not bench.outputs.overdue:
        if bench.outputs.room > 1:
            bench.allocate(0, waited % 4, 0)
        bench.advance()
        waited += 1
    assert waited == SMALL["store_wait"]


def test_neither_loads_nor_stores_starve_behind_a_slow_l1() -> None:
    """Every store is overdue before the L1 takes another request: they alternate with loads, and take turns."""
    bench = Selector(store_wait=1)
    bench.inputs.access.ready = 0
    done = ""
    for cycle in range(200):
        bench.inputs.access.ready = cycle % 10 == 9
        done += actions(bench, 1).strip(".")
    assert len(done) > 15
    assert "lAlBlAlBlAlB" in done


def test_atomics_and_loads_wait_for_metadata_and_stores_do_not() -> None:
    bench = Selector()
    bench.fill(0)
    bench.offer(0, atomic=1)
    bench.offer(1)
    sent = []
    for _ in range(10):
        assert not bench.outputs.pop.valid
        bench.advance()
        sent.append(bench.outputs.access.valid and bench.outputs.access.payload.store)
    assert sent == [0, 1, *[0] * 8]
    bench.inputs.metadata_free = 1
    bench.advance()
    assert bench.outputs.overdue  # the one entry is the atomic's
    assert bench.pops(2) == [None, None] and not bench.outputs.access.valid
    bench.inputs.metadata_free = 0  # the atomic has it
    assert bench.pops(3) == [None, None, None]


@pytest.mark.parametrize("name", CONFIGURATIONS["paper"])
def test_arguments_are_checked(name: str) -> None:
    for value in 0, RequestSelector.LARGEST[name] + 1:
        with pytest.raises(ValueError, match=f"{name} must be 1 to {RequestSelector.LARGEST[name]}, not {value}"):
            RequestSelector(**{name: value})
