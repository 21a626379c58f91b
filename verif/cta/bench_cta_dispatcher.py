"""Stimulus and checks of the CTA dispatcher: every CTA once, in order, where the policy says, never too many."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value

from lockstep.spec.parameters import DISPATCHERS, MAX_CTAS
from lockstep.verif.bench import mask

BLOCK = "cta.cta_dispatcher"
GATES = True
CONFIGURATIONS = {
    "short numbers": {"sms": 15, "cta_bits": 8},  # of which the runs reach all
    "paper": {"sms": 15, "cta_bits": 40},
    "one": {"sms": 1, "cta_bits": 1},
    "odd": {"sms": 7, "cta_bits": 7},
    "two words": {"sms": 66, "cta_bits": 40},
    "largest": {"sms": 128, "cta_bits": 40},
}
MEASURED = {"paper": 1}
IDLE_CHANGES = ("wait_",)
CYCLES = 2000

# Policy, cycles between dispatches, CTAs that fit into an SM (0: room and load are random, grids are replaced), and the
# probability that an SM ends a CTA in a cycle.
KINDS = {
    "round-robin": ("round-robin", 1, 8, 0.05),
    "load-balanced": ("load-balanced", 1, 32, 0.02),
    "interval": ("load-balanced", 7, 2, 0.01),
    "long interval": ("load-balanced", 1023, 4, 0.0),
    "longest interval": ("round-robin", 1024, 4, 0.0),
    "random round-robin": ("round-robin", 1, 0, 0.0),
    "random load-balanced": ("load-balanced", 3, 0, 0.0),
}
SHAPES = tuple(KINDS)
WORD = (1 << 64) - 1


def stimulate(i: Any, rng: random.Random, sms: int, most: int) -> None:
    """Grids of all sizes up to ``most`` CTAs, room and loads at random."""
    i.launch, i.ctas = rng.random() < 0.02, min(most, rng.choice([0, 1, 5, 40, most, rng.randint(0, most)]))
    if rng.random() < 0.5:
        room = rng.choice([0, 0, 1 << rng.randrange(sms), rng.getrandbits(sms), mask(rng, sms)])
        tell_room(i, room)
        least, largest = rng.choice([(0, 1), (0, MAX_CTAS), (1, MAX_CTAS)])
        for sm in range(sms):
            i.load[sm] = min(rng.randint(least, largest), MAX_CTAS - (room >> sm & 1))


def tell_room(i: Any, room: int) -> None:
    i.room[0], i.room[1] = room & WORD, room >> 64


class Environment:
    """SMs that take CTAs and end them at random, and tell their room a cycle later, as registers do.

    Which SM must be served next is worked out from the lists of resident CTAs, or from the room and the loads told.
    """

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.sms, self.rng = parameters["sms"], rng
        self.most = (1 << parameters["cta_bits"]) - 1  # CTAs of a grid
        self.policy, self.interval, self.slots, self.ends = KINDS[shape]
        self.resident: list[list[int]] = [[] for _ in range(self.sms)]
        self.remaining = self.next = 0
        self.last, self.wait = self.sms - 1, 0
        self.question: list[int] = []  # the SMs that the next CTA may go to, found in the cycle before
        self.level = 0  # the fewest CTAs, as far as they are followed
        self.expected: tuple[int, int] | None = None  # the dispatch of this cycle
        self.shown = 0, 0  # SM and CTA of the last dispatch

    def preset(self) -> dict[str, int]:
        """In numbers too long for a run, let a high bit of the next CTA's change soon."""
        most = self.most - self.remaining
        if self.next != 1 or most < CYCLES:
            return {}
        self.next = (1 << self.rng.randrange(3, most.bit_length())) - self.rng.randint(1, 8)
        return {"next_cta": self.next}

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        i.policy, i.interval = DISPATCHERS.index(self.policy), self.interval
        if not self.slots:
            stimulate(i, rng, self.sms, self.most)
            return
        i.launch = self.remaining == 0 and rng.random() < 0.1
        i.ctas = rng.randint(0, min(self.most, 400))
        tell_room(i, sum(1 << sm for sm, ctas in enumerate(self.resident) if len(ctas) < self.slots))
        for sm, ctas in enumerate(self.resident):
            i.load[sm] = len(ctas)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        assert bool(o.dispatch.valid) == (self.expected is not None), f"expected {self.expected}"
        self.shown = self.expected or self.shown
        assert (o.dispatch.sm, o.dispatch.cta) == self.shown, f"expected {self.shown}"
        assert o.remaining == self.remaining
        if self.slots:
            if self.expected:
                self.resident[self.expected[0]].append(self.expected[1])
            for ctas in self.resident:
                assert len(ctas) <= self.slots, "an SM got more CTAs than it has room for"
                if ctas and self.rng.random() < self.ends:
                    ctas.pop(0)
        self._predict(i)

    def _predict(self, i: Any) -> None:
        """What the next cycle must show."""
        served, self.expected = self.expected[0] if self.expected else None, None
        room = i.room[0] | i.room[1] << 64
        able = [sm for sm in self.question if sm != served]
        self._ask(i, [sm for sm in range(self.sms) if room >> sm & 1 and sm != served])
        if i.launch:
            self.remaining, self.next, self.last, self.wait = i.ctas, 0, self.sms - 1, 0
            self.question, self.level = [], 0
        elif self.wait:
            self.wait -= 1
        elif self.remaining and able:
            self.last = min(able, key=lambda sm: (sm - self.last - 1) % self.sms)
            self.expected = self.last, self.next
            self.remaining, self.next, self.wait = self.remaining - 1, self.next + 1, self.interval - 1

    def _ask(self, i: Any, able: list[int]) -> None:
        """The first of the two cycles of a dispatch."""
        self.question = able
        if self.policy == "load-balanced" and able:
            fewest = min(i.load[sm] for sm in able)
            self.question = [sm for sm in able if i.load[sm] == fewest == self.level]
            self.level += (fewest > self.level) - (fewest < self.level)

    def finish(self) -> None:
        """Nothing is left to be said: what was dispatched is checked in each cycle."""


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """Policy and interval are constant; an interval has 1 to 1024 cycles, and an SM at most 32 CTAs."""
    constant = Signal(len(ports["policy"]) + len(ports["interval"]))
    started = Signal()
    now = ports["policy"] | ports["interval"] << len(ports["policy"])
    m.d.sync += [started.eq(1), constant.eq(now)]
    interval = ports["interval"]
    return (interval != 0) & (interval <= 1024) & Mux(started, constant == now, Const(1))


def _dispatches(policy: str) -> Any:
    return lambda p, i, o, c: o.dispatch.valid and i.policy == DISPATCHERS.index(policy)


BINS = {
    **{f"{policy} dispatches": _dispatches(policy) for policy in DISPATCHERS},
    "back to back": lambda p, i, o, c: o.dispatch.valid and i.interval == 1 and o.remaining and i.room[0] > 1,
    "the longest interval": lambda p, i, o, c: o.dispatch.valid and i.interval == 1024,
    "no room": lambda p, i, o, c: o.remaining and not (i.room[0] | i.room[1]),
    "only the SM just served has room": lambda p, i, o, c: (
        o.dispatch.valid and o.remaining and i.room[0] | i.room[1] << 64 == 1 << o.dispatch.sm
    ),
    "the last SM": lambda p, i, o, c: o.dispatch.valid and o.dispatch.sm == p["sms"] - 1,
    "the first CTA": lambda p, i, o, c: o.dispatch.valid and o.dispatch.cta == 0,
    "the last CTA": lambda p, i, o, c: o.dispatch.valid and o.remaining == 0,
    "an empty grid": lambda p, i, o, c: i.launch and i.ctas == 0,
    "a grid replaces another": lambda p, i, o, c: i.launch and o.remaining,
    "a launch in a dispatch": lambda p, i, o, c: i.launch and o.dispatch.valid,
    "more CTAs than the level": lambda p, i, o, c: (
        i.policy == DISPATCHERS.index("load-balanced") and o.remaining and i.room[0] and all(i.load[: p["sms"]])
    ),
    "a full SM": lambda p, i, o, c: MAX_CTAS in list(i.load[: p["sms"]]),
}

IN_KERNELS = ("back to back", "no room", "only the SM just served has room", "the last SM", "the last CTA")

UNREACHABLE = {
    "back to back": lambda p: p["sms"] == 1,  # an SM is not served in two cycles that follow each other
    "only the SM just served has room": lambda p: p["cta_bits"] == 1,  # a grid of one CTA has none left
}
