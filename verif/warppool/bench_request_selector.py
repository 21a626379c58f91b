"""Bench of the request selector: the inter-warp queues, the store ports and the L1 around it, and what must hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amaranth.utils import bits_for

from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import mask
from lockstep.verif.warppool.quantum import EXACTLY, MORE, Quantum, Threshold

BLOCK = "warppool.request_selector"

CONFIGURATIONS = {
    "paper": dict(
        lanes=32, warps=48, tickets=16, tags=64, merges=4, coalescers=2, metadata=256, quantum=256, store_wait=64
    ),
    "one": dict(lanes=1, warps=1, tickets=1, tags=1, merges=1, coalescers=1, metadata=1, quantum=16, store_wait=1),
    "odd": dict(lanes=5, warps=7, tickets=3, tags=5, merges=3, coalescers=3, metadata=9, quantum=113, store_wait=5),
    "shipped": dict(
        lanes=32, warps=48, tickets=16, tags=64, merges=4, coalescers=2, metadata=256, quantum=100_000, store_wait=64
    ),
}
IDLE_CHANGES = (r"cycle", r"waited_\d", r"late", r"least")


BEFORE, SINCE = "a lower warp came just before the search", "a lower warp came during the search"


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle (and port), of a burst beginning and ending, and of what a thing is."""

    insert: float = 0.5
    pause: float = 0.0  # the coalescers begin to insert nothing, for 50 cycles on average
    merge: float = 0.3  # of the inserts, where a tag can merge
    store: float = 0.2
    atomic: float = 0.3  # of the stores
    ready: float = 0.7
    stall: float = 0.0  # the L1 begins to refuse everything, for 20 cycles on average
    release: float = 0.9
    spare: int = 0  # metadata entries that are not in use from the start to the end; 0: all
    hit: float = 0.3  # of the loads
    bypass: float = 0.2  # of the lines
    same: float = 0.0  # of the lines: of the same warp as the one before at their port
    near: float = 0.0  # of the lines: of a warp whose number differs from that of the one before in one bit
    by_warp: bool = False  # the L1 misses until the policy is *warp ID*, which it keeps then
    threshold: bool = False  # the L1 brings each quantum to the border of the 99 % rule


_SHAPES = {
    "steady": Shape(),
    "full": Shape(insert=1.0, merge=0.1, ready=0.4),
    "fast": Shape(insert=0.9, merge=0.0, ready=1.0, release=1.0, hit=0.004, store=0.02),
    "hitting": Shape(insert=0.9, merge=0.0, ready=1.0, release=1.0, hit=0.95, store=0.02, bypass=0.02),
    "missing": Shape(insert=0.8, pause=0.04, merge=0.5, hit=0.0, bypass=0.02, same=0.6),
    "merging": Shape(insert=1.0, merge=0.95, store=0.05, ready=0.9, hit=0.0),
    "stores": Shape(insert=0.05, store=0.9, atomic=0.2, ready=0.9),
    "scarce": Shape(release=0.15, spare=3, atomic=0.7, store=0.4),  # as many as there are requests on their way
    "stalled": Shape(insert=0.8, store=0.6, ready=0.06, stall=0.01, hit=0.0, same=0.6),
    "patient": Shape(insert=0.2, pause=0.01, store=0.02, ready=0.2, hit=0.01, bypass=0.02, same=0.8),
    "by warp": Shape(insert=0.06, ready=0.9, same=0.3, near=0.5, by_warp=True),
    "by warp, busy": Shape(insert=0.15, merge=0.5, store=0.05, ready=0.9, bypass=0.0, same=0.2, near=0.6, by_warp=True),
    "by warp, slowly": Shape(insert=0.2, pause=0.02, store=0.02, ready=0.2, same=0.3, near=0.5, by_warp=True),
    "sparse": Shape(insert=0.03, merge=0.6, store=0.02, stall=0.05),
    "threshold": Shape(insert=0.9, merge=0.0, ready=1.0, release=1.0, store=0.002, bypass=0.002, threshold=True),
}
SHAPES = tuple(_SHAPES)


@dataclass
class Line:
    """What a tag of the inter-warp queues holds."""

    number: int
    bypass: int
    slots: list[dict[str, int]] = field(default_factory=list)


def _assign(record: Any, values: dict[str, int]) -> None:
    for name, value in values.items():
        setattr(record, name, value)


class Environment:
    """The neighbours. The tags of the inter-warp queues are one pool here, in which any can be allocated."""

    CYCLES = 2500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.ports = range(parameters["coalescers"])
        self.lines: dict[int, Line] = {}
        self.leaving: Line | None = None  # popped in the cycle before
        self.budget = 0
        self.fresh: list[int] = []  # tags allocated in the cycle before
        self.warps = [0 for _ in self.ports]  # of the last line at each port
        self.offered: list[dict[str, int] | None] = [None for _ in self.ports]
        self.held = max(parameters["metadata"] - self.shape.spare, 0) if self.shape.spare else 0
        self.in_use = self.held
        self.stalled = self.paused = False
        self.checker = Checker(parameters)
        self.threshold = Threshold(self.checker.quantum, rng)

    def preset(self) -> dict[str, int]:
        return self.checker.quantum.preset(self.rng, self.CYCLES, near=self.shape.threshold or self.shape.by_warp)

    def drive(self, i: Any, o: Any) -> None:
        self._l1(i, o)
        self._request(i)
        self._insert(i, o)
        self._store(i, o)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self.checker.observe(i, o)
        o.quantum = self.checker.quantum.observe(i, o)
        o.by_warp, o.overtaken = self.checker.by_warp, self.checker.search.overtaken
        o.left, o.chased = len(self.checker.search.lowest), self.checker.chased
        o.taken, o.atomic = self.checker.taken, self.checker.atomic

    def finish(self) -> None:
        assert self.lines.keys() == self.checker.waiting.keys(), "a tag was lost"

    def _l1(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        self.stalled = rng.random() < (0.95 if self.stalled else shape.stall)
        i.metadata_free = self.parameters["metadata"] - self.in_use
        i.access.ready = not self.stalled and rng.random() < shape.ready
        i.miss = not o.policy if shape.by_warp else rng.random() >= shape.hit
        if shape.threshold:
            self.threshold.drive(i)
        if self.in_use > self.held and rng.random() < shape.release:
            self.in_use -= rng.randint(1, self.in_use - self.held) if rng.random() < 0.1 else 1
        self.in_use += o.access.valid & i.access.ready & (not o.access.payload.store)

    def _request(self, i: Any) -> None:
        i.request.valid = self.leaving is not None
        if self.leaving is None:
            return
        payload, line = i.request.payload, self.leaving
        payload.number, payload.bypass, payload.count = line.number, line.bypass, len(line.slots)
        empty = dict.fromkeys(("warp", "ticket", "mapping", "thread", "word"), 0)
        for k in range(self.parameters["merges"]):
            _assign(payload.slots[k], line.slots[k] if k < len(line.slots) else empty)

    def _insert(self, i: Any, o: Any) -> None:
        """A tag can merge until its last cycle, and be allocated again in the cycle after that."""
        rng = self.rng
        popped = o.pop.payload.tag if o.pop.valid else None
        touched: set[int] = set()
        fresh: list[int] = []
        self.paused = rng.random() < (0.98 if self.paused else self.shape.pause)
        for k in self.ports:
            merging = [t for t, line in self.lines.items() if len(line.slots) < self.parameters["merges"]]
            merging = [t for t in merging if t not in touched]
            free = [t for t in range(self.parameters["tags"]) if t not in self.lines]
            if self.paused or rng.random() >= self.shape.insert:
                self._no_line(i.insert[k])
                continue
            if merging and rng.random() < self.shape.merge:
                likely = [t for t in merging if t in (popped, *self.fresh) and rng.random() < 0.3]
                tag, allocated = rng.choice(likely or merging), False
            elif free and len(fresh) < self.budget:
                tag, allocated = rng.choice(free), True
                self.lines[tag] = Line(rng.getrandbits(27), rng.random() < self.shape.bypass)
                fresh.append(tag)
            else:
                self._no_line(i.insert[k])
                continue
            touched.add(tag)
            slot = self._slot(k)
            self.lines[tag].slots.append(slot)
            i.insert[k].valid = 1
            _assign(i.insert[k].payload, dict(tag=tag, warp=slot["warp"], allocated=allocated))
        self.leaving = self.lines.pop(popped, None) if popped is not None else None
        self.fresh, self.budget = fresh, o.room - len(fresh)

    def _no_line(self, insert: Any) -> None:
        """What comes without a line is anything, and holds, since the block may be idle meanwhile."""
        rng, sizes = self.rng, self.parameters
        if insert.valid:
            anything = dict(tag=sizes["tags"], warp=sizes["warps"], allocated=2)
            _assign(insert.payload, {name: rng.randrange(values) for name, values in anything.items()})
        insert.valid = 0

    def _slot(self, k: int) -> dict[str, int]:
        rng, sizes, shape = self.rng, self.parameters, self.shape
        kind = rng.random()
        if kind < shape.near:
            warp = self.warps[k] ^ 1 << rng.randrange(bits_for(sizes["warps"] - 1))
            self.warps[k] = warp if warp < sizes["warps"] else 0
        elif kind >= shape.near + shape.same:
            self.warps[k] = rng.randrange(sizes["warps"])
        return dict(
            warp=self.warps[k], ticket=rng.randrange(sizes["tickets"]),
            mapping=rng.choice(list(Mapping)), thread=rng.randrange(sizes["lanes"]), word=rng.randrange(32),
        )  # fmt: skip

    def _store(self, i: Any, o: Any) -> None:
        rng, sizes = self.rng, self.parameters
        for k in self.ports:
            port = i.store[k]
            if self.offered[k] is None and rng.random() < self.shape.store:
                self.offered[k] = dict(
                    number=rng.getrandbits(27), mask=mask(rng, sizes["lanes"]), last=rng.randrange(2),
                    atomic=rng.random() < self.shape.atomic, warp=rng.randrange(sizes["warps"]),
                    ticket=rng.randrange(sizes["tickets"]),
                )  # fmt: skip
                _assign(port.payload, self.offered[k] or {})
            port.valid = self.offered[k] is not None
            if port.valid and o.store[k].ready:
                self.offered[k] = None


@dataclass
class Action:
    """A request on its way; a load's content is known when it arrives."""

    needs_metadata: bool
    content: dict[str, Any] | None = None


class Search:
    """What the search for the lowest warp has found, from the lines as it sees them: a cycle late."""

    def __init__(self, warps: int) -> None:
        self.length = ((warps - 1 or 1).bit_length() + 1) // 2 + 2
        self.left = 0  # cycles until the search ends
        self.lowest: list[int] = []  # the tags that it finds and that have not been the choice, oldest first
        self.warp = 0  # theirs
        self.since: list[int] = []  # the warps of lines that it did not see
        self.before = 0  # those of them that were inserted before it began
        self.overtaken = ""  # in this cycle, by a line of a lower warp
        self.choice: int | None = None
        self.lowered = False
        self.warps: dict[int, int] = {}  # by place in the order
        self.inserted: list[tuple[int, int, int]] = []  # tag, place and warp, in the cycle before

    def cycle(self, waiting: dict[int, int], *, popped: bool, ends: bool) -> None:
        """A cycle that began with these lines; what was inserted in the one before is seen from the next one on."""
        seen = {tag: self.warps[place] for tag, place in waiting.items() if place in self.warps and tag != self.choice}
        if popped:
            self.choice = None
        anew = ends or self.lowered
        self.overtaken = ""
        if self.left:
            self.left -= 1
        elif self.lowest:
            lower = [warp < self.warp for warp in self.since]
            if any(lower):
                anew, self.overtaken = True, BEFORE if any(lower[: self.before]) else SINCE
            if self.choice is None:
                self.choice = self.lowest.pop(0)
        elif seen:
            self.lowest = [tag for tag in seen if seen[tag] == min(seen.values())]
            self.left, self.warp = self.length - 1, min(seen.values())
            self.since, self.before = [], len(self.inserted)
        if ends:
            self.choice = None
        if anew:
            self.left, self.lowest = 0, []
        self.lowered = False
        for tag, place, warp in self.inserted:
            self.since.append(warp)
            if waiting.get(tag) == place:
                self.lowered |= warp < self.warps.get(place, warp)
                self.warps[place] = min(warp, self.warps.get(place, warp))
        self.inserted = []


class Checker:
    """What must hold at the ports, from counting and from lists in the order of events."""

    def __init__(self, parameters: dict[str, int]) -> None:
        self.tags, self.merges = parameters["tags"], parameters["merges"]
        self.ports = range(parameters["coalescers"])
        self.quantum, self.store_wait = Quantum(parameters["quantum"]), parameters["store_wait"]
        self.waiting: dict[int, int] = {}  # tag to its place in the order, oldest first
        self.allocations = 0
        self.fresh: set[int] = set()  # tags allocated in the cycle before
        self.chased = False  # a line is merged into one of them
        self.room = self.tags
        self.search = Search(parameters["warps"])
        self.by_warp = False  # a load of this cycle would be chosen by its warp
        self.way: list[Action] = []
        self.metadata_left = False
        self.stores: list[list[dict[str, Any]]] = [[] for _ in self.ports]  # that have entered and were not taken
        self.last = 0  # the port of the last that was
        self.taken: int | None = None  # the port of this cycle's
        self.atomic = False  # it is an atomic
        self.waits = [0 for _ in self.ports]  # cycles since it was the first
        self.chances = [0 for _ in self.ports]  # cycles in which it was overdue and could have gone
        self.head: int | None = None
        self.head_chances = 0  # cycles in which the head could have gone

    def observe(self, i: Any, o: Any) -> None:
        assert o.policy == self.quantum.policy, "the policy changes after more than 99 % misses, and only then"
        assert o.room == self.room
        assert o.access.valid == bool(self.way and self.way[0].content), "a request from nowhere, or one that is late"
        assert [o.store[k].ready for k in self.ports] == [len(stores) < 2 for stores in self.stores]
        used = self._used()
        before = dict(self.waiting)
        self.by_warp = bool(o.policy and o.room and len(before) > 1)
        self._actions(i, o)
        self.search.cycle(before, popped=o.pop.valid, ends=not o.policy or (o.pop.valid and not self.by_warp))
        self._inserts(i)
        self.room = self.tags - used - sum(i.insert[k].valid and i.insert[k].payload.allocated for k in self.ports)
        self._output(i, o)

    def _used(self) -> int:
        """The positions from the oldest that waits to the newest are in use, also where they wait no longer."""
        return self.allocations - min(self.waiting.values(), default=self.allocations)

    def _actions(self, i: Any, o: Any) -> None:
        possible = len(self.way) < 3
        found = self.search.choice is not None if self.by_warp else bool(self.waiting)
        load = possible and self.metadata_left and found
        stores = [
            k
            for k in self.ports
            if possible and self.stores[k] and (self.metadata_left or not self.stores[k][0]["atomic"])
        ]
        late = [k for k in stores if self.waits[k] >= self.store_wait]
        assert not (o.pop.valid and not load), "a load without metadata, or a fourth one on its way"
        assert o.overdue == bool(late and not o.pop.valid), "overdue stores go first, or a load"
        assert o.pop.valid or o.overdue or not load, "a load goes before a store, and no cycle is lost"
        # Which store goes shows in the request that it becomes: that of the first port after the last one's.
        turns = sorted(late if o.overdue else stores, key=lambda k: (k <= self.last, k))
        taken = None if o.pop.valid or not turns else turns[0]
        self._bounds(load, late, taken)
        if o.pop.valid:
            self._pop(o)
        self.taken = taken
        for k in self.ports:
            self.waits[k] = self.waits[k] + 1 if self.stores[k] and k != taken else 0
        if taken is not None:
            self.last, content = taken, self.stores[taken].pop(0)
            self.atomic = bool(content["atomic"])
            self.way.append(Action(self.atomic, content))
        for k in self.ports:
            payload = i.store[k].payload
            if i.store[k].valid and o.store[k].ready:
                slot = dict(warp=payload.warp, ticket=payload.ticket, mapping=0, thread=0, word=0)
                content = dict(
                    number=payload.number, store=not payload.atomic, atomic=payload.atomic, bypass=0,
                    last=payload.last, mask=payload.mask, count=1, slots=[slot],
                )  # fmt: skip
                self.stores[k].append(content)
        needed = sum(action.needs_metadata for action in self.way)
        assert needed <= i.metadata_free, "more loads and atomics on their way than metadata"
        self.metadata_left = needed < i.metadata_free

    def _bounds(self, load: bool, late: list[int], taken: int | None) -> None:
        """The bounds on waiting that the block's documentation states."""
        for k in self.ports:
            self.chances[k] += k in late and not self.stores[k][0]["atomic"]
            assert self.chances[k] <= 2 * len(self.ports), "an overdue store is passed over"
            if k == taken:
                self.chances[k] = 0
        oldest = next(iter(self.waiting), None)
        if oldest != self.head:
            self.head, self.head_chances = oldest, 0
        self.head_chances += load
        assert self.head_chances <= 2 * self.tags, "the oldest line is passed over"

    def _pop(self, o: Any) -> None:
        tag = o.pop.payload.tag
        assert tag in self.waiting, "a tag that does not wait"
        named = self.search.choice if self.by_warp else next(iter(self.waiting))
        assert tag == named, "the policy names another tag"
        del self.waiting[tag]
        self.way.append(Action(True))

    def _inserts(self, i: Any) -> None:
        lines = [i.insert[k].payload for k in self.ports if i.insert[k].valid]
        self.chased = any(line.tag in self.fresh and not line.allocated for line in lines)
        self.fresh = {line.tag for line in lines if line.allocated}
        for line in lines:
            if line.allocated:
                assert line.tag not in self.waiting
                self.waiting[line.tag] = self.allocations
                self.allocations += 1
            self.search.inserted.append((line.tag, self.waiting.get(line.tag, -1), line.warp))

    def _output(self, i: Any, o: Any) -> None:
        """Requests leave complete and in the order of the actions; one that arrives is not yet there."""
        if o.access.valid and (content := self.way[0].content):
            self._compare(o.access.payload, content)
            if i.access.ready:
                action = self.way.pop(0)
                assert not action.needs_metadata or i.metadata_free
        if i.request.valid:
            payload = i.request.payload
            names = ("warp", "ticket", "mapping", "thread", "word")
            slots = [{name: getattr(payload.slots[k], name) for name in names} for k in range(payload.count)]
            content = dict(
                number=payload.number, store=0, atomic=0, bypass=payload.bypass, last=0, mask=0, count=payload.count,
                slots=slots,
            )  # fmt: skip
            next(action for action in self.way if action.content is None).content = content

    def _compare(self, payload: Any, content: dict[str, Any]) -> None:
        for name, value in content.items():
            if name != "slots":
                assert getattr(payload, name) == value, f"{name} differs from what was taken"
        for k in range(self.merges):
            slot = content["slots"][k] if k < content["count"] else {}
            for name in ("warp", "ticket", "mapping", "thread", "word"):
                assert getattr(payload.slots[k], name) == slot.get(name, 0), f"{name} of slot {k}"


def _inserts(i: Any, parameters: dict[str, int]) -> list[Any]:
    return [i.insert[k].payload for k in range(parameters["coalescers"]) if i.insert[k].valid]


def _allocations(i: Any, parameters: dict[str, int]) -> int:
    return sum(line.allocated for line in _inserts(i, parameters))


def _transfer(i: Any, o: Any) -> bool:
    return bool(o.access.valid and i.access.ready)


def _lookup(i: Any, o: Any) -> bool:
    access = o.access.payload
    return _transfer(i, o) and not (access.store or access.atomic or access.bypass)


BINS: dict[str, Callable[[dict[str, int], Any, Any, Any], bool]] = {
    "nothing waits": lambda p, i, o, c: o.room == p["tags"],
    "the order is full": lambda p, i, o, c: o.room == 0,
    "the last position is allocated": lambda p, i, o, c: 0 < o.room == _allocations(i, p),
    "every port allocates": lambda p, i, o, c: _allocations(i, p) == p["coalescers"],
    "an allocation beside a merge": lambda p, i, o, c: 0 < _allocations(i, p) < len(_inserts(i, p)),
    "a merge into the tag that leaves": lambda p, i, o, c: (
        o.pop.valid and any(o.pop.payload.tag == line.tag and not line.allocated for line in _inserts(i, p))
    ),
    "a merge into another tag": lambda p, i, o, c: (
        any(not line.allocated and not (o.pop.valid and o.pop.payload.tag == line.tag) for line in _inserts(i, p))
    ),
    "a merge into a tag allocated in the cycle before": lambda p, i, o, c: o.chased,
    "an allocation beside a pop": lambda p, i, o, c: o.pop.valid and _allocations(i, p) > 0,
    "a pop by age": lambda p, i, o, c: o.pop.valid and not o.policy,
    "a pop by warp": lambda p, i, o, c: o.pop.valid and o.by_warp,
    "a pop by warp before others of its warp": lambda p, i, o, c: o.pop.valid and o.by_warp and o.left > 1,
    "a pop of the only one": lambda p, i, o, c: o.pop.valid and o.policy and o.room > 0 and not o.by_warp,
    "a pop by age because the order is full": lambda p, i, o, c: o.pop.valid and o.policy and o.room == 0,
    "a store is taken": lambda p, i, o, c: o.taken is not None and not o.atomic,
    "an atomic is taken": lambda p, i, o, c: o.taken is not None and o.atomic,
    "the last port's store is taken": lambda p, i, o, c: o.taken == p["coalescers"] - 1,
    "every port has a store": lambda p, i, o, c: all(i.store[k].valid for k in range(p["coalescers"])),
    "every port refuses one": lambda p, i, o, c: (
        all(i.store[k].valid and not o.store[k].ready for k in range(p["coalescers"]))
    ),
    "an overdue store": lambda p, i, o, c: o.overdue and not o.atomic,
    "an overdue atomic": lambda p, i, o, c: o.overdue and o.atomic,
    "a request and a store enter together": lambda p, i, o, c: i.request.valid and o.taken is not None,
    "a request enters while another leaves": lambda p, i, o, c: i.request.valid and _transfer(i, o),
    "a request with all slots": lambda p, i, o, c: i.request.valid and i.request.payload.count == p["merges"],
    "the L1 refuses": lambda p, i, o, c: o.access.valid and not i.access.ready,
    "a load hits": lambda p, i, o, c: _lookup(i, o) and not i.miss,
    "a load misses": lambda p, i, o, c: _lookup(i, o) and i.miss,
    "a load bypasses": lambda p, i, o, c: _transfer(i, o) and o.access.payload.bypass,
    "an atomic leaves": lambda p, i, o, c: _transfer(i, o) and o.access.payload.atomic,
    "a store leaves": lambda p, i, o, c: _transfer(i, o) and o.access.payload.store,
    "no metadata": lambda p, i, o, c: i.metadata_free == 0,
    "all metadata free": lambda p, i, o, c: i.metadata_free == p["metadata"],
    "policy warp": lambda p, i, o, c: bool(o.policy),
    BEFORE: lambda p, i, o, c: o.overtaken == BEFORE,
    SINCE: lambda p, i, o, c: o.overtaken == SINCE,
    EXACTLY: lambda p, i, o, c: o.quantum == EXACTLY,
    MORE: lambda p, i, o, c: o.quantum == MORE,
}  # fmt: skip

IN_KERNELS = (
    "the L1 refuses", "the order is full", "a pop by age because the order is full", "no metadata", "nothing waits",
)  # fmt: skip

# With one tag, a position that waits is the only one, and the order is full.
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **{name: lambda p: p["tags"] == 1 for name in ("a pop by warp", BEFORE, SINCE)},
    "a pop by warp before others of its warp": lambda p: p["tags"] < 3,
    **{name: lambda p: p["tags"] == 1 for name in ("an allocation beside a pop", "a pop of the only one")},
    "an allocation beside a merge": lambda p: p["tags"] == 1 or p["coalescers"] == 1,
    "a merge into the tag that leaves": lambda p: p["merges"] == 1,
    "a merge into another tag": lambda p: p["merges"] == 1,
    "a merge into a tag allocated in the cycle before": lambda p: p["merges"] == 1,
    "every port allocates": lambda p: p["coalescers"] > p["tags"],
    **{name: lambda p: p["quantum"] < 100 for name in (EXACTLY, MORE)},
}
