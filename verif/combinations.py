"""Pairs of mechanisms that may be combined, on whole kernels: right results, whatever the order of naming.

What ``lockstep verify`` calls *combinations*. The pairs come from the registry, so they grow with the mechanisms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep.sim import Gpu, kernels
from lockstep.spec import registry

TARGET = "combinations"

Pair = tuple[str, str]


def pairs(names: Sequence[str] | None = None) -> list[Pair]:
    """The pairs of some mechanisms, of all without ``names``, that may be combined."""
    found = []
    for pair in itertools.combinations(registry.MECHANISMS if names is None else names, 2):
        try:
            registry.resolve(pair)
        except ValueError:
            continue
        found.append(pair)
    return found


def summary() -> str:
    """How many of all pairs may be combined."""
    return f"{len(pairs())} of {math.comb(len(registry.MECHANISMS), 2)} pairs of mechanisms may be combined"


@dataclass
class Observed:
    """What a kernel leaves behind: ``wrong`` is what its check says, empty if its results are right."""

    gpu: Gpu
    raw: list[dict[str, Any]]  # of each launch
    wrong: str


def run(
    name: str, mechanisms: Sequence[str], skip: bool = True, settings: Mapping[str, Any] | None = None
) -> Observed:
    """A kernel at size tiny on two SMs."""
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, {"core.sms": 2, **(settings or {})})
    gpu.machine.skip = skip
    data = kernel.setup("tiny", 1)
    check = kernels.check(kernel, kernel.run(gpu, gpu.load(kernel.ptx), data), data)
    raw = [{count: values.tolist() for count, values in one.raw.items()} for one in gpu.runs]
    return Observed(gpu, raw, "" if check.passed else f"{name} with {', '.join(mechanisms)}: {check.message}")


def differences(name: str, pair: Pair, settings: Mapping[str, Any] | None = None) -> list[str]:
    """What is wrong with a kernel under a pair, a line each."""
    one, other = (run(name, order, settings=settings) for order in (pair, pair[::-1]))
    errors = [observed.wrong for observed in (one, other) if observed.wrong]
    if one.raw != other.raw:
        launches = zip(one.raw, other.raw, strict=True)
        counts = {count for mine, its in launches for count in mine if mine[count] != its[count]}
        errors.append(f"{name} with {', '.join(pair)}: the order of naming changes {', '.join(sorted(counts))}")
    return errors


def check(pair: Pair, settings: Mapping[str, Any] | None = None) -> list[str]:
    """What is wrong with a pair on all kernels."""
    return [error for name in kernels.names() for error in differences(name, pair, settings)]
