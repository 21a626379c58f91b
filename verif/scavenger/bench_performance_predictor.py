"""PerformancePredictor beside a kernel whose IPC settles or not: sums over the profile's cycles say what it finds.

Training is the beginning of a profile and validation the rest, so that the sum of instructions up to each cycle is all
there is to know. No interval is followed here.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

BLOCK = "scavenger.performance_predictor"
CONFIGURATIONS = {
    "short": {"minimum": 72, "maximum": 733, "tolerance": 75, "comparisons": 4},
    "one": {"minimum": 8, "maximum": 48, "tolerance": 999, "comparisons": 1},
    "odd": {"minimum": 24, "maximum": 251, "tolerance": 377, "comparisons": 3},
    "shipped": {"minimum": 20_000, "maximum": 200_000, "tolerance": 75, "comparisons": 8},
    "uneven": {"minimum": 20_024, "maximum": 200_231, "tolerance": 75, "comparisons": 8},
    "stricter": {"minimum": 20_000, "maximum": 200_000, "tolerance": 75, "comparisons": 16},
    "largest": {"minimum": 131_064, "maximum": 262_143, "tolerance": 999, "comparisons": 16},
}
# The numbers of cycles that ship are multiples of four. Those of "uneven", with as many bits, are not.
MEASURED = {"uneven": 2}
IDLE_CHANGES = (r"cycle", r"left", r"beat")
TRANSITIONS = {
    "stage": {
        "COUNTING": ("DIVIDING",),
        "DIVIDING": ("SCALING", "COUNTING"),
        "SCALING": ("TARGETING", "COUNTING"),
        "TARGETING": ("DONE", "COUNTING"),
        "DONE": ("COUNTING",),
    }
}

# Eighths of the minimum at which both halves have equally many cycles.
BALANCES = (8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96)
MOST = 7  # instructions in a cycle
PERIOD = 16
LONG = 800  # a profile of more cycles is cut short in a simulator
PREDICTED, TARGETED = 22, 51  # cycles from the end of a profile to its results


@dataclass(frozen=True)
class Shape:
    """``agrees``: the share of comparisons for which the halves are led to agree, and ``edge`` of those in which one
    instruction more or fewer would make the difference; ``spoilt``: of the last one that a stable profile needs, the
    share that must not agree. ``cut``: how many profiles in a thousand cycles end early.
    ``hasty``: the share of stable profiles of which the results are not waited for. ``mean``: instructions per cycle;
    none: one for each profile.
    """

    agrees: float = 0.9
    edge: float = 0.3
    spoilt: float = 0.0
    cut: float = 0.2
    hasty: float = 0.5
    mean: float | None = None
    long: bool = False  # what has agreed is forgotten again and again
    pause: float = 0.02  # the share of cycles that begin a stretch without an instruction


_SHAPES = {
    "mixed": Shape(),
    "steady": Shape(agrees=1, edge=0, cut=0),
    "edges": Shape(agrees=0.85, edge=1, cut=0.1),
    "unstable": Shape(agrees=0.3, edge=0.2, cut=0),
    "spoilt": Shape(agrees=0.8, edge=1, spoilt=0.6, cut=0, pause=0.005),
    "cut": Shape(agrees=1, edge=0.5, cut=15),
    "fast": Shape(agrees=1, edge=0, cut=0, mean=7, pause=0),
    "long": Shape(agrees=1, edge=0, cut=0, mean=7, long=True, pause=0),
    "high": Shape(agrees=0.6, edge=1, cut=0, mean=6.5, pause=0),
    "silent": Shape(agrees=1, edge=0, mean=0, spoilt=0.5, cut=0),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """The SM, with one kernel."""

    CYCLES = 4500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.eighth = parameters["minimum"] // 8
        self.ends = [n * self.eighth for n in (4, 5, 6, 7, *BALANCES)]  # of intervals
        self.waits = rng.randint(1, 10)  # for a profile, or until it is no longer wanted
        self.profile = 0
        self.results = (0, 0, 0)  # cycles, prediction, target
        self.percent = 100
        self.after = 0  # cycles since a profile was stable; 0: none is
        self.prediction = self.share = 0
        self.now = 0
        self.paused = 0
        self.new()

    def new(self) -> None:
        """A profile may begin."""
        self.cycle = self.total = 0
        self.sums = {0: 0}  # instructions up to the end of a cycle, where they are needed
        self.agreed = 0
        self.pending: tuple[int, bool] | None = None  # when the result of a comparison comes, and what it is
        self.last = (0, 0)  # instructions and cycles of the last comparison
        self.mean = self.rng.choice((0.05, 0.5, 1, 2, 3.5, 6, 7)) if self.shape.mean is None else self.shape.mean
        self.goal: int | None = None  # instructions up to the next comparison
        self.sign = self.rng.choice((-1, 1))  # on which side validation leaves the tolerance
        self.jumped, self.delay = -1, 3
        self.unsettled = self.rng.randint(0, 60) if self.shape.long else 0  # comparisons before it may be stable
        self.forged = self.shape.spoilt > 0 and self.rng.random() < 0.25  # what has agreed in a row
        self.compared: list[bool] = []

    # The profile by its definition.

    def end(self) -> int:
        """The end of this cycle's interval."""
        return self.ends[bisect_left(self.ends, self.cycle + 1)]

    def training(self, cycle: int) -> int:
        """Cycles of training at the end of a cycle from the minimum on: up to the next balance, half of it."""
        return self.ends[bisect_left(self.ends, cycle)] // 2

    def next_comparison(self) -> int:
        return self.p["minimum"] + max(0, -(-(self.cycle + 1 - self.p["minimum"]) // PERIOD)) * PERIOD

    def agrees(self, trained: int, validated: int, training: int, cycle: int) -> bool:
        """Whether the mean of validation differs by less than the tolerance of that of training."""
        if trained == 0:
            return False
        one, other = Fraction(trained, training), Fraction(validated, cycle - training)
        return abs(one - other) < one * Fraction(self.p["tolerance"], 1000)

    @property
    def verdict(self) -> int:
        """Cycles from a comparison to its result: one for two bits of a half, and five."""
        return 5 + -(-self.training(self.p["maximum"]).bit_length() // 2)

    # The stimulus.

    def preset(self) -> dict[str, int]:
        """Leave out most of a long interval, and some comparisons that agree; in a profile
        that is to be long, forget those that have."""
        if self.unsettled and self.agreed:
            self.unsettled -= 1
            self.agreed = 0
            return {"agreed": 0}
        p, rng = self.p, self.rng
        if self.forged and p["comparisons"] > 1 and self.cycle > p["minimum"] and rng.random() < 0.02:
            half, resting = self.half(), self.pending is None or self.pending[0] < self.now
            if resting and not self.agrees(self.sums[half], self.total - self.sums[half], half, self.cycle):
                self.agreed = p["comparisons"] - 1
                self.compared = [True] * self.agreed
                return {"agreed": self.agreed}
        if p["comparisons"] > 8 and 1 <= self.agreed < p["comparisons"] - 2 and rng.random() < 0.02:
            self.compared += [True] * (p["comparisons"] - 2 - self.agreed)
            self.agreed = p["comparisons"] - 2
            return {"agreed": self.agreed}
        if p["maximum"] <= LONG or not self.profile or self.after or self.jumped == self.end():
            return {}
        number = bisect_left(self.ends, self.cycle + 1) - 1
        begun = self.ends[number] if number >= 0 else 0
        if self.cycle - begun < self.delay:
            return {}
        self.jumped, self.delay = self.end(), rng.choice((*(3,) * 7, PERIOD * (p["comparisons"] + 2)))
        step = min(self.end(), p["maximum"]) - self.cycle - rng.randint(20, 60)
        if number < 0 and self.cycle < self.end() // 4:
            self.jumped, step = -1, self.end() // 2 - self.cycle  # there are two steps to the end of the first one
        if self.cycle >= p["minimum"]:
            step -= step % PERIOD
        if step <= 0:
            return {}
        issued = self.issue(step)
        self.cycle, self.total = self.cycle + step, self.total + issued
        self.goal = None
        state = {"cycle": self.cycle}
        if self.cycle < p["minimum"]:
            state["left"] = self.end() - self.cycle
        if number < 0:
            return state | {"train": self.total}
        trained = self.sums[self.half()]
        return state | {"validate": self.total - trained, f"small_{number % 4}": self.total - self.sums[begun]}

    def half(self) -> int:
        """Cycles of training now, in which the oldest interval has joined what ended with the last cycle."""
        return 4 * self.eighth if self.cycle < self.p["minimum"] else self.training(self.cycle + 1)

    def issue(self, cycles: int) -> int:
        """Instructions of some cycles that are left out: as in training, or far from it."""
        rng = self.rng
        half = self.half()
        if trained := self.sums.get(half, 0):
            span, mean = self.cycle + cycles - half, trained / half
            if rng.random() < self.shape.edge:
                mean *= 1 + self.sign * self.p["tolerance"] / 1000
            if rng.random() < self.shape.agrees:
                return min(MOST * cycles, max(0, round(mean * span) - (self.total - trained)))
        if self.shape.mean is not None:
            return round(self.shape.mean * cycles)
        return rng.choice((0, 0, MOST * cycles, rng.randint(0, MOST * cycles), round(self.mean * cycles)))

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        if o.stable and rng.random() < self.shape.hasty:
            self.waits = rng.choice((1, 1, rng.randint(2, 22), rng.randint(23, 30), rng.randint(31, TARGETED)))
        elif self.profile and self.waits <= 0 and (o.done or rng.random() < self.shape.cut / 1000):
            self.waits = rng.choice((1, 2, 5, 60))
        self.waits -= 1
        if self.waits == 0:
            self.profile ^= 1
            self.waits = 0 if self.profile else rng.randint(1, 20)
        i.profile = self.profile
        i.percent = rng.choice((100, rng.randint(1, 100)))
        i.issued = self.issues() if self.profile and not self.after else rng.randint(0, MOST)

    def issues(self) -> int:
        """Instructions of this cycle."""
        rng, p = self.rng, self.p
        at = self.next_comparison()
        training = self.training(at)
        if not self.sums.get(training):
            return self.noisy()
        if self.goal is None:
            mean = Fraction(self.sums[training], training)
            limit, span = Fraction(p["tolerance"], 1000) * mean, at - training
            agrees, edge = rng.random() < self.shape.agrees, rng.random() < self.shape.edge
            coming = self.pending is not None and self.pending[0] >= self.now and self.pending[1]
            if self.agreed + coming == p["comparisons"] - 1 and rng.random() < self.shape.spoilt:
                agrees = False
            sign = self.sign
            border = (mean + sign * limit) * span
            inside = (-(-border.numerator // border.denominator) - 1) if sign > 0 else border.__floor__() + 1
            if edge:
                goal = inside if agrees else inside + sign
            elif agrees:
                goal = round(mean * span)
            else:
                goal = round((mean + sign * limit * rng.choice((2, 5))) * span)
            self.goal = self.sums[training] + max(0, goal)
        needed, cycles = self.goal - self.total, at - self.cycle
        if needed <= 0:
            return 0
        if rng.random() < 0.3 and cycles > 3:
            return self.noisy()
        return min(MOST, -(-needed // cycles))

    def noisy(self) -> int:
        rng = self.rng
        if self.paused:
            self.paused -= 1
            return 0
        if rng.random() < self.shape.pause:
            self.paused = rng.randint(2, 30)
        whole = int(self.mean)
        return min(MOST, whole + (rng.random() < self.mean - whole))

    # The checks.

    def observe(self, i: Any, o: Any, c: Any) -> None:
        p = self.p
        stable = restart = joins = False
        if self.after == PREDICTED:
            self.results = (self.results[0], self.prediction, self.results[2])
        if self.after == TARGETED:
            self.results = (*self.results[:2], nearest(self.share * self.prediction, 100))
        if not self.after:
            stable = self.pending == (self.now, True) and self.agreed == p["comparisons"] - 1
            restart = not stable and self.cycle == p["maximum"] - 1
            joins = p["minimum"] <= self.end() == self.cycle + 1 and not stable and not restart
        number = bisect_left(self.ends, self.cycle + 1) - 1
        assert o.part == (number % 4 + 1 if number >= 0 else 0), "intervals follow each other"
        assert (o.stable, o.restart) == (stable, restart), "as the comparisons say"
        assert o.joining.valid == joins, "whenever both halves have equally many cycles"
        assert o.joining.payload == (o.part % 4 if joins else 0), "the oldest one"
        assert o.done == (self.after >= TARGETED)
        assert (o.cycles, o.predicted, o.target) == self.results, "instructions by cycles, and a share of it"
        o.counted, o.after, o.compared = self.cycle, self.after, [*self.compared]  # for the bins
        self.next(i, stable, restart)
        self.now += 1

    def next(self, i: Any, stable: bool, restart: bool) -> None:
        """What follows this cycle."""
        if not i.profile:
            self.after = 0
            self.new()
        elif self.after:
            self.after += 1
        elif stable:
            issued, cycles = self.last
            self.prediction, self.share = nearest(issued << 16, cycles), i.percent
            self.results = (cycles // 8, *self.results[1:])
            self.after = 1
            self.new()
        elif restart:
            self.new()
        else:
            self.count(i.issued)

    def count(self, issued: int) -> None:
        """A cycle of the profile."""
        if self.pending and self.pending[0] == self.now:
            self.compared.append(self.pending[1])
            self.agreed = self.agreed + 1 if self.pending[1] else 0
        self.cycle += 1
        self.total += issued
        if self.cycle in self.ends:
            self.sums[self.cycle] = self.total
        if self.cycle >= self.p["minimum"] and (self.cycle - self.p["minimum"]) % PERIOD == 0:
            training = self.training(self.cycle)
            trained = self.sums[training]
            agreed = self.agrees(trained, self.total - trained, training, self.cycle)
            self.pending = (self.now + self.verdict, agreed)
            self.last = (self.total, self.cycle)
            self.goal = None

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


def nearest(numerator: int, denominator: int) -> int:
    """The nearest integer, of two the larger one."""
    return int(Fraction(numerator, denominator) + Fraction(1, 2))


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _failed_before(p: dict[str, int], o: Any) -> bool:
    """Comparisons agreed as often as it takes but for one, and then one did not."""
    n = p["comparisons"]
    return [*o.compared[-n:]] == [True] * (n - 1) + [False]


def _joins(small: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(i.profile and o.joining.valid and o.joining.payload == small)


BINS: dict[str, Bin] = {
    "a stable profile": lambda p, i, o, c: i.profile and o.stable,
    "after the fewest cycles": lambda p, i, o, c: i.profile and o.stable and len(o.compared) == p["comparisons"] - 1,
    "after more": lambda p, i, o, c: i.profile and o.stable and len(o.compared) >= p["comparisons"],
    "all but one in a row, and then none": lambda p, i, o, c: _failed_before(p, o),
    "a small interval joins": lambda p, i, o, c: i.profile and o.joining.valid,
    **{f"small interval {k} joins": partial(_joins, k) for k in range(4)},
    "the longest profile": lambda p, i, o, c: i.profile and o.restart,
    "without an instruction": lambda p, i, o, c: i.profile and o.restart and not any(o.compared),
    "cut short": lambda p, i, o, c: not i.profile and o.counted,
    "cut short in the cycle in which it is stable": lambda p, i, o, c: not i.profile and o.stable,
    "not wanted while results are made": lambda p, i, o, c: not i.profile and 0 < o.after < TARGETED,
    "done, and waiting": lambda p, i, o, c: i.profile and o.done,
    "all of the IPC": lambda p, i, o, c: o.done and o.target == o.predicted > 0,
    "seven instructions per cycle": lambda p, i, o, c: o.done and o.predicted == MOST << 16,
}

IN_KERNELS = ("a stable profile", "the longest profile", "done, and waiting")

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {}
