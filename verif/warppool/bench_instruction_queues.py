"""The bench of ``warppool.instruction_queues``: instructions come in bursts or evenly, coalescers stall or don't."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

from lockstep.verif.blocks import Waiver

BLOCK = "warppool.instruction_queues"
CONFIGURATIONS = {
    "paper": dict(lanes=32, warps=48, tickets=16, queues=16, warps_per_queue=3, depth=8, coalescers=2),
    "one": dict(lanes=1, warps=1, tickets=1, queues=1, warps_per_queue=1, depth=1, coalescers=1),
    "odd": dict(lanes=5, warps=7, tickets=3, queues=3, warps_per_queue=3, depth=5, coalescers=3),
    "large": dict(lanes=32, warps=64, tickets=16, queues=64, warps_per_queue=1, depth=16, coalescers=4),
}
SHAPES = ("steady", "stalled", "bursts", "sparse")

FIELDS = ("mask", "size", "store", "atomic", "bypass", "warp", "ticket")
WARP = FIELDS.index("warp")
Instruction = tuple[int, ...]

# The probabilities that an instruction enters and that a coalescer is ready: each shape takes turns.
_RATES = {
    "steady": [(0.9, 0.95)],
    "stalled": [(0.95, 0.0), (0.95, 0.1), (0.95, 0.5)],
    "bursts": [(1.0, 0.05), (1.0, 0.8), (0.05, 1.0), (0.5, 0.5)],
    "sparse": [(0.1, 0.5)],
}


def instruction(payload: Any) -> Instruction:
    return tuple(int(getattr(payload, field)) for field in FIELDS)


class Environment:
    """Never enters into a full queue. Keeps the queues as lists, to tell what must come out, and where."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, shape, rng
        self.queue: list[deque[Instruction]] = [deque() for _ in range(parameters["queues"])]
        self.presented: list[Instruction | None] = [None] * parameters["coalescers"]
        self.expected: int | None = None  # the coalescer that the lowest queue's head goes to
        self.arriving: Instruction | None = None  # entered in the cycle before
        self.favourite = 0
        self.entering, self.ready = _RATES[shape][0]
        self.entered = self.left = 0

    def _queue_of(self, warp: int) -> int:
        return warp // self.parameters["warps_per_queue"]

    def drive(self, i: Any, o: Any) -> None:
        rng, parameters = self.rng, self.parameters
        if rng.random() < 0.01:
            self.favourite = rng.randrange(parameters["warps"])
            self.entering, self.ready = rng.choice(_RATES[self.shape])
        if self.shape == "stalled":
            self.favourite = (self.favourite + 1) % parameters["warps"]
        favoured = self.shape in ("stalled", "bursts") and rng.random() < 0.6
        warp = self.favourite if favoured else rng.randrange(parameters["warps"])
        payload = i.enter.payload
        payload.mask = rng.getrandbits(parameters["lanes"])
        payload.size = rng.randrange(5)
        kind = rng.randrange(4)
        payload.store, payload.atomic, payload.bypass = kind == 1, kind == 2, rng.getrandbits(1)
        payload.warp = warp
        payload.ticket = rng.randrange(parameters["tickets"])
        i.enter.valid = o.free[self._queue_of(warp)] != 0 and rng.random() < self.entering
        for port in range(parameters["coalescers"]):
            i.instruction[port].ready = rng.random() < self.ready

    def observe(self, i: Any, o: Any, c: Any) -> None:
        ports = range(self.parameters["coalescers"])
        for port in ports:
            stream, before = o.instruction[port], self.presented[port]
            if port == self.expected:
                lowest = next(queue for queue in self.queue if queue)
                self.presented[port] = lowest.popleft()
                assert stream.valid, f"coalescer {port} is given nothing"
                assert instruction(stream.payload) == self.presented[port], "the lowest queue's first comes next"
            elif before is not None:
                holds = stream.valid and instruction(stream.payload) == before
                assert holds, f"coalescer {port}: what is presented holds"
            else:
                assert not stream.valid, f"coalescer {port} is given something out of turn"
        if self.arriving is not None:
            self.queue[self._queue_of(self.arriving[WARP])].append(self.arriving)
            self.entered += 1
        for number, queue in enumerate(self.queue):
            assert o.free[number] == self.parameters["depth"] - len(queue), f"free places of queue {number}"

        waiting = any(self.queue)
        vacant = [port for port in ports if i.instruction[port].ready and self.presented[port] is None]
        self.expected = vacant[0] if waiting and vacant else None
        for port in ports:
            if i.instruction[port].ready and self.presented[port] is not None:
                self.presented[port] = None
                self.left += 1
        self.arriving = instruction(i.enter.payload) if i.enter.valid else None

    def finish(self) -> None:
        inside = sum(map(len, self.queue)) + sum(taken is not None for taken in self.presented)
        assert self.entered == self.left + inside


Predicate = Callable[[dict[str, int], Any, Any, Any], bool]


def _ports(p: dict[str, int], i: Any, o: Any) -> list[tuple[int, int]]:
    """Valid and ready of each coalescer."""
    return [(o.instruction[port].valid, i.instruction[port].ready) for port in range(p["coalescers"])]


def _used(p: dict[str, int]) -> range:
    """The queues that have warps."""
    return range((p["warps"] - 1) // p["warps_per_queue"] + 1)


def _source(p: dict[str, int], o: Any) -> int | None:
    """The lowest queue that has an instruction."""
    return next((queue for queue in range(p["queues"]) if o.free[queue] != p["depth"]), None)


def _sink(p: dict[str, int], i: Any) -> int | None:
    """The queue that an instruction enters."""
    return i.enter.payload.warp // p["warps_per_queue"] if i.enter.valid else None


def _pops(p: dict[str, int], i: Any, o: Any) -> bool:
    return _source(p, o) is not None and (0, 1) in _ports(p, i, o)


def _overtakes(p: dict[str, int], i: Any, o: Any) -> bool:
    source, sink = _source(p, o), _sink(p, i)
    return source is not None and sink is not None and sink < source


def _enters(field: str, value: int) -> Predicate:
    return lambda p, i, o, c: bool(i.enter.valid) and getattr(i.enter.payload, field) == value


WAIVERS = (Waiver(r"cond_else: assign \{ n\d+\[5:4\], entering \} = .*", "a division, by a constant that is not 0"),)

BINS: dict[str, Predicate] = {
    "enters an empty queue": lambda p, i, o, c: bool(i.enter.valid) and o.free[_sink(p, i)] == p["depth"],
    "enters the last place": lambda p, i, o, c: bool(i.enter.valid) and o.free[_sink(p, i)] == 1,
    "enters a lower queue than any that waits": lambda p, i, o, c: _overtakes(p, i, o),
    "enters the queue that is popped": lambda p, i, o, c: _pops(p, i, o) and _sink(p, i) == _source(p, o),
    "enters the highest queue": lambda p, i, o, c: _sink(p, i) == _used(p)[-1],
    "enters while nothing is popped": lambda p, i, o, c: bool(i.enter.valid) and not _pops(p, i, o),
    "a queue is emptied": lambda p, i, o, c: _pops(p, i, o) and o.free[_source(p, o)] == p["depth"] - 1,
    "a full queue is popped": lambda p, i, o, c: _pops(p, i, o) and o.free[_source(p, o)] == 0,
    "the highest queue is popped": lambda p, i, o, c: _pops(p, i, o) and _source(p, o) == _used(p)[-1],
    "the first coalescer is given one": lambda p, i, o, c: _pops(p, i, o) and _ports(p, i, o)[0] == (0, 1),
    "the last coalescer is given one": lambda p, i, o, c: (
        _pops(p, i, o) and (0, 1) not in _ports(p, i, o)[:-1] and _ports(p, i, o)[-1] == (0, 1)
    ),
    "two coalescers could take one": lambda p, i, o, c: _pops(p, i, o) and _ports(p, i, o).count((0, 1)) > 1,
    "two coalescers take theirs": lambda p, i, o, c: _ports(p, i, o).count((1, 1)) > 1,
    "a coalescer stalls": lambda p, i, o, c: (1, 0) in _ports(p, i, o),
    "all coalescers stall": lambda p, i, o, c: _ports(p, i, o) == [(1, 0)] * p["coalescers"],
    "every queue has an instruction": lambda p, i, o, c: all(o.free[queue] != p["depth"] for queue in _used(p)),
    "nothing waits": lambda p, i, o, c: _source(p, o) is None,
    **{f"size {size}": _enters("size", size) for size in range(5)},
    **{kind: _enters(kind, 1) for kind in ("store", "atomic", "bypass")},
}

IN_KERNELS = ("enters the last place", "a full queue is popped", "two coalescers could take one", "nothing waits")

# A queue of one place is either empty or full; a lower queue than another, or a second coalescer, there must be.
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "enters a lower queue than any that waits": lambda p: p["warps"] <= p["warps_per_queue"],
    "enters the queue that is popped": lambda p: p["depth"] == 1,
    "two coalescers could take one": lambda p: p["coalescers"] == 1,
    "two coalescers take theirs": lambda p: p["coalescers"] == 1,
}
