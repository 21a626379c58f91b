"""The metadata table under random requests, answered in any order: each answer must bring what its request stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lockstep.spec.mapping import Mapping

BLOCK = "warppool.mshr_metadata"
CONFIGURATIONS = {
    "paper": {"lanes": 32, "warps": 48, "tickets": 16, "entries": 256, "merges": 4},
    "one": {"lanes": 1, "warps": 1, "tickets": 1, "entries": 1, "merges": 1},
    "odd": {"lanes": 5, "warps": 11, "tickets": 7, "entries": 13, "merges": 3},
    "largest": {"lanes": 32, "warps": 64, "tickets": 16, "entries": 1024, "merges": 8},
}
MEASURED = {"largest": 1}
SHAPES = ("balanced", "full", "phases", "stores")

# For each shape: the share of cycles in which a request is offered, of stores among them, of cycles with an answer.
_RATES = {"balanced": (0.8, 0.1, 0.7), "full": (1.0, 0.05, 0.4), "phases": (0.95, 0.1, 0.95), "stores": (0.9, 0.8, 0.2)}

Slot = tuple[int, int, int, int, int]


class Environment:
    """Requests with random slots, answers in random order; checks slots, ids and counts against its own dictionary."""

    CYCLES = 4000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters = parameters
        self.phases = shape == "phases"
        self.offered, self.stores, self.answered = _RATES[shape]
        self.rng = rng
        self.waiting: dict[int, list[Slot]] = {}
        self.ids: list[int] = []  # of waiting, in any order
        self.shown: list[Slot] = []
        self.used: set[int] = set()
        self.allocated = self.answers = self.cycle = 0
        self.free_since: dict[int, int] = {}

    def slot(self) -> Slot:
        rng, p = self.rng, self.parameters
        return (
            rng.randrange(p["warps"]), rng.randrange(p["tickets"]), rng.choice(list(Mapping)),
            rng.randrange(p["lanes"]), rng.randrange(32),
        )  # fmt: skip

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.parameters
        offered, answered = self.offered, self.answered
        if self.phases:  # fill up, then drain
            filling = self.cycle // (p["entries"] * 5 // 4 + 4) % 2 == 0
            offered, answered = (offered, 0) if filling else (0, answered)
        access, q = i.access, i.access.payload
        access.valid, access.ready = rng.random() < offered, rng.random() < 0.95
        q.store = o.free == 0 or rng.random() < self.stores
        q.count = rng.randint(1, p["merges"])
        for k in range(p["merges"]):
            _put(q.slots[k], self.slot())  # those from count on are not to be kept
        answer = i.answer
        answer.valid, answer.ready = bool(self.ids) and rng.random() < answered, rng.random() < 0.95
        if self.ids:
            place = rng.choice([0, -1, rng.randrange(len(self.ids))])
            self.ids[place], self.ids[-1] = self.ids[-1], self.ids[place]
            answer.payload.id = self.ids[-1]
        else:
            answer.payload.id = rng.randrange(p["entries"])

    def observe(self, i: Any, o: Any, c: Any) -> None:
        p = self.parameters
        assert o.free + len(self.waiting) == p["entries"], "free and waiting entries"
        got = [_get(o.slots.slots[k]) for k in range(p["merges"])]
        assert o.slots.count == len(self.shown)
        assert got == self.shown + [(0, 0, 0, 0, 0)] * (p["merges"] - len(self.shown)), "slots of the last answer"
        if o.free == 0:
            assert o.id == 0
        else:
            assert o.id < p["entries"]
            assert o.id not in self.waiting, f"entry {o.id} is in use"
            oldest = next(iter(self.free_since)) if len(self.used) == p["entries"] else len(self.used)
            assert o.id == oldest, "the entry that has been free longest, and new ones first"
        access, answer = i.access, i.answer
        if answer.valid and answer.ready:
            self.shown = self.waiting.pop(answer.payload.id)
            assert self.ids.pop() == answer.payload.id
            self.answers += 1
            self.free_since[answer.payload.id] = self.cycle
        if access.valid and access.ready and not access.payload.store:
            self.waiting[o.id] = [_get(access.payload.slots[k]) for k in range(access.payload.count)]
            self.ids.append(o.id)
            self.used.add(o.id)
            self.free_since.pop(o.id, None)
            self.allocated += 1
        self.cycle += 1

    def finish(self) -> None:
        assert self.allocated == self.answers + len(self.waiting)
        assert self.allocated > 0


def _put(record: Any, slot: Slot) -> None:
    record.warp, record.ticket, record.mapping, record.thread, record.word = slot


def _get(record: Any) -> Slot:
    return record.warp, record.ticket, record.mapping, record.thread, record.word


def _allocates(i: Any) -> bool:
    return bool(i.access.valid and i.access.ready and not i.access.payload.store)


def _answers(i: Any) -> bool:
    return bool(i.answer.valid and i.answer.ready)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "allocated": lambda p, i, o, c: _allocates(i),
    "answered": lambda p, i, o, c: _answers(i),
    "allocated and answered": lambda p, i, o, c: _allocates(i) and _answers(i),
    "the last free entry is allocated": lambda p, i, o, c: _allocates(i) and o.free == 1,
    "the last entry by number is allocated": lambda p, i, o, c: _allocates(i) and o.id == p["entries"] - 1,
    "none free": lambda p, i, o, c: o.free == 0,
    "answered while none is free": lambda p, i, o, c: _answers(i) and o.free == 0,
    "nothing in flight": lambda p, i, o, c: o.free == p["entries"],
    "the only request in flight is answered": lambda p, i, o, c: _answers(i) and o.free == p["entries"] - 1,
    "a store passes": lambda p, i, o, c: i.access.valid and i.access.ready and i.access.payload.store,
    "a store passes while none is free": lambda p, i, o, c: (
        i.access.valid and i.access.ready and i.access.payload.store and o.free == 0
    ),
    "a load is refused": lambda p, i, o, c: i.access.valid and not i.access.ready and not i.access.payload.store,
    "an answer is refused": lambda p, i, o, c: i.answer.valid and not i.answer.ready,
    "one slot stored": lambda p, i, o, c: _allocates(i) and i.access.payload.count == 1,
    "all slots stored": lambda p, i, o, c: _allocates(i) and i.access.payload.count == p["merges"],
    "one slot shown": lambda p, i, o, c: o.slots.count == 1,
    "all slots shown": lambda p, i, o, c: o.slots.count == p["merges"],
    "entry 0 allocated again": lambda p, i, o, c: _allocates(i) and o.id == 0 and o.slots.count > 0,
}

IN_KERNELS = ("a load is refused", "none free", "answered while none is free", "nothing in flight")

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    # an allocation needs a free entry, and an answer one in use
    "allocated and answered": lambda p: p["entries"] == 1,
}
