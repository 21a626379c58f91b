"""Stimulus and checks of the warp scheduler: a naive reference that keeps lists of warps says who must be granted."""

from __future__ import annotations

import random
from typing import Any

from lockstep.spec.parameters import SCHEDULERS
from lockstep.verif.bench import mask
from lockstep.verif.blocks import Waiver

BLOCK = "scheduling.warp_scheduler"
CONFIGURATIONS = {"paper": {"warps": 48}, "one": {"warps": 1}, "odd": {"warps": 7}, "largest": {"warps": 64}}
NARROW = "two-level, one active"
SHAPES = ("lrr", NARROW, "gto", "two-level", "oldest")  # every bit of the policy rises and falls
CYCLES = 1500


class Reference:
    """The policies as the docstring of the component tells them, over a list of slots from oldest to youngest."""

    def __init__(self, policy: str, active_warps: int, warps: int) -> None:
        self.policy, self.limit, self.warps = policy, active_warps, warps
        self.age: list[int] = []
        self.active: set[int] = set()
        self.last, self.promoted = warps - 1, warps - 1
        self.greedy: int | None = None

    def grant(self, request: set[int]) -> int | None:
        ready = [slot for slot in self.age if slot in request]
        if self.policy == "two-level":
            ready = [slot for slot in ready if slot in self.active]
        if not ready:
            return None
        if self.policy == "gto" and self.greedy in ready:
            return self.greedy
        if self.policy in ("lrr", "two-level"):
            return min(ready, key=lambda slot: (slot - self.last - 1) % self.warps)
        return ready[0]

    def step(self, granted: int | None, start: set[int], finish: set[int], waiting: set[int]) -> None:
        if granted is not None:
            self.last = self.greedy = granted
        if self.policy == "two-level":
            leaving = start | finish | waiting
            self.active -= leaving
            pending = [slot for slot in self.age if slot not in leaving and slot not in self.active]
            if pending and len(self.active) < self.limit:
                self.promoted = min(pending, key=lambda slot: (slot - self.promoted - 1) % self.warps)
                self.active.add(self.promoted)
        if self.greedy in start:
            self.greedy = None
        self.age = [slot for slot in self.age if slot not in start | finish] + sorted(start)


def slots(word: int) -> set[int]:
    return {slot for slot in range(word.bit_length()) if word >> slot & 1}


def stimulate(i: Any, rng: random.Random, warps: int) -> None:
    """Starts and finishes are rarer than requests; some cycles repeat the previous inputs."""
    if rng.random() < 0.2:
        return
    i.request = mask(rng, warps)
    i.start = mask(rng, warps) if rng.random() < 0.1 else 0
    i.finish = mask(rng, warps) if rng.random() < 0.1 else 0
    i.long_latency = mask(rng, warps)


class Environment:
    """Warps that come, go, request and wait at random; the shape is the policy, but for the last one."""

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.warps, self.rng = parameters["warps"], rng
        policy = "two-level" if shape == NARROW else shape
        self.policy = SCHEDULERS.index(policy)
        half = 1 << self.warps.bit_length() - 1
        # Only two levels look at it; with the others, each of its bits rises and falls.
        chosen = {NARROW: 1, "gto": max(1, half - 1), "two-level": rng.randint(1, self.warps)}
        self.active_warps = chosen.get(shape, half)
        self.reference = Reference(policy, self.active_warps, self.warps)

    def drive(self, i: Any, o: Any) -> None:
        i.policy, i.active_warps = self.policy, self.active_warps
        stimulate(i, self.rng, self.warps)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        expected = self.reference.grant(slots(i.request))
        got = c.grant.warp if c.grant.valid else None
        assert got == expected, f"granted {got}, not {expected}"
        assert got is not None or c.grant.warp == 0
        self.reference.step(expected, slots(i.start), slots(i.finish), slots(i.long_latency))

    def finish(self) -> None:
        """Every grant was checked in its cycle."""


def _granted(policy: str) -> Any:
    return lambda p, i, o, c: c.grant.valid and i.policy == SCHEDULERS.index(policy)


BINS = {
    **{f"{policy} grants": _granted(policy) for policy in SCHEDULERS},
    "nobody requests": lambda p, i, o, c: not i.request,
    "a request without a grant": lambda p, i, o, c: i.request and not c.grant.valid,
    "everybody requests": lambda p, i, o, c: i.request == (1 << p["warps"]) - 1 and c.grant.valid,
    "the lowest slot": lambda p, i, o, c: c.grant.valid and c.grant.warp == 0,
    "the highest slot": lambda p, i, o, c: c.grant.valid and c.grant.warp == p["warps"] - 1,
    "several start": lambda p, i, o, c: i.start & i.start - 1,
    "a slot ends and starts": lambda p, i, o, c: i.start & i.finish,
    "the granted warp ends": lambda p, i, o, c: c.grant.valid and i.finish >> c.grant.warp & 1,
    "the granted slot starts": lambda p, i, o, c: c.grant.valid and i.start >> c.grant.warp & 1,
    "the granted warp waits": lambda p, i, o, c: c.grant.valid and i.long_latency >> c.grant.warp & 1,
}
UNREACHABLE = {"several start": lambda p: p["warps"] == 1}
WAIVERS = (Waiver(r"older_(\d+)\[\1\] \S+", "a slot is not older than itself"),)
