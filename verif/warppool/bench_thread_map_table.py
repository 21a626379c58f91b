"""The thread-map table under random lines and results: each result must find the map that its line stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lockstep.spec.mapping import Mapping
from lockstep.verif.bench import mask
from lockstep.verif.blocks import Waiver

BLOCK = "warppool.thread_map_table"
CONFIGURATIONS = {
    "paper": {"lanes": 32, "entries": 8, "coalescers": 2},
    "one": {"lanes": 1, "entries": 1, "coalescers": 1},
    "odd": {"lanes": 7, "entries": 9, "coalescers": 3},
    "largest": {"lanes": 32, "entries": 32, "coalescers": 4},
    "single bank": {"lanes": 32, "entries": 32, "coalescers": 1},
}
SHAPES = ("balanced", "bursts", "uneven", "other kinds")

# For each shape: the share of cycles in which a line is offered, of lines that need an entry, of cycles with a result.
_RATES = {
    "balanced": (0.4, 0.5, 0.9), "bursts": (1.0, 0.95, 1.0), "uneven": (0.9, 0.9, 0.5), "other kinds": (0.8, 0.1, 0.8),
}  # fmt: skip


class Environment:
    """Lines in each bank, results in any order; checks maps, uniqueness and counts against a dictionary of its own."""

    CYCLES = 1500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.lanes = parameters["lanes"]
        self.banks = parameters["coalescers"]
        self.bank = parameters["entries"] // self.banks
        self.shape = shape
        self.cycle = 0
        self.offered, self.needing, self.answered = _RATES[shape]
        self.rng = rng
        self.kept: dict[int, tuple[int, list[int]]] = {}
        self.stored = self.released = 0

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        offered, answered = [self.offered] * self.banks, self.answered
        if self.shape == "bursts":  # fill up, then drain
            filling = self.cycle // (2 * self.bank * self.banks + 4) % 2 == 0
            offered, answered = (offered, 0.0) if filling else ([0.0] * self.banks, answered)
        elif self.shape == "uneven":  # the first bank full, the others empty
            offered[1:] = [0.02] * (self.banks - 1)
        for k in range(self.banks):
            line, p = i.line[k], i.line[k].payload
            line.valid, line.ready = rng.random() < offered[k], rng.random() < 0.8
            needs = rng.random() < self.needing and o.free[k] > 0
            stays = not (line.valid and line.ready) and rng.random() < 0.3  # whether or not there is an entry
            p.mapping = Mapping.RANDOM if needs or stays else rng.choice(list(Mapping)[:-1])
            p.mask = mask(rng, self.lanes) or 1
            for lane in range(self.lanes):
                p.words[lane] = rng.randrange(32)
        result, p = i.result, i.result.payload
        result.valid, result.ready = rng.random() < answered, rng.random() < 0.8
        p.mapping = Mapping.RANDOM if rng.random() < 0.8 else rng.choice(list(Mapping)[:-1])
        p.atomic, p.word = rng.random() < 0.15, rng.randrange(32)
        if p.mapping == Mapping.RANDOM and not p.atomic:
            if self.kept:
                p.word = max(self.kept) if self.shape == "uneven" else rng.choice(list(self.kept))
            else:
                p.atomic = 1
        i.lookup = p.word if rng.random() < 0.7 else rng.randrange(32)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        members = [[e for e in range(k * self.bank, (k + 1) * self.bank) if e in self.kept] for k in range(self.banks)]
        assert [o.free[k] for k in range(self.banks)] == [self.bank - len(used) for used in members], "free entries"
        expected = self.kept.get(i.lookup, (0, [0] * self.lanes))
        assert (c.map.mask, list(c.map.words)[: self.lanes]) == expected, f"the map in entry {i.lookup}"
        taken = {}
        for k in range(self.banks):
            line = i.line[k]
            if _takes(i, k):
                entry = o.entry[k]
                assert entry // self.bank == k, f"coalescer {k} got entry {entry} of another bank"
                assert entry not in self.kept, f"entry {entry} is in use"
                taken[entry] = (line.payload.mask, list(line.payload.words)[: self.lanes])
        result = i.result
        if result.valid and result.ready and result.payload.mapping == Mapping.RANDOM and not result.payload.atomic:
            del self.kept[result.payload.word]
            self.released += 1
        self.kept.update(taken)
        self.stored += len(taken)
        self.cycle += 1

    def finish(self) -> None:
        assert self.stored == self.released + len(self.kept)
        assert self.stored > 0


def _takes(i: Any, k: int) -> bool:
    line = i.line[k]
    return bool(line.valid and line.ready and line.payload.mapping == Mapping.RANDOM)


def _releases(i: Any) -> bool:
    p = i.result.payload
    return bool(i.result.valid and i.result.ready and p.mapping == Mapping.RANDOM and not p.atomic)


def _size(p: dict[str, int]) -> int:
    return p["entries"] // p["coalescers"]


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

WAIVERS = (
    Waiver(r"free\[([345]|9|1[01])\] \S+", "a bank has 4 entries: three bits count them"),
    Waiver(r"entry\[[23489]\] \S+", "above a bank's 4 entries are its number and zeros: constant"),
    Waiver(r"entry\[7\] 1->0", "the same: bank 1 begins at entry 4"),
)

BINS: dict[str, Bin] = {
    "a line takes an entry": lambda p, i, o, c: any(_takes(i, k) for k in range(p["coalescers"])),
    "every coalescer takes an entry": lambda p, i, o, c: all(_takes(i, k) for k in range(p["coalescers"])),
    "the last free entry is taken": lambda p, i, o, c: any(
        _takes(i, k) and o.free[k] == 1 for k in range(p["coalescers"])
    ),
    "all entries in use": lambda p, i, o, c: not any(o.free[k] for k in range(p["coalescers"])),
    "one bank full, another empty": lambda p, i, o, c: {0, _size(p)} <= {o.free[k] for k in range(p["coalescers"])},
    "nothing in use": lambda p, i, o, c: all(o.free[k] == _size(p) for k in range(p["coalescers"])),
    "released in the first bank": lambda p, i, o, c: _releases(i) and i.result.payload.word < _size(p),
    "released in the last bank": lambda p, i, o, c: (
        _releases(i) and i.result.payload.word >= p["entries"] - _size(p)
    ),
    "the last entry is released": lambda p, i, o, c: _releases(i) and i.result.payload.word == p["entries"] - 1,
    "taken and released in one bank": lambda p, i, o, c: (
        _releases(i) and _takes(i, i.result.payload.word // _size(p))
    ),
    "released while its bank is full": lambda p, i, o, c: (
        _releases(i) and o.free[i.result.payload.word // _size(p)] == 0
    ),
    "looked up and released": lambda p, i, o, c: _releases(i) and i.lookup == i.result.payload.word,
    "an unused entry looked up": lambda p, i, o, c: c.map.mask == 0,
    "the last entry looked up": lambda p, i, o, c: i.lookup == p["entries"] - 1 and c.map.mask != 0,
    "a random line refused": lambda p, i, o, c: any(
        line.valid and not line.ready and line.payload.mapping == Mapping.RANDOM
        for line in list(i.line)[: p["coalescers"]]
    ),
    "a random result waits": lambda p, i, o, c: (
        i.result.valid and not i.result.ready and i.result.payload.mapping == Mapping.RANDOM
    ),
    "an atomic's result passes": lambda p, i, o, c: (
        i.result.valid and i.result.ready and i.result.payload.mapping == Mapping.RANDOM and i.result.payload.atomic
    ),
}  # fmt: skip

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    # a second bank is needed
    "one bank full, another empty": lambda p: p["coalescers"] == 1,
    # what is taken was free, and what is released in the same bank was not
    "taken and released in one bank": lambda p: _size(p) == 1,
}
