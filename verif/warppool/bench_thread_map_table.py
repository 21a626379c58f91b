"""The thread-map table under random lines and results: each result must find the map that its line stored."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.spec.mapping import Mapping
from lockstep.spec.warppool.parameters import MAP_PER
from lockstep.verif.bench import mask
from lockstep.verif.blocks import Waiver

BLOCK = "warppool.thread_map_table"
GATES = True
LINE, LOAD = range(len(MAP_PER))
CONFIGURATIONS = {
    "by load": {"lanes": 32, "entries": 8, "coalescers": 2, "map_per": LOAD},
    "paper": {"lanes": 32, "entries": 8, "coalescers": 2, "map_per": LINE},
    "one": {"lanes": 1, "entries": 2, "coalescers": 1, "map_per": LINE},  # the number of a single entry is constant
    "odd": {"lanes": 7, "entries": 9, "coalescers": 3, "map_per": LINE},
    "odd by load": {"lanes": 7, "entries": 5, "coalescers": 3, "map_per": LOAD},
    "largest": {"lanes": 32, "entries": 32, "coalescers": 4, "map_per": LOAD},
}
SHAPES = ("balanced", "bursts", "gusts", "pairs", "scarce", "other kinds")

# For each shape: the share of cycles in which a line is offered, of lines that are random, of cycles with a result.
_RATES = {
    "balanced": (0.4, 0.5, 0.9), "bursts": (1.0, 0.95, 1.0), "gusts": (1.0, 1.0, 1.0), "pairs": (1.0, 1.0, 1.0),
    "scarce": (0.9, 0.9, 0.4), "other kinds": (0.8, 0.1, 0.8),
}  # fmt: skip
# Cycles for each entry, and four, in which nothing is released, and then in which nothing is offered. With gusts the
# table is nearly full.
_TURNS = {"bursts": (4, 4), "gusts": (0, 0), "pairs": (16, 32)}


@dataclass(frozen=True)
class Line:
    """A load's line: its lanes, whether it needs an entry, and whether it is the load's last."""

    mask: int
    random: bool
    last: bool

    @property
    def thread(self) -> int:
        return (self.mask & -self.mask).bit_length() - 1


def load(rng: random.Random, lanes: int, needing: float, pairs: bool) -> list[Line]:
    """The lines of a load: each of its lanes is in one of them, and a random one has two or more; or all of two."""
    active = (1 << lanes) - 1 if pairs else mask(rng, lanes) or 1
    found: dict[int, int] = {}
    for lane in range(lanes):
        if active >> lane & 1:
            number = lane // 2 if pairs else rng.randrange(rng.choice([1, 4, 32]))
            found[number] = found.get(number, 0) | 1 << lane
    masks = sorted(found.values(), key=lambda each: each & -each)
    lone = lanes > 1
    return [
        Line(each, rng.random() < needing and (not lone or each & (each - 1) != 0), each == masks[-1]) for each in masks
    ]


class Environment:
    """Loads in each coalescer, results in any order; checks maps, uniqueness and priority against lists of its own."""

    CYCLES = 1500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.lanes, self.entries = parameters["lanes"], parameters["entries"]
        self.ports = range(parameters["coalescers"])
        self.by_load = parameters["map_per"] == LOAD
        self.shape = shape
        self.cycle = 0
        self.offered, self.needing, self.answered = _RATES[shape]
        self.rng = rng
        self.left: list[list[Line]] = [[] for _ in self.ports]  # the lines that each coalescer has still to present
        self.words: list[list[int]] = [[] for _ in self.ports]  # of its load
        self.presents = [False] * len(self.ports)
        self.open: list[int | None] = [None] * len(self.ports)  # the entry of its load
        self.kept: dict[int, dict[int, tuple[int, list[int]]]] = {}  # by entry, by thread: mask and words
        self.spare = self.entries  # entries known to be free
        self.stored = self.released = 0

    # ------------------------------------------------------------------------------------------------------ stimulus

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        offered, answered = self.offered, self.answered
        if self.shape in _TURNS:
            fill, drain = (each * self.entries + 4 for each in _TURNS[self.shape])
            offered, answered = (offered, 0.0) if self.cycle % (fill + drain) < fill else (0.0, answered)
        asked = 0  # entries that the coalescers below ask for
        for k in self.ports:
            line = i.line[k]
            if not self.presents[k] and rng.random() < offered:
                self._present(k, line.payload)
            line.valid = self.presents[k]
            needs = self.presents[k] and self.left[k][0].random and self.open[k] is None
            line.ready = rng.random() < 0.8 and not (needs and asked >= self.spare)
            asked += needs
        result, p = i.result, i.result.payload
        result.valid, result.ready = rng.random() < answered, rng.random() < 0.8
        p.mapping = Mapping.RANDOM if rng.random() < 0.8 else rng.choice(list(Mapping)[:-1])
        p.atomic, p.word = rng.random() < 0.15, rng.randrange(32)
        i.lookup.entry, i.lookup.thread = rng.randrange(32), rng.randrange(self.lanes)
        due = [(entry, thread) for entry, lines in self.kept.items() for thread in lines]
        if due and rng.random() < 0.8:
            entry, i.lookup.thread = rng.choice(due)
            i.lookup.entry = entry
            self.answers = entry, i.lookup.thread
            if p.mapping == Mapping.RANDOM and not p.atomic:
                p.word = entry
        elif p.mapping == Mapping.RANDOM:
            p.atomic = 1

    def _tell(self, i: Any, c: Any) -> None:
        """What bins ask."""
        c.free = self.entries - len(self.kept)
        shown = [(self.left[k][0], self.open[k]) for k in self.ports if self.presents[k] and i.line[k].ready]
        c.asks = sum(self.presents[k] and self.left[k][0].random and self.open[k] is None for k in self.ports)
        c.joins = any(line.random and entry is not None for line, entry in shown)
        c.closes = any(
            line.last and not line.random and entry in self.kept and not self.kept[entry] for line, entry in shown
        )
        c.waits = any(entry in self.open for entry, due in self.kept.items() if not due)

    def _present(self, k: int, p: Any) -> None:
        """The next line of coalescer k's load, or the first one of another."""
        rng = self.rng
        self.presents[k] = True
        if not self.left[k]:
            self.left[k] = load(rng, self.lanes, self.needing, self.shape == "pairs")
            self.words[k] = [rng.randrange(32) for _ in range(self.lanes)]
        line = self.left[k][0]
        p.mapping = Mapping.RANDOM if line.random else rng.choice(list(Mapping)[:-1])
        p.mask, p.thread, p.last = line.mask, line.thread, line.last
        for lane, word in enumerate(self.words[k]):
            p.words[lane] = word if line.random else 0

    # -------------------------------------------------------------------------------------------------------- checks

    def observe(self, i: Any, o: Any, c: Any) -> None:
        self._tell(i, c)
        self._map(i, c)
        free = [entry for entry in range(self.entries) if entry not in self.kept]
        spare, self.spare = self.spare, len(free)
        for k in self.ports:
            if not (self.presents[k] and self.left[k][0].random):
                assert (c.admits[k], c.entry[k]) == (1, 0), f"coalescer {k} needs no entry"
            elif self.open[k] is not None:
                assert (c.admits[k], c.entry[k]) == (1, self.open[k]), f"coalescer {k} has an entry"
            else:
                assert c.admits[k] == (spare > 0), f"whether there is an entry for coalescer {k}"
                assert not c.admits[k] or c.entry[k] == free.pop(0), f"coalescer {k}'s entry"
                spare -= 1
                self.spare -= i.line[k].ready
        result = i.result
        if _releases(i):
            entry, thread = self.answers
            assert entry == result.payload.word
            del self.kept[entry][thread]
            self.released += 1
        for k in self.ports:
            if self.presents[k] and i.line[k].ready:
                self._leave(k, c.entry[k])
        for entry in [entry for entry, due in self.kept.items() if not due and entry not in self.open]:
            del self.kept[entry]
        self.cycle += 1

    def _map(self, i: Any, c: Any) -> None:
        words, lines = list(c.map.words)[: self.lanes], self.kept.get(i.lookup.entry)
        if lines is None:
            assert (c.map.mask, words) == (0, [0] * self.lanes), f"entry {i.lookup.entry} is not in use"
        elif self.by_load and i.lookup.thread in lines:
            mask, expected = lines[i.lookup.thread]
            assert c.map.mask == mask, f"the lanes of a line in entry {i.lookup.entry}"
            assert all(words[lane] == expected[lane] for lane in range(self.lanes) if mask >> lane & 1)
        elif not self.by_load:
            assert [(c.map.mask, words)] == list(lines.values()), f"the map in entry {i.lookup.entry}"

    def _leave(self, k: int, entry: int) -> None:
        """Coalescer k's line is transferred."""
        line = self.left[k].pop(0)
        self.presents[k] = False
        if line.random:
            self.kept.setdefault(entry, {})[line.thread] = line.mask, self.words[k]
            self.stored += 1
            if self.by_load:
                self.open[k] = entry
        if line.last:
            self.open[k] = None

    def finish(self) -> None:
        assert self.stored == self.released + sum(map(len, self.kept.values()))
        assert self.stored > 0


def _needs(i: Any, k: int) -> bool:
    line = i.line[k]
    return bool(line.valid and line.payload.mapping == Mapping.RANDOM)


def _takes(i: Any, k: int) -> bool:
    return bool(_needs(i, k) and i.line[k].ready)


def _releases(i: Any) -> bool:
    p = i.result.payload
    return bool(i.result.valid and i.result.ready and p.mapping == Mapping.RANDOM and not p.atomic)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "a line takes an entry": lambda p, i, o, c: any(_takes(i, k) for k in range(p["coalescers"])),
    "every coalescer takes an entry": lambda p, i, o, c: all(_takes(i, k) for k in range(p["coalescers"])),
    "one entry is left, and two want it": lambda p, i, o, c: c.free == 1 and c.asks > 1,
    "a higher coalescer gets the last entry": lambda p, i, o, c: (
        c.free == 1 and not _needs(i, 0) and any(_takes(i, k) for k in range(1, p["coalescers"]))
    ),
    "all entries in use": lambda p, i, o, c: c.free == 0,
    "a line is not admitted": lambda p, i, o, c: not all(c.admits[k] for k in range(p["coalescers"])),
    "nothing in use": lambda p, i, o, c: c.free == p["entries"],
    "the last entry is released": lambda p, i, o, c: _releases(i) and i.result.payload.word == p["entries"] - 1,
    "taken and released": lambda p, i, o, c: _releases(i) and any(_takes(i, k) for k in range(p["coalescers"])),
    "released while all are in use": lambda p, i, o, c: _releases(i) and c.free == 0,
    "looked up and released": lambda p, i, o, c: _releases(i) and i.lookup.entry == i.result.payload.word,
    "an unused entry looked up": lambda p, i, o, c: c.map.mask == 0,
    "the last entry looked up": lambda p, i, o, c: i.lookup.entry == p["entries"] - 1 and c.map.mask != 0,
    "a random line refused": lambda p, i, o, c: any(
        _needs(i, k) and c.admits[k] and not i.line[k].ready for k in range(p["coalescers"])
    ),
    "a random result waits": lambda p, i, o, c: (
        i.result.valid and not i.result.ready and i.result.payload.mapping == Mapping.RANDOM
    ),
    "an atomic's result passes": lambda p, i, o, c: (
        i.result.valid and i.result.ready and i.result.payload.mapping == Mapping.RANDOM and i.result.payload.atomic
    ),
    # By load.
    "a line joins its load's entry": lambda p, i, o, c: c.joins,
    "a line joins while all are in use": lambda p, i, o, c: c.joins and c.free == 0,
    "a load's last line frees its entry": lambda p, i, o, c: c.closes,
    "an entry waits for its load's lines": lambda p, i, o, c: c.waits,
}  # fmt: skip

IN_KERNELS = ("every coalescer takes an entry", "a random line refused", "a random result waits", "taken and released")

WAIVERS = (Waiver(r"entry\[[3489]\] \S+", "the table has 8 entries: three bits number them"),)

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **dict.fromkeys(
        ("one entry is left, and two want it", "a higher coalescer gets the last entry"),
        lambda p: p["coalescers"] == 1,
    ),
    **dict.fromkeys(
        (
            "a line joins its load's entry", "a line joins while all are in use", "a load's last line frees its entry",
            "an entry waits for its load's lines",
        ),
        lambda p: p["map_per"] == LINE or p["lanes"] == 1,
    ),
}  # fmt: skip
