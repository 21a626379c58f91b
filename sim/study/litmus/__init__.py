"""Litmus tests: which outcomes of short racing programs occur on a modelled GPU, and whether PTX forbids one that does.

A run of a test is many instances of it, in one launch per seed; the seed draws where the words are, how long each warp
waits, which roles load the words before (so that their L1 may have old lines), in which order the roles stand, and the
scheduler's policy.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import Module
from lockstep.sim.study.litmus.shapes import ACCESSES, FENCES, SHAPES, Outcome, Shape, Values, Variant
from lockstep.spec.parameters import L1_VALUES, SCHEDULERS

__all__ = ["SHAPES", "Laboratory", "Row", "Run", "rows"]

SOURCE = Path(__file__).parent / "litmus.ptx"
THREADS = 64  # of a role
ROUNDS = 8
LONGEST = 24  # turns of the loop that waits
LINES = 16  # in which the words of a round lie, for x and for y
WORDS = 32  # of a line
SMS = 2
POLICIES = tuple(policy for policy in SCHEDULERS if policy != "region-p")  # that needs hints of the compiler


@dataclass
class Run:
    """Instances of one variant of a test, with one kind of ``l1.values``, and how often they ended how."""

    shape: Shape
    variant: Variant
    values: str
    counts: Counter[Values] = field(default_factory=Counter)

    @property
    def instances(self) -> int:
        return self.counts.total()

    def count(self, outcome: Outcome) -> int:
        """How often an outcome has occurred."""
        return sum(count for values, count in self.counts.items() if outcome.holds(values))

    @property
    def wrong(self) -> list[Outcome]:
        """Outcomes that have occurred and are forbidden."""
        found = (each for each in self.shape.outcomes if each.forbidden(self.variant))
        return [outcome for outcome in found if self.count(outcome)]

    def as_json(self) -> dict[str, Any]:
        roles = len(self.shape.threads)
        return {
            "test": self.shape.name,
            "access": self.variant.access,
            "fence": self.variant.fence,
            "place": self.variant.place,
            "l1_values": self.values,
            "instances": self.instances,
            "outcomes": [
                {
                    "outcome": outcome.text,
                    "forbidden": outcome.forbidden(self.variant),
                    "count": self.count(outcome),
                }
                for outcome in self.shape.outcomes
            ],
            "ends": [
                {
                    "loaded": [list(values[2 * role : 2 * role + 2]) for role in range(roles)],
                    "x": values[-2],
                    "y": values[-1],
                    "count": count,
                }
                for values, count in sorted(self.counts.items())
            ],
        }


@dataclass(frozen=True)
class _Drawn:
    """What a seed has drawn for one variant."""

    places: np.ndarray  # of x and y, by instance
    delays: np.ndarray
    roles: np.ndarray
    warms: int


def _draw(rng: np.random.Generator, parts: int) -> _Drawn:
    lines = WORDS * LINES
    places = np.empty((ROUNDS, THREADS, 2), np.uint32)
    for number in range(ROUNDS):
        for word in range(2):
            first = (2 * number + word) * lines
            places[number, :, word] = first + rng.permutation(lines)[:THREADS]
    return _Drawn(
        places.reshape(-1, 2),
        rng.integers(0, LONGEST, (ROUNDS, parts, THREADS // 32), dtype=np.uint32),
        rng.permutation(parts).astype(np.uint32),
        int(rng.integers(1 << parts)),
    )


def _launch(gpu: Gpu, module: Module, shape: Shape, variant: Variant, drawn: _Drawn) -> Counter[Values]:
    """One launch of a variant."""
    parts, together = len(shape.threads), variant.place == "cta"
    words = gpu.to_device(np.zeros(2 * ROUNDS * LINES * WORDS, np.uint32))
    inputs = [gpu.to_device(each) for each in (drawn.places, drawn.delays, drawn.roles)]
    meetings = gpu.to_device(np.zeros(ROUNDS * THREADS // 32, np.uint32))
    results = gpu.to_device(np.zeros((ROUNDS * THREADS, parts, 2), np.uint32))
    pointers = [each.address for each in (words, *inputs, meetings, results)]
    numbers = [parts, ROUNDS, drawn.warms, together, ACCESSES.index(variant.access), FENCES.index(variant.fence)]
    setting = np.array(pointers, np.uint64).tobytes() + np.array(numbers, np.uint32).tobytes()
    grid, block = (1, parts * THREADS) if together else (parts, THREADS)
    module.launch(shape.kernel, grid=(grid,), block=(block,), args=[setting])
    memory, loaded = gpu.from_device(words), gpu.from_device(results).reshape(-1, 2 * parts)
    ends = np.concatenate([loaded, memory[drawn.places]], axis=1)
    for each in (words, *inputs, meetings, results):
        gpu.free(each)
    return Counter(map(tuple, ends.tolist()))


@dataclass(frozen=True)
class Row:
    """What a table shows of a variant: an outcome, and how often it occurred by ``l1.values``."""

    variant: Variant
    outcome: Outcome
    forbidden: bool
    counts: Mapping[str, int]
    instances: int


def rows(runs: Iterable[Run]) -> list[Row]:
    """The runs of one test, those of a variant side by side."""
    by_variant: dict[Variant, list[Run]] = {}
    for run in runs:
        by_variant.setdefault(run.variant, []).append(run)
    return [
        Row(
            variant,
            outcome,
            outcome.forbidden(variant),
            {run.values: run.count(outcome) for run in same},
            same[0].instances,
        )
        for variant, same in by_variant.items()
        for outcome in same[0].shape.outcomes
    ]


class Laboratory:
    """The GPUs on which tests run, made when they are needed: one and two SMs, with each kind of ``l1.values``."""

    def __init__(self, gpu: str, mechanisms: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._gpu, self._mechanisms, self._settings = gpu, mechanisms, settings
        self._made: dict[tuple[int, str, str], tuple[Gpu, Module]] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of ``l1.values``: both, unless the settings say which."""
        given = self._settings.get("l1.values")
        return (given,) if given else L1_VALUES

    def _on(self, sms: int, values: str, policy: str) -> tuple[Gpu, Module]:
        key = sms, values, self._settings.get("core.scheduler", policy)
        if key not in self._made:
            drawn = {"core.sms": sms, "l1.values": values, "core.scheduler": policy}
            gpu = Gpu(self._gpu, self._mechanisms, {**drawn, **self._settings})
            self._made[key] = gpu, gpu.load(SOURCE)
        return self._made[key]

    def run(self, shape: Shape, seeds: Iterable[int]) -> Iterator[Run]:
        """Run all variants of a test with each seed."""
        seeds = list(seeds)
        for variant in shape.variants:
            for values in self.kinds:
                found = Run(shape, variant, values)
                for seed in seeds:
                    rng = random.Random(f"{seed} {shape.name} {variant}")
                    policy = rng.choice(POLICIES)
                    drawn = _draw(np.random.default_rng(rng.getrandbits(64)), len(shape.threads))
                    sms = SMS if variant.place == "sms" else 1
                    found.counts += _launch(*self._on(sms, values, policy), shape, variant, drawn)
                yield found
