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

from lockstep.sim.device import description
from lockstep.sim.device.gpu import Gpu
from lockstep.sim.device.module import Module
from lockstep.sim.errors import UsageError
from lockstep.sim.study.litmus.shapes import ACCESSES, FENCES, SHAPES, Outcome, Shape, Values, Variant
from lockstep.spec.parameters import L1_VALUES
from lockstep.spec.parameters import Gpu as Description

__all__ = ["SHAPES", "Laboratory", "Row", "Run", "rows"]

SOURCE = Path(__file__).parent / "litmus.ptx"
THREADS = 64  # of a role
ROUNDS = 8
LONGEST = 24  # turns of the loop that waits
LINES = 16  # in which the words of a round lie, for x and for y
WORDS = 32  # of a line of 128 bytes
KINDS = 3  # of words: x, y, and those that noise is made with
NOISES = 8  # none, a fetch, up to three stores, both
FARTHEST = 64  # lines, from one of a round to the next
POLICIES: dict[str, tuple[Any, ...]] = {
    "core.scheduler": ("lrr", "gto", "two-level"),
    "l2.mshrs": (None, 1),
}
"""What a seed chooses; None: as described. With one MSHR, slices of the L2 stand still again and again."""


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

    places: np.ndarray  # of x, y and noise, by instance
    noise: np.ndarray  # by round and role
    delays: np.ndarray
    roles: np.ndarray
    warms: np.ndarray  # by round, roles as a mask


def _stride(gpu: Description) -> int:
    """The distance of lines on one slice of the L2, if that is not too far."""
    return min(max(gpu.l2.slices * gpu.dram.interleave // (4 * WORDS), 1), FARTHEST)


def words_of(gpu: Description) -> int:
    """The words of a launch, all in all."""
    return KINDS * ROUNDS * (LINES + 1) * _stride(gpu) * WORDS


def _roles(rng: np.random.Generator, players: int, sms: int) -> np.ndarray:
    """The roles of all CTAs, or of the parts of one. Those that have none, of several SMs, get a greater number."""
    return rng.permutation(max(players, sms)).astype(np.uint32)


def _draw(rng: np.random.Generator, players: int, sms: int, stride: int) -> _Drawn:
    """Draw words side by side, or all in lines of one slice, whose requests then wait for each other.

    Noise is on the slice of x or on that of y, if these are on one.
    """
    places = np.empty((ROUNDS, THREADS, KINDS), np.uint32)
    for number in range(ROUNDS):
        slices = rng.integers(0, stride, 2)
        for kind, first in enumerate([*slices, rng.choice(slices)]):
            line, word = np.divmod(rng.permutation(LINES * WORDS)[:THREADS], WORDS)
            lines = (KINDS * number + kind) * (LINES + 1) * stride + first + line * rng.choice([1, stride, stride])
            places[number, :, kind] = lines * WORDS + word
    return _Drawn(
        places.reshape(-1, KINDS),
        rng.integers(0, NOISES, (ROUNDS, players), dtype=np.uint32),
        rng.integers(0, LONGEST, (ROUNDS, players, THREADS // 32), dtype=np.uint32),
        _roles(rng, players, sms),
        rng.integers(0, 1 << players, ROUNDS, dtype=np.uint32),
    )


def _launch(gpu: Gpu, module: Module, shape: Shape, variant: Variant, drawn: _Drawn) -> Counter[Values]:
    """One launch of a variant."""
    parts, players, together = drawn.roles.size, len(shape.threads), variant.place == "cta"
    words = gpu.to_device(np.zeros(words_of(gpu.description), np.uint32))
    inputs = [gpu.to_device(each) for each in (drawn.places, drawn.noise, drawn.delays, drawn.roles, drawn.warms)]
    meetings = gpu.to_device(np.zeros(ROUNDS * THREADS // 32, np.uint32))
    results = gpu.to_device(np.zeros((ROUNDS * THREADS, players, 2), np.uint32))
    pointers = [each.address for each in (words, *inputs, meetings, results)]
    numbers = [parts, ROUNDS, players, together, ACCESSES.index(variant.access), FENCES.index(variant.fence)]
    setting = np.array(pointers, np.uint64).tobytes() + np.array(numbers, np.uint32).tobytes()
    grid, block = (1, parts * THREADS) if together else (parts, THREADS)
    module.launch(shape.kernel, grid=(grid,), block=(block,), args=[setting])
    memory, loaded = gpu.from_device(words), gpu.from_device(results).reshape(-1, 2 * players)
    ends = np.concatenate([loaded, memory[drawn.places[:, :2]]], axis=1)
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
    """The GPUs on which tests run, made when they are needed: with one SM and with all, and each kind of ``l1.values``.

    Raises :class:`UsageError` for a GPU with too few SMs.
    """

    def __init__(self, gpu: str, mechanisms: Sequence[str], settings: Mapping[str, Any]) -> None:
        sms, most = description.load(gpu, settings, mechanisms).core.sms, max(len(s.threads) for s in SHAPES.values())
        if sms < most:
            raise UsageError(f"core.sms = {sms}: litmus tests need {most} SMs")
        self._gpu, self._mechanisms, self._settings = gpu, mechanisms, settings
        self._made: dict[tuple[tuple[str, Any], ...], tuple[Gpu, Module]] = {}
        self.skip = True  # idle cycles; for tests

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of ``l1.values``: both, unless the settings say which."""
        given = self._settings.get("l1.values")
        return (given,) if given else L1_VALUES

    def _on(self, several: bool, values: str, policy: Mapping[str, Any]) -> tuple[Gpu, Module]:
        given = {name: value for name, value in policy.items() if value is not None}
        settings = {"l1.values": values, **given, **self._settings, **({} if several else {"core.sms": 1})}
        key = tuple(settings.items())
        if key not in self._made:
            gpu = Gpu(self._gpu, self._mechanisms, settings)
            gpu.machine.skip = self.skip
            self._made[key] = gpu, gpu.load(SOURCE)
        return self._made[key]

    def one(self, shape: Shape, variant: Variant, values: str, seeds: Iterable[int]) -> Run:
        """Run a variant of a test with each seed."""
        found = Run(shape, variant, values)
        for seed in seeds:
            rng = random.Random(f"{seed} {shape.name} {variant}")
            policy = {name: rng.choice(choices) for name, choices in POLICIES.items()}
            gpu, module = self._on(variant.place == "sms", values, policy)
            generator, sms = np.random.default_rng(rng.getrandbits(64)), gpu.description.core.sms
            drawn = _draw(generator, len(shape.threads), sms, _stride(gpu.description))
            found.counts += _launch(gpu, module, shape, variant, drawn)
        return found

    def run(self, shape: Shape, seeds: Sequence[int]) -> Iterator[Run]:
        """Run all variants of a test."""
        for variant in shape.variants:
            for values in self.kinds:
                yield self.one(shape, variant, values, seeds)
