"""The decision on the selection policy, counted from the ports; for benches of the selector and of the joined unit."""

from __future__ import annotations

import random
from typing import Any

EXACTLY = "a quantum of exactly 99 % misses"
MORE = "a quantum of barely more than 99 % misses"


class Quantum:
    """Counts the loads that use the L1, and those that hit; ``policy`` is what they ask for.

    One that is too long for a run begins shortly before its end (:meth:`preset`).
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.cycle = self.accesses = self.hits = 0
        self.lookup: bool | None = None  # in the cycle before, and whether it hit
        self.policy = 0

    def preset(self, rng: random.Random, cycles: int, part: str = "", *, near: bool = False) -> dict[str, int]:
        """State for a run of so many cycles, if it would not see the end of a quantum; ``part`` has the registers.

        ``near``: of the loads so far, 99 % have missed.
        """
        if self.cycle or self.length <= cycles:
            return {}
        self.cycle = self.length - rng.randrange(cycles // 4, cycles // 2)
        self.accesses = rng.randint(self.cycle // 4, self.cycle)
        self.hits = self.accesses // 100
        if not near:
            self.hits = rng.choice([0, self.hits, rng.randrange(self.accesses)])
        return {f"{part}cycle": self.cycle, f"{part}margin": self.accesses - 100 * self.hits - 1}

    def observe(self, i: Any, o: Any) -> str:
        """A cycle. Returns the bin that its quantum ends in, if any."""
        if self.lookup is not None:
            self.accesses += 1
            self.hits += self.lookup
        access = o.access.payload
        counts = o.access.valid and i.access.ready and not (access.store or access.atomic or access.bypass)
        self.lookup = (not i.miss) if counts else None
        self.cycle += 1
        if self.cycle < self.length:
            return ""
        margin = self.accesses - 100 * self.hits if self.hits else None
        self.policy ^= 100 * self.hits < self.accesses
        self.cycle = self.accesses = self.hits = 0
        return {0: EXACTLY, 1: MORE}.get(margin, "")  # type: ignore[arg-type]


class Threshold:
    """Lets a quantum end on either side of the rule: how many loads the L1 takes, and which of them hit."""

    def __init__(self, quantum: Quantum, rng: random.Random) -> None:
        self.quantum, self.rng = quantum, rng
        self.accesses = self.hits = 0
        self.more = 1  # loads beyond 100 for each hit; of the first quantum none, since more of them change the policy
        self.before = quantum.length  # cycle of the quantum

    def drive(self, i: Any) -> None:
        """Refuse what is beyond the goal; the loads that must hit are the first ones."""
        now = self.quantum
        if now.cycle < self.before:
            most = 2 if now.length > 200 else 1  # of the hits to come
            self.hits = max(now.hits, -(-now.accesses // 100)) + self.rng.randint(1, most)
            self.more ^= 1
            self.accesses = 100 * self.hits + self.more
        self.before = now.cycle
        hits = now.hits + (now.lookup or 0)
        i.access.ready = i.access.ready and now.accesses + (now.lookup is not None) < self.accesses
        i.miss = hits >= self.hits
