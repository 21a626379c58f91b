"""Stimulus, checks and coverage of ``regless.shard_arbiter``: everything arrives once, in order, and in time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from lockstep.spec.regless.parameters import Access, groups

BLOCK = "regless.shard_arbiter"
GATES = True
CONFIGURATIONS = {
    "small": dict(shards=3, lanes=2, warps=3, registers=5, per_line=2),
    "paper": dict(shards=4, lanes=32, warps=16, registers=255, per_line=15),
    "gtx480": dict(shards=2, lanes=32, warps=24, registers=63, per_line=15),
    "one": dict(shards=1, lanes=1, warps=1, registers=1, per_line=1),
    "odd": dict(shards=3, lanes=3, warps=5, registers=7, per_line=3),
}
MEASURED = {"gtx480": 1}
_RATES = {"mixed": (0.6, 0.7), "full": (1.0, 1.0), "refused": (0.9, 0.1), "sparse": (0.05, 0.6), "alone": (0.3, 0.5)}
SHAPES = tuple(_RATES)

FIELDS = ("kind", "warp", "number", "pattern", "expand", "install", "group")


class Environment:
    """Compressors that hold what they present, and an L1 that refuses at random."""

    CYCLES = 1000

    def __init__(self, parameters: dict[str, int], shape: str, rng: random.Random) -> None:
        self.parameters, self.rng, self.shape = parameters, rng, shape
        self.rate, self.accept = _RATES[shape]
        self.shards = range(parameters["shards"])
        self.offered: list[deque[tuple[int, ...]]] = [deque() for _ in self.shards]
        self.waited = [0 for _ in self.shards]
        self.taken = [False for _ in self.shards]
        self.arrived = 0

    def drive(self, i: Any, o: Any) -> None:
        rng, p = self.rng, self.parameters
        most = groups(p["warps"], p["registers"], p["per_line"])
        for shard in self.shards:
            request = i.request[shard]
            request.valid &= not self.taken[shard]
            if request.valid or rng.random() >= self.rate or (self.shape == "alone" and shard != p["shards"] - 1):
                continue
            request.valid = 1
            values = (
                rng.choice(list(Access)), rng.randrange(p["warps"]), rng.randrange(p["registers"]), rng.randrange(7),
                rng.getrandbits(1), rng.getrandbits(1), rng.randrange(most),
            )  # fmt: skip
            for name, value in zip(FIELDS, values, strict=True):
                setattr(request.payload, name, value)
            words = max(p["lanes"], 2 * p["per_line"])
            for k in range(words):
                request.payload.words[k] = rng.getrandbits(32)
            self.offered[shard].append((*map(int, values), *(int(w) for w in request.payload.words[:words])))
        i.accepted = rng.random() < self.accept

    def observe(self, i: Any, o: Any, c: Any) -> None:
        valid = [bool(i.request[shard].valid) for shard in self.shards]
        assert bool(c.access.valid) == any(valid)
        for shard in self.shards:
            shown = bool(c.access.valid) and c.access.payload.shard == shard
            self.taken[shard] = bool(valid[shard] and c.request[shard].ready)
            assert self.taken[shard] == bool(shown and i.accepted), "who is presented, and nobody else"
            self.waited[shard] = 0 if shown or not valid[shard] else self.waited[shard] + 1
            assert self.waited[shard] < len(self.shards), "presented again in time"
            if shown:
                count = max(self.parameters["lanes"], 2 * self.parameters["per_line"])
                seen = [int(getattr(c.access.payload, name)) for name in FIELDS]
                seen += [int(word) for word in c.access.payload.words[:count]]
                assert tuple(seen) == self.offered[shard][0], "as it was offered"
            if self.taken[shard]:
                self.offered[shard].popleft()
                self.arrived += 1

    def finish(self) -> None:
        assert self.arrived > 0


Bin = Callable[[dict[str, int], Any, Any, Any], bool]


def _presented(shard: int, p: dict[str, int], i: Any, o: Any, c: Any) -> bool:
    return bool(c.access.valid and c.access.payload.shard == shard)


BINS: dict[str, Bin] = {
    **{f"shard {shard} is presented": partial(_presented, shard) for shard in range(4)},
    "all wait": lambda p, i, o, c: all(i.request[shard].valid for shard in range(p["shards"])),
    "a refusal": lambda p, i, o, c: c.access.valid and not i.accepted,
    "nothing to do": lambda p, i, o, c: not c.access.valid,
}

IN_KERNELS = ("all wait", "a refusal")

UNREACHABLE: dict[str, Callable[[dict[str, int]], bool]] = {
    f"shard {shard} is presented": (lambda p, shard=shard: shard >= p["shards"])  # type: ignore[misc]
    for shard in range(4)
}
