"""ActivityCounter under bursts of issues: the cycles of each window, counted by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BLOCK = "dyncore.activity_counter"
GATES = True
CONFIGURATIONS = {
    "short": {"window": 40},
    "odd": {"window": 301},
    "shipped": {"window": 2048},
    "largest": {"window": 65535},
}
MEASURED = {"shipped": 1, "largest": 1}
IDLE_CHANGES = (r"cycle", r"so_far")

LONG = 400  # a window of more cycles is cut short in a simulator


@dataclass(frozen=True)
class Shape:
    """Mean cycles that an issue is under way, and that none is; none of the first: always."""

    active: float
    quiet: float


_SHAPES = {
    "busy": Shape(40, 2),
    "quiet": Shape(2, 60),
    "issues": Shape(4, 4),
    "flickering": Shape(1, 1),
    "always": Shape(1e9, 1),
    "never": Shape(1, 1e9),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """The schedulers of an SM."""

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.window, self.shape, self.rng = parameters["window"], _SHAPES[shape], rng
        self.active = int(self.shape.active > self.shape.quiet)
        self.cycle = self.so_far = self.last = self.count = self.windows = 0

    def preset(self) -> dict[str, int]:
        """Leave out most of a window that is too long for a run, a while after it has begun."""
        rng = self.rng
        if self.window <= LONG or self.cycle != 30:
            return {}
        passed = self.window - rng.randint(5, 60) - self.cycle
        self.cycle += passed
        always = self.shape.active > 1e6
        if not always and rng.random() < 0.5:
            return {"cycle": self.cycle}  # what the hardware has counted by then shows at the window's end
        self.so_far += passed if always else 0 if self.shape.quiet > 1e6 else rng.randint(0, passed)
        return {"cycle": self.cycle, "so_far": self.so_far}

    def drive(self, i: Any, o: Any) -> None:
        if self.rng.random() < 1 / (self.shape.active if self.active else self.shape.quiet):
            self.active ^= 1
        i.active = self.active

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert o.count == self.count, "the cycles of the window that has ended last"
        o.cycle, o.windows = self.cycle, self.windows  # for the bins
        self.so_far += self.last
        self.last = i.active
        self.cycle += 1
        if self.cycle == self.window:
            self.count, self.cycle, self.so_far = self.so_far, 0, 0
            self.windows += 1

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "active in the first cycle of a window": lambda p, i, o, c: o.windows and o.cycle == 0 and i.active,
    "active in the last": lambda p, i, o, c: o.cycle == p["window"] - 1 and i.active,
    "a window without an issue": lambda p, i, o, c: o.windows and o.count == 0,
    "a window of issues alone": lambda p, i, o, c: o.count == p["window"],
    "some of each": lambda p, i, o, c: 0 < o.count < p["window"],
}

IN_KERNELS = ("some of each",)

