"""PcHistogram beside a kernel whose PCs wander: what was counted where is kept, and compared by definition."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value

BLOCK = "scavenger.pc_histogram"
CONFIGURATIONS = {
    "small": {"buckets": 4, "minimum": 160, "maximum": 640, "window": 70, "large_bits": 9, "small_bits": 5},
    "one": {"buckets": 2, "minimum": 32, "maximum": 48, "window": 53, "large_bits": 5, "small_bits": 2},
    "odd": {"buckets": 8, "minimum": 88, "maximum": 731, "window": 107, "large_bits": 9, "small_bits": 5},
    "shipped": {
        "buckets": 128, "minimum": 20_000, "maximum": 200_000, "window": 8192, "large_bits": 16, "small_bits": 12,
    },
    "largest": {
        "buckets": 128, "minimum": 131_064, "maximum": 262_143, "window": 16_383, "large_bits": 18, "small_bits": 14,
    },
}  # fmt: skip
MEASURED = {"small": 3, "shipped": 3}
IDLE_CHANGES = (r"cycle",)
TRANSITIONS = {
    "stage": {
        "RESTING": ("CLEARING", "JOINING", "NORMALISING"),
        "CLEARING": ("RESTING",),
        "JOINING": ("RESTING", "CLEARING"),
        "NORMALISING": ("COMPARING", "CLEARING"),
        "COMPARING": ("RESTING", "CLEARING"),
    }
}

SMALLS = 4
LONG = 400  # an interval or a window of more cycles is cut short in a simulator
MARGIN = 4000  # samples of a profile beside those that its histograms are given, at most
SAME = 16  # samples of training and of a window that are equal
HALVES, WINDOW = 0, 1
_NAMES = ("interval", ""), ("interval_total", "_total")  # of a small histogram's buckets and total, and ends of others


@dataclass(frozen=True)
class Shape:
    """``rate``: of cycles with a sample. ``spread``: of the buckets that a kernel has, 0 for a single one.

    ``moves``: how likely each interval and window has other PCs than the one before. ``cut``: of intervals and windows,
    those in which a profile, or a run, ends; ``silent``: those without a sample. ``full``: of those whose buckets begin
    nearly full in a simulator, ``equal``: of windows that begin as training has ended. ``joins``: at most, before a
    profile is stable; ``short``: intervals and pauses are;
    ``whole``: all intervals are as long as can be, and of all that join, most do;
    ``late``: training has one bucket, validation all of them; ``pure``: no other PCs come between those of a kernel;
    ``border``: totals of windows are where one shift more begins.
    """

    rate: float = 0.9
    spread: float = 0.5
    moves: float = 0.3
    cut: float = 0.03
    silent: float = 0.05
    restart: float = 0.05
    full: float = 0.3
    joins: int = 6
    equal: float = 0.2
    short: bool = False
    whole: bool = False
    late: bool = False
    pure: bool = False
    border: bool = False


_SHAPES = {
    "mixed": Shape(),
    "one instruction": Shape(rate=1, spread=0, moves=0.1, silent=0.02, joins=30),
    "phases": Shape(spread=0.3, moves=0.9),
    "rare": Shape(rate=0.05, silent=0.3),
    "cut": Shape(cut=0.5, restart=0.3, joins=2),
    "full": Shape(full=1, spread=0.2, joins=2),
    "whole": Shape(rate=1, spread=0, moves=0, full=0, cut=0, silent=0, restart=0, joins=30, whole=True),
    "wide": Shape(rate=1, spread=1, moves=0, full=0, cut=0, silent=0, restart=0, joins=30, whole=True),
    "late": Shape(rate=1, spread=1, moves=0, cut=0, silent=0, restart=0, joins=30, whole=True, late=True),
    "pure": Shape(
        rate=1, spread=0, moves=0, full=1, cut=0, silent=0, restart=0, joins=2, equal=0, short=True, pure=True
    ),
    "large": Shape(full=1, cut=0, silent=0, restart=0, joins=2, equal=0, short=True),
    "border": Shape(rate=1, cut=0, silent=0, restart=0, joins=8, full=0, border=True),
    "silent": Shape(silent=1, cut=0, restart=0, joins=1, short=True),
    "equal": Shape(
        rate=1, spread=0, moves=0, full=0, cut=0, silent=0, restart=0, joins=0, equal=1, short=True, pure=True
    ),
    "frozen": Shape(rate=1, spread=0, moves=0, full=1, cut=0, silent=0, restart=0, joins=8, short=True),
    "discarded": Shape(cut=0.5, restart=0.7, joins=0, short=True),
}
SHAPES = tuple(_SHAPES)


class Comparison:
    """Of training with other counts: the sum of differences, and that of both totals."""

    def __init__(self, when: int, which: int, training: Counter[int], other: Counter[int]) -> None:
        self.when, self.which = when, which
        self.difference = self.total = self.shift = 0
        self.empty = "training" if not training.total() else "other" if not other.total() else ""
        if self.empty:
            return
        self.swapped = other.total() > training.total()
        more, fewer = (other, training) if self.swapped else (training, other)
        a, b = more.total(), fewer.total()
        self.shift = next(k for k in range(20) if not too_few(a, b << k))
        self.above = b << self.shift > a
        self.difference = sum(abs(more[k] - (fewer[k] << self.shift)) for k in {*more, *fewer})
        self.total = a + (b << self.shift)


class Environment:
    """The SM, with a kernel whose profiles and runs follow each other; what the predictor says is made up."""

    CYCLES = 4000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.walk = parameters["buckets"] + 1  # cycles
        self.lengths = lengths(parameters)
        self.most = parameters["minimum"] // 2 + sum(self.lengths[:-SMALLS])  # samples of training
        self.now = 0
        # By definition: what each histogram has counted, and from when on anything is counted.
        self.large: Counter[int] = Counter()
        self.smalls: list[Counter[int]] = [Counter() for _ in range(SMALLS)]
        self.window: Counter[int] = Counter()
        self.frozen = [False] * SMALLS
        self.free = 0
        self.due: Comparison | None = None
        self.shown = (0, 0, 0)
        # What the kernel does.
        self.mode = "waits"
        self.left = rng.randint(1, 5)
        self.part = self.cycle = self.joined = 0
        self.event = ""  # of this cycle
        self.exact = False  # the next profile begins in the last cycle of a comparison
        self.most_counted = 0  # of a window whose total is to be at the border of a shift
        self.fresh, self.mute, self.turns = False, "", rng.randrange(3)
        self.pcs = self.kernel()
        self.last = -1

    # The stimulus.

    def kernel(self) -> list[int]:
        """The buckets of what a kernel executes, in the order of a loop."""
        buckets, rng = self.p["buckets"], self.rng
        length = max(1, round(buckets * self.shape.spread * rng.choice((0.3, 1, 2))))
        first = rng.randrange(buckets)
        return [(first + k) % buckets for k in range(min(length, buckets))]

    def interval(self, cycles: int, least: int) -> int:
        """The length of an interval that has at most so many cycles."""
        rng = self.rng
        longest = min(cycles, least + 20 if self.shape.short else LONG)
        if self.shape.whole:
            return longest
        return rng.choice((least, rng.randint(least, longest), longest)) if least < longest else longest

    def change(self) -> None:
        """An interval or a window begins."""
        rng, shape = self.rng, self.shape
        if rng.random() < shape.moves:
            self.pcs = self.kernel()
        if shape.late:
            every = self.number > self.joins or self.mode == "run"
            self.pcs = [*range(self.p["buckets"])] if every else [self.turns % self.p["buckets"]]
        part = "window" if self.mode == "run" else "validation" if self.part else "training"
        self.rate = 0.0 if part == self.mute else shape.rate * (1 if shape.rate == 1 else rng.choice((1, 1, 0.3)))
        if self.mode == "run" and rng.random() < 0.2 and not shape.pure:
            self.rate *= 0.02
        border = -(-16 * self.large.total() // 23)  # the fewest of which twice as many are too many
        while border > self.p["window"] // 2:
            border //= 2
        self.most_counted = max(0, border - rng.choice((0, 0, 1, 1, 2)))
        self.ends = rng.random() < shape.cut  # somewhere in it
        self.fresh = True

    def profile(self) -> None:
        """One begins with this cycle, or after it."""
        p, rng, shape = self.p, self.rng, self.shape
        self.mode, self.part, self.joined = "profile", 0, 0
        self.number = 0  # of small intervals that have begun
        self.left = self.interval(p["minimum"] // 2, self.walk + 1)
        most = min(shape.joins, len(self.lengths) - SMALLS)
        self.joins = rng.randint(most - 1 if shape.whole else 0, most)  # until it is stable
        self.turns += 1
        self.plan, self.given = ("training", "validation", "swapped")[self.turns % 3], False  # which is given most
        self.mute = ("training", "validation", "window")[self.turns % 3] if rng.random() < shape.silent else ""
        if self.mute in ("training", "validation"):
            self.joins = 0
        elif shape.full == 1:
            self.joins = max(self.joins, 1) if self.plan == "training" else 1
        self.restarts = rng.random() < shape.restart
        self.change()

    def preset(self) -> dict[str, int]:
        """Leave out most of a window, and give histograms that begin to count some counts."""
        p, rng = self.p, self.rng
        if p["buckets"] <= 16 or not self.fresh or self.now < self.free or self.mode not in ("profile", "run"):
            return {}
        self.fresh = False
        full = rng.random() < self.shape.full
        if self.mode == "run":
            return self._window_preset(full)
        if not full or not self.rate:
            return {}
        if self.joined == 1 and not self.given and self.joins <= 3:
            self.given = True
            return self._profile_preset()
        if self.part == 0 or (self.plan == "training" and self.joins <= 3):
            return {}
        room = 3 << self.p["small_bits"] - 1
        return self.give(self.part - 1, self.smalls[self.part - 1], rng.randint(1, room))

    def _profile_preset(self) -> dict[str, int]:
        """Counts for all histograms, after a join, in which none of them counts."""
        rng = self.rng
        room = self.most - MARGIN - self.large.total() - sum(self.smalls, Counter()).total()
        high = self.turns // 3 % 2
        least, most = {
            "training": (99, 100), "validation": (1, 5), "swapped": (36, 40) if high else (18, 32),
        }[self.plan]  # fmt: skip
        training = rng.randint(room * least // 100, room * most // 100)
        state = self.give("training", self.large, training, self.plan == "swapped")
        room -= training
        for k, small in enumerate(self.smalls):
            free = min(room, max(self.lengths[k::SMALLS]) - LONG - small.total())
            count = rng.randint(1 if self.plan == "training" else free * 4 // 5, max(free, 1))
            state |= self.give(k, small, count)
            room -= count
        return state

    def _window_preset(self, full: bool) -> dict[str, int]:
        p, rng = self.p, self.rng
        if self.cycle >= p["window"] - 150:
            return {}
        cycle = p["window"] - rng.randint(5, 150)
        kind = "all" if self.shape.pure else rng.choice(("one", "some", "all" if full else "some"))
        if not self.rate:
            counts = {}
        elif self.large.total() < 1000 and rng.random() < self.shape.equal:  # as in training, exactly
            self.rate = 0.0
            self.window += self.large
            counts = {f"running[{bucket}]": count for bucket, count in self.window.items()}
            counts["running_total"] = self.window.total()
        elif kind == "one":
            self.rate = 0.0
            counts = self.give("running", self.window, 1, True)
        else:
            count = cycle if kind == "all" else rng.randrange(cycle // 2)
            counts = self.give("running", self.window, count, kind == "all")
        self.cycle = cycle
        return counts | {"cycle": cycle}

    def give(self, which: str | int, counts: Counter[int], count: int, one: bool = False) -> dict[str, int]:
        """Give a histogram, small ones by their numbers, so many counts more, in one bucket or some."""
        p, rng = self.p, self.rng
        small = isinstance(which, int)
        name, total = (f"{of}_{which}" if small else f"{which}{end}" for of, end in _NAMES)
        most = {
            "training": (1 << p["large_bits"]) - (self.joins + 4 << p["small_bits"]), "running": p["window"],
        }.get(name, (1 << p["small_bits"]) - 2)  # fmt: skip
        state = {}
        some = rng.sample(range(p["buckets"]), rng.randint(1, 5) + count // most)
        for bucket in dict.fromkeys([rng.choice(self.pcs), *([] if one else some)]):
            less = 0 if one else rng.choice((0, 0, 1, rng.randint(0, most // 2)))
            here = max(0, min(most - less - counts[bucket], count))
            count -= here
            counts[bucket] += here
            state[f"{name}[{bucket}]"] = counts[bucket]
        return state | {total: counts.total()}

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.p
        self.left -= 1
        self.event = ""
        i.joining.valid = i.restart = i.stable = 0
        i.joining.payload = rng.randrange(SMALLS)
        if self.mode == "waits" and (self.now == self.due.when - 1 if self.exact and self.due else self.left <= 0):
            self.profile()
            self.event = "begins"
        elif self.mode == "profile":
            self._interval(i)
        elif self.mode == "over" and self.left <= 0:
            self.mode = "waits" if rng.random() < max(0.25, self.shape.cut) and self.mute != "window" else "run"
            self.left, self.exact = rng.choice((1, 2, rng.randint(1, 30))), rng.random() < 0.5
            if self.mode == "run":
                self.windows, self.cycle = rng.randint(1, 1 if self.shape.short else 4), 0
                if rng.random() < 0.5 and self.shape.equal < 1:
                    self.pcs = self.kernel()
                self.change()
        elif self.mode == "run":
            self._window()
        i.profile = self.mode in ("profile", "over")
        i.run = self.mode == "run"
        i.part = self.part if self.mode == "profile" else 0
        if not i.profile and rng.random() < 0.1:
            i.stable, i.restart = rng.choice(((1, 0), (0, 1)))
        rate = self.rate if i.profile or i.run else 0.3
        if i.run and self.cycle == 0 and p["buckets"] > 16:
            rate = 0  # its histogram may be given counts before the next one
        if i.run and self.shape.border and self.window.total() >= self.most_counted:
            rate = 0
        if self.shape.equal == 1 and (self.window if i.run else self.large).total() == SAME:
            rate = 0
        i.sample.valid = rng.random() < rate
        bucket = self.pcs[self.now % len(self.pcs)] if rng.random() < 0.9 else rng.choice(self.pcs)
        if rng.random() < 0.02 and not self.shape.pure:
            bucket = rng.randrange(p["buckets"])
        i.sample.payload = self.last if self.last >= 0 and rng.random() < 0.1 else bucket
        self.last = i.sample.payload

    def _interval(self, i: Any) -> None:
        """A cycle of a profile, in its interval; perhaps the last one."""
        rng = self.rng
        if self.ends and rng.random() < 0.05:
            self.mode, self.left = "waits", rng.choice((1, 2, rng.randint(1, self.walk), 3 * self.walk))
            return
        if self.restarts and self.joined >= self.joins // 2 and rng.random() < 0.05:
            i.restart, self.event = 1, "begins"
            self.joins = 0
            return
        if self.part and self.joined >= self.joins and self.left > 0 and rng.random() < self.ready():
            i.stable, self.event = 1, "stable"
            return
        if self.left > 0:
            return
        if (self.part == SMALLS or self.joined) and self.joined < len(self.lengths) - SMALLS:
            i.joining.valid, i.joining.payload, self.event = 1, self.part % SMALLS, "joins"
        elif self.joined:
            i.restart, self.event = 1, "begins"

    def ready(self) -> float:
        """How likely a profile is stable in this cycle."""
        if self.shape.whole:
            return 0.3 if self.left < 10 else 0
        if self.shape.full == 1:
            return 0.2 if self.joined and self.now > self.free + 2 else 0.002
        return 0.02 if self.joined < self.joins + 3 else 1

    def _window(self) -> None:
        """A cycle of a run; perhaps it ends."""
        rng = self.rng
        over = self.windows <= 0
        if rng.random() < (0.02 if self.ends else 0.001 if over and self.due else 0.05 if over else 0):
            self.mode, self.left = "waits", rng.choice((1, rng.randint(1, 200)))

    # The checks.

    def observe(self, i: Any, o: Any, c: Any) -> None:
        found = (o.distance.payload.run, o.distance.payload.difference, o.distance.payload.total)
        o.found = None  # for the bins
        comes = self.due is not None and self.due.when == self.now
        if comes:
            o.found, self.due = self.due, None
            self.shown = (o.found.which, o.found.difference, o.found.total)
        assert o.distance.valid == comes, "a distance comes when its comparison has ended"
        assert found == self.shown, "the sum of differences, and of totals"
        o.event, o.now, o.free, o.due = self.event, self.now, self.free, self.due
        o.counted, o.lost, o.froze = False, False, False
        self.next(i, o)
        self.now += 1

    @property
    def compares(self) -> int:
        """Cycles of a comparison."""
        most = max(self.most, self.p["maximum"] - self.most, self.p["window"])
        return 4 + most.bit_length() + self.p["buckets"] + 5

    def next(self, i: Any, o: Any) -> None:
        """What follows this cycle."""
        if i.sample.valid and self.mode in ("profile", "run") and self.event != "begins":
            if self.now >= self.free:
                self.count(i.sample.payload, o)
            o.lost = self.now < self.free
        if self.due and self.due.which == WINDOW and not i.run and self.due.when == self.now + 1:
            self.due = None
        if self.event == "begins":
            self.large, self.smalls, self.window = Counter(), [Counter() for _ in range(SMALLS)], Counter()
            self.frozen = [False] * SMALLS
            self.free, self.due = self.now + self.walk + 1, None
            if i.restart:
                self.profile()
        elif self.event == "joins":
            k = i.joining.payload
            o.frozen = self.frozen[k]
            self.large += self.smalls[k]
            self.smalls[k], self.frozen[k] = Counter(), False
            self.free = self.now + self.walk + 1
            self.joined += 1
        elif self.event == "stable":
            self.compare(HALVES, max(self.now + 1, self.free))
            longest = self.walk if self.shape.short else 400
            self.mode, self.left = "over", self.rng.choice((1, 50, self.rng.randint(1, longest)))
        if self.mode == "profile" and self.left <= 0 and not (self.event == "begins"):
            self.part = self.part % SMALLS + 1
            self.number += 1
            self.left = self.interval(self.lengths[self.number - 1], self.walk + 1 if self.joined else 1)
            self.change()
        if i.run:
            self.cycle += 1
            if self.cycle == self.p["window"]:
                self.compare(WINDOW, self.now)
                self.cycle, self.windows = 0, self.windows - 1
                self.change()

    def compare(self, which: int, begins: int) -> None:
        """A comparison begins in this cycle, or in one to come, before which nothing is counted."""
        other = self.window if which == WINDOW else sum(self.smalls, Counter())
        self.free = begins + self.compares + 1
        self.due = Comparison(self.free, which, self.large, other)
        if which == WINDOW:
            self.window = Counter()

    def count(self, bucket: int, o: Any) -> None:
        """A sample, in this cycle."""
        o.counted = True
        if self.mode == "run":
            self.window[bucket] += 1
        elif self.part == 0:
            self.large[bucket] += 1
        elif not self.frozen[self.part - 1]:
            small = self.smalls[self.part - 1]
            small[bucket] += 1
            o.froze = self.frozen[self.part - 1] = small[bucket] == (1 << self.p["small_bits"]) - 1
        else:
            o.counted = False

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


def lengths(p: Mapping[str, int]) -> list[int]:
    """The cycles of the small intervals of the longest profile: each is twice as long as the fourth before it."""
    found, ends = [p["minimum"] // 8] * SMALLS, p["minimum"]
    while ends < p["maximum"]:
        found.append(min(2 * found[-SMALLS], p["maximum"] - ends))
        ends += found[-1]
    return found


def too_few(a: int, b: int) -> bool:
    """Whether twice as many are nearer to a number."""
    return 16 * a >= 23 * b


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _found(which: int, holds: Callable[[Comparison], bool] = lambda found: True) -> Bin:
    return lambda p, i, o, c: o.found is not None and o.found.which == which and holds(o.found)


def _compared(holds: Callable[[Comparison], bool]) -> Bin:
    return lambda p, i, o, c: o.found is not None and not o.found.empty and holds(o.found)


BINS: dict[str, Bin] = {
    "a profile's distance": _found(HALVES),
    "a window's distance": _found(WINDOW),
    "no sample in training": lambda p, i, o, c: o.found is not None and o.found.empty == "training",
    "no sample in validation": _found(HALVES, lambda found: found.empty == "other"),
    "no sample in a window": _found(WINDOW, lambda found: found.empty == "other"),
    "validation has more than training": _found(HALVES, lambda found: not found.empty and found.swapped),
    "a window has more than training": _found(WINDOW, lambda found: not found.empty and found.swapped),
    "training has more than a window": _found(WINDOW, lambda found: not found.empty and not found.swapped),
    "the smaller total is as near as it is": _compared(lambda found: found.shift == 0),
    "it is shifted, and still smaller": _compared(lambda found: found.shift > 0 and not found.above),
    "it is shifted beyond the larger": _compared(lambda found: found.above),
    "no bucket has samples of both": _compared(lambda found: found.difference == found.total),
    "no difference": _compared(lambda found: found.difference == 0),
    "a small histogram freezes": lambda p, i, o, c: o.froze,
    "a sample of a frozen one": lambda p, i, o, c: (
        i.sample.valid and o.event == "" and i.part and i.profile and not o.counted and not o.lost
    ),
    "a frozen one joins": lambda p, i, o, c: o.event == "joins" and o.frozen,
    "one joins": lambda p, i, o, c: o.event == "joins",
    "stable": lambda p, i, o, c: o.event == "stable",
    "stable while one joins": lambda p, i, o, c: o.event == "stable" and o.now + 1 < o.free,
    "all is discarded": lambda p, i, o, c: o.event == "begins" and i.restart,
    "a profile begins while one joins or is cleared": lambda p, i, o, c: (
        o.event == "begins" and not i.restart and o.now < o.free and not o.due
    ),
    "a profile begins while two are compared": lambda p, i, o, c: o.event == "begins" and o.due and o.now < o.free,
    "a profile begins in the last cycle of a comparison": lambda p, i, o, c: (
        o.event == "begins" and o.due is not None and o.due.when == o.now + 1
    ),
    "a run begins while two are compared": lambda p, i, o, c: i.run and o.due and o.due.which == HALVES,
    "a run ends while two are compared": lambda p, i, o, c: not i.run and o.due and o.due.which == WINDOW,
    "a sample of the last cycle before a walk": lambda p, i, o, c: o.event == "joins" and o.counted,
    "a sample in a walk": lambda p, i, o, c: o.lost,
    "it is not a profile's, though": lambda p, i, o, c: not i.profile and not i.run and i.sample.valid,
}
UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {}


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """What the predictor says fits together, with room for a join; each run follows a profile that was stable."""
    profile, run = ports["profile"], ports["run"]
    joins, restart, stable = ports["joining_valid"], ports["restart"], ports["stable"]
    profiled, over, may_run = Signal(), Signal(), Signal()
    since = Signal(range(parameters["buckets"] + 2))  # cycles since a walk began
    counting = profile & ~over
    begins = profile & ~profiled | counting & restart
    m.d.sync += [
        profiled.eq(profile),
        over.eq(profile & (over | stable)),
        since.eq(Mux(begins | counting & joins, 0, Mux(since == parameters["buckets"] + 1, since, since + 1))),
        may_run.eq(Mux(profile, counting & stable | over, run & may_run | ~run & may_run & ~ran(m, run))),
    ]
    alone = ~(joins & restart | joins & stable | restart & stable)
    return (
        ~(profile & run)
        & (ports["part"] <= SMALLS)
        & (~profile | profiled | ~(joins | restart | stable))
        & (~counting | alone)
        & (~(counting & joins) | (since == parameters["buckets"] + 1))
        & (~run | may_run)
    )


def ran(m: Module, run: Value) -> Signal:
    """Whether there was a run a cycle ago."""
    before = Signal(name="ran")
    m.d.sync += before.eq(run)
    return before
