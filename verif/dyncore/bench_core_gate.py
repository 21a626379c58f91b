"""CoreGate beside SMs that issue more or less and empty when they are drained: sums and decisions by hand."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lockstep.verif.bench import mask

BLOCK = "dyncore.core_gate"
GATES = True
CONFIGURATIONS = {
    "few": {"sms": 5, "off": 2, "window": 23, "threshold": 76},
    "one": {"sms": 1, "off": 1, "window": 16, "threshold": 10},
    "odd": {"sms": 6, "off": 5, "window": 19, "threshold": 76},
    "shipped": {"sms": 15, "off": 4, "window": 2048, "threshold": 20480},
    "paper": {"sms": 30, "off": 8, "window": 2048, "threshold": 40960},
    "largest": {"sms": 128, "off": 128, "window": 65535, "threshold": 128 * 65535},
}
MEASURED = {"shipped": 1}
IDLE_CHANGES = (r"cycle",)

LONG = 200  # a window of more cycles is cut short in a simulator
BELOW, EQUAL, ABOVE = range(3)


@dataclass(frozen=True)
class Shape:
    """``levels``: what the sum of a window may be, beside the threshold; ``near``: of those that differ, by 1.

    ``drained``: the same while SMs are drained. ``empties``: the probability by cycle that a drained SM loses its last
    CTA, all but the one that ``stays`` busy, if there is one: 0 is the first of them, -1 the last.
    """

    levels: tuple[int, ...] = (BELOW, EQUAL, ABOVE)
    drained: tuple[int, ...] = (BELOW, EQUAL, ABOVE)
    near: float = 0.3
    empties: float = 0.02
    stays: int | None = None
    noise: float = 0.0  # of the cycles in which nobody looks: counts and SMs are anything


_SHAPES = {
    "wavering": Shape(),
    "low": Shape(levels=(BELOW,), drained=(BELOW,), empties=0.1),
    "high": Shape(levels=(ABOVE, BELOW), drained=(ABOVE,), empties=0.1),
    "slow": Shape(levels=(BELOW, ABOVE), drained=(BELOW, ABOVE), empties=0.1, stays=0),
    "edge": Shape(near=1.0, empties=0.1, stays=-1),
    "noisy": Shape(noise=0.5, empties=0.001),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """The GPU's SMs."""

    CYCLES = 2500

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.cycle = self.windows = self.sum = 0
        self.drained = self.off = 0
        self.busy = (1 << parameters["off"]) - 1
        self.counts = [0] * parameters["sms"]

    def preset(self) -> dict[str, int]:
        """Leave out most of a window, once its decision has fallen."""
        p, rng = self.p, self.rng
        if p["window"] <= LONG or self.cycle != p["sms"] + 4:
            return {}
        self.cycle = p["window"] - rng.randint(1, 12)
        return {"cycle": self.cycle}

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.p
        if self.cycle == 0:
            self.counts = self._counts()
        counts, busy = list(self.counts), self.busy
        if self.drained and not self.off:
            stays = None if self.shape.stays is None else self.shape.stays % p["off"]
            for sm in range(p["off"]):
                if sm != stays and rng.random() < self.shape.empties:
                    busy &= ~(1 << sm)
        elif not self.off:
            busy = (1 << p["off"]) - 1
        self.busy = busy
        if rng.random() < self.shape.noise:
            looked_at = self.cycle if self.cycle < p["sms"] else -1
            counts = [own if sm == looked_at else rng.randint(0, p["window"]) for sm, own in enumerate(counts)]
            if self.cycle != p["sms"]:
                busy = mask(rng, p["off"])
        for sm, count in enumerate(counts):
            i.active[sm] = count
        for word in range(-(-p["off"] // 64)):
            i.busy[word] = busy >> 64 * word & (1 << 64) - 1

    def _counts(self) -> list[int]:
        """Of the window before: a sum that is as the shape says, in any parts."""
        rng, p = self.rng, self.p
        most, threshold = p["sms"] * p["window"], p["threshold"]
        level = rng.choice(self.shape.drained if self.drained else self.shape.levels)
        distance = 1 if rng.random() < self.shape.near else rng.randint(1, max(most - threshold, threshold))
        total = min(max(threshold + {BELOW: -distance, EQUAL: 0, ABOVE: distance}[level], 0), most)
        counts = [total // p["sms"] + (sm < total % p["sms"]) for sm in range(p["sms"])]
        for _ in range(2 * p["sms"]):
            one, other = rng.randrange(p["sms"]), rng.randrange(p["sms"])
            moved = rng.randint(0, min(counts[one], p["window"] - counts[other]))
            counts[one] -= moved
            counts[other] += moved
        return counts

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert (o.drained, o.off) == (self.drained, self.off), "as the sums and the SMs' CTAs say"
        assert o.drained >= o.off
        o.cycle, o.windows, o.sum, o.empty = self.cycle, self.windows, self.sum, not self.busy  # for the bins
        self._next(i)

    def _next(self, i: Any) -> None:
        p = self.p
        if self.cycle < p["sms"]:
            self.sum += i.active[self.cycle]
        elif self.cycle == p["sms"]:
            if self.windows and not self.off:
                if self.drained and not any(i.busy):
                    self.off = 1
                elif self.sum != p["threshold"]:
                    self.drained = int(self.sum < p["threshold"])
            self.sum = 0
        self.cycle += 1
        if self.cycle == p["window"]:
            self.cycle, self.windows = 0, self.windows + 1

    def finish(self) -> None:
        """Nothing is left to be said: each cycle has been checked."""


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _decides(p: dict[str, int], o: Any) -> bool:
    return bool(o.windows and o.cycle == p["sms"] and not o.off)


def _has_one(sm: int, i: Any) -> bool:
    """Whether a drained SM has CTAs, and no other one."""
    return [*i.busy] == [1 << sm >> 64 * word & (1 << 64) - 1 for word in range(len(i.busy))]


BINS: dict[str, Bin] = {
    "SMs are drained": lambda p, i, o, c: _decides(p, o) and not o.drained and o.sum < p["threshold"],
    "one less than the threshold": lambda p, i, o, c: _decides(p, o) and o.sum == p["threshold"] - 1,
    "exactly the threshold, drained or not": lambda p, i, o, c: _decides(p, o) and o.sum == p["threshold"],
    "one more": lambda p, i, o, c: _decides(p, o) and o.sum == p["threshold"] + 1,
    "they take CTAs again": lambda p, i, o, c: (
        _decides(p, o) and o.drained and not o.empty and o.sum > p["threshold"]
    ),
    "they stay drained": lambda p, i, o, c: (
        _decides(p, o) and o.drained and not o.empty and o.sum <= p["threshold"]
    ),
    "the first of them alone has CTAs": lambda p, i, o, c: _decides(p, o) and o.drained and _has_one(0, i),
    "the last of them alone has CTAs": lambda p, i, o, c: _decides(p, o) and o.drained and _has_one(p["off"] - 1, i),
    "they are off": lambda p, i, o, c: _decides(p, o) and o.drained and o.empty,
    "off, although the sum is above": lambda p, i, o, c: (
        _decides(p, o) and o.drained and o.empty and o.sum > p["threshold"]
    ),
    "off, and the sum is above": lambda p, i, o, c: o.off and o.cycle == p["sms"] and o.sum > p["threshold"],
    "no CTA there, and not drained": lambda p, i, o, c: o.windows and not o.drained and not any(i.busy),
    "the first window has no decision": lambda p, i, o, c: (
        not o.windows and o.cycle == p["sms"] and o.sum < p["threshold"]
    ),
}
_NO_MORE: Callable[[dict[str, int]], bool] = lambda p: p["threshold"] == p["sms"] * p["window"]  # noqa: E731
UNREACHABLE = {
    name: _NO_MORE
    for name in (
        "one more", "they take CTAs again", "off, although the sum is above", "off, and the sum is above",
    )
}  # fmt: skip
