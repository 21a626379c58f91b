"""Turnstile under random slots: open in every ``period``-th cycle, and then only."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lockstep.verif.bench import mask

BLOCK = "odd_gate.turnstile"
CONFIGURATIONS = {
    "wide": {"warps": 48, "period": 5},
    "one": {"warps": 1, "period": 1},
    "odd": {"warps": 7, "period": 3},
    "largest": {"warps": 64, "period": 256},
}
SHAPES = ("changing", "held")


class Environment:
    """Shows it slots, and counts the cycles."""

    CYCLES = 1000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.rng = parameters, rng
        self.changes = {"changing": 0.8, "held": 0.05}[shape]
        self.cycle = 0

    def drive(self, i: Any, o: Any) -> None:
        if self.cycle == 0 or self.rng.random() < self.changes:
            i.slots = mask(self.rng, self.parameters["warps"])
        if self.cycle % (2 * self.parameters["period"]) == 0:  # every second time, it opens for none
            i.slots = 0

    def observe(self, i: Any, o: Any, c: Any) -> None:
        opens = self.cycle % self.parameters["period"] == 0
        assert o.open == opens, "open in every period-th cycle"
        assert c.closed == (0 if opens else i.slots), "closed for its slots alone"
        self.cycle += 1

    def finish(self) -> None:
        assert self.cycle > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "open for a slot": lambda p, i, o, c: o.open and i.slots != 0,
    "open for none": lambda p, i, o, c: o.open and i.slots == 0,
    "closed for all": lambda p, i, o, c: c.closed == (1 << p["warps"]) - 1,
    "closed for none": lambda p, i, o, c: not o.open and i.slots == 0,
}

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    "closed for all": lambda p: p["period"] == 1,
    "closed for none": lambda p: p["period"] == 1,
}
