"""ShareOwner under CTAs that come and go, and take and release locks: an account of them says who is older and owns."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amaranth.hdl import Module, Value

BLOCK = "sharing.share_owner"
GATES = True
CONFIGURATIONS = {
    "shipped": {"ctas": 8},
    "one": {"ctas": 1},
    "odd": {"ctas": 7},
    "largest": {"ctas": 32},
}
MEASURED = {"largest": 1}
SIDES = (0, 1)


@dataclass(frozen=True)
class Rates:
    """Of each CTA or vacant place, per cycle."""

    start: float  # a CTA comes
    finish: float  # it ends
    replace: float  # of those that end, the share whose place is taken at once
    lock: float  # it takes a lock
    release: float  # one of its locks is released
    rule: bool = True  # no CTA takes a lock while its partner holds one


_RATES = {
    "mixed": Rates(0.2, 0.1, 0.5, 0.3, 0.3),
    "crowded": Rates(1, 0.3, 0.9, 0.4, 0.2),
    "sparse": Rates(0.1, 0.4, 0.1, 0.5, 0.2),
    "long": Rates(0.5, 0.005, 0.5, 0.05, 0.1),
    "without the rule": Rates(0.3, 0.1, 0.5, 0.3, 0.3, rule=False),
    "together": Rates(0.9, 0.9, 0.3, 0.3, 0.1),
}
SHAPES = tuple(_RATES)


@dataclass(eq=False)
class Cta:
    side: int
    locks: int = 0  # held


@dataclass
class Pair:
    """The CTAs of a pair, the oldest first, and the one that owns."""

    ctas: list[Cta] = field(default_factory=list)
    owner: Cta | None = None

    def at(self, side: int) -> Cta | None:
        return next((cta for cta in self.ctas if cta.side == side), None)

    def holders(self) -> list[Cta]:
        return [cta for cta in self.ctas if cta.locks]


class Environment:
    """Places CTAs and ends them, and lets their warps take locks."""

    CYCLES = 1000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.rates, self.rng = _RATES[shape], rng
        self.pairs = [Pair() for _ in range(max(1, parameters["ctas"] // 2))]
        self.starts: set[tuple[int, int]] = set()  # pair and side, in this cycle
        self.finishes: set[tuple[int, int]] = set()
        self.entered = self.left = 0

    def drive(self, i: Any, o: Any) -> None:
        rng, rates = self.rng, self.rates
        self.starts, self.finishes = set(), set()
        for number, pair in enumerate(self.pairs):
            for side in SIDES:
                vacant = pair.at(side) is None
                if not vacant and rng.random() < rates.finish:
                    self.finishes.add((number, side))
                    vacant = rng.random() < rates.replace
                    if vacant:
                        self.starts.add((number, side))
                elif vacant and rng.random() < rates.start:
                    self.starts.add((number, side))
        for side in SIDES:
            i.start[side] = sum(1 << number for number, where in self.starts if where == side)
            i.finish[side] = sum(1 << number for number, where in self.finishes if where == side)
            holds = 0
            for number, pair in enumerate(self.pairs):
                cta = pair.at(side)
                holds |= (cta is not None and cta.locks > 0) << number
            i.holds[side] = holds

    def observe(self, i: Any, o: Any, c: Any) -> None:
        for number, pair in enumerate(self.pairs):
            present = [o.present[side] >> number & 1 for side in SIDES]
            assert present == [pair.at(side) is not None for side in SIDES], "the CTAs that have come and not ended"
            oldest = pair.ctas[0].side if pair.ctas else 0
            assert o.older >> number & 1 == oldest, "the CTA that came first"
            owner = pair.owner.side if pair.owner else 0
            assert o.owner >> number & 1 == owner, "the owner"
            assert len(pair.ctas) != 1 or pair.owner is pair.ctas[0], "a lone CTA owns"
        assert o.sharing == any(len(pair.ctas) == 2 for pair in self.pairs), "some pair has two CTAs"
        for number, pair in enumerate(self.pairs):
            self._next(number, pair)

    def _next(self, number: int, pair: Pair) -> None:
        """The next cycle's CTAs, owner and locks."""
        holders = pair.holders()
        if len(pair.ctas) == 2 and len(holders) == 1:
            pair.owner = holders[0]
        for cta in pair.ctas.copy():
            if (number, cta.side) in self.finishes:
                pair.ctas.remove(cta)
                self.left += 1
        for side in SIDES:
            if (number, side) in self.starts:
                pair.ctas.append(Cta(side))
                self.entered += 1
        if pair.owner not in pair.ctas:
            pair.owner = pair.ctas[0] if pair.ctas else None
        for cta in pair.ctas:
            others = any(other.locks for other in pair.ctas if other is not cta)
            if self.rng.random() < self.rates.lock and not (self.rates.rule and others):
                cta.locks += 1
            if cta.locks and self.rng.random() < self.rates.release:
                cta.locks -= 1

    def finish(self) -> None:
        assert self.entered == self.left + sum(len(pair.ctas) for pair in self.pairs)
        assert self.left > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


@dataclass
class Seen:
    """A pair's bits in a cycle, those of its owner and of the other one by name."""

    here: list[int]
    start: list[int]
    finish: list[int]
    holds: list[int]
    owner: int  # a side
    older: int

    @property
    def ends(self) -> tuple[int, int]:
        """Whether the owner ends, and whether the other one does."""
        return self.finish[self.owner], self.finish[1 - self.owner]

    @property
    def held(self) -> tuple[int, int]:
        """Whether the owner holds a lock, and whether the other one does."""
        return self.holds[self.owner], self.holds[1 - self.owner]

    @property
    def comes(self) -> tuple[int, int]:
        """Whether a CTA comes in place of the owner, and whether one comes in that of the other one."""
        return self.start[self.owner], self.start[1 - self.owner]


def _lone(holds: int | None, *when: tuple[tuple[int, int], tuple[int, int]]) -> Bin:
    """A pair has one CTA, which holds a lock or not; who ends, and who comes."""
    return _some(lambda s: sum(s.here) == 1 and (s.ends, s.comes) in when and holds in (None, s.held[0]))


def _two(ends: tuple[int, int], comes: tuple[int, int], *held: tuple[int, int]) -> Bin:
    """A pair has two CTAs; who ends, who comes, and who may hold locks: as always the owner first."""
    return _some(lambda s: s.here == [1, 1] and (s.ends, s.comes) == (ends, comes) and (not held or s.held in held))


def _some(find: Callable[[Seen], bool]) -> Bin:
    """Some pair is such."""

    def hit(p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
        for pair in range(max(1, p["ctas"] // 2)):
            masks = o.present, i.start, i.finish, i.holds
            here, start, finish, holds = ([mask[side] >> pair & 1 for side in SIDES] for mask in masks)
            if find(Seen(here, start, finish, holds, o.owner >> pair & 1, o.older >> pair & 1)):
                return True
        return False

    return hit


NOBODY, OWNER, OTHER, BOTH = (0, 0), (1, 0), (0, 1), (1, 1)

BINS: dict[str, Bin] = {
    "a pair's first CTA comes": _some(lambda s: sum(s.here) == 0 and sum(s.start) == 1),
    "both CTAs of a pair come together": _some(lambda s: sum(s.here) == 0 and sum(s.start) == 2),
    "a second CTA comes": _lone(None, (NOBODY, OTHER)),
    "a second CTA comes while the first holds a lock": _lone(1, (NOBODY, OTHER)),
    "a second CTA comes as the first ends": _lone(None, (OWNER, OTHER)),
    "a lone CTA ends": _lone(None, (OWNER, NOBODY)),
    "a lone CTA is replaced": _lone(None, (OWNER, OWNER)),
    "a lone CTA is replaced by two": _lone(None, (OWNER, BOTH)),
    "the owner ends": _two(OWNER, NOBODY),
    "the owner is replaced": _two(OWNER, OWNER),
    "the owner is replaced, who held a lock": _two(OWNER, OWNER, OWNER),
    "the other one ends": _two(OTHER, NOBODY),
    "the other one is replaced": _two(OTHER, OTHER),
    "the other one is replaced, who had just taken a lock": _two(OTHER, OTHER, OTHER),
    "both end": _two(BOTH, NOBODY),
    "both end and one comes": _some(lambda s: sum(s.finish) == 2 and sum(s.start) == 1),
    "both are replaced": _two(BOTH, BOTH),
    "the other one takes the first lock": _two(NOBODY, NOBODY, OTHER),
    "the other one takes the first lock as the owner ends": _two(OWNER, NOBODY, OTHER),
    "the owner holds a lock": _two(NOBODY, NOBODY, OWNER),
    "both hold locks": _two(NOBODY, NOBODY, BOTH),
    "the younger owns": _some(lambda s: s.owner != s.older),
    "the younger owns and neither holds a lock": _some(lambda s: s.owner != s.older and sum(s.holds) == 0),
    "every pair has two CTAs": lambda p, i, o, c: o.present[0] == o.present[1] == (1 << max(1, p["ctas"] // 2)) - 1,
    "CTAs, and no pair has two": lambda p, i, o, c: not o.sharing and o.present[0] | o.present[1] != 0,
    "no CTA": lambda p, i, o, c: o.present[0] | o.present[1] == 0,
}

IN_KERNELS = ("a second CTA comes while the first holds a lock", "the owner ends", "the owner holds a lock", "no CTA")

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {}


def protocol(m: Module, p: dict[str, int], ports: Mapping[str, Value]) -> Value:
    """Starts are where nobody is or whoever is ends, finishes and locks are of CTAs that are there."""
    present, finish = ports["present"], ports["finish"]
    return ((ports["start"] & present & ~finish) | (finish & ~present) | (ports["holds"] & ~present)) == 0
