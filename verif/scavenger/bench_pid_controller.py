"""PidController beside a kernel whose IPC, long-term error and slack are anything: each change as a fraction."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import Const, Module, Signal, Value

from lockstep.spec.scavenger.fixed import ERROR, GAIN, IPC, SHARE, WARPS, nearest

BLOCK = "scavenger.pid_controller"
GATES = True
_THESIS = {"interval": 100, "proportional": 96, "integral": 64, "scale": 1, "relative": 0, "reciprocal": 0}
CONFIGURATIONS = {
    "small": {**_THESIS, "most": 5, "interval": 48, "proportional": 5, "integral": 3},
    "gtx480": {"most": 48, **_THESIS},
    "shipped": {"most": 64, **_THESIS},
    "requests": {"most": 256, **_THESIS},
    "relative": {**_THESIS, "most": 48, "relative": 1, "scale": 4},
    "reciprocal": {**_THESIS, "most": 64, "reciprocal": 1},
    "one": {**_THESIS, "most": 1, "proportional": 1, "integral": 1, "interval": 40},
    "odd": {
        "most": 7, "interval": 61, "proportional": 77, "integral": 45, "scale": 11, "relative": 1, "reciprocal": 0,
    },
    "largest": {
        "most": 256, "interval": 1023, "proportional": 255, "integral": 255, "scale": 64, "relative": 0,
        "reciprocal": 1,
    },
}  # fmt: skip
MEASURED = {"shipped": 1, "requests": 1, "relative": 1, "reciprocal": 1}
IDLE_CHANGES = (
    r"cycle", r"error", r"working", r"step", r"sum", r"negative", r"product", r"factor", r"divisor", r"rest",
    r"quotient", r"beyond",
)  # fmt: skip

LONG = 200  # a beat of more cycles is cut short in a simulator
ARITHMETIC = 130  # no arithmetic takes more cycles


@dataclass(frozen=True)
class Shape:
    """Probabilities per beat: ``near``: the errors are around the dead band or a tie. ``far``: they are the largest.

    ``slacks``: what the slack may be, -1 for anything. ``ends``: of a run, per cycle. ``busy``: of a change of the
    instructions that issue, per cycle.
    """

    near: float = 0.3
    far: float = 0.1
    slacks: tuple[int, ...] = (-1, -1, -1, 0, 256, 300)
    ends: float = 0.001
    busy: float = 0.1
    same: float = 0.3  # the errors have the signs of those before
    level: float = 0.3  # the mean of the beat is the target
    small: float = 0.0  # targets and errors have any number of bits
    lands: float = 0.0  # the change goes close to an end, or somewhere


_SHAPES = {
    "mixed": Shape(),
    "near": Shape(near=1.0, far=0.0, level=0.6, slacks=(-1, 1, 2, 255)),
    "ties": Shape(near=1.0, far=0.0, slacks=(0, 0, 256, 256, 64, 128, 1), level=1.0, ends=0.0005),
    "far": Shape(near=0.0, far=0.8, slacks=(-1, 0, 255, 256, 1), busy=0.0),
    "runs": Shape(ends=0.03),
    "calm": Shape(busy=0.002, same=0.9),
    "small": Shape(near=0.0, far=0.0, same=0.5, level=0.0, small=1.0, busy=0.0),
    "small, too": Shape(near=0.0, far=0.0, same=0.5, level=0.3, small=0.7, busy=0.0, slacks=(255, 1, -1, 128)),
    "lands": Shape(near=0.0, far=0.0, level=0.3, small=0.3, lands=1.0, busy=0.0, ends=0.0),
    "pushed": Shape(near=0.1, far=0.5, same=0.8, slacks=(40, 128, 200), busy=0.0, ends=0.0),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """A run's primary kernel, what it is to reach, and what it leaves unused."""

    CYCLES = 6000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.cycle = self.beats = 0
        self.error = Fraction(0)  # of the beat, summed
        self.running, self.first, self.sign = 0, rng.choice([1, parameters["most"]]), rng.choice([-1, 1])
        self.allocation = Fraction(1)
        self.then: Fraction | None = None  # after the last beat, if the outputs do not show it yet
        self.pushed = 0  # beyond which end the last change was to go
        self._beat()

    def preset(self) -> dict[str, int]:
        """Leave out most of a beat that is too long for a run, once its arithmetic is over."""
        rng, interval = self.rng, self.p["interval"]
        if interval <= LONG or self.cycle != ARITHMETIC or rng.random() < 0.05:
            return {}
        self.cycle = interval - rng.randint(2, 20)
        return {"cycle": self.cycle}

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        if self.running:
            last, works = self.cycle == self.p["interval"] - 1, self.beats and self.cycle < 30
            self.running = rng.random() >= shape.ends + 0.04 * last + 0.002 * bool(works)
        else:
            self.running = rng.random() < 0.3
            if rng.random() < 0.3:
                self.first = rng.choice([1, self.p["most"], rng.randint(1, self.p["most"])])
        if self.cycle == 0:
            self._beat()
        elif not self.level and rng.random() < shape.busy:
            self.issued = rng.choice([0, 1, 2, 3, rng.randint(0, 7)])
            if rng.random() < 0.2:
                self.target = rng.randint(1, IPC.most)
        i.run, i.first, i.issued, i.target = self.running, self.first, self.issued, self.target
        i.long_term, i.slack = ERROR.port(self.long_term), self.slack

    def _beat(self) -> None:
        """What this beat is like."""
        rng, shape = self.rng, self.shape
        if rng.random() >= shape.same:
            self.sign = rng.choice([-1, 1])
        slack = rng.choice(shape.slacks)
        self.slack = rng.randint(0, SHARE.one) if slack < 0 else slack
        self.level = rng.random() < shape.level
        self.target = rng.randint(1, IPC.most)
        self.issued = self.target >> IPC.fraction
        self.long_term = self.sign * rng.randint(0, ERROR.most)
        if self.level:
            self.issued = rng.choice([1, 2, 4, rng.randint(1, 7)])
            self.target = self.issued << IPC.fraction
        if not self.level and rng.random() < shape.small:
            self.target, self.issued = rng.getrandbits(rng.randint(1, IPC.fraction)) or 1, 0
        if rng.random() < shape.small:
            self.long_term = self.sign * rng.getrandbits(rng.randint(1, min(self.target.bit_length() + 1, IPC.bits)))
        if rng.random() < shape.far:
            self.level, self.target = False, IPC.most if self.sign > 0 else rng.choice([1, 2, 100])
            self.issued = 0 if self.sign > 0 else 7
            self.long_term = ERROR.most if self.sign > 0 else ERROR.least
        elif rng.random() < shape.near:
            unit = self._half() if self.level else 1 << rng.randint(0, 12)
            self.long_term = unit * rng.choice([0, 0, 1, 2, 2, 2, 6, 10]) // 2 or 1
            self.long_term = min(max(self.sign * self.long_term, ERROR.least), ERROR.most)
        if rng.random() < shape.lands:
            self.long_term = self._landing()

    def _landing(self) -> int:
        """A long-term error whose change goes close to an end, or a part of the way, if there is one."""
        p, rng = self.p, self.rng
        there = self.allocation if self.then is None else self.then
        end = Fraction(p["most"] if self.sign > 0 else 1) + Fraction(rng.randint(-2, 2), 2 * WARPS.one)
        change = (end - there) * Fraction(rng.choice([256, 256, rng.randint(1, 300)]), 256)
        slack = Fraction(min(max(self.slack, 1), SHARE.one), SHARE.one)
        weight = slack if change < 0 else 1 / slack if p["reciprocal"] else 1 - slack
        error = change / weight / p["scale"] if weight else change
        if p["relative"]:
            error *= IPC.number(self.target)
        error -= GAIN.number(p["proportional"]) * (IPC.number(self.target) - self.issued)
        return min(max(round(error / GAIN.number(p["integral"]) * ERROR.one), ERROR.least), ERROR.most)

    def _half(self) -> int:
        """A long-term error that changes the allocation by half of 1/256, where the mean of the beat is the target.

        If it is a power of two, as it is where all factors are; else something close.
        """
        p, slack = self.p, min(max(self.slack, 1), SHARE.one)
        weight = Fraction(slack, SHARE.one)
        if self.sign > 0:
            weight = 1 / weight if p["reciprocal"] else 1 - weight
        scale, integral = (factor & -factor for factor in (p["scale"], p["integral"]))  # their powers of two
        gain = weight * scale * GAIN.number(integral)
        if p["relative"]:
            gain /= self.issued
        return round(ERROR.one / (2 * WARPS.one * gain)) if gain else 1

    def observe(self, i: Any, o: Any, c: Any) -> None:
        p = self.p
        allocation = WARPS.number(o.allocation)
        if allocation != self.allocation:
            assert allocation == self.then, "as the last beat says"
            self.allocation, self.then = allocation, None
        assert 1 <= allocation <= p["most"] and o.primary == int(allocation) >= 1
        assert o.primary + o.secondary == p["most"], "nothing is lost"
        o.last = o.weight = o.sum = o.change = o.pushed = o.left = 0  # for the bins
        o.cycle, o.beats = self.cycle, self.beats
        o.opposite = 0
        if not i.run:
            self.allocation, self.then = Fraction(self.first), None
            self.cycle, self.beats, self.error, self.pushed = 0, 0, Fraction(0), 0
            return
        self.error += IPC.number(i.target) - i.issued
        self.cycle += 1
        if self.cycle == p["interval"]:
            self._change(i, o)
            self.cycle, self.error = 0, Fraction(0)
            self.beats += 1

    def _change(self, i: Any, o: Any) -> None:
        """What the beat that ends changes, in whole fractions."""
        p = self.p
        assert self.then in (None, self.allocation), "a beat's change is there before the next beat ends"
        short, long_term = self.error / p["interval"], ERROR.number(ERROR.read(i.long_term))
        slack = min(Fraction(i.slack, SHARE.one), Fraction(1))
        change = GAIN.number(p["proportional"]) * short + GAIN.number(p["integral"]) * long_term
        if p["relative"]:
            change /= IPC.number(i.target)
        if change < 0:
            weight = slack
        else:
            weight = 1 / max(slack, Fraction(1, SHARE.one)) if p["reciprocal"] else 1 - slack
        units = weight * p["scale"] * change * WARPS.one
        rounded = Fraction(nearest(units.numerator, units.denominator), WARPS.one)
        moved = self.allocation + rounded
        self.then = min(max(moved, Fraction(1)), Fraction(p["most"]))
        if p["most"] > 1 and weight and abs(units) >= Fraction(1, 2):
            there = self.allocation == (p["most"] if change > 0 else 1)
            assert there or (self.then > self.allocation) == (change > 0) != (self.then < self.allocation)
        o.last, o.sum, o.weight, o.units, o.change = 1, change, weight, units, rounded
        o.opposite = short * long_term < 0
        o.pushed, o.left = 0, self.pushed and self.then != self.allocation
        if moved != self.then:
            o.pushed = 1 if change > 0 else -1
        o.again = self.pushed == o.pushed != 0
        if rounded:
            self.pushed = o.pushed

    def finish(self) -> None:
        """Nothing is left to be said: each change has been checked."""


def legal(p: Mapping[str, int], ports: Mapping[str, Signal]) -> Value:
    """The allocation begins in its range; nothing is relative to 0."""
    first, target = ports["first"], ports["target"]
    return (first >= 1) & (first <= p["most"]) & ((target != 0) | Const(not p["relative"]))


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """What is :func:`legal`."""
    return legal(parameters, ports)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _tie(o: Any) -> bool:
    return bool(o.last and o.units % 1 == Fraction(1, 2))


BINS: dict[str, Bin] = {
    "it rises": lambda p, i, o, c: o.last and o.change > 0 and not o.pushed,
    "it falls": lambda p, i, o, c: o.last and o.change < 0 and not o.pushed,
    "it meets the upper end": lambda p, i, o, c: o.pushed > 0 and not o.again,
    "it meets the lower end": lambda p, i, o, c: o.pushed < 0 and not o.again,
    "it is pushed beyond the upper end again": lambda p, i, o, c: o.pushed > 0 and o.again,
    "it is pushed beyond the lower end again": lambda p, i, o, c: o.pushed < 0 and o.again,
    "it leaves an end at the first change of the other sign": lambda p, i, o, c: o.left,
    "a change of more than the whole range": lambda p, i, o, c: o.last and abs(o.change) > p["most"],
    "the dead band": lambda p, i, o, c: o.last and o.sum and o.weight and not o.change,
    "a tie goes up": lambda p, i, o, c: _tie(o) and o.sum > 0,
    "a tie goes down": lambda p, i, o, c: _tie(o) and o.sum < 0,
    "slack 0, too slow": lambda p, i, o, c: o.last and o.sum > 0 and i.slack == 0,
    "slack 0, too fast": lambda p, i, o, c: o.last and o.sum < 0 and i.slack == 0,
    "slack 1, too slow": lambda p, i, o, c: o.last and o.sum > 0 and i.slack == SHARE.one,
    "slack 1, too fast": lambda p, i, o, c: o.last and o.sum < 0 and i.slack == SHARE.one,
    "a slack above 1": lambda p, i, o, c: o.last and i.slack > SHARE.one,
    "the errors have different signs": lambda p, i, o, c: o.opposite,
    "a run ends in a beat's last cycle": lambda p, i, o, c: not i.run and o.cycle == p["interval"] - 1,
    "a run ends during the arithmetic": lambda p, i, o, c: not i.run and o.beats and 0 < o.cycle < 30,
    "a run begins with everything": lambda p, i, o, c: i.run and not o.beats and not o.cycle and not o.secondary,
    "a run begins with 1": lambda p, i, o, c: i.run and not o.beats and not o.cycle and o.primary == 1,
}

UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {
    # Of one, nothing can be moved, and no change is as large.
    **dict.fromkeys(
        ("it rises", "it falls", "it leaves an end at the first change of the other sign"), lambda p: p["most"] == 1
    ),
    # Errors are less than eight instructions per cycle.
    "a change of more than the whole range": lambda p: (
        not p["relative"]
        and 8 * p["scale"] * (p["proportional"] + p["integral"]) * (256 if p["reciprocal"] else 1) <= 64 * p["most"]
    ),
}
