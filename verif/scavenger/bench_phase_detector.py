"""PhaseDetector beside profiles and runs that are made up."""

from __future__ import annotations

import random
from typing import Any

BLOCK = "scavenger.phase_detector"
CONFIGURATIONS = {
    "odd": {
        "maximum": 731, "interval": 71, "above": 3, "longest": 1501, "lanes": 7, "requests": 3, "share": 12_289,
    },
    "shipped": {
        "maximum": 200_000, "interval": 100, "above": 5, "longest": 262_144, "lanes": 8, "requests": 2, "share": 12_288,
    },
}
SHAPES = ("mixed", "steady")
IDLE_CHANGES = (r"cycle", r"beat")


class Environment:
    CYCLES = 8000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.p, self.shape, self.rng = parameters, shape, rng
        self.mode, self.left = "waits", 3
        self.part = self.joined = 0
        self.means = (20, 4)

    def drive(self, i: Any, o: Any) -> None:
        rng = self.rng
        self.left -= 1
        i.joining.valid = i.restart = i.stable = i.distance.valid = 0
        if self.mode == "waits" and self.left <= 0:
            self.mode, self.part, self.joined, self.left = "profile", 0, 0, rng.randint(20, 100)
            self.means = (rng.randint(1, 32), rng.randint(1, 32))
        elif self.mode == "profile":
            if rng.random() < 0.002:
                self.mode, self.left = "waits", rng.randint(1, 5)
            elif self.part and rng.random() < 0.01:
                i.stable = 1
            elif rng.random() < 0.001:
                i.restart = 1
            elif self.left <= 0:
                if self.part == 4 or self.joined:
                    i.joining.valid, i.joining.payload, self.joined = 1, self.part % 4, 1
        elif self.mode == "over" and self.left <= 0:
            self.mode, self.left = "run", rng.randint(500, 2000)
            self.drift = rng.randint(-12, 12)
        elif self.mode == "run" and (self.left <= 0 or o.ends.valid and rng.random() < 0.7):
            self.mode, self.left = "waits", rng.randint(1, 40)
        i.profile, i.run = self.mode in ("profile", "over"), self.mode == "run"
        i.part = self.part if self.mode == "profile" else 0
        i.instructions, i.memory_instructions = rng.randint(0, 7), rng.choice((0, 0, 1, 7))
        i.lanes = min(255, i.instructions * self.means[0])
        i.requests = min(255, i.memory_instructions * self.means[1])
        if self.mode == "over" and self.left == 5:
            i.distance.valid, i.distance.payload.run = 1, 0
            i.distance.payload.total = rng.choice((0, rng.randint(1, 500), rng.randint(1, 239_130)))
            i.distance.payload.difference = rng.randint(0, i.distance.payload.total)
        if self.mode == "run":
            if rng.random() < 0.01:
                i.distance.valid, i.distance.payload.run = 1, 1
                i.distance.payload.total = rng.choice((0, rng.randint(1, 500), rng.randint(1, 239_130)))
                i.distance.payload.difference = rng.randint(0, i.distance.payload.total // rng.choice((1, 3, 6)))
            count = rng.choice((0, rng.randint(1, 50_000), rng.randint(1, 50_000), rng.randint(1, 20)))
            i.window_instructions = count
            i.window_lanes = max(0, min((1 << 21) - 1, count * (self.means[0] + self.drift) + rng.randint(-1, 1)))
            i.window_memory_instructions = count // 2
            i.window_requests = max(0, min((1 << 21) - 1, count // 2 * (self.means[1] + self.drift // 3)))
        if i.stable:
            self.mode, self.left = "over", rng.randint(8, 300)
            i.cycles = rng.randint(0, min(80, self.p["maximum"] // 8))
        if self.mode == "profile" and self.left <= 0:
            self.part, self.left = self.part % 4 + 1, rng.randint(5, 40)

    def observe(self, i: Any, o: Any, c: Any) -> None:
        pass

    def finish(self) -> None:
        pass


BINS = {
    f"ends by {reason}": (lambda p, i, o, c, reason=reason: o.ends.valid and o.ends.payload == reason)
    for reason in range(4)
}
