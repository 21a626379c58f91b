"""The ways in which kernels run: compiled, interpreted, with bounds checks, without skipping idle cycles.

All give the same statistics and the same memory. What ``lockstep verify`` calls *modes* are all kernels interpreted,
with bounds checks, and with each mechanism, without skipping; tests have some of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from lockstep.sim import Gpu, kernels
from lockstep.verif.bench import elsewhere

TARGET = "modes"

INTERPRETED = dict(NUMBA_DISABLE_JIT="1")
CHECKED = dict(NUMBA_BOUNDSCHECK="1")

Observation = dict[str, Any]


Settings = Mapping[str, Any]


def observe(
    names: Iterable[str], skip: bool = True, mechanisms: Sequence[str] = (), settings: Settings = MappingProxyType({})
) -> dict[str, Observation]:
    """Run kernels at size tiny on two SMs. Per kernel: every raw count, and hashes of outputs and of device memory."""
    return {name: _observe(name, skip, mechanisms, settings) for name in names}


def _observe(name: str, skip: bool, mechanisms: Sequence[str], settings: Settings) -> Observation:
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, core_sms=2, warppool_quantum=64, **settings)
    gpu.machine.skip = skip
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    return {
        "counts": [{count: values.tolist() for count, values in run.raw.items()} for run in gpu.runs],
        "outputs": {output: _hash(array) for output, array in outputs.items()},
        "memory": _hash(gpu.memory.contents),
    }


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def differences(left: Mapping[str, Observation], right: Mapping[str, Observation]) -> list[str]:
    """What differs between two runs of the same kernels, a line each."""
    return [f"{name}: {each}" for name in left for each in _differences(left[name], right[name])]


def _differences(left: Observation, right: Observation) -> list[str]:
    wrong = [key for key in ("outputs", "memory") if left[key] != right[key]]
    if len(left["counts"]) != len(right["counts"]):
        return [*wrong, "launches"]
    for launch, (first, second) in enumerate(zip(left["counts"], right["counts"], strict=True)):
        for name in sorted(first.keys() | second.keys()):
            if first.get(name) != second.get(name):
                wrong.append(f"launch {launch}: {name}: {first.get(name)} against {second.get(name)}")
    return wrong


def interpreting(names: Sequence[str], settings: Settings = MappingProxyType({})) -> list[str]:
    """What interpreting changes in kernels."""
    return differences(*(_elsewhere(names, settings, **environment) for environment in ({}, INTERPRETED)))


def checking(names: Sequence[str], settings: Settings = MappingProxyType({})) -> list[str]:
    """What bounds checks change in kernels; the model is compiled anew for them."""
    return differences(*(_elsewhere(names, settings, **environment) for environment in ({}, CHECKED)))


def skipping(names: Sequence[str], mechanism: str, settings: Settings = MappingProxyType({})) -> list[str]:
    """What a run that does not skip idle cycles changes in kernels with a mechanism."""
    return differences(*(elsewhere(observe, names, skip, [mechanism], dict(settings)) for skip in (True, False)))


def _elsewhere(names: Sequence[str], settings: Settings, **environment: str) -> dict[str, Observation]:
    found: dict[str, Observation] = elsewhere(observe, names, True, [], dict(settings), **environment)
    return found
