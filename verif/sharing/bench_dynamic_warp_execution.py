"""Dynamic warp execution beside an SM 0 that stalls more, less or as much: windows, probability and draws by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

BLOCK = "sharing.dynamic_warp_execution"
GATES = True
CONFIGURATIONS = {
    "short": {"window": 60},
    "one": {"window": 16},
    "odd": {"window": 27},
    "shipped": {"window": 1000},
    "largest": {"window": 65535},
}
MEASURED = {"shipped": 1, "largest": 1}
IDLE_CHANGES = (r"cycle",)

LONG = 200  # a window of more cycles is cut short in a simulator
PERIOD = 1023
BITS = 10
DOWN, EQUAL, UP = -1, 0, 1


@dataclass(frozen=True)
class Shape:
    """``active`` and ``inactive``: probabilities per cycle that it begins and ends. ``aims``: what the stalls of SM 0
    should do to the probability, drawn for each window; none: down to 0 and up to 10 in turn."""

    aims: tuple[int, ...] = (DOWN, EQUAL, UP)
    first: int = 0
    active: float = 1.0
    inactive: float = 0.0
    near: float = 0.3  # of the baselines that differ: by 1
    noise: float = 0.0  # of the other cycles: the baseline is anything, since nobody looks
    quiet: float = 0.2  # of the windows: no stall


_SHAPES = {
    "wandering": Shape(active=0.05, inactive=0.01, noise=0.1),
    "swinging": Shape(aims=()),
    "held": Shape(aims=(DOWN, EQUAL, EQUAL, EQUAL, EQUAL, EQUAL)),
    "first": Shape(first=1, active=0.05, inactive=0.02),
    "flickering": Shape(aims=(DOWN, DOWN, EQUAL, UP), active=0.4, inactive=0.3),
    "quiet": Shape(active=0.02, inactive=0.02, quiet=0.7),
    "noisy": Shape(aims=(), active=0.2, inactive=0.02, noise=1.0, near=1.0, quiet=0.0),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """SM 0 and the SM's pipelines."""

    CYCLES = 2500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.window, self.shape, self.rng = parameters["window"], _SHAPES[shape], rng
        self.rate = 0.0  # of stalls in this window
        self.falling = True  # of shapes without aims
        self.checker = Checker(self.window)

    def preset(self) -> dict[str, int]:
        """Leave out most of a window that is too long for a run, a while after it has begun."""
        rng, now = self.rng, self.checker
        if self.window <= LONG or now.cycle != 25:
            return {}
        passed = self.window - rng.randint(5, 40) - now.cycle
        now.cycle += passed
        now.count += round(passed * self.rate) if rng.random() < 0.7 else rng.randint(0, passed)
        return {"cycle": now.cycle, "count": now.count}

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        if self.checker.cycle == 0:
            quiet = rng.random() < shape.quiet
            self.rate = 0.0 if quiet else rng.choice([1.0, 0.0, rng.random(), rng.random(), 2 / self.window])
            i.baseline = self._baseline(o)
        elif rng.random() < shape.noise:
            i.baseline = rng.randint(0, self.window)
        i.first = shape.first
        i.stall = rng.random() < self.rate
        i.active = rng.random() >= shape.inactive if i.active else rng.random() < shape.active

    def _baseline(self, o: Any) -> int:
        """The stalls of SM 0."""
        rng, own = self.rng, o.stalls
        if o.probability in (0, 10) and rng.random() < 0.3:
            self.falling = o.probability == 10
        aim = rng.choice(self.shape.aims) if self.shape.aims else DOWN if self.falling else UP
        near = rng.random() < self.shape.near
        if aim == DOWN and own > 0:
            return own - 1 if near else rng.randrange(own)
        if aim == UP and own < self.window:
            return own + 1 if near else rng.randint(own + 1, self.window)
        return own

    def observe(self, i: Any, o: Any, c: Any) -> None:
        o.cycle, o.decides = self.checker.cycle, self.checker.decides  # for the bins
        o.was_active, o.was_probability = self.checker.was_active, self.checker.was_probability
        self.checker.observe(i, o)

    def finish(self) -> None:
        self.checker.finish()


def _sequence() -> list[int]:
    """Each bit of the LFSR's sequence in its period, from the first one after its start at 1."""
    bits = [0] * (BITS - 1) + [1]
    while len(bits) < BITS + PERIOD:
        bits.append(bits[-10] ^ bits[-7])
    return bits[BITS:]


SEQUENCE = _sequence()


def number(draw: int) -> int:
    """The number that decides a draw: 1 at first, and then the next ten bits of the sequence each time."""
    if draw == 0:
        return 1
    bits = (SEQUENCE[(BITS * (draw - 1) + k) % PERIOD] for k in range(BITS))
    return int("".join(map(str, bits)), 2)


class Checker:
    """What must hold at the ports, by counting cycles, stalls and draws."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.cycle = self.windows = 0
        self.count = self.stalls = 0  # of this window, and of the one before
        self.probability = self.was_probability = 10
        self.draw = 0
        self.allow = self.was_active = self.was_first = 0
        self.draws = [0] * 11  # by probability
        self.allowed = [0] * 11

    @property
    def decides(self) -> bool:
        """The first cycle of a window, but not of the very first one."""
        return self.cycle == 0 and self.windows > 0

    def observe(self, i: Any, o: Any) -> None:
        assert o.stalls == self.stalls, "the stalls of the window that has ended last"
        assert o.probability == self.probability, "a tenth down after more stalls than SM 0, a tenth up after fewer"
        if not self.was_active:
            assert o.allow, "without a pair on SM 0 everything is allowed"
        elif self.was_first:
            assert not o.allow, "SM 0 allows nothing"
        elif self.was_probability in (0, 10):
            assert o.allow == (self.was_probability == 10), "never at 0, always at 10 tenths"
        else:
            assert o.allow == self.allow, "as the numbers in the LFSR say"
            self.draws[self.was_probability] += 1
            self.allowed[self.was_probability] += o.allow
        self.was_active, self.was_first, self.was_probability = i.active, i.first, self.probability
        if i.active and not i.first:
            self._throttle(i)
        self.count += i.stall
        self.cycle += 1
        if self.cycle == self.window:
            self.stalls = self.count
            self.cycle = self.count = 0
            self.windows += 1

    def _throttle(self, i: Any) -> None:
        if 0 < self.probability < 10:
            self.allow = number(self.draw) <= PERIOD * self.probability // 10
            self.draw += 1
        if self.decides:
            change = (self.stalls < i.baseline) - (self.stalls > i.baseline)
            self.probability = min(max(self.probability + change, 0), 10)

    def finish(self) -> None:
        for tenths, (draws, allowed) in enumerate(zip(self.draws, self.allowed, strict=True)):
            assert abs(allowed - draws * tenths / 10) <= 4 * sqrt(draws), f"about {tenths} of 10 draws are allowed"


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """An SM remains what it is, and SM 0 has no more stalls than a window has cycles."""
    first, started = Signal(), Signal()
    m.d.sync += [first.eq(ports["first"]), started.eq(1)]
    return (ports["baseline"] <= parameters["window"]) & Mux(started, first == ports["first"], Const(1))


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _decides(i: Any, o: Any) -> bool:
    """The stalls are compared in this cycle, and what comes of it counts."""
    return bool(o.decides and i.active and not i.first)


def _draws(tenths: int, allow: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    """The outcome of a draw at a probability."""
    return bool(o.was_active and not i.first and o.was_probability == tenths and o.allow == allow)


BINS: dict[str, Bin] = {
    "the probability falls": lambda p, i, o, c: _decides(i, o) and o.stalls > i.baseline and o.probability > 0,
    "it stays at 0": lambda p, i, o, c: _decides(i, o) and o.stalls > i.baseline and o.probability == 0,
    "it rises": lambda p, i, o, c: _decides(i, o) and o.stalls < i.baseline and o.probability < 10,
    "it stays at 10": lambda p, i, o, c: _decides(i, o) and o.stalls < i.baseline and o.probability == 10,
    "it stays between": lambda p, i, o, c: _decides(i, o) and o.stalls == i.baseline and 0 < o.probability < 10,
    "it leaves 0": lambda p, i, o, c: _decides(i, o) and o.stalls < i.baseline and o.probability == 0,
    "it leaves 10": lambda p, i, o, c: _decides(i, o) and o.stalls > i.baseline and o.probability == 10,
    "one stall more than SM 0": lambda p, i, o, c: _decides(i, o) and o.stalls - i.baseline == 1,
    "one stall fewer": lambda p, i, o, c: _decides(i, o) and o.stalls - i.baseline == -1,
    "a window without a pair, with more stalls": lambda p, i, o, c: (
        o.decides and not i.active and not i.first and o.stalls > i.baseline and o.probability > 0
    ),
    "a window without a pair, with fewer stalls": lambda p, i, o, c: (
        o.decides and not i.active and not i.first and o.stalls < i.baseline and o.probability < 10
    ),
    "SM 0, with other stalls": lambda p, i, o, c: o.decides and i.active and i.first and o.stalls != i.baseline,
    "other stalls in other cycles": lambda p, i, o, c: (
        not o.decides and i.active and not i.first and o.stalls != i.baseline and 0 < o.probability < 10
    ),
    "a stall in the first cycle of a window": lambda p, i, o, c: o.decides and i.stall,
    "a stall in the last cycle of a window": lambda p, i, o, c: o.cycle == p["window"] - 1 and i.stall,
    "a window of stalls alone": lambda p, i, o, c: o.stalls == p["window"],
    "a window without a stall": lambda p, i, o, c: o.decides and o.stalls == 0,
    "SM 0 allows nothing": lambda p, i, o, c: i.first and not o.allow,
    "SM 0 without a pair": lambda p, i, o, c: i.first and not o.was_active and o.allow,
    "a pair comes while the probability is 0": lambda p, i, o, c: (
        i.active and not o.was_active and not i.first and o.probability == 0
    ),
    "the pair goes while the probability is 0": lambda p, i, o, c: (
        not i.active and o.was_active and not i.first and o.probability == 0
    ),
    **{f"allowed at {tenths} tenths": partial(_draws, tenths, 1) for tenths in range(1, 11)},
    **{f"refused at {tenths} tenths": partial(_draws, tenths, 0) for tenths in range(10)},
}
