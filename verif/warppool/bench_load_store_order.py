"""The bench of ``warppool.load_store_order``: instructions of one line or many, by all warps or by few."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BLOCK = "warppool.load_store_order"
GATES = True
CONFIGURATIONS = {
    "paper": dict(warps=48, coalescers=2, merges=4, limit=288),
    "one": dict(warps=1, coalescers=1, merges=1, limit=1),
    "odd": dict(warps=5, coalescers=3, merges=3, limit=21),
    "large": dict(warps=64, coalescers=4, merges=8, limit=1023),
}
MEASURED = {"large": 1}
IDLE_CHANGES = ("entered", r"count_\d+")  # what entered is counted a cycle later
SHAPES = ("steady", "stalled", "single", "ordered", "crowd")
CYCLES = 5000  # "crowd" takes so many to fill all counters and to empty them

TICKETS = 16
LINES = 32  # of one instruction, at most


# Of each shape: the probabilities that instructions enter, that one is a load, that lines leave a coalescer, and that
# the L1 takes a request.
_RATES = {
    "steady": (0.4, 0.8, 0.9, 0.9),
    "stalled": (0.6, 0.7, 0.5, 0.2),
    "single": (0.9, 0.9, 0.9, 0.5),
    "ordered": (0.4, 0.2, 0.7, 0.8),
    "crowd": (1, 1, 1, 1),  # all warps' counters rise to the limit together, and fall
}


@dataclass
class Instruction:
    warp: int
    store: bool
    atomic: bool
    lines: int  # that have not left the coalescer

    @property
    def load(self) -> bool:
        return not self.store and not self.atomic


@dataclass
class Request:
    """What the L1 is offered: lines of loads of some warps, or one line of a store or atomic."""

    warps: list[int]
    store: bool = False
    atomic: bool = False
    last: bool = False

    @property
    def load(self) -> bool:
        return not self.store and not self.atomic


class Environment:
    """The rest of WarpPool: sends on the lines of what has entered, in any order, and keeps within ``limit``.

    It knows when an instruction enters how many lines it has, and so when all of a warp's have been sent.
    """

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.shape, self.rng = parameters, shape, rng
        warps, coalescers = parameters["warps"], parameters["coalescers"]
        self.waiting: list[Instruction] = []  # for a coalescer
        self.coalescer: list[Instruction | None] = [None] * coalescers
        self.leaves = [False] * coalescers  # a line does in this cycle, unless there is none
        self.slots: list[int] = []  # warps of the loads' lines that wait to be merged and sent
        self.ordered: list[Request] = []  # lines of stores and atomics
        self.request: Request | None = None
        self.unsent = [0] * warps  # lines that the L1 has not got
        self.counted = [0] * warps  # of them, as the block knows: with what entered and without what left just now
        self.last_was_load = [False] * warps
        self.inside = [0] * warps  # instructions and requests, to keep within the limit
        self.entering: list[Instruction] = []
        self.favourite = 0
        self.rates = _RATES[shape]
        self.filling = True  # of "crowd"

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        changes = {"single": 0.004, "crowd": 0}.get(self.shape, 0.02)
        if rng.random() < changes:  # a warp, or the L1, goes on or pauses
            self.favourite = rng.randrange(self.parameters["warps"])
            enter, load, leave, send = _RATES[self.shape]
            self.rates = enter * rng.choice([0, 1, 1]), load, leave, send * rng.choice([0, 1])
        inside = self.inside.copy()
        for port, line in enumerate(i.line):
            if port < self.parameters["coalescers"]:
                self._drive_line(port, line, inside)
        self._drive_enter(i, inside)
        self._drive_access(i.access)

    def _drive_line(self, port: int, line: Any, inside: list[int]) -> None:
        rng, leave = self.rng, self.rates[2]
        if self.coalescer[port] is None and self.waiting and rng.random() < leave:
            self.coalescer[port] = self.waiting.pop(rng.randrange(len(self.waiting)))
        found, payload = self.coalescer[port], line.payload
        line.ready = self.leaves[port] = rng.random() < leave
        line.valid = found is not None and found.load
        if found is None or not found.load:
            payload.warp, payload.last = rng.randrange(self.parameters["warps"]), rng.getrandbits(1)
            return
        payload.warp, payload.last = found.warp, found.lines == 1
        if line.ready and found.lines > 1:
            line.ready = self.leaves[port] = inside[found.warp] < self.parameters["limit"]
            inside[found.warp] += line.ready

    def _drive_enter(self, i: Any, inside: list[int]) -> None:
        rng, warps, limit = self.rng, self.parameters["warps"], self.parameters["limit"]
        enter, load, *_ = self.rates
        self.entering = []
        if self.shape == "crowd":
            self._crowd(i, inside)
            return
        if rng.random() < enter:
            some = {"single": 1, "stalled": rng.choice([1, warps])}.get(self.shape, rng.choice([1, 1, 2, 4]))
            chosen = rng.sample(range(warps), min(some, warps))
            if self.shape == "single" and rng.random() < 0.9:
                chosen = [self.favourite]
            busy = [found.warp for found in (*self.waiting, *self.coalescer) if found is not None]
            for warp in chosen:
                if inside[warp] < limit and busy.count(warp) < TICKETS:
                    kind = "load" if rng.random() < load else rng.choice(["store", "atomic"])
                    lines = rng.choice([1, 1, 2, LINES]) if self.shape == "single" else rng.choice([1, 1, 1, 2, 3])
                    lines = min(lines, limit)
                    self.entering.append(Instruction(warp, kind == "store", kind == "atomic", lines))
        i.enter = sum(1 << found.warp for found in self.entering)
        i.enter_load = sum(1 << found.warp for found in self.entering if found.load)

    def _crowd(self, i: Any, inside: list[int]) -> None:
        """Every warp below its limit enters a load of one line, until none is; then none enters until all have left."""
        limit = self.parameters["limit"]
        self.filling = min(inside) < limit if self.filling else max(inside) == 0
        if self.filling:
            self.entering = [Instruction(w, False, False, 1) for w, lines in enumerate(inside) if lines < limit]
        i.enter = i.enter_load = sum(1 << found.warp for found in self.entering)

    def _drive_access(self, access: Any) -> None:
        rng, merges, send = self.rng, self.parameters["merges"], self.rates[3]
        if self.shape == "crowd":
            send = 0 if self.filling else 1
        if self.request is None and rng.random() < send:
            if self.ordered and (not self.slots or rng.random() < 0.5):
                self.request = self.ordered.pop(0)
            elif self.slots:
                most = min(merges, len(self.slots))
                count = rng.choice([1, most, rng.randint(1, most)])
                self.request = Request([self.slots.pop(rng.randrange(len(self.slots))) for _ in range(count)])
        payload = access.payload
        access.valid, access.ready = self.request is not None, rng.random() < max(send, 0.1)
        request = self.request or Request([])
        payload.store, payload.atomic = request.store, request.atomic
        payload.last = rng.getrandbits(1) if request.load else request.last
        payload.count = len(request.warps)
        for slot in range(merges):  # the rest of the slots means nothing
            known = slot < len(request.warps)
            payload.warps[slot] = request.warps[slot] if known else rng.randrange(self.parameters["warps"])

    def observe(self, i: Any, o: Any, c: Any) -> None:
        drained = sum(1 << warp for warp, lines in enumerate(self.counted) if not lines)
        loads = sum(1 << warp for warp, load in enumerate(self.last_was_load) if load)
        assert o.drained == drained, "drained: the warps whose every line has been sent"
        assert o.load_ready == drained | loads, "load_ready: drained, or nothing but loads on the way"
        self.counted = self.unsent.copy()
        for instruction in self.entering:
            self.counted[instruction.warp] += instruction.lines
        for port, found in enumerate(self.coalescer):
            if found is not None and self.leaves[port]:
                self._leave(port, found)
        if self.request is not None and i.access.ready:
            for warp in self.request.warps:
                self.unsent[warp] -= 1
                self.inside[warp] -= self.request.load or self.request.last
            self.request = None
        for instruction in self.entering:
            self.waiting.append(instruction)
            self.inside[instruction.warp] += 1
            self.unsent[instruction.warp] += instruction.lines
            self.last_was_load[instruction.warp] = instruction.load

    def _leave(self, port: int, instruction: Instruction) -> None:
        """A line leaves its coalescer."""
        instruction.lines -= 1
        last, warp = instruction.lines == 0, instruction.warp
        if instruction.load:
            self.slots.append(warp)
            self.inside[warp] += not last
        else:
            self.ordered.append(Request([warp], instruction.store, instruction.atomic, last))
        if last:
            self.coalescer[port] = None

    def finish(self) -> None:
        assert all(0 <= inside <= self.parameters["limit"] for inside in self.inside)


Predicate = Callable[[dict[str, int], Any, Any, Any], bool]


def _lines(p: dict[str, int], i: Any) -> list[Any]:
    """The lines transferred in this cycle."""
    return [line.payload for line in list(i.line)[: p["coalescers"]] if line.valid and line.ready]


def _sent(p: dict[str, int], i: Any) -> list[int]:
    """The warps of the load that the L1 takes in this cycle."""
    payload = i.access.payload
    if not (i.access.valid and i.access.ready) or payload.store or payload.atomic:
        return []
    return list(payload.warps)[: payload.count]


def _ordered(kind: str, last: int) -> Predicate:
    """The L1 takes a store's or atomic's line."""

    def taken(p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
        payload = i.access.payload
        return bool(i.access.valid and i.access.ready and getattr(payload, kind) and payload.last == last)

    return taken


def _more(p: dict[str, int], i: Any) -> list[int]:
    """The warps of loads' lines that others follow."""
    return [line.warp for line in _lines(p, i) if not line.last]


def _entered(i: Any) -> int:
    return int(i.enter).bit_count()


BINS: dict[str, Predicate] = {
    "one instruction enters": lambda p, i, o, c: _entered(i) == 1,
    "several instructions enter": lambda p, i, o, c: _entered(i) > 1,
    "loads and others enter": lambda p, i, o, c: 0 != i.enter_load != i.enter,
    "a load enters a drained warp": lambda p, i, o, c: i.enter_load & o.drained != 0,
    "a load enters behind loads": lambda p, i, o, c: i.enter_load & ~o.drained & o.load_ready != 0,
    "a load enters behind a store": lambda p, i, o, c: i.enter_load & ~o.load_ready != 0,
    "a store enters a drained warp": lambda p, i, o, c: i.enter & ~i.enter_load & o.drained != 0,
    "a store enters behind loads": lambda p, i, o, c: i.enter & ~i.enter_load & ~o.drained & o.load_ready != 0,
    "a load's line leaves, not the last": lambda p, i, o, c: bool(_more(p, i)),
    "a load's last line leaves": lambda p, i, o, c: any(line.last for line in _lines(p, i)),
    "a line is refused": lambda p, i, o, c: any(x.valid and not x.ready for x in list(i.line)[: p["coalescers"]]),
    "all coalescers send on a load's line": lambda p, i, o, c: len(_more(p, i)) == p["coalescers"],
    "two coalescers send on lines of one warp": lambda p, i, o, c: len(set(_more(p, i))) < len(_more(p, i)),
    "a request for one slot": lambda p, i, o, c: len(_sent(p, i)) == 1,
    "a request for every slot": lambda p, i, o, c: len(_sent(p, i)) == p["merges"],
    "a request for one warp twice": lambda p, i, o, c: len(set(_sent(p, i))) < len(_sent(p, i)),
    "a request is refused": lambda p, i, o, c: bool(i.access.valid and not i.access.ready),
    "a store's line that others follow": _ordered("store", 0),
    "a store's last line": _ordered("store", 1),
    "an atomic's line that others follow": _ordered("atomic", 0),
    "an atomic's last line": _ordered("atomic", 1),
    "a warp enters and is sent": lambda p, i, o, c: any(i.enter >> warp & 1 for warp in _sent(p, i)),
    "a warp's lines enter the queues and the L1": lambda p, i, o, c: bool(set(_more(p, i)) & set(_sent(p, i))),
    "every warp is drained": lambda p, i, o, c: o.drained == (1 << p["warps"]) - 1,
    "no warp is drained": lambda p, i, o, c: o.drained == 0,
}

def _one(p: dict[str, int]) -> bool:
    """Room for one thing at a time."""
    return p["limit"] == 1


IN_KERNELS = ("a line is refused", "a request is refused", "no warp is drained", "every warp is drained")

# With one warp, coalescer or merged request there are no two.
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "several instructions enter": lambda p: p["warps"] == 1,
    "loads and others enter": lambda p: p["warps"] == 1,
    "a load's line leaves, not the last": _one,
    "all coalescers send on a load's line": _one,
    "two coalescers send on lines of one warp": lambda p: p["coalescers"] == 1 or _one(p),
    "a request for one warp twice": lambda p: p["merges"] == 1 or _one(p),
    "a store's line that others follow": _one,
    "an atomic's line that others follow": _one,
    "a warp enters and is sent": _one,
    "a warp's lines enter the queues and the L1": _one,
}
