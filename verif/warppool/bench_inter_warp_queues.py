"""Stimulus, end-to-end checks and coverage of ``warppool.inter_warp_queues``."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lockstep.spec.mapping import Mapping
from lockstep.spec.parameters import FERMI, FOLD, LINEAR
from lockstep.spec.warppool.parameters import MAX_TAGS

BLOCK = "warppool.inter_warp_queues"
CONFIGURATIONS = {
    "paper": dict(
        lanes=32, warps=48, tickets=16, queues=32, tags=2, merges=4, coalescers=2, set_bits=6, maps=8,
        index=FERMI,
    ),
    "one": dict(
        lanes=1, warps=1, tickets=1, queues=1, tags=1, merges=1, coalescers=1, set_bits=0, maps=1,
        index=LINEAR,
    ),
    "odd": dict(
        lanes=5, warps=7, tickets=3, queues=4, tags=3, merges=3, coalescers=3, set_bits=5, maps=6,
        index=FOLD,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How the coalescers and the selector behave. Probabilities are per cycle, and per port where there are several."""

    line: float  # a port that offers nothing offers a line
    numbers: int  # lines in the working set
    renewal: float  # a line of the working set is replaced
    pop: float  # the selector pops
    chase: float  # it then prefers a tag that is merged into in this cycle
    positions: int  # that the selector has; 0: as many as there are tags
    release: float  # a position that was popped becomes free, as the selector's head passes it
    scattered: bool = False  # lines anywhere, in all queues alike
    pauses: bool = False  # the coalescers and the selector pause, by turns


_SHAPES = {
    "steady": Shape(line=1, numbers=64, renewal=0.05, pop=1, chase=0, positions=0, release=1),
    "stalled": Shape(line=1, numbers=96, renewal=0.1, pop=0.15, chase=0.2, positions=0, release=0.5),
    "full": Shape(line=1, numbers=512, renewal=0.5, pop=0.8, chase=0, positions=0, release=1, scattered=True),
    "bursts": Shape(line=0.8, numbers=24, renewal=0.1, pop=0.9, chase=0.3, positions=MAX_TAGS, release=1, pauses=True),
    "few": Shape(line=0.9, numbers=3, renewal=0.08, pop=0.4, chase=0.5, positions=0, release=1),
    "chase": Shape(line=0.9, numbers=6, renewal=0.08, pop=0.7, chase=1, positions=0, release=0.8),
    "room": Shape(line=0.9, numbers=32, renewal=0.1, pop=0.5, chase=0.1, positions=3, release=0.3),
    "sparse": Shape(line=0.2, numbers=8, renewal=0.3, pop=0.3, chase=0.5, positions=0, release=0.5),
}
SHAPES = tuple(_SHAPES)
NUMBER_BITS = 27
DRAIN_EVERY = 500  # cycles

Slot = tuple[int, int, int, int, int]  # warp, ticket, mapping, thread, word
Key = tuple[int, int]  # number, bypass
FIELDS = ("warp", "ticket", "mapping", "thread", "word")


def fields(parameters: dict[str, int]) -> list[range | tuple[int, ...]]:
    """The bits of a line's number that choose its queue, the lowest first: all fields, exclusive or."""
    index = parameters["index"]
    bits, used = parameters["set_bits"], (parameters["queues"] - 1).bit_length()
    if index == FOLD:
        return [range(first, first + used) for first in (0, bits, 2 * bits)]
    return [range(used), (6, 7, 8, 10, 12)[:used]] if index == FERMI else [range(used)]


def queue_of(number: int, parameters: dict[str, int]) -> int:
    queue = 0
    for chosen in fields(parameters):
        queue ^= sum((number >> bit & 1) << place for place, bit in enumerate(chosen))
    return queue


def slot_of(record: Any) -> Slot:
    return tuple(int(getattr(record, name)) for name in FIELDS)  # type: ignore[return-value]


@dataclass
class Tag:
    """What the inserts so far have put under a tag."""

    key: Key
    slots: list[Slot] = field(default_factory=list)


class Environment:
    """Coalescers that offer lines, and a selector that pops tags and counts its positions.

    The check follows each line by the ``insert`` events: it leaves its port in order, under the tag of its number and
    bypass, of which there is one; the tag leaves with all its lines in order when it is popped, and only then. No head
    waits without a reason, and at times everything is drained and counted.
    """

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.ports = range(parameters["coalescers"])
        self.tags = parameters["queues"] * parameters["tags"]
        self.room = self.positions = self.shape.positions or self.tags
        self.passing = 0  # positions that were popped and are not free yet
        self.budget = 0  # at the start, the tags that may be allocated are not known
        self.keys: list[Key] = []
        while len(self.keys) < self.shape.numbers:
            self.keys.append(self.new_key())
        self.offered = [False for _ in self.ports]
        self.buffered: list[list[tuple[Key, Slot]]] = [[] for _ in self.ports]
        self.tag: dict[int, Tag] = {}
        self.due: Tag | None = None  # the request of the next cycle
        self.last = Tag((0, 0))
        self.entered = self.left = self.drained = 0
        self.cycle = 0
        self.draining = self.pause_lines = self.pause_pops = False

    # ------------------------------------------------------------------------------------------------------- stimulus

    def new_key(self) -> Key:
        """A line: anywhere, or beside one of the working set: one bit off, in its queue, with the other bypass."""
        rng = self.rng
        number, bypass = rng.getrandbits(NUMBER_BITS), int(rng.random() < 0.3)
        if not self.keys or self.shape.scattered:
            return number, bypass
        near, how = rng.choice(self.keys), rng.random()
        if how < 0.15:
            return near[0], 1 - near[1]
        if how < 0.65:
            number, bypass = near[0] ^ 1 << rng.randrange(NUMBER_BITS), near[1]
        if how < 0.9:
            difference = queue_of(number, self.parameters) ^ queue_of(near[0], self.parameters)
            chosen = rng.choice([each for each in fields(self.parameters) if difference >> len(each) == 0])
            number ^= sum((difference >> place & 1) << bit for place, bit in enumerate(chosen))
        return number, bypass

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        if shape.pauses and rng.random() < 0.03:
            self.pause_lines, self.pause_pops = rng.random() < 0.4, rng.random() < 0.4
        if self.cycle % DRAIN_EVERY == DRAIN_EVERY - 1:
            self.draining = True
            self.drain_until = self.cycle + 100 + 12 * self.tags * self.parameters["merges"]
        if rng.random() < shape.renewal:
            self.keys[rng.randrange(len(self.keys))] = self.new_key()
        lines = 0 if self.draining or self.pause_lines else shape.line
        for k in self.ports:
            if not self.offered[k]:
                i.line[k].valid = self.offered[k] = rng.random() < lines
                self._randomise(i.line[k].payload)
            i.map_entry[k] = rng.getrandbits((self.parameters["maps"] - 1).bit_length() or 1)
        self._pop(i, o)
        if self.passing and rng.random() < (1 if self.draining else shape.release):
            released = rng.randint(1, self.passing)
            self.room += released
            self.passing -= released
        i.room = self.room

    def _randomise(self, line: Any) -> None:
        rng = self.rng
        line.number, line.bypass = rng.choice(self.keys)
        line.warp = rng.getrandbits((self.parameters["warps"] - 1).bit_length() or 1)
        line.ticket = rng.getrandbits((self.parameters["tickets"] - 1).bit_length() or 1)
        line.mapping = rng.randrange(len(Mapping))
        line.thread = rng.getrandbits((self.parameters["lanes"] - 1).bit_length() or 1)
        line.word = rng.getrandbits(5)

    def _pop(self, i: Any, o: Any) -> None:
        """Pop a tag that was allocated in an earlier cycle."""
        rng = self.rng
        pops = 0.8 if self.draining else 0 if self.pause_pops else self.shape.pop
        i.pop.valid = bool(self.tag) and rng.random() < pops
        if not i.pop.valid:
            i.pop.payload.tag = rng.randrange(self.tags)
            return
        merging = [e.payload.tag for e in o.insert if e.valid and not e.payload.allocated and e.payload.tag in self.tag]
        if merging and rng.random() < self.shape.chase:
            i.pop.payload.tag = rng.choice(merging)
        elif rng.random() < 0.5:
            i.pop.payload.tag = next(iter(self.tag))
        else:
            i.pop.payload.tag = rng.choice(list(self.tag))

    # ---------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self._request(o.request)
        allocations = self._inserts(o.insert)
        assert allocations <= i.room, "the selector has no position for a tag that is allocated"
        self.due = None
        if i.pop.valid:
            self.due = self.tag.pop(i.pop.payload.tag)
            self.left += len(self.due.slots)
            self.passing += 1
        self.budget = i.room - allocations
        self.room -= allocations
        for k in self.ports:
            assert o.line[k].ready == (len(self.buffered[k]) + self.inserted[k] < 2)
            if i.line[k].valid and o.line[k].ready:
                line = i.line[k].payload
                slot = slot_of(line)
                if line.mapping == Mapping.RANDOM:
                    slot = (*slot[:4], int(i.map_entry[k]))
                self.buffered[k].append(((line.number, line.bypass), slot))
                self.entered += 1
                self.offered[k] = False
        self._drain()
        self.cycle += 1

    def _request(self, request: Any) -> None:
        """The tag popped in the previous cycle, and none else."""
        assert request.valid == (self.due is not None)
        self.last = self.due or self.last
        payload = request.payload
        got = [slot_of(payload.slots[n]) for n in range(self.parameters["merges"])]
        empty: list[Slot] = [(0, 0, 0, 0, 0)] * (self.parameters["merges"] - len(self.last.slots))
        assert (payload.number, payload.bypass) == self.last.key
        assert payload.count == len(self.last.slots)
        assert got == self.last.slots + empty

    def _inserts(self, events: Any) -> int:
        """Follow the inserts of this cycle; the tags allocated."""
        old = {tag.key: (place, len(tag.slots)) for place, tag in self.tag.items()}
        in_use = set(self.tag)
        allocations = heads = 0  # heads: of the ports below
        taken: set[int] = set()  # queues of these
        self.inserted = [0 for _ in self.ports]
        for k in self.ports:
            event, payload = events[k], events[k].payload
            if not self.buffered[k]:
                assert not event.valid, "nothing to insert"
            if not event.valid:
                assert (payload.tag, payload.warp, payload.allocated) == (0, 0, 0)
                if self.buffered[k]:
                    self._may_wait(k, old, in_use, taken, self.budget - heads)
                    taken.add(queue_of(self.buffered[k][0][0][0], self.parameters))
                    heads += 1
                continue
            heads += 1
            key, slot = self.buffered[k].pop(0)
            self.inserted[k] = 1
            queue = queue_of(key[0], self.parameters)
            assert payload.tag // self.parameters["tags"] == queue, "a tag of another queue"
            assert queue not in taken, "a lower port's head has this queue"
            assert payload.warp == slot[0]
            taken.add(queue)
            if payload.allocated:
                assert payload.tag not in in_use, "a tag that is in use was allocated"
                assert key not in old, "a line got a second tag"
                first = queue * self.parameters["tags"]
                assert in_use.issuperset(range(first, payload.tag)), "a lower tag of the queue is free"
                assert self.budget >= heads, "the selector has no room for the lower ports' heads and this one"
                self.tag[payload.tag] = Tag(key)
                allocations += 1
            else:
                assert payload.tag in in_use and self.tag[payload.tag].key == key, "merged into another line's tag"
            self.tag[payload.tag].slots.append(slot)
            assert len(self.tag[payload.tag].slots) <= self.parameters["merges"]
        return allocations

    def _may_wait(
        self, k: int, old: dict[Key, tuple[int, int]], in_use: set[int], taken: set[int], budget: int
    ) -> None:
        """A head is inserted unless a lower port's has its queue, its tag is full, no tag is free, or no position."""
        key = self.buffered[k][0][0]
        queue, tags = queue_of(key[0], self.parameters), self.parameters["tags"]
        if queue in taken:
            return
        if key in old:
            assert old[key][1] == self.parameters["merges"], "a head waits although its tag has a slot left"
        else:
            free = [tag for tag in range(queue * tags, queue * tags + tags) if tag not in in_use]
            assert not free or budget <= 0, "a head waits although a tag is free"

    def _drain(self) -> None:
        if self.draining:
            assert self.cycle < self.drain_until, "something is stuck"
            if not self.tag and not any(self.buffered) and not any(self.offered):
                assert self.entered == self.left
                self.drained += 1
                self.draining = False

    def finish(self) -> None:
        """What entered has left, or is under a tag, or in a buffer."""
        inside = sum(len(tag.slots) for tag in self.tag.values()) + sum(map(len, self.buffered))
        assert self.entered == self.left + inside
        assert self.drained >= self.cycle // (2 * DRAIN_EVERY)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _inserted(o: Any) -> list[Any]:
    return [event.payload for event in o.insert if event.valid]


def _merged(o: Any) -> list[Any]:
    return [insert for insert in _inserted(o) if not insert.allocated]


def _transferred(i: Any, o: Any) -> list[Any]:
    return [seen.payload for seen, back in zip(i.line, o.line, strict=True) if seen.valid and back.ready]


def _allocations(o: Any) -> int:
    return sum(event.payload.allocated for event in o.insert)


def _in_queue_of_request(parameters: dict[str, int], o: Any) -> list[Any]:
    """The allocations in the queue whose tag was popped in the previous cycle."""
    if not o.request.valid:
        return []
    queue = queue_of(o.request.payload.number, parameters)
    return [i for i in _inserted(o) if i.allocated and i.tag // parameters["tags"] == queue]


def _pairs(i: Any) -> list[tuple[Any, Any]]:
    """The lines offered, two by two."""
    lines = [line.payload for line in i.line if line.valid]
    return [(a, b) for n, a in enumerate(lines) for b in lines[n + 1 :]]


def _same_queue(p: dict[str, int], i: Any) -> bool:
    return any(a.number != b.number and queue_of(a.number, p) == queue_of(b.number, p) for a, b in _pairs(i))


BINS: dict[str, Bin] = {
    "allocation": lambda p, i, o, c: _allocations(o) > 0,
    "merge": lambda p, i, o, c: bool(_merged(o)),
    "allocations on two ports": lambda p, i, o, c: _allocations(o) > 1,
    "merges on two ports": lambda p, i, o, c: len(_merged(o)) > 1,
    "all ports insert": lambda p, i, o, c: len(_inserted(o)) == p["coalescers"],
    "a higher port inserts alone": lambda p, i, o, c: not o.insert[0].valid and len(_inserted(o)) > 0,
    "merge into the tag that is popped": lambda p, i, o, c: bool(i.pop.valid)
    and any(insert.tag == i.pop.payload.tag for insert in _merged(o)),
    "insert beside the tag that is popped": lambda p, i, o, c: bool(i.pop.valid)
    and any(
        insert.tag != i.pop.payload.tag and insert.tag // p["tags"] == i.pop.payload.tag // p["tags"]
        for insert in _inserted(o)
    ),
    "pops in a row": lambda p, i, o, c: bool(i.pop.valid and o.request.valid),
    "allocation anew in the queue of the last pop": lambda p, i, o, c: bool(_in_queue_of_request(p, o)),
    "allocation after a full tag left": lambda p, i, o, c: o.request.payload.count == p["merges"]
    and bool(_in_queue_of_request(p, o)),
    "request with one slot": lambda p, i, o, c: bool(o.request.valid) and o.request.payload.count == 1,
    "request with all slots": lambda p, i, o, c: bool(o.request.valid) and o.request.payload.count == p["merges"],
    "request that bypasses the L1": lambda p, i, o, c: bool(o.request.valid and o.request.payload.bypass),
    "no room": lambda p, i, o, c: i.room == 0,
    "the last room is taken": lambda p, i, o, c: i.room == _allocations(o) > 0,
    "merge without room": lambda p, i, o, c: i.room == 0 and bool(_merged(o)),
    "a port refuses": lambda p, i, o, c: any(line.valid and not o.line[k].ready for k, line in enumerate(i.line)),
    "all ports take a line": lambda p, i, o, c: len(_transferred(i, o)) == p["coalescers"],
    "the same line on two ports": lambda p, i, o, c: any(a.number == b.number for a, b in _pairs(i)),
    "two lines of a queue on two ports": lambda p, i, o, c: _same_queue(p, i),
    "a line with a thread-map entry": lambda p, i, o, c: any(
        line.mapping == Mapping.RANDOM for line in _transferred(i, o)
    ),
    "the last tag": lambda p, i, o, c: any(
        insert.tag == p["queues"] * p["tags"] - 1 for insert in _inserted(o)
    ),
    "nothing happens": lambda p, i, o, c: not (_transferred(i, o) or _inserted(o) or i.pop.valid or o.request.valid),
}  # fmt: skip

IN_KERNELS = ("a port refuses", "no room", "the last room is taken", "merge without room", "nothing happens")

# A queue takes one line per cycle; a tag without further slots takes no second line; a port has one line at a time; a
# tag that was popped is allocated in the next cycle at the earliest, and popped in the one after that.
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "merge": lambda p: p["merges"] == 1,
    "merge into the tag that is popped": lambda p: p["merges"] == 1,
    "merge without room": lambda p: p["merges"] == 1,
    "merges on two ports": lambda p: p["merges"] == 1 or min(p["coalescers"], p["queues"]) == 1,
    "allocations on two ports": lambda p: min(p["coalescers"], p["queues"]) == 1,
    "all ports insert": lambda p: p["queues"] < p["coalescers"],
    "a higher port inserts alone": lambda p: p["coalescers"] == 1,
    "the same line on two ports": lambda p: p["coalescers"] == 1,
    "two lines of a queue on two ports": lambda p: p["coalescers"] == 1,
    "insert beside the tag that is popped": lambda p: p["tags"] == 1,
    "pops in a row": lambda p: p["queues"] * p["tags"] == 1,
}
