"""FallbackMonitor beside a primary that is ahead of its target or behind: the sums of a run, one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from lockstep.spec.scavenger.fixed import IPC

BLOCK = "scavenger.fallback_monitor"
GATES = True
CONFIGURATIONS = {
    "small": {"limit": 3, "duration": 7, "time": 9, "longest": 64},
    "shipped": {"limit": 4096, "duration": 32768, "time": 262144, "longest": 262144},
    "one": {"limit": 0, "duration": 1, "time": 1, "longest": 40},
    "odd": {"limit": 5, "duration": 11, "time": 13, "longest": 301},
    "largest": {"limit": 1000000, "duration": 100000, "time": 1048575, "longest": 262144},
}
MEASURED = {"shipped": 1}
IDLE_CHANGES = (r"sum", r"low", r"left")

LONG = 400  # what takes more cycles is cut short in a simulator


@dataclass(frozen=True)
class Shape:
    """``moods``: how the instructions compare with the target. ``ends``: of a run, per cycle, ``turns``: of a mood.

    ``whole``: of the targets, those that are whole numbers. ``late``: a run goes on while the primary is alone.
    ``clears``: per cycle.
    """

    moods: tuple[str, ...] = ("behind", "ahead", "level", "any")
    ends: float = 0.005
    turns: float = 0.1
    whole: float = 0.3
    late: float = 0.1
    clears: float = 0.001


_SHAPES = {
    "mixed": Shape(),
    "behind": Shape(moods=("behind", "behind", "level"), ends=0.001, turns=0.05),
    "around": Shape(moods=("behind", "ahead"), turns=0.3, whole=1.0, ends=0.002),
    "ahead": Shape(moods=("ahead", "level"), ends=0.002),
    "calm": Shape(turns=0.01, ends=0.001),
    "runs": Shape(moods=("behind", "ahead"), ends=0.1),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """A run's primary kernel."""

    CYCLES = 4000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.limit = -(parameters["limit"] << IPC.fraction)
        self.running = self.cycles = 0
        self.ran = 0  # cycles on end with ``run``, of which those alone are none of a run
        self.sum = 0  # in units of the last place
        self.low = 0  # cycles on end in which it has been below the limit
        self.alone = self.profile = 0  # cycles that are left
        self.moved = self.cut = False
        self.target, self.issued, self.mood = IPC.one, 1, "any"

    def preset(self) -> dict[str, int]:
        """Cut a duration, a time or the way to the limit short, once in each run and each time alone."""
        p, rng = self.p, self.rng
        found = {}
        if self.alone > LONG and not self.cut:
            self.alone, self.cut = rng.randint(3, 20), True
            found["left"] = self.alone - 1
        elif self.running and not self.alone and p["longest"] > LONG:
            if self.cycles == 3 and not self.moved:
                self.moved = True
                most = (p["longest"] - 500) * IPC.most
                near = self.limit + rng.randint(-9, 9) * IPC.one
                self.sum = min(max(rng.choice([near, near, rng.randint(-most, most)]), -most), most)
                self.cycles = p["longest"] - 500
                found["sum"] = self.sum
                self.low = 0
                found["low"] = 0
            elif 2 < self.low < p["duration"] - LONG and rng.random() < 0.1:
                self.low = rng.choice([p["duration"] - rng.randint(2, 20), rng.randint(3, p["duration"] - LONG)])
                self.sum = max(self.limit - rng.randint(1, 6 * IPC.one), -(p["longest"] - 500) * IPC.most)
                found |= {"low": self.low, "sum": self.sum}
        return found

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        if self.alone:
            self.running = int(self.running and self.ran < self.p["longest"] and rng.random() < shape.late)
        elif self.running:
            ends = shape.ends + 0.1 * (self.low == self.p["duration"] - 1)
            most = self.p["longest"]
            self.running = int(rng.random() >= ends and max(self.cycles, self.ran) < most)
        else:
            self.running = int(rng.random() < 0.3)
            self.moved = False
        if rng.random() < shape.turns:
            self._turn()
        i.run, i.issued, i.target = self.running, self.issued, self.target
        decides = self.sum < self.limit and self.low == self.p["duration"] - 1
        ends = 0 < self.alone < 5
        i.clear = rng.random() < shape.clears + 0.04 * ends + 0.25 * decides
        if rng.random() < 0.05 and IPC.most > self.target > 0:  # the sum is no whole number any more, or is one again
            i.target += 1 if self.sum % IPC.one == 0 else -1
        if self.low == self.p["duration"] - 2 and self.sum < self.limit and rng.random() < 0.15:
            i.issued, i.target = 7, 0  # it may recover just in time
        elif 0 <= self.sum - self.limit < IPC.most and rng.random() < 0.05:
            i.issued, i.target = 0, self.sum - self.limit + 1

    def _turn(self) -> None:
        """Another target, and instructions for it."""
        rng = self.rng
        self.mood = rng.choice(self.shape.moods)
        self.target = rng.randint(0, IPC.most)
        if rng.random() < self.shape.whole:
            self.target = rng.randint(0, 7) << IPC.fraction
        whole = self.target >> IPC.fraction
        self.issued = {
            "behind": rng.randint(0, whole),
            "ahead": rng.randint(min(whole + 1, 7), 7),
            "level": whole,
            "any": rng.randint(0, 7),
        }[self.mood]

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert o.alone == bool(self.alone), "after a duration below the limit, and for its time, or until it is cleared"
        assert o.profile == self.profile, "after the time"
        self.ran = self.ran + 1 if i.run else 0
        below = self.sum < self.limit
        o.sum, o.low, o.below, o.running = self.sum - self.limit, self.low, below, self.cycles  # for the bins
        o.left = self.alone
        self.profile = 0
        if i.clear:
            self.alone = self.sum = self.low = self.cycles = 0
        elif self.alone:
            self.alone -= 1
            self.profile = int(not self.alone)
            self.sum = self.low = self.cycles = 0
        elif not i.run:
            self.sum = self.low = self.cycles = 0
        else:
            self.low = self.low + 1 if below else 0
            self.sum += (i.issued << IPC.fraction) - i.target
            self.cycles += 1
            if self.low == self.p["duration"]:
                self.alone, self.low, self.cut = self.p["time"], 0, False

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """A run has at most so many cycles."""
    cycles = Signal(range(parameters["longest"] + 1))
    m.d.sync += cycles.eq(Mux(ports["run"], cycles + 1, 0))
    return ~ports["run"] | (cycles < parameters["longest"])


Bin = Callable[[dict[str, int], Any, Any, Any], bool]

BINS: dict[str, Bin] = {
    "it falls back": lambda p, i, o, c: _counts(i, o) and o.below and o.low == p["duration"] - 1,
    "the sum is the limit": lambda p, i, o, c: _counts(i, o) and o.sum == 0,
    "it is one unit of the last place below": lambda p, i, o, c: _counts(i, o) and o.sum == -1,
    "it recovers one cycle before the duration ends": lambda p, i, o, c: (
        _counts(i, o) and not o.below and 0 < o.low == p["duration"] - 1
    ),
    "it recovers": lambda p, i, o, c: _counts(i, o) and not o.below and o.low,
    "a run ends while it is below": lambda p, i, o, c: not i.run and not o.alone and o.below and o.running,
    "a run ends one cycle before the duration does": lambda p, i, o, c: (
        not i.run and not o.alone and o.below and o.low == p["duration"] - 1
    ),
    "a run is ahead": lambda p, i, o, c: _counts(i, o) and o.sum > p["limit"] << IPC.fraction,
    "a run goes on while the primary is alone": lambda p, i, o, c: i.run and o.alone,
    "a time alone is cleared": lambda p, i, o, c: i.clear and o.alone,
    "a run is cleared": lambda p, i, o, c: i.clear and i.run and not o.alone and o.running,
    "what would be the last cycle below is cleared": lambda p, i, o, c: (
        i.clear and i.run and not o.alone and o.below and o.low == p["duration"] - 1
    ),
    "a profile is asked for": lambda p, i, o, c: o.profile,
    "a run begins with the profile": lambda p, i, o, c: o.profile and i.run,
}

IN_KERNELS = ("a profile is asked for", "a run goes on while the primary is alone", "a time alone is cleared")


def _counts(i: Any, o: Any) -> bool:
    """The cycle is one of a run."""
    return bool(i.run and not o.alone and not i.clear)


UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {
    **dict.fromkeys(
        ("it recovers", "it recovers one cycle before the duration ends"), lambda p: p["duration"] == 1
    ),
}  # fmt: skip
