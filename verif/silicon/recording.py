"""What a GPU gave, in a file small enough to keep, and how the model differs from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from lockstep.sim.errors import UsageError
from lockstep.verif.silicon import kernels, program
from lockstep.verif.silicon.approximations import error, is_approximate
from lockstep.verif.silicon.cases import Case
from lockstep.verif.silicon.operands import operands

NONE = "0" * 16  # for the digest of an approximation, which says nothing


def digest(arrays: Iterable[np.ndarray]) -> str:
    """16 hexadecimal digits that stand for the arrays."""
    found = hashlib.blake2b(digest_size=8)
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


@dataclass
class Recording:
    """``names`` are the cases; ``digests`` stand for all of their results, ``kept`` has every ``every``-th of them.

    ``outputs`` has a line for each kernel: its name, a digest of its inputs, and one of what it computed.
    """

    gpu: str
    count: int
    seed: int
    every: int
    size: str
    names: str
    digests: str
    kept: np.ndarray
    outputs: str

    @property
    def kernels(self) -> list[str]:
        return [line.split(" ", 1)[0] for line in self.outputs.split("\n")]

    def save(self, path: Path) -> None:
        np.savez_compressed(path, **{each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def load(cls, path: Path) -> Recording:
        try:
            with np.load(path) as found:
                values = {each.name: found[each.name] for each in fields(cls)}
        except (OSError, ValueError, KeyError) as problem:
            raise UsageError(f"{path}: not a recording: {problem}") from None
        return cls(**{name: value if name == "kept" else value.item() for name, value in values.items()})


def record(gpu: Any, count: int, seed: int, every: int, size: str) -> Recording:
    """Run everything on a GPU."""
    found = {case.name: results for case, results in program.results(gpu, count, seed)}
    digests = [NONE if is_approximate(name) else digest([results]) for name, results in found.items()]
    kept = np.stack([results[::every] for results in found.values()])
    outputs = [" ".join((name, *ran(gpu, name, size))) for name in kernels.names(size)]
    return Recording(gpu.name, count, seed, every, size, "\n".join(found), " ".join(digests), kept, "\n".join(outputs))


def ran(gpu: Any, name: str, size: str) -> tuple[str, str]:
    """The digests of a kernel's inputs, and of what it computed."""
    inputs, outputs = kernels.run(gpu, name, size)
    arrays = [np.asarray(value) for _, value in sorted(inputs.items()) if isinstance(value, np.ndarray | np.generic)]
    return digest(arrays), digest([value for _, value in sorted(outputs.items())])


def differences(recording: Recording, gpu: Any) -> Iterator[str]:
    """A line for each case in which the results of ``gpu`` are not those recorded; approximations may differ."""
    names, digests = recording.names.split("\n"), recording.digests.split()
    if names != [case.name for case in program.every_case()]:
        raise UsageError("the cases are not those recorded; record them again")
    rows = dict(zip(names, zip(digests, recording.kept, strict=True), strict=True))
    for case, results in program.results(gpu, recording.count, recording.seed):
        wanted, kept = rows[case.name]
        got = results[:: recording.every]
        if is_approximate(case.name):
            wrong = error(case, _operands(case, recording), got, kept) > 1
        else:
            wrong = got != kept
        if wrong.any():
            yield _difference(case, recording, got, kept, np.flatnonzero(wrong))
        elif wanted not in (NONE, digest([results])):
            yield f"{case.name}: differs from {recording.gpu}, though not in the results that were kept"


def _operands(case: Case, recording: Recording) -> list[np.ndarray]:
    arrays = operands(case.sources, recording.count, recording.seed)
    return [array[:: recording.every] for array in arrays]


def _difference(case: Case, recording: Recording, got: np.ndarray, wanted: np.ndarray, wrong: np.ndarray) -> str:
    first = wrong[0]
    given = ", ".join(f"{int(array[first]):#x}" for array in _operands(case, recording))
    many = f"{len(wrong)} of {len(got)} differ"
    return f"{case.name}: of {given}: {int(got[first]):#x}, {recording.gpu} gives {int(wanted[first]):#x}; {many}"


def kernel_difference(recording: Recording, gpu: Any, name: str) -> str:
    """How a kernel's outputs on ``gpu`` differ from those recorded; empty if they do not."""
    recorded = dict(line.split(" ", 1) for line in recording.outputs.split("\n"))
    inputs, outputs = ran(gpu, name, recording.size)
    wanted_inputs, wanted = recorded[name].split()
    if inputs != wanted_inputs:
        return f"{name}: its inputs are not those recorded (with another NumPy?)"
    return "" if outputs == wanted else f"{name}: its outputs are not those of {recording.gpu}"
