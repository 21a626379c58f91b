"""PhaseDetector beside profiles and runs that are made up: exact fractions say what is outside, and when a run ends.

A profile is a list of intervals, in the order of their cycles, of which the first so many have joined.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

from lockstep.verif.blocks import Waiver

BLOCK = "scavenger.phase_detector"
CONFIGURATIONS = {
    "odd": {
        "maximum": 731, "interval": 71, "above": 3, "longest": 1501, "lanes": 7, "requests": 3, "share": 12_289,
    },
    "shipped": {
        "maximum": 200_000, "interval": 100, "above": 5, "longest": 262_144, "lanes": 8, "requests": 2, "share": 12_288,
    },
}  # fmt: skip
IDLE_CHANGES = (r"cycle", r"beat")
TRANSITIONS = {
    "working": {
        "NOTHING": ("LANES",),
        "LANES": ("REQUESTS", "NOTHING"),
        "REQUESTS": ("PCS", "NOTHING"),
        "PCS": ("NOTHING",),
    }
}
WAIVERS = [Waiver(r"apart\[0\] [01]->[01]", "1.1 is 282/256, which is even")]

SMALLS = 4
LANES, REQUESTS, PCS, LENGTH = range(4)
NAMES = ("lanes", "requests", "pcs", "length")  # of reasons
STATISTICS = {LANES: "lanes", REQUESTS: "requests"}
EARLY = {0: "as long as", 1: "a cycle shorter than"}
MOST = 32  # of an instruction
INSTRUCTIONS = 7  # of a cycle
TENTH = Fraction(282, 256)
LARGEST_AMOUNT, LARGEST_COUNT = (1 << 21) - 1, (1 << 16) - 1  # of a window
LARGEST_TOTAL = (1 << 19) - 1
LATENCIES = {LANES: 21, REQUESTS: 42, PCS: 63}  # cycles from an interval's last one to that of its decision
MEANS, LIMIT = 127, 25  # cycles until they are known
APART = 64  # cycles from a profile's distance to that of a window


@dataclass(frozen=True)
class Shape:
    """``goals``: how runs are led to end. ``edge``: of means and distances, those that a unit more or less would move.

    ``apart``: of profiles, those whose halves differ. ``silent``: of profiles and windows, those without an instruction
    of a kind. ``full``: profiles are as long as can be, and one of their intervals has most of it, with all lanes.
    ``cut``: of profiles, those that end early. ``jump``: of runs, those of which a simulator leaves out the most.
    ``half``: of profiles that lack instructions of a kind, those that lack them in one half. ``which``: the reasons for
    which a run is led to end, if its goal is that it ends as it is the longest. ``short``: no profile joins.
    """

    goals: tuple[str, ...] = ("lanes", "requests", "pcs", "length", "broken", "cut")
    edge: float = 0.5
    apart: float = 0.5
    silent: float = 0.1
    full: bool = False
    cut: float = 0.05
    jump: float = 0.7
    half: float = 0.6
    which: tuple[int, ...] = (LANES, REQUESTS, PCS)
    short: bool = False


_SHAPES = {
    "mixed": Shape(cut=0.15),
    "edges": Shape(goals=("lanes", "requests", "pcs", "calm"), edge=1.0, silent=0.0),
    "broken": Shape(goals=("broken", "broken", "lanes", "requests"), silent=0.05),
    "apart": Shape(goals=("broken", "calm", "calm", "pcs"), apart=1.0, edge=0.9, silent=0.0),
    "silent": Shape(silent=0.7, goals=("lanes", "requests", "broken")),
    "half": Shape(silent=0.9, half=0.95, goals=("cut",)),
    "pcs": Shape(goals=("pcs", "calm"), edge=1.0, silent=0.0, apart=0.0),
    "long": Shape(goals=("length",), jump=0.4),
    "late": Shape(goals=("together",), which=(LANES, REQUESTS), cut=0.0, jump=1.0, short=True),
    "late, pcs": Shape(goals=("together",), which=(PCS,), cut=0.0, jump=1.0, silent=0.0, short=True),
    "full": Shape(goals=("cut",), full=True, apart=0.0, cut=0.0, silent=0.0),
}
SHAPES = tuple(_SHAPES)


@dataclass
class Interval:
    """Lanes and instructions of a part of a profile, requests and memory instructions."""

    part: int
    amounts: list[int]
    counts: list[int]


@dataclass(frozen=True)
class Expected:
    """Of a statistic: the mean of a profile, and how far from it that of a run may be."""

    mean: Fraction
    threshold: Fraction
    larger: bool  # than the least

    def outside(self, amount: int, count: int) -> bool:
        return abs(Fraction(amount, count) - self.mean) > self.threshold


class Environment:
    """An SM with two kernels; what the predictor and the histograms say is made up."""

    CYCLES = 10_000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.now = 0
        # By definition.
        self.intervals: list[Interval] = []
        self.joined = 0  # small ones
        self.profiled = self.over = False
        self.stable_at: int | None = None  # when a profile was stable
        self.told_at: int | None = None  # when its distance came
        self.limit = self.share = Fraction(parameters["share"], 1 << 16)
        self.expected: dict[int, Expected | None] = dict.fromkeys(STATISTICS)
        self.cycle = self.beat = 0  # of the run, and of its interval
        self.ended = self.armed = False
        self.last = -1  # when an interval ended
        self.means: dict[int, tuple[int, int]] = {}  # as they were then
        self.window: tuple[int, int] | None = None  # the distance of one that waits
        self.taken: tuple[int, int] | None = None  # that which is compared
        self.far = dict.fromkeys(STATISTICS, 0)  # comparisons in a row
        self.says = (0, 0)  # whether a run is to end, and why
        self.seen: set[str] = set()
        # What is done.
        self.turns = rng.randrange(1 << 10)
        self.cycles = 0  # of the profile, in eighths
        self.jump: int | None = None
        self.goal, self.which = "", LANES
        self.story = self.tell()

    # The stimulus.

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        self.i, self.o = i, o
        i.profile = i.run = i.joining.valid = i.restart = i.stable = i.distance.valid = 0
        i.part, i.joining.payload = rng.randrange(SMALLS + 1), rng.randrange(SMALLS)
        i.instructions, i.memory_instructions = rng.randint(0, INSTRUCTIONS), rng.randint(0, INSTRUCTIONS)
        i.lanes, i.requests = (rng.randint(0, MOST * count) for count in (i.instructions, i.memory_instructions))
        next(self.story)
        if not i.profile and rng.random() < 0.05:
            i.stable, i.restart, i.joining.valid = rng.choice(((1, 0, 0), (0, 1, 0), (0, 0, 1)))
        self._windows(i)
        self._distance(i)

    def tell(self) -> Iterator[None]:
        """Profiles and runs, a cycle at a time."""
        rng = self.rng
        while True:
            yield from self._pause()
            if not (yield from self._profile()):
                continue
            ends = rng.random() < self.shape.cut
            waits = rng.choice((0, 1, rng.randint(1, MEANS), rng.randint(MEANS, 250), 150))
            for _ in range(min(waits, MEANS) if ends else waits):
                self.i.profile = 1
                yield
            if ends:
                continue
            yield from self._run()
            if rng.random() < 0.2:
                yield from self._pause()
                yield from self._run()

    def _pause(self) -> Iterator[None]:
        for _ in range(self.rng.choice((1, 2, self.rng.randint(3, 30)))):
            yield

    def _profile(self) -> Generator[None, None, bool]:
        """One that is stable at last, or cut short."""
        rng, shape, p = self.rng, self.shape, self.p
        self.turns += 1
        joins = 0 if shape.short else rng.choice((0, 0, 1, rng.randint(2, 7)))
        plan = [rng.randint(3, 40), *(rng.randint(2, 25) for _ in range(joins + SMALLS))]
        if shape.full:
            joins = self.turns // (SMALLS + 1) % 2
            plan = [3] * (SMALLS + 1 + joins)
            plan[self.turns % (SMALLS + 1)] = min(400 if p["maximum"] > 2000 else p["maximum"], p["maximum"] - 25)
        training = joins + 1
        halves = {of: rng.randrange(2) if rng.random() < shape.half else 2 for of in STATISTICS}
        silent = {of: halves[of] if rng.random() < shape.silent else -1 for of in STATISTICS}
        means = {of: self._chosen() for of in STATISTICS}
        ends = rng.randint(1, sum(plan)) if rng.random() < 2 * shape.cut else 0
        restarts = rng.random() < 0.5
        cycle = 0
        for number, cycles in enumerate(plan):
            half = int(number >= training)
            for left in reversed(range(cycles)):
                cycle += 1
                if cycle == ends and not restarts:
                    return False
                i = self.i
                i.profile, i.part = 1, (number - 1) % SMALLS + 1 if number else 0
                for of in STATISTICS:
                    few = silent[of] in (half, 2) or (shape.full and half and not means[of][1] and rng.random() < 0.7)
                    count = 0 if few else INSTRUCTIONS if shape.full else rng.randint(0, INSTRUCTIONS)
                    mean = means[of][half]
                    amount = round(count * mean + (rng.uniform(-1, 1) if 0 < mean < MOST else 0))
                    amount = min(MOST * count, max(0, amount))
                    if of == LANES:
                        i.lanes, i.instructions = amount, count
                    else:
                        i.requests, i.memory_instructions = amount, count
                if cycle == ends > 1:
                    i.restart = 1
                    yield
                    return (yield from self._profile())
                if left == 0 and number == len(plan) - 1:
                    i.stable = 1
                    self._stable()
                elif left == 0 and number >= SMALLS:
                    i.joining.valid, i.joining.payload = 1, i.part % SMALLS
                yield
        return True

    def _chosen(self) -> tuple[float, float]:
        """Means of training and of validation."""
        rng, shape = self.rng, self.shape
        if shape.full:
            return MOST, (MOST if self.turns % (SMALLS + 1) else 0)
        first = rng.choice((0, MOST, *(rng.uniform(0, MOST) for _ in range(6))))
        if rng.random() < shape.apart:
            return first, rng.choice((0, MOST, *(abs(first - rng.uniform(3, 14)) for _ in range(4))))
        return first, min(MOST, max(0, first + rng.uniform(-1, 1)))

    def _stable(self) -> None:
        """How long it was, as the predictor says, and when its distance comes."""
        rng = self.rng
        most = self.p["maximum"] // 8
        few = rng.choice((0, 1, 9, 12, 13, 25, rng.randint(0, 30)))
        self.cycles = min(most, rng.choice((few, few, rng.randint(0, most))))
        self.tells = self.now + rng.choice((1, rng.randint(1, MEANS), rng.randint(1, 200), rng.randint(1, 400)))

    def _run(self) -> Iterator[None]:
        rng, shape, p = self.rng, self.shape, self.p
        self.goal = rng.choice(shape.goals)
        self.which = rng.choice(shape.which)
        needs = 8 * self.cycles
        late = self.goal in ("length", "together")
        self.jump = rng.randint(2, 40) if (late or needs > 150) and rng.random() < shape.jump else None
        length = min(needs, 800) + (p["above"] + 4) * p["interval"]
        stop = rng.choice((0, *LATENCIES.values())) if self.goal == "cut" and not shape.full else 0
        if self.goal == "length":
            length = p["longest"] + 50
        elif self.goal == "cut" and not stop:
            length = rng.randint(1, 60 if shape.full else 600)
        for _ in range(min(length, 2200)):
            self.i.cycles = self.cycles
            if (stop and self.armed and self.now - self.last == stop) or (self.says[0] and rng.random() < 0.5):
                break
            if self.ended and rng.random() < 0.02:
                break
            self.i.run = 1
            yield

    def preset(self) -> dict[str, int]:
        """Leave out most of a run: up to its profile's length, or to the longest."""
        p, rng = self.p, self.rng
        if self.jump is None or self.cycle < self.jump or self.ended or not self._divided():
            return {}
        if self.goal == "together" and self.which == PCS and not self._may_come():
            return {}
        self.jump = None
        needs, left = 8 * self.cycles, p["interval"] - self.beat  # the latter up to the end of the interval
        if self.goal in ("length", "together"):
            # The longest run ends as the last of some comparisons is decided, or next to that.
            comparisons = p["above"] - 1 - self.far[self.which] if self.which != PCS else 0
            to = p["longest"] - left - comparisons * p["interval"] - LATENCIES[self.which]
            to += rng.choice((0, 0, 0, 0, 1, -1))
        else:
            to = needs - left - rng.choice((0, 0, 1, 1, rng.randint(0, 300)))
        if not self.cycle < to < p["longest"] - 1:
            return {}
        self.cycle = to
        return {"cycle": to}

    def _windows(self, i: Any) -> None:
        """Means of the run: as they are wanted when an interval ends."""
        rng = self.rng
        wanted = i.run and self.beat == self.p["interval"] - 1
        for of in STATISTICS:
            expected = self.expected[of]
            count = rng.choice((0, rng.randint(1, 20), rng.randint(1, LARGEST_COUNT), LARGEST_COUNT))
            amount = rng.choice((rng.randint(0, LARGEST_AMOUNT), LARGEST_AMOUNT))
            if wanted and expected and rng.random() >= self.shape.silent / 2:
                amount, count = self._mean(of, expected)
            elif wanted:
                count = 0
            if of == LANES:
                i.window_lanes, i.window_instructions = amount, count
            else:
                i.window_requests, i.window_memory_instructions = amount, count

    def _mean(self, of: int, expected: Expected) -> tuple[int, int]:
        """Of a run's amount and count."""
        rng = self.rng
        next_to_last = self.far[of] == self.p["above"] - 1
        led = self.goal == STATISTICS[of] or (self.goal == "together" and self.which == of)
        outside = True if led or (self.goal == "broken" and not next_to_last) else rng.random() < 0.4
        if next_to_last and not led:
            outside = False
            if rng.random() < 0.4:
                return rng.randint(0, LARGEST_AMOUNT), 0
        high, low = expected.mean + expected.threshold, expected.mean - expected.threshold
        count = min(
            rng.choice((rng.randint(1, 9), rng.randint(1, 2000), rng.randint(1, LARGEST_COUNT), LARGEST_COUNT)),
            floor((LARGEST_AMOUNT - 1) / (high + 1)),
        )
        edge = rng.random() < self.shape.edge
        if low > 0 and rng.random() < 0.6:
            border = ceil(low * count)
            amount = border - outside if edge else rng.randint(0, border - 1) if outside else border + count // 4
        else:
            border = floor(high * count)
            amount = border + outside if edge else border + count // 3 + 1 if outside else floor(expected.mean * count)
        return max(0, amount), count

    def _distance(self, i: Any) -> None:
        """That of a profile, once, and those of windows."""
        rng, found = self.rng, i.distance.payload
        if self.stable_at is not None and self.told_at is None and self.now >= self.tells and not self._begins(i):
            i.distance.valid, found.run = 1, 0
            found.total = rng.choice((0, rng.randint(1, 500), rng.randint(1, LARGEST_TOTAL), LARGEST_TOTAL))
            share = rng.choice((0, *(rng.uniform(0.1, 0.85) for _ in range(4)), 1))
            found.difference = round(share * found.total)
        elif i.run and self._may_come() and self._some():
            found.total = rng.choice((0, rng.randint(1, 500), rng.randint(1, LARGEST_TOTAL), LARGEST_TOTAL))
            led = self.goal == "pcs" or (self.goal == "together" and self.which == PCS)
            outside = led or (rng.random() < 0.5 and self.cycle + 2 * self.p["interval"] < 8 * self.cycles)
            border = min(found.total, floor(self.limit * found.total))
            if rng.random() < self.shape.edge:
                found.difference = min(found.total, border + outside)
            else:
                found.difference = rng.randint(border, found.total) if outside else rng.randint(0, border)
            i.distance.valid, found.run = 1, 1

    def _some(self) -> bool:
        """Whether a window ends: some do, and one before each interval's end if it is to end the run."""
        urgent = self.goal == "pcs" or (self.goal == "together" and self.which == PCS)
        late = LATENCIES[REQUESTS] - 1  # in time, or too late
        return self.rng.random() < (0.7 if urgent and self.beat in (late, late + 1, self.p["interval"] - 3) else 0.02)

    def _may_come(self) -> bool:
        """Whether the distance of a window may."""
        return self.told_at is not None and self.now >= self.told_at + APART

    def _begins(self, i: Any) -> bool:
        return bool(i.profile and not self.profiled)

    # The checks.

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert (o.ends.valid, o.ends.payload) == self.says, "a run ends when a comparison, or its length, says so"
        self.seen = set()
        if i.run:
            self._in_run(i)
        else:
            self._not_in_run(i)
        self._in_profile(i)
        if i.distance.valid and not i.distance.payload.run:
            self._told(i.distance.payload)
        o.seen = self.seen
        self.now += 1

    def _in_profile(self, i: Any) -> None:
        counting = i.profile and not self.over
        if self._begins(i) or (counting and i.restart):
            if self.stable_at is not None and self.now < self.stable_at + MEANS:
                self.seen.add("a profile begins while one is divided")
            self.intervals, self.joined = [], 0
            self.stable_at = self.told_at = None
        if counting and i.restart:
            self.seen.add("all is discarded")
        elif counting:
            if not self.intervals or self.intervals[-1].part != i.part:
                self.intervals.append(Interval(i.part, [0, 0], [0, 0]))
            now = self.intervals[-1]
            for of, amount, count in ((LANES, i.lanes, i.instructions), (REQUESTS, i.requests, i.memory_instructions)):
                now.amounts[of] += amount
                now.counts[of] += count
            self.joined += i.joining.valid
            if i.joining.valid:
                self.seen.add(f"small interval {i.joining.payload} joins")
            if i.stable:
                self._known()
        elif self.profiled and not i.profile and not self.over:
            self.seen.add("a profile is cut short")
        self.over = bool(i.profile and (self.over or i.stable))
        self.profiled = bool(i.profile)

    def _known(self) -> None:
        """What a run's means may be: halves of the profile, rounded, and the thresholds of its configuration."""
        self.stable_at, self.limit = self.now, self.share
        training, validation = self.intervals[: self.joined + 1], self.intervals[self.joined + 1 :]
        for of, name in STATISTICS.items():
            halves = [
                (sum(each.amounts[of] for each in half), sum(each.counts[of] for each in half))
                for half in (training, validation, self.intervals)
            ]
            least = Fraction(self.p[name])
            exact = [Fraction(amount, count) if count else None for amount, count in halves]
            one, other, mean = [value if value is None else rounded(value, 256) for value in exact]
            if mean is None:
                self.expected[of] = None
                self.seen.add(f"{name}: none in a profile")
                continue
            apart = Fraction(0) if one is None or other is None else rounded(abs(one - other) * TENTH, 256)
            if one is None or other is None:
                self.seen.add(f"{name}: none in one half")
            self.expected[of] = Expected(mean, max(least, apart), apart > least)
            if exact[0] is not None and exact[1] is not None:  # what rounding does is less than a hundredth
                really = max(least, abs(exact[0] - exact[1]) * TENTH)
                found = self.expected[of]
                assert found and exact[2] is not None
                assert abs(found.threshold - really) + abs(found.mean - exact[2]) < Fraction(1, 100)

    def _told(self, found: Any) -> None:
        """The distance of a profile."""
        assert self.stable_at is not None
        self.told_at = self.now
        if self.now < self.stable_at + MEANS:
            self.seen.add("a distance comes while means are divided")
        apart = (
            rounded(rounded(Fraction(found.difference, found.total), 1 << 16) * TENTH, 1 << 16) if found.total else 0
        )
        self.limit = max(self.share, Fraction(apart))

    def _divided(self) -> bool:
        """Whether all bounds are known by now, as far as their numbers have come."""
        if self.stable_at is None or self.now < self.stable_at + MEANS:
            return False
        if self.told_at is None:
            return True
        return self.now >= max(self.told_at, self.stable_at + MEANS - 1) + LIMIT

    def _not_in_run(self, i: Any) -> None:
        if self.cycle and not self.ended:
            self.seen.add("a run is cut short")
            if self.armed and self.now - self.last in LATENCIES.values():
                self.seen.add("in the cycle of a decision")
        self.cycle = self.beat = 0
        self.ended = self.armed = False
        self.window, self.last = None, -1
        self.far = dict.fromkeys(STATISTICS, 0)
        self.says = (0, self.says[1])
        self.jump = None

    def _in_run(self, i: Any) -> None:
        self.says = (0, self.says[1])
        if self.ended:
            return
        found = [reason for reason, after in LATENCIES.items() if self.last >= 0 and self.now == self.last + after]
        ends = [reason for reason in found if (self._compared(reason) if reason == PCS else self._decided(reason))]
        self.cycle += 1
        self.beat += 1
        if self.last >= 0 and self.now == self.last + LATENCIES[REQUESTS] + 1:
            self.taken, self.window = self.window, None
        if i.distance.valid and i.distance.payload.run:
            if self.last >= 0 and self.now == self.last + LATENCIES[REQUESTS]:
                self.seen.add("a distance comes just in time")
            self.window = i.distance.payload.difference, i.distance.payload.total
        if self.beat == self.p["interval"]:
            self.beat, self.last = 0, self.now
            divided = self._divided()
            self.armed = self.cycle >= 8 * i.cycles and divided
            self.means = {
                LANES: (i.window_lanes, i.window_instructions),
                REQUESTS: (i.window_requests, i.window_memory_instructions),
            }
            if self.told_at is not None and not divided:
                self.seen.add("an interval ends while a distance is divided")
            if divided:
                short = 8 * i.cycles - self.cycle
                self.seen |= {f"a run is {text} its profile" for n, text in EARLY.items() if short == n}
        if self.cycle == self.p["longest"]:
            if ends:
                self.seen.add(f"the longest run ends by {NAMES[ends[0]]}, too")
            ends = [LENGTH]
        if ends:
            self.ended, self.says = True, (1, ends[0])

    def _decided(self, of: int) -> bool:
        """Whether a statistic ends the run."""
        name, expected, (amount, count) = STATISTICS[of], self.expected[of], self.means[of]
        before, above = self.far[of], self.p["above"]
        if expected is None or not count or not self.armed:
            self.far[of] = 0
            if self.armed:
                self.seen.add(f"{name}: not compared without instructions")
                if before == above - 1:
                    self.seen.add(f"{name}: all in a row but one, then no instruction")
            elif expected is not None and count and expected.outside(amount, count):
                self.seen.add(f"{name}: outside before it counts")
            return False
        outside = expected.outside(amount, count)
        side = "more" if Fraction(amount, count) > expected.mean else "fewer"
        step = 1 if (side == "more") != outside else -1
        if expected.outside(amount + step, count) != outside:
            threshold = "1.1 x the difference" if expected.larger else "the least threshold"
            self.seen.add(f"{name}: {side}, just {'outside' if outside else 'inside'}, {threshold}")
        if not outside and before == above - 1:
            self.seen.add(f"{name}: all in a row but one, then inside")
        self.far[of] = before + 1 if outside else 0
        return self.far[of] == above

    def _compared(self, reason: int) -> bool:
        """Whether a distance ends the run."""
        if self.taken is None:
            return False
        difference, total = self.taken
        outside = difference > self.limit * total
        if not self.armed:
            self.seen |= {"pcs: outside before it counts"} if outside else set()
            return False
        if total and (difference + (-1 if outside else 1) > self.limit * total) != outside:
            threshold = "1.1 x the distance" if self.limit > self.share else "the least threshold"
            self.seen.add(f"pcs: just {'outside' if outside else 'inside'}, {threshold}")
        return outside

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


def rounded(value: Fraction, parts: int) -> Fraction:
    """To the nearest of so many parts of one, of two the larger."""
    return Fraction(floor(value * parts + Fraction(1, 2)), parts)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _ends(reason: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(o.ends.valid and o.ends.payload == reason)


def _seen(name: str, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return name in o.seen


_SEEN = [
    *(f"small interval {k} joins" for k in range(SMALLS)),
    "all is discarded",
    "a profile is cut short",
    "a profile begins while one is divided",
    "a distance comes while means are divided",
    "an interval ends while a distance is divided",
    "a distance comes just in time",
    "a run is cut short",
    "in the cycle of a decision",
    *(f"a run is {text} its profile" for text in EARLY.values()),
    *(f"the longest run ends by {NAMES[reason]}, too" for reason in (LANES, REQUESTS, PCS)),
    "pcs: outside before it counts",
    *(
        f"pcs: just {where}, {which}"
        for where in ("outside", "inside")
        for which in ("the least threshold", "1.1 x the distance")
    ),
]
for _name in STATISTICS.values():
    _SEEN += [
        f"{_name}: none in a profile",
        f"{_name}: none in one half",
        f"{_name}: not compared without instructions",
        f"{_name}: all in a row but one, then no instruction",
        f"{_name}: all in a row but one, then inside",
        f"{_name}: outside before it counts",
        *(
            f"{_name}: {side}, just {where}, {which}"
            for side in ("more", "fewer")
            for where in ("outside", "inside")
            for which in ("the least threshold", "1.1 x the difference")
        ),
    ]
BINS: dict[str, Bin] = {f"ends by {name}": partial(_ends, reason) for reason, name in enumerate(NAMES)}
BINS |= {name: partial(_seen, name) for name in _SEEN}

IN_KERNELS = tuple(f"ends by {name}" for name in NAMES)


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """What the predictor and the histograms say fits together; a profile has so many cycles at most."""
    profile, run, part = ports["profile"], ports["run"], ports["part"]
    joins, restart, stable = ports["joining_valid"], ports["restart"], ports["stable"]
    found, of_run = ports["distance_valid"], ports["distance_run"]
    profiled, over, awaited = Signal(), Signal(), Signal()
    cycles = Signal(range(parameters["maximum"] + 1))
    since = Signal(range(APART + 1))  # cycles since a profile's distance
    counting = profile & ~over
    begins = profile & ~profiled
    m.d.sync += [
        profiled.eq(profile),
        over.eq(profile & (over | stable)),
        cycles.eq(Mux(profile & ~restart, Mux(counting, cycles + 1, cycles), 0)),
        awaited.eq(~begins & (awaited & ~(found & ~of_run) | counting & stable)),
        since.eq(Mux(begins | found & ~of_run, 1, Mux(since == APART, since, since + (since != 0)))),
    ]
    pairs = [(ports[a], ports[b]) for a, b in (("lanes", "instructions"), ("requests", "memory_instructions"))]
    few = [amount <= MOST * count for amount, count in pairs]
    alone = ~(joins & restart | joins & stable | restart & stable)
    fits = (part != 0) & (part != ports["joining"] + 1)
    told = Mux(of_run, run & ~awaited & (since == APART), awaited & ~begins)
    return (
        ~(profile & run)
        & (part <= SMALLS)
        & (~begins | ~(joins | restart | stable))
        & (~counting | alone & few[0] & few[1] & (cycles < parameters["maximum"]))
        & (~(counting & joins) | fits)
        & (~found | told & (ports["distance_difference"] <= ports["distance_total"]))
    )
