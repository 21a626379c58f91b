"""CtaLimiter under CTAs that come and go: an account of them, and of the windows' cycles, says who is paused."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

BLOCK = "dyncta.cta_limiter"
GATES = True
_PAPER = {"window": 2048, "idle_high": 16, "memory_low": 128, "memory_high": 384}
_SHORT = {"window": 16, "idle_high": 3, "memory_low": 5, "memory_high": 9}
CONFIGURATIONS = {
    "short": {"ctas": 8, "first": 0, **_SHORT},
    "shipped": {"ctas": 8, "first": 0, **_PAPER},
    "one": {"ctas": 1, "first": 1, **_SHORT},
    "odd": {"ctas": 7, "first": 2, "window": 23, "idle_high": 5, "memory_low": 7, "memory_high": 13},
    "largest": {"ctas": 32, "first": 2, "window": 65535, "idle_high": 2047, "memory_low": 2047, "memory_high": 2047},
}
MEASURED = {"shipped": 1, "largest": 1}
IDLE_CHANGES = (r"cycle", r"idles", r"memories")

LONG = 200  # a window of more cycles is cut short in a simulator


def largest(window: int) -> int:
    """What a counter stays at: as many ones as the window less 1 has bits, but at most 11."""
    return min(2047, (1 << (window - 1).bit_length()) - 1)


@dataclass(frozen=True)
class Shape:
    """Probabilities per cycle: of each vacant place and CTA, and of the whole SM.

    ``near``: of the windows whose counts end within a few cycles of a threshold. ``moods``: the share of cycles with
    ``idle`` and with ``memory``, one of them drawn for each window; a long window has had as many of each.
    """

    start: float = 0.1
    finish: float = 0.05
    replace: float = 0.5  # of the places whose CTAs end, those that are taken at once
    launch: float = 0.004
    near: float = 0.5
    moods: tuple[tuple[float, float], ...] = ((0, 0), (1, 0), (0, 1), (0.3, 0.3), (0.02, 0.6), (0, 0.4))
    calm: float = 0.0  # of the cycles: nothing changes
    full: float = 0.0  # of the grids: as many CTAs fit as there are places


_SHAPES = {
    "mixed": Shape(),
    "crowded": Shape(start=0.9, finish=0.02),
    "together": Shape(start=0.9, finish=0.9),
    "memory": Shape(start=0.5, finish=0.01, moods=((0, 1), (0, 0.9), (0, 0.6)), near=0.2, launch=0.0005),
    "idle": Shape(start=0.3, finish=0.01, moods=((0.5, 0), (0, 0), (0.6, 1)), near=0.1, launch=0.001, full=0.5),
    "long": Shape(start=0.05, finish=0.002, launch=0.0005, calm=0.9),
    "launches": Shape(start=0.5, launch=0.1),
}
SHAPES = tuple(_SHAPES)


class Environment:
    """The SM: its CTAs, and what its warps wait for."""

    CYCLES = 2000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, _SHAPES[shape], rng
        self.ctas: list[int] = []  # their places, in the order in which they came
        self.starts: list[int] = []
        self.finishes: list[int] = []
        self.limit = self.most = 0
        self.cycle = self.windows = 0
        self.idles = self.memories = 0
        self.last = (0, 0)  # idle and memory of the cycle before
        self.mood = (0.0, 0.0)
        self.aims = (-1, -1)  # counts that the window is to end with; -1: as the mood has it
        self.entered = self.left = 0
        self.largest = largest(parameters["window"])

    def preset(self) -> dict[str, int]:
        """Leave out most of a window that is too long for a run, a while after it has begun."""
        rng, window = self.rng, self.p["window"]
        if window <= LONG or self.cycle != 20:
            return {}
        self.cycle = window - rng.randint(10, 40)
        if rng.random() < 0.2:
            return {"cycle": self.cycle}  # what the hardware has counted by then shows at the window's end
        so_far = tuple(
            round(share * self.cycle) if aim < 0 else aim - rng.randint(0, 6)
            for share, aim in zip(self.mood, self.aims, strict=True)
        )
        self.idles, self.memories = (min(max(count, 0), self.largest) for count in so_far)
        return {"cycle": self.cycle, "idles": self.idles, "memories": self.memories}

    def drive(self, i: Any, o: Any) -> None:
        rng, shape = self.rng, self.shape
        ends = self.cycle == self.p["window"] - 1
        i.launch = rng.random() < shape.launch + 0.05 * ends or (self.most == 0 and rng.random() < 0.2)
        often_one = self.p["ctas"] > 8  # where one of all sizes would come too seldom
        i.most = 1 if often_one and rng.random() < 0.2 else rng.randint(1, self.p["ctas"])
        if shape.full and rng.random() < shape.full:
            i.most = self.p["ctas"]
        self.starts, self.finishes = [], []
        if self.cycle == 0:
            self._mood()
        if rng.random() >= shape.calm:
            i.idle, i.memory = self._wait(0), self._wait(1)
            self._come_and_go()
        i.start = sum(1 << place for place in self.starts)
        i.finish = sum(1 << place for place in self.finishes)

    def _mood(self) -> None:
        """What this window is like."""
        rng, p = self.rng, self.p
        self.mood = rng.choice(self.shape.moods)
        self.aims = (-1, -1)
        if rng.random() < self.shape.near:
            half = self.largest // 2
            idle = rng.choice([0, 0, p["idle_high"], half])
            memory = rng.choice([p["memory_low"], p["memory_high"], p["memory_low"], p["memory_high"], half])
            self.aims = max(idle - rng.randint(0, 1), 0), max(memory - rng.randint(0, 1), 0)

    def _wait(self, what: int) -> int:
        """Whether the cycle is one of C_idle, or of C_mem."""
        aim, count = self.aims[what], (self.idles, self.memories)[what] + self.last[what]
        if aim >= 0:
            return int(count < aim)
        return int(self.rng.random() < self.mood[what])

    def _come_and_go(self) -> None:
        rng, shape = self.rng, self.shape
        if not self.most:
            return
        for place in range(self.p["ctas"]):
            vacant = place not in self.ctas
            if not vacant and rng.random() < shape.finish:
                self.finishes.append(place)
                if rng.random() < shape.replace:
                    self.starts.append(place)
            elif vacant and rng.random() < shape.start:
                self.starts.append(place)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        paused = sum(1 << place for place in self.ctas[self.limit :])
        assert o.limit == self.limit, "up or down by one, as the window's counts say"
        assert o.paused == paused, "the CTAs beyond the limit, those that came last"
        assert bin(o.paused).count("1") == max(len(self.ctas) - self.limit, 0)
        o.ctas, o.most, o.cycle = len(self.ctas), self.most, self.cycle  # for the bins
        o.idles = min(self.idles + self.last[0], self.largest)
        o.memories = min(self.memories + self.last[1], self.largest)
        self._next(i, o)

    def _next(self, i: Any, o: Any) -> None:
        """The next cycle's CTAs, counts and limit."""
        if i.launch:
            self.left += len(self.ctas)
            self.ctas, self.most, self.last = [], i.most, (0, 0)
            self.limit = [max(i.most // 2, 1), 1, i.most][self.p["first"]]
            self.cycle = self.idles = self.memories = 0
            return
        for place in self.finishes:
            self.ctas.remove(place)
        self.ctas += self.starts
        self.entered, self.left = self.entered + len(self.starts), self.left + len(self.finishes)
        self.idles, self.memories = o.idles, o.memories
        self.last = i.idle, i.memory
        self.cycle += 1
        if self.cycle == self.p["window"]:
            if self.idles >= self.p["idle_high"] or self.memories < self.p["memory_low"]:
                self.limit += self.limit < self.most
            elif self.memories >= self.p["memory_high"]:
                self.limit -= self.limit > 1
            self.cycle = self.idles = self.memories = 0
            self.windows += 1

    def finish(self) -> None:
        assert self.entered == self.left + len(self.ctas)


def legal(resident: Value, ctas: int, ports: Mapping[str, Signal]) -> Value:
    """CTAs start where there is none or one ends, and end where there is one; a grid has room for at least one."""
    start, finish, most = ports["start"], ports["finish"], ports["most"]
    vacant = (finish & ~resident == Const(0)) & (start & resident & ~finish == Const(0))
    return vacant & (most != 0) & (most <= ctas)


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """What is :func:`legal`, after the CTAs that have started and not finished since the last launch."""
    resident = Signal(parameters["ctas"])
    m.d.sync += resident.eq(Mux(ports["launch"], 0, resident & ~ports["finish"] | ports["start"]))
    return legal(resident, parameters["ctas"], ports)


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _decides(p: dict[str, int], i: Any, o: Any) -> bool:
    """The limit is decided on in this cycle."""
    return bool(o.cycle == p["window"] - 1 and not i.launch and o.most)


def _rises(p: dict[str, int], o: Any) -> bool:
    return bool(o.idles >= p["idle_high"] or o.memories < p["memory_low"])


def _falls(p: dict[str, int], i: Any, o: Any) -> bool:
    return _decides(p, i, o) and not _rises(p, o) and o.memories >= p["memory_high"]


BINS: dict[str, Bin] = {
    "the limit rises for C_idle": lambda p, i, o, c: (
        _decides(p, i, o) and o.idles >= p["idle_high"] and o.memories >= p["memory_high"] and o.limit < o.most
    ),
    "it rises for C_mem": lambda p, i, o, c: (
        _decides(p, i, o) and o.idles < p["idle_high"] and o.memories < p["memory_low"] and o.limit < o.most
    ),
    "it is the most already": lambda p, i, o, c: _decides(p, i, o) and _rises(p, o) and o.limit == o.most,
    "it stays between": lambda p, i, o, c: (
        _decides(p, i, o) and not _rises(p, o) and o.memories < p["memory_high"]
    ),
    "it falls": lambda p, i, o, c: _falls(p, i, o) and o.limit > 1,
    "it is 1 already": lambda p, i, o, c: _falls(p, i, o) and o.limit == 1,
    "exactly t_idle": lambda p, i, o, c: _decides(p, i, o) and o.idles == p["idle_high"],
    "one less": lambda p, i, o, c: _decides(p, i, o) and o.idles == p["idle_high"] - 1,
    "exactly t_mem_l": lambda p, i, o, c: _decides(p, i, o) and o.memories == p["memory_low"],
    "one less than t_mem_l": lambda p, i, o, c: _decides(p, i, o) and o.memories == p["memory_low"] - 1,
    "exactly t_mem_h": lambda p, i, o, c: _decides(p, i, o) and o.memories == p["memory_high"],
    "one less than t_mem_h": lambda p, i, o, c: _decides(p, i, o) and o.memories == p["memory_high"] - 1,
    "a CTA is paused": lambda p, i, o, c: o.paused and o.ctas - o.limit == 1,
    "several are": lambda p, i, o, c: o.ctas - o.limit > 1,
    "a paused CTA ends": lambda p, i, o, c: o.paused & i.finish,
    "another one ends, and a paused one resumes": lambda p, i, o, c: (
        o.paused and i.finish & ~o.paused and not i.start
    ),
    "a CTA starts while some are paused": lambda p, i, o, c: o.paused and i.start,
    "two start together": lambda p, i, o, c: i.start & (i.start - 1),
    "a place is taken at once": lambda p, i, o, c: i.start & i.finish,
    "as many CTAs as the limit": lambda p, i, o, c: o.ctas and o.ctas == o.limit,
    "every place is taken": lambda p, i, o, c: o.ctas == p["ctas"],
    "a launch while CTAs are there": lambda p, i, o, c: i.launch and o.ctas,
    "a launch in the last cycle of a window": lambda p, i, o, c: i.launch and o.cycle == p["window"] - 1,
    "a launch with room for one": lambda p, i, o, c: i.launch and i.most == 1,
    "C_idle at its largest": lambda p, i, o, c: o.idles == largest(p["window"]),
    "C_mem at its largest": lambda p, i, o, c: o.memories == largest(p["window"]),
}

IN_KERNELS = ("a paused CTA ends", "another one ends, and a paused one resumes")

UNREACHABLE: Mapping[str, Callable[[dict[str, int]], bool]] = {
    # A window has fewer cycles than its counters could count.
    **dict.fromkeys(("C_idle at its largest", "C_mem at its largest"), lambda p: p["window"] < largest(p["window"])),
    # The limit is at least 1, so that a single CTA is never beyond it, and neither rises nor falls.
    **dict.fromkeys(
        (
            "the limit rises for C_idle", "it rises for C_mem", "it falls", "a CTA is paused", "a paused CTA ends",
            "another one ends, and a paused one resumes", "a CTA starts while some are paused", "two start together",
        ),
        lambda p: p["ctas"] == 1,
    ),
    "several are": lambda p: p["ctas"] <= 2,
    "it stays between": lambda p: p["memory_low"] >= p["memory_high"],
}  # fmt: skip
