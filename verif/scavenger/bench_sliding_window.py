"""SlidingWindow under values that rest, wander and jump: running totals of all that came, cycle by cycle."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BLOCK = "scavenger.sliding_window"
GATES = True
CONFIGURATIONS = {
    "short": {"entries": 4, "cycles": 8, "bits": 5, "signed": 1},
    "one": {"entries": 1, "cycles": 2, "bits": 1, "signed": 0},
    "odd": {"entries": 5, "cycles": 13, "bits": 7, "signed": 1},
    "shipped": {"entries": 16, "cycles": 512, "bits": 8, "signed": 0},
    "errors": {"entries": 16, "cycles": 512, "bits": 20, "signed": 1},
    "many": {"entries": 128, "cycles": 64, "bits": 8, "signed": 0},
    "largest": {"entries": 128, "cycles": 1024, "bits": 20, "signed": 1},
}
MEASURED = {"shipped": 1, "errors": 1}
IDLE_CHANGES = (r"cycle", r"sum")

LONG = 40  # an entry of more cycles is cut short in a simulator


@dataclass(frozen=True)
class Shape:
    """How often a value changes and a run begins, per cycle; ``level``: what values are, most of the time."""

    change: float = 0.2
    clear: float = 0.0
    level: str = "any"


_SHAPES = {
    "mixed": Shape(clear=0.002),
    "held": Shape(change=0.01),
    "most": Shape(level="most", change=0.002),
    "least": Shape(level="least", change=0.002),
    "waves": Shape(level="wave", change=0.05),
    "cleared": Shape(clear=0.05),
    "flickering": Shape(change=1, clear=0.001),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """Whatever is counted, in runs."""

    CYCLES = 3000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        bits, signed = parameters["bits"], parameters["signed"]
        self.least, self.most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        self.begin()
        self.value = self.draw()

    def begin(self) -> None:
        """A run begins. A value counts in the cycle after its own."""
        self.cycle = 0
        self.all = [0]  # sums of everything, up to the end of each entry
        self.before = self.sum = 0

    def preset(self) -> dict[str, int]:
        """Leave out most of a long entry, once it has begun."""
        cycles = self.p["cycles"]
        if cycles <= LONG or self.cycle % cycles != 4:
            return {}
        passed = cycles - self.rng.randint(5, 8) - 4
        self.cycle += passed
        self.sum += passed * self.before
        return {"cycle": self.cycle % cycles, "sum": self.sum - self.all[-1]}

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        if rng.random() < self.shape.change:
            self.value = self.draw()
        i.clear = rng.random() < self.shape.clear
        i.value = self.value % (1 << self.p["bits"])

    def draw(self) -> int:
        rng, level = self.rng, self.shape.level
        if level == "wave":
            level = ("most", "least")[self.cycle // (self.p["cycles"] * self.p["entries"]) % 2]
        if level != "any" and rng.random() < 0.9:
            return self.most if level == "most" else self.least
        return rng.choice((0, self.least, self.most, rng.randint(self.least, self.most)))

    def observe(self, i: Any, o: Any, c: Any) -> None:
        p, port = self.p, 1 << self.bits
        ended = self.all[-1 - p["entries"] :]
        total = ended[-1] - (ended[0] if len(self.all) > p["entries"] else 0)
        assert o.total == total % port, "everything up to the last entry, but for what came before the first"
        assert self.least * p["entries"] * p["cycles"] <= total <= self.most * p["entries"] * p["cycles"]
        o.sum, o.at, o.ended = total, self.cycle, len(self.all) - 1  # for the bins
        o.least, o.most = (limit * p["entries"] * p["cycles"] for limit in (self.least, self.most))
        if i.clear:
            self.begin()
            return
        self.sum += self.before
        self.before = self.value
        self.cycle += 1
        if self.cycle % p["cycles"] == 0:
            self.all.append(self.sum)

    @property
    def bits(self) -> int:
        """Of the total: as many as its extremes need."""
        values = self.p["entries"] * self.p["cycles"]
        return self.p["bits"] + (values - 1).bit_length()

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "the first entry has ended": lambda p, i, o, c: o.ended == 1,
    "the oldest entry has left": lambda p, i, o, c: o.ended > p["entries"],
    "the largest total": lambda p, i, o, c: o.sum == o.most,
    "the least total": lambda p, i, o, c: o.ended and o.sum == o.least,
    "a run begins in the last cycle of an entry": lambda p, i, o, c: i.clear and o.at % p["cycles"] == p["cycles"] - 1,
    "a run begins before all entries have ended": lambda p, i, o, c: i.clear and 0 < o.ended < p["entries"],
    "a run begins again at once": lambda p, i, o, c: i.clear and o.at == 0,
    "below 0": lambda p, i, o, c: o.sum < 0,
}
UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "below 0": lambda p: not p["signed"],
    "a run begins before all entries have ended": lambda p: p["entries"] == 1,  # there is no entry between
}
