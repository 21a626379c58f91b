"""Stimulus and checks of the warp scheduler: a naive reference that keeps lists of warps says who must be granted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value

from lockstep.rtl.scheduling.warp_scheduler import ALL_POLICIES
from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif.bench import mask
from lockstep.verif.blocks import Waiver

BLOCK = "scheduling.warp_scheduler"
GATES = True


def word(slots: Iterable[int]) -> int:
    return sum(1 << slot for slot in slots)


def policies(*names: str) -> int:
    """The constructor's argument for some policies."""
    return word(SCHEDULERS.index(name) for name in names)


CONFIGURATIONS = {
    "paper": {"warps": 48, "schedulers": 2, "patience": 1024, "classes": 1, "policies": ALL_POLICIES},
    "shipped": {"warps": 48, "schedulers": 2, "patience": 1024, "classes": 0, "policies": policies("gto")},
    "one": {"warps": 1, "schedulers": 1, "patience": 1, "classes": 1, "policies": ALL_POLICIES},
    "odd": {"warps": 11, "schedulers": 3, "patience": 5, "classes": 1, "policies": ALL_POLICIES},
    "one class": {"warps": 10, "schedulers": 2, "patience": 2, "classes": 0, "policies": ALL_POLICIES},
    "impatient": {"warps": 6, "schedulers": 1, "patience": 0, "classes": 1, "policies": policies("two-level")},
    "steady": {"warps": 9, "schedulers": 2, "patience": 3, "classes": 1, "policies": policies("region-p")},
    "round robin": {
        "warps": 12, "schedulers": 2, "patience": 2, "classes": 0, "policies": policies("lrr", "greedy-rr"),
    },
    "by age": {
        "warps": 7, "schedulers": 1, "patience": 2, "classes": 1, "policies": policies("gto", "oldest", "region-p"),
    },
    "largest": {"warps": 64, "schedulers": 1, "patience": 4095, "classes": 1, "policies": ALL_POLICIES},
}  # fmt: skip
MEASURED = {"shipped": 1}
CYCLES = 2500
# A count begins anew, or goes on, a cycle later, and so is added to the active warps the one that entered.
IDLE_CHANGES = (r"passes_\d+", "anew", "added", "filled", "entered")


@dataclass(frozen=True)
class Shape:
    """A policy, and what surrounds it. Every bit of the constant inputs rises and falls from one shape to the next."""

    policy: str
    active: str = "half"  # which of ``_ACTIVE``
    patience: str = "short"  # which of ``_PATIENCE``
    classes: float = 0.1  # the share of cycles in which they change; 0: there is one class
    turnover: float = 0.1  # the share of cycles in which warps start, and of those in which they finish
    crowded: bool = False  # one warp at a time is of the highest class, and all request


_ACTIVE: dict[str, Callable[[int, int, random.Random], int]] = {
    "half": lambda warps, own, rng: 1 << warps.bit_length() - 1,
    "one": lambda warps, own, rng: 1,
    "below half": lambda warps, own, rng: max(1, (1 << warps.bit_length() - 1) - 1),
    "any": lambda warps, own, rng: rng.randint(1, own),
}
_PATIENCE: dict[str, Callable[[int, random.Random], int]] = {
    "largest": lambda most, rng: most,
    "below largest": lambda most, rng: max(0, most - 1),
    "none": lambda most, rng: 0,
    "short": lambda most, rng: min(most, rng.randint(1, 4)),
}
SHAPES_OF = {
    "lrr": Shape("lrr"),
    "crowd": Shape("oldest", patience="largest", crowded=True),
    "two-level, one active": Shape("two-level", active="one", patience="below largest"),
    "crowd, unlimited": Shape("two-level", active="below half", patience="none", crowded=True),
    "simple-p": Shape("simple-p"),
    "two-level": Shape("two-level", active="any"),
    "simple-p, steady": Shape("simple-p", classes=0.02, turnover=0.01),
    "region-p": Shape("region-p", active="below half", patience="below largest"),
    "gto": Shape("gto"),
    "two-level, steady": Shape("two-level", active="any", classes=0.02, turnover=0.01),
    "oldest": Shape("oldest", patience="none"),
    "two-level, one class": Shape("two-level", active="any", classes=0),
    "greedy-rr": Shape("greedy-rr"),
}
SHAPES = tuple(SHAPES_OF)


class Reference:
    """The rules as the docstring of the component tells them, over a list of slots from oldest to youngest."""

    def __init__(self, policy: str, active_warps: int, patience: int, warps: int) -> None:
        self.policy, self.limit, self.patience, self.warps = policy, active_warps, patience, warps
        self.age: list[int] = []
        self.active: set[int] = set()
        self.filled = 0
        self.waiting: set[int] = set()
        self.last, self.promoted = warps - 1, warps - 1
        self.greedy: int | None = None
        self.holder: int | None = None
        self.passes: dict[int, int] = {}
        self.rank = [1] * warps

    def classify(self, paused: set[int], secondary: set[int], owner: set[int], non_owner: set[int]) -> None:
        """Take the classes of the next cycle: numbers, the highest class the lowest."""

        def rank(slot: int) -> int:
            share = 0 if slot in owner else 2 if slot in non_owner else 1
            return share + 3 * (slot in secondary) + 6 * (slot in paused)

        self.rank = [rank(slot) for slot in range(self.warps)]

    def circular(self, slots: list[int], last: int) -> int:
        """The first slot after another."""
        return min(slots, key=lambda slot: (slot - last - 1) % self.warps)

    def urgent(self, slot: int) -> bool:
        return 0 < self.patience == self.passes.get(slot, 0)

    def in_question(self, request: set[int]) -> list[int]:
        """The slots among which the policy decides, from the oldest to the youngest."""
        ready = [slot for slot in self.age if slot in request]
        if self.policy == "two-level":
            ready = [slot for slot in ready if slot in self.active or self.urgent(slot)]
        if overdue := [slot for slot in ready if self.urgent(slot)]:
            return overdue
        best = min((self.rank[slot] for slot in ready), default=0)
        return [slot for slot in ready if self.rank[slot] == best]

    def grant(self, request: set[int]) -> int | None:
        ready = self.in_question(request)
        if not ready:
            return None
        if self.policy in ("gto", "greedy-rr") and self.greedy in ready:
            return self.greedy
        if self.policy in ("lrr", "greedy-rr", "two-level"):
            return self.circular(ready, self.last)
        if self.holder is not None:
            place = self.age.index(self.holder)
            return next(slot for slot in self.age[place:] + self.age[:place] if slot in ready)
        return ready[0]

    def step(
        self, issued: int | None, request: set[int], start: set[int], finish: set[int], waiting: set[int],
        global_wait: set[int], hint: bool,
    ) -> None:  # fmt: skip
        if issued is not None:
            self.last = self.greedy = issued
            for slot in request & set(self.age):
                if self.patience and not self.urgent(issued) and self.rank[slot] > self.rank[issued]:
                    self.passes[slot] = min(self.passes.get(slot, 0) + 1, self.patience)
        self.passes = {slot: n for slot, n in self.passes.items() if slot not in {issued} | start | finish}
        staying = [slot for slot in self.age if slot not in start | finish]
        if self.policy == "two-level":
            self.activate([slot for slot in self.age if slot not in self.active | self.waiting])
            self.filled = len(self.active)
            self.active &= set(staying) - waiting
            self.waiting = waiting & set(staying)
        if self.policy in ("simple-p", "region-p"):
            self.pass_on(staying, issued, global_wait, hint)
        if self.greedy in start:
            self.greedy = None
        self.age = staying + sorted(start)

    def activate(self, pending: list[int]) -> None:
        if not pending:
            return
        best = min(self.rank[slot] for slot in pending)
        entering = self.circular([slot for slot in pending if self.rank[slot] == best], self.promoted)
        if self.filled == self.limit:
            worst = max((self.rank[slot] for slot in self.active), default=0)
            if worst <= best:
                return
            lowest = [slot for slot in self.active if self.rank[slot] == worst]
            self.active.remove(self.circular(lowest, self.promoted))
        self.active.add(entering)
        self.promoted = entering

    def pass_on(self, staying: list[int], issued: int | None, global_wait: set[int], hint: bool) -> None:
        if self.holder is None:
            self.holder = staying[0] if staying else None
            return
        if self.policy == "simple-p":
            leaves = self.holder in global_wait and not set(staying) <= global_wait
        else:
            leaves = hint and issued == self.holder
        if leaves or self.holder not in staying:
            place = self.age.index(self.holder)
            after = [slot for slot in self.age[place + 1 :] + self.age[: place + 1] if slot in staying]
            self.holder = after[0] if after else None


def slots(mask: int) -> set[int]:
    return {slot for slot in range(mask.bit_length()) if mask >> slot & 1}


def _partitions(parameters: dict[str, int]) -> list[range]:
    """The slots of each scheduler of the SM."""
    warps, schedulers = parameters["warps"], parameters["schedulers"]
    return [range(k, warps, schedulers) for k in range(schedulers)]


def _everybody(mask: int, parameters: dict[str, int]) -> bool:
    return mask in map(word, _partitions(parameters))


_CLASSES = ("paused", "secondary", "owner", "non_owner")


class Environment:
    """Warps that come, go, request and wait at random; a table says what is particular in each shape."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.warps, self.rng, self.shape = parameters["warps"], rng, SHAPES_OF[shape]
        own = _partitions(parameters)
        self.classes = _CLASSES if parameters["classes"] else ()
        self.own = own[SHAPES.index(shape) % len(own)]
        built = slots(parameters["policies"])
        mine = SCHEDULERS.index(self.shape.policy)
        self.policy = mine if mine in built else rng.choice(sorted(built))
        self.active_warps = _ACTIVE[self.shape.active](self.warps, len(self.own), rng)
        self.patience = _PATIENCE[self.shape.patience](parameters["patience"], rng)
        self.reference = Reference(SCHEDULERS[self.policy], self.active_warps, self.patience, self.warps)
        self.cycle, self.turn = 0, parameters["patience"] + len(self.own)
        self.favoured = rng.randrange(len(self.own))

    def drive(self, i: Any, o: Any) -> None:
        i.policy, i.active_warps, i.patience = self.policy, self.active_warps, self.patience
        if self.shape.crowded:
            self.crowd(i)
        else:
            self.mix(i)
        self.cycle += 1

    def crowd(self, i: Any) -> None:
        """All request for long, so that the favoured warp alone issues until the patience of the others ends."""
        full = word(self.own)
        if self.cycle % self.turn == 0:
            self.favoured = (self.favoured + 1) % len(self.own)
        i.start = full if self.cycle == 0 else 0
        i.request = full
        if "paused" in self.classes:
            i.paused = full & ~(1 << self.own[self.favoured])
        i.long_latency = full if self.cycle % self.turn == self.turn // 2 else 0

    def mix(self, i: Any) -> None:
        """Starts and finishes are rarer than requests; some cycles repeat the previous inputs."""
        rng = self.rng
        if rng.random() < 0.2:
            return
        i.request = self.mask()
        i.start = self.mask() if rng.random() < self.shape.turnover else 0
        i.finish = self.mask() if rng.random() < self.shape.turnover else 0
        i.long_latency, i.global_wait = self.mask(), self.mask()
        i.refused, i.hint = rng.random() < 0.2, rng.random() < 0.5
        if rng.random() < self.shape.classes:
            for name in self.classes:
                setattr(i, name, self.mask() if rng.random() < 0.7 else 0)

    def mask(self) -> int:
        """Some of the slots that the scheduler serves."""
        chosen = slots(mask(self.rng, len(self.own)))
        return word(slot for k, slot in enumerate(self.own) if k in chosen)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        request = slots(i.request)
        expected = self.reference.grant(request)
        got = c.grant.warp if c.grant.valid else None
        assert got == expected, f"granted {got}, not {expected}"
        assert got is not None or c.grant.warp == 0
        assert c.granted == (0 if got is None else 1 << got)
        self.reference.step(
            None if i.refused else expected, request, slots(i.start), slots(i.finish), slots(i.long_latency),
            slots(i.global_wait), bool(i.hint),
        )  # fmt: skip
        self.reference.classify(*(slots(getattr(i, name)) for name in _CLASSES))

    def finish(self) -> None:
        """Every grant was checked in its cycle."""


def _granted(policy: str) -> Any:
    return lambda p, i, o, c: c.grant.valid and i.policy == SCHEDULERS.index(policy)


def _chooses(policy: str) -> Any:
    return lambda p, i, o, c: i.request & i.request - 1 and _granted(policy)(p, i, o, c)


def _refused(policy: str) -> Any:
    return lambda p, i, o, c: i.refused and _granted(policy)(p, i, o, c)


def _of(name: str) -> Any:
    return lambda p, i, o, c: c.grant.valid and getattr(i, name) >> c.grant.warp & 1


BINS = {
    **{f"{policy} grants": _granted(policy) for policy in SCHEDULERS},
    **{f"{policy} chooses among several": _chooses(policy) for policy in SCHEDULERS},
    **{f"a grant of {policy} is refused": _refused(policy) for policy in SCHEDULERS},
    **{f"{name} granted": _of(name) for name in _CLASSES},
    "owner and non-owner granted": lambda p, i, o, c: _of("owner")(p, i, o, c) and _of("non_owner")(p, i, o, c),
    "the lowest class": lambda p, i, o, c: c.grant.valid and (i.paused & i.secondary & i.non_owner) >> c.grant.warp & 1,
    "one class": lambda p, i, o, c: c.grant.valid and not i.paused | i.secondary | i.owner | i.non_owner,
    "a paused warp before others": lambda p, i, o, c: _of("paused")(p, i, o, c) and i.request & ~i.paused,
    "patience is unlimited": lambda p, i, o, c: c.grant.valid and i.paused and not i.patience,
    "a hint of region-p": lambda p, i, o, c: _granted("region-p")(p, i, o, c) and i.hint and not i.refused,
    "a refused hint of region-p": lambda p, i, o, c: _refused("region-p")(p, i, o, c) and i.hint,
    "all wait for global loads": lambda p, i, o, c: (
        _granted("simple-p")(p, i, o, c) and _everybody(i.global_wait, p)
    ),
    "nobody requests": lambda p, i, o, c: not i.request,
    "a request without a grant": lambda p, i, o, c: i.request and not c.grant.valid,
    "everybody requests": lambda p, i, o, c: _everybody(i.request, p) and c.grant.valid,
    "the lowest slot": lambda p, i, o, c: c.grant.valid and c.grant.warp == 0,
    "the highest slot": lambda p, i, o, c: c.grant.valid and c.grant.warp == p["warps"] - 1,
    "several start": lambda p, i, o, c: i.start & i.start - 1,
    "a slot ends and starts": lambda p, i, o, c: i.start & i.finish,
    "the granted warp ends": lambda p, i, o, c: c.grant.valid and i.finish >> c.grant.warp & 1,
    "the granted slot starts": lambda p, i, o, c: c.grant.valid and i.start >> c.grant.warp & 1,
    "the granted warp waits": lambda p, i, o, c: c.grant.valid and i.long_latency >> c.grant.warp & 1,
}

IN_KERNELS = (
    *(f"{policy} chooses among several" for policy in SCHEDULERS),
    *("a request without a grant", "a hint of region-p", "nobody requests", "the granted warp ends"),
)


def _left_out(policy: str, *, several: bool = False) -> Callable[[dict[str, int]], bool]:
    """A policy that is not built grants nothing; and where ``several`` warps must be there, one is not enough."""
    number = SCHEDULERS.index(policy)
    return lambda p: not p["policies"] >> number & 1 or (several and p["warps"] == 1)


def protocol(m: Module, parameters: dict[str, int], ports: Mapping[str, Signal]) -> Value:
    """The policy is one that is built, and without classes nobody is of one."""
    built = (number for number in range(len(SCHEDULERS)) if parameters["policies"] >> number & 1)
    legal = reduce(or_, (ports["policy"] == number for number in built))
    if not parameters["classes"]:
        legal &= ~Cat(ports[name] for name in _CLASSES).any()
    return legal


def _gto_alone(parameters: dict[str, int]) -> bool:
    return parameters["policies"] == policies("gto")


WAIVERS = (
    Waiver(r"(paused|secondary|owner|non_owner)(\[\d+\])? .*", "there are no classes", lambda p: not p["classes"]),
    Waiver(r"policy\[[02]\] .*|policy\[1\] 1->0", "there is one policy", _gto_alone),
    Waiver(r"cond_else: assign first = 1'h1 \? greedy : .*", "no other policy chooses", _gto_alone),
)

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    **{f"{policy} grants": _left_out(policy) for policy in SCHEDULERS},
    **{f"{policy} chooses among several": _left_out(policy, several=True) for policy in SCHEDULERS},
    **{f"a grant of {policy} is refused": _left_out(policy) for policy in SCHEDULERS},
    "a hint of region-p": _left_out("region-p"),
    "a refused hint of region-p": _left_out("region-p"),
    "all wait for global loads": _left_out("simple-p"),
    "several start": lambda p: p["warps"] == 1,
    # Without classes their inputs are not there: they remain 0.
    **dict.fromkeys(
        (*(f"{name} granted" for name in _CLASSES), "owner and non-owner granted", "the lowest class",
         "patience is unlimited"),
        lambda p: not p["classes"],
    ),
    "a paused warp before others": lambda p: not p["classes"] or p["warps"] == 1,
}  # fmt: skip
