"""Writeback under random answers and back-pressure: every slot of every answer must come out once, in order."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import mask

BLOCK = "warppool.writeback"
GATES = True
CONFIGURATIONS = {
    "paper": {"lanes": 32, "warps": 48, "tickets": 16, "merges": 4},
    "one": {"lanes": 1, "warps": 1, "tickets": 1, "merges": 1},
    "odd": {"lanes": 5, "warps": 11, "tickets": 7, "merges": 3},
    "largest": {"lanes": 32, "warps": 64, "tickets": 16, "merges": 8},
}
MEASURED = {"largest": 1}
SHAPES = ("mixed", "single slots", "all slots", "stalled", "sparse")

# For each shape: the share of cycles with an answer, and of cycles that take a result.
_RATES = {
    "mixed": (0.7, 0.8), "single slots": (1.0, 0.97), "all slots": (1.0, 1.0), "stalled": (0.9, 0.2),
    "sparse": (0.2, 0.6),
}  # fmt: skip

Slot = tuple[int, int, int, int, int]


class Environment:
    """Offers answers as the L1 does, holding what is refused, and their slots as the metadata table does."""

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters = parameters
        self.shape = shape
        self.offered, self.taken = _RATES[shape]
        self.rng = rng
        self.cycle = 0
        self.accepted: list[Slot] | None = None  # the slots of the answer accepted in the last cycle
        self.expected: deque[tuple[Slot, int, int, int]] = deque()  # slot, atomic, mask, first cycle that can show it
        self.pending: deque[int] = deque()  # for each answer accepted, its slots that have not been presented
        self.presented = True  # the result now shown has been counted
        self.entered = self.left = 0

    def slot(self) -> Slot:
        rng, p = self.rng, self.parameters
        return (
            rng.randrange(p["warps"]), rng.randrange(p["tickets"]), rng.choice(list(Mapping)),
            rng.randrange(p["lanes"]), rng.randrange(32),
        )  # fmt: skip

    def count(self) -> int:
        most = self.parameters["merges"]
        return {"single slots": 1, "all slots": most}.get(self.shape, self.rng.randint(1, most))

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.parameters
        if self.accepted is not None:
            i.slots.count = len(self.accepted)
            for k in range(p["merges"]):
                record = i.slots.slots[k]
                slot = self.accepted[k] if k < len(self.accepted) else self.slot()  # nobody looks beyond count
                record.warp, record.ticket, record.mapping, record.thread, record.word = slot
            self.accepted = None
            i.answer.valid = 0
        if not i.answer.valid and rng.random() < self.offered:
            i.answer.valid = 1
            i.answer.payload.atomic = rng.random() < 0.3
            i.answer.payload.mask = mask(rng, p["lanes"])
        i.result.ready = rng.random() < self.taken

    def observe(self, i: Any, o: Any, c: Any) -> None:
        result, q = o.result, o.result.payload
        if result.valid:
            slot, atomic, active, first = self.expected[0]
            assert (q.warp, q.ticket, q.mapping, q.thread, q.word) == slot, "the next slot, in order"
            assert (q.atomic, q.mask) == (atomic, active), "its answer's lanes"
            assert self.cycle >= first, "no slot before its metadata was read"
            if not self.presented:
                self.presented = True
                self.pending[0] -= 1
                if self.pending[0] == 0:
                    self.pending.popleft()
        else:
            assert not self.expected or self.expected[0][3] > self.cycle, "a slot that could be shown is not"
        assert o.answer.ready == (len(self.pending) < 2), "room for two answers"
        if result.valid and i.result.ready:
            self.expected.popleft()
            self.presented = False
            self.left += 1
        elif not result.valid:
            self.presented = False
        if i.answer.valid and o.answer.ready:
            self.accepted = [self.slot() for _ in range(self.count())]
            atomic = i.answer.payload.atomic
            active = i.answer.payload.mask if atomic else 0
            self.expected.extend((slot, atomic, active, self.cycle + 2) for slot in self.accepted)
            self.pending.append(len(self.accepted))
            self.entered += len(self.accepted)
        self.cycle += 1

    def finish(self) -> None:
        assert self.entered == self.left + len(self.expected)
        assert len(self.expected) <= 1 + 2 * self.parameters["merges"]
        assert self.left > 0


def _presented(mapping: Mapping, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.result.valid and o.result.payload.mapping == mapping)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "an answer enters": lambda p, i, o, c: i.answer.valid and o.answer.ready,
    "an answer waits": lambda p, i, o, c: i.answer.valid and not o.answer.ready,
    "an answer waits while results leave": lambda p, i, o, c: (
        i.answer.valid and not o.answer.ready and o.result.valid and i.result.ready
    ),
    "an answer enters while a result leaves": lambda p, i, o, c: (
        i.answer.valid and o.answer.ready and o.result.valid and i.result.ready
    ),
    "an answer enters while a result waits": lambda p, i, o, c: (
        i.answer.valid and o.answer.ready and o.result.valid and not i.result.ready
    ),
    "full and refused": lambda p, i, o, c: not o.answer.ready and o.result.valid and not i.result.ready,
    "nothing to present": lambda p, i, o, c: o.answer.ready and not o.result.valid,
    "a load's result": lambda p, i, o, c: o.result.valid and i.result.ready and not o.result.payload.atomic,
    "an atomic's result": lambda p, i, o, c: o.result.valid and i.result.ready and o.result.payload.atomic,
    "an atomic's result with lanes": lambda p, i, o, c: o.result.valid and o.result.payload.mask != 0,
    "a load with lanes enters": lambda p, i, o, c: (
        i.answer.valid and o.answer.ready and not i.answer.payload.atomic and i.answer.payload.mask != 0
    ),
    "one slot": lambda p, i, o, c: i.slots.count == 1,
    "all slots": lambda p, i, o, c: i.slots.count == p["merges"],
    **{f"a result with mapping {mapping.name.lower()}": partial(_presented, mapping) for mapping in Mapping},
}

IN_KERNELS = ("an answer enters while a result waits", "full and refused", "all slots", "nothing to present")

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {}
