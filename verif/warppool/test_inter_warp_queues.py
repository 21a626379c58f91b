"""The inter-warp queues: every line leaves once, under its own number; hardware against the golden model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from lockstep.models.jit import view
from lockstep.models.memory import l1
from lockstep.models.time import NEVER
from lockstep.models.warppool import inter_warp_queues
from lockstep.rtl.warppool.inter_warp_queues import InterWarpQueues
from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import L1_INDEXES
from lockstep.verif.bench import Bench, seeded
from lockstep.verif.blocks import declaration
from lockstep.verif.levels import base_seed
from lockstep.verif.simulate import simulate
from lockstep.verif.trace import Run
from lockstep.verif.warppool.bench_inter_warp_queues import (
    BLOCK,
    CONFIGURATIONS,
    Slot,
    queue_of,
    slot_of,
)

PAPER = CONFIGURATIONS["paper"]


class Queues(Bench):
    """The model with its ports as records of Python's integers."""

    def __init__(self, parameters: dict[str, int] = PAPER) -> None:
        super().__init__(inter_warp_queues, **parameters)
        self.ports = view(self.io)
        self.ports.i.room = 64

    def offer(self, k: int, number: int | None, warp: int = 0, **others: int) -> None:
        """Drive port k; the other fields of the line are 0."""
        line = self.ports.i.line[k]
        line.valid = number is not None
        fields = {"number": number or 0, "bypass": 0, "warp": warp, "ticket": 0, "mapping": 0, "thread": 0, "word": 0}
        for name, value in {**fields, **others}.items():
            setattr(line.payload, name, value)

    def pop(self, tag: int | None) -> None:
        self.ports.i.pop.valid = tag is not None
        self.ports.i.pop.payload.tag = tag or 0

    def quiet(self) -> None:
        for k in range(self.parameters["coalescers"]):
            self.offer(k, None)
        self.pop(None)

    def cycle(self) -> None:
        """One clock edge; what was driven is driven no more."""
        self.step()
        self.quiet()

    def inserts(self) -> list[tuple[int, int, int, int]]:
        """Port, tag, warp, allocated of the inserts in this cycle."""
        events = enumerate(self.ports.o.insert)
        return [(k, e.payload.tag, e.payload.warp, e.payload.allocated) for k, e in events if e.valid]

    def request(self) -> tuple[int, int, list[Slot]] | None:
        """Number, bypass and slots of the request in this cycle."""
        request = self.ports.o.request
        if not request.valid:
            return None
        payload = request.payload
        return payload.number, payload.bypass, [slot_of(payload.slots[n]) for n in range(payload.count)]


def slot(warp: int) -> Slot:
    return warp, 0, 0, 0, 0


def started(parameters: dict[str, int] = PAPER) -> Queues:
    """Past the first cycle, in which no tag may be allocated."""
    bench = Queues(parameters)
    bench.cycle()
    return bench


def test_latencies() -> None:
    """A line is inserted one cycle after its transfer, and presented one after the pop, for one cycle."""
    bench = started()
    bench.offer(0, 5, warp=9, ticket=3, mapping=Mapping.RANGE, thread=17, word=30, bypass=1)
    assert bench.ports.o.line[0].ready and not bench.inserts()
    bench.cycle()
    assert bench.inserts() == [(0, 10, 9, 1)]
    bench.cycle()
    assert not bench.inserts()
    bench.pop(10)
    assert bench.request() is None
    bench.cycle()
    assert bench.request() == (5, 1, [(9, 3, Mapping.RANGE, 17, 30)])
    bench.cycle()
    assert bench.request() is None
    assert bench.ports.o.request.payload.number == 5, "the payload holds"


def test_every_port_inserts_in_every_cycle() -> None:
    bench = started()
    inserted = 0
    for n in range(16):
        bench.offer(0, 2 * n, warp=1)
        bench.offer(1, 2 * n + 1, warp=2)
        assert all(line.ready for line in bench.ports.o.line[:2])
        bench.cycle()
        inserted += len(bench.inserts())
    assert inserted == 32


@pytest.mark.parametrize("popped", [False, True])
def test_a_fifth_line_waits_for_its_tag_to_leave(popped: bool) -> None:
    bench = started()
    for warp in range(5):
        bench.offer(0, 7, warp)
        bench.cycle()
        assert bench.inserts() == ([(0, 14, warp, warp == 0)] if warp < 4 else [])
    bench.cycle()
    assert not bench.inserts(), "the other tag of the queue is free, but a line has one tag"
    if popped:
        bench.pop(14)
        bench.cycle()
        assert bench.request() == (7, 0, [slot(warp) for warp in range(4)])
        assert bench.inserts() == [(0, 14, 4, 1)], "in the cycle after the pop the tag is free again"


def test_what_is_merged_in_the_cycle_of_the_pop_leaves_with_it() -> None:
    bench = started()
    bench.offer(0, 7, warp=1)
    bench.cycle()
    bench.offer(1, 7, warp=2)
    bench.cycle()
    bench.offer(0, 7, warp=3)
    bench.pop(14)
    assert bench.inserts() == [(1, 14, 2, 0)]
    bench.cycle()
    assert bench.request() == (7, 0, [slot(1), slot(2)])
    assert bench.inserts() == [(0, 14, 3, 1)]
    bench.cycle()
    bench.pop(14)
    bench.cycle()
    assert bench.request() == (7, 0, [slot(3)])
    assert [slot_of(empty) for empty in bench.ports.o.request.payload.slots[1:4]] == [slot(0)] * 3


@pytest.mark.parametrize("other, second", [(7, (1, 14, 2, 0)), (7 ^ 1 << 6 ^ 1, (1, 15, 2, 1)), (7 ^ 1 << 12, None)])
def test_one_insert_per_queue_and_cycle(other: int, second: tuple[int, int, int, int] | None) -> None:
    """The same line, another one of the queue, one of another queue."""
    bench = started()
    bench.offer(0, 7, warp=1)
    bench.offer(1, other, warp=2)
    bench.cycle()
    if second is None:
        assert [port for port, *_ in bench.inserts()] == [0, 1]
        return
    assert queue_of(other, PAPER) == queue_of(7, PAPER)
    assert bench.inserts() == [(0, 14, 1, 1)]
    bench.cycle()
    assert bench.inserts() == [second]


def test_a_port_that_waits_holds_the_ports_above_out_of_its_queue_alone() -> None:
    bench = started()
    for warp in range(5):
        bench.offer(0, 7, warp)
        bench.cycle()
    bench.offer(1, 8, warp=9)
    bench.cycle()
    assert bench.inserts() == [(1, 16, 9, 1)]
    bench.offer(1, 7 + 32 * 65, warp=9)
    bench.cycle()
    assert not bench.inserts()
    bench.pop(14)
    bench.cycle()
    assert bench.inserts() == [(0, 14, 4, 1)], "the port below goes first"
    bench.cycle()
    assert bench.inserts() == [(1, 15, 9, 1)]


def test_a_head_leaves_room_for_those_of_the_ports_below() -> None:
    """Although the head below needs none: it waits for its tag, which is full."""
    bench = started()
    for warp in range(5):
        bench.offer(0, 7, warp)
        bench.cycle()
    bench.ports.i.room = 1
    bench.offer(1, 8, warp=9)
    bench.cycle()
    bench.cycle()
    assert not bench.inserts()
    bench.ports.i.room = 2
    bench.cycle()
    assert bench.inserts() == [(1, 16, 9, 1)]


def test_bypass_and_number_make_a_line() -> None:
    bench = started()
    bench.offer(0, 7, warp=1)
    bench.cycle()
    bench.offer(0, 7, warp=2, bypass=1)
    bench.cycle()
    assert bench.inserts() == [(0, 15, 2, 1)]
    bench.offer(0, 7 + 32 * 65, warp=3)
    bench.cycle()
    bench.cycle()
    assert not bench.inserts(), "both tags of the queue are taken"


def test_no_tag_without_room() -> None:
    """What may be allocated is the room of the previous cycle, less what was allocated in it; a merge needs none."""
    bench = Queues()
    assert not bench.inserts()
    bench.offer(0, 1, warp=1)
    bench.offer(1, 2, warp=2)
    bench.ports.i.room = 1
    bench.cycle()
    assert bench.inserts() == [(0, 2, 1, 1)], "after the first cycle there is room for one"
    bench.cycle()
    bench.ports.i.room = 0
    assert not bench.inserts()
    bench.offer(0, 1, warp=3)
    bench.cycle()
    assert bench.inserts() == [(0, 2, 3, 0)]
    bench.cycle()
    assert not bench.inserts()
    bench.ports.i.room = 1
    bench.cycle()
    assert bench.inserts() == [(1, 4, 2, 1)]


def test_the_first_cycle_allocates_nothing() -> None:
    bench = Queues()
    bench.offer(0, 1)
    bench.ports.i.room = 0
    bench.cycle()
    bench.ports.i.room = 64
    assert not bench.inserts()
    bench.cycle()
    assert len(bench.inserts()) == 1


def test_ready_falls_with_two_lines_waiting() -> None:
    bench = Queues()
    bench.ports.i.room = 0
    for n in range(2):
        assert bench.ports.o.line[0].ready
        bench.offer(0, n)
        bench.cycle()
    assert not bench.ports.o.line[0].ready
    assert bench.ports.o.line[1].ready


def test_a_random_line_takes_its_thread_map_entry() -> None:
    bench = started()
    for k, mapping in enumerate((Mapping.RANDOM, Mapping.SINGLE)):
        bench.offer(k, k, warp=k, mapping=mapping, word=21)
        bench.ports.i.map_entry[k] = 6
    bench.cycle()
    bench.cycle()
    for k, mapping, word in (0, Mapping.RANDOM, 6), (1, Mapping.SINGLE, 21):
        bench.pop(2 * k)
        bench.cycle()
        assert bench.request() == (k, 0, [(k, 0, mapping, 0, word)])


@pytest.mark.parametrize("index", range(len(L1_INDEXES)))
@pytest.mark.parametrize("sets", [1, 32, 64, 128, 2048])
def test_queues_are_chosen_as_the_sets_of_the_l1(sets: int, index: int) -> None:
    rng = seeded()
    set_bits = (sets - 1).bit_length()
    set_index = getattr(l1.set_index, "py_func", l1.set_index)
    for queues in (1, 8, 32):
        parameters = {**PAPER, "queues": min(queues, sets), "index": index, "set_bits": set_bits}
        for _ in range(20):
            number = rng.getrandbits(27)
            bench = started(parameters)
            bench.offer(0, number)
            bench.cycle()
            queue = set_index(SimpleNamespace(index=index, set_bits=set_bits, sets=sets), number) % parameters["queues"]
            assert bench.inserts() == [(0, 2 * queue, 0, 1)]


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"queues": 12}, "queues must be a power of two, not 12"),
        ({"queues": 32, "tags": 3}, r"queues \* tags must be at most 64, not 32 \* 3"),
        ({"merges": 9}, "merges must be 1 to 8, not 9"),
        ({"coalescers": 0}, "coalescers must be 1 to 4, not 0"),
        ({"lanes": 33}, "lanes must be 1 to 32, not 33"),
        ({"set_bits": 12}, "set_bits must be 0 to 11, not 12"),
        ({"index": 3}, "index must be 0 to 2, not 3"),
        ({"maps": 0}, "maps must be 1 to 32, not 0"),
    ],
)
def test_arguments_are_checked(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        InterWarpQueues(**wrong)


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("queues, tags, merges, coalescers", [(8, 8, 8, 4), (64, 1, 2, 4), (2, 8, 1, 3)])
def test_other_sizes(queues: int, tags: int, merges: int, coalescers: int) -> None:
    sizes = dict(queues=queues, tags=tags, merges=merges, coalescers=coalescers)
    parameters = {**InterWarpQueues.LARGEST, **sizes}
    seed = base_seed()
    print(f"LOCKSTEP_SEED={seed}")
    other = replace(declaration(BLOCK), configurations={"other": parameters})
    assert simulate(other, "other", [Run("other", shape, seed) for shape in ("few", "room")], 300).failures == []


def test_an_empty_block_is_idle_for_ever() -> None:
    bench = started()
    assert bench.idle() == NEVER
    bench.offer(0, 1)
    assert bench.idle() == 0
    bench.cycle()
    assert bench.idle() == 0, "the line is inserted"
    bench.cycle()
    assert bench.idle() == NEVER
    bench.ports.i.room = 0
    assert bench.idle() == 0, "the room is about to be known"
