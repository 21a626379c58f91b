"""The model gives the same statistics and memory compiled, interpreted, with bounds checks, and without skipping."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from lockstep.sim import Gpu, kernels
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.bench import elsewhere
from lockstep.verif.conftest import Shared

INTERPRETED = dict(NUMBA_DISABLE_JIT="1")
CHECKED = dict(NUMBA_BOUNDSCHECK="1")
SECONDS = 60  # of a core, for a kernel at size tiny in the interpreted model
GROUPS = 12  # of kernels that share a process

Observation = dict[str, Any]


def observe(
    names: Iterable[str], skip: bool = True, mechanisms: Sequence[str] = (), refusals: int = 0
) -> dict[str, Observation]:
    """Run kernels at size tiny on two SMs. Per kernel: every raw count, and hashes of outputs and of device memory."""
    return {name: _observe(name, skip, mechanisms, refusals) for name in names}


def _observe(name: str, skip: bool, mechanisms: Sequence[str], refusals: int) -> Observation:
    kernel = kernels.find(name)
    gpu = Gpu("gtx480", mechanisms, core_sms=2, core_write_refusals=refusals, warppool_quantum=64)
    gpu.machine.skip = skip
    start = time.process_time()
    outputs = kernel.run(gpu, gpu.load(kernel.ptx), kernel.setup("tiny", 1))
    seconds = time.process_time() - start
    return {
        "counts": [{count: values.tolist() for count, values in run.raw.items()} for run in gpu.runs],
        "outputs": {output: _hash(array) for output, array in outputs.items()},
        "memory": _hash(gpu.memory.contents),
        "seconds": seconds,
    }


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def differences(left: Observation, right: Observation) -> list[str]:
    """What differs, by name."""
    wrong = [key for key in ("outputs", "memory") if left[key] != right[key]]
    if len(left["counts"]) != len(right["counts"]):
        return [*wrong, "launches"]
    for launch, (first, second) in enumerate(zip(left["counts"], right["counts"], strict=True)):
        for name in sorted(first.keys() | second.keys()):
            if first.get(name) != second.get(name):
                wrong.append(f"launch {launch}: {name}: {first.get(name)} against {second.get(name)}")
    return wrong


@pytest.fixture
def compiled(shared: Shared) -> dict[str, Observation]:
    return shared("compiled", lambda: elsewhere(observe, kernels.names()))


@pytest.fixture
def checked(shared: Shared) -> dict[str, Observation]:
    return shared("checked", lambda: elsewhere(observe, kernels.names(), **CHECKED))


@pytest.fixture
def unskipped(shared: Shared) -> dict[str, Observation]:
    return shared("unskipped", lambda: elsewhere(observe, kernels.names(), False))


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS))
def test_interpreted(group: int, compiled: dict[str, Observation]) -> None:
    found = elsewhere(observe, kernels.names()[group::GROUPS], **INTERPRETED)
    assert {name: differences(compiled[name], each) for name, each in found.items()} == {name: [] for name in found}
    assert {name: each["seconds"] for name, each in found.items() if each["seconds"] >= SECONDS} == {}


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("kernel", kernels.names())
def test_bounds_checked(kernel: str, compiled: dict[str, Observation], checked: dict[str, Observation]) -> None:
    assert differences(compiled[kernel], checked[kernel]) == []


@pytest.mark.long
@pytest.mark.parametrize("kernel", kernels.names())
def test_without_skipping(kernel: str, compiled: dict[str, Observation], unskipped: dict[str, Observation]) -> None:
    assert differences(compiled[kernel], unskipped[kernel]) == []


SHORT = ("spmv", "transpose-naive", "histogram", "histogram-atomics")  # gathers, scatters, atomics in both memories


@pytest.mark.long
@pytest.mark.exhaustive  # ``test_skipping`` runs each mechanism in make test
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms(mechanism: str) -> None:
    """What holds for the baseline holds with a mechanism: skipping and interpreting change nothing."""
    reference, stepped = (observe(SHORT, skip, [mechanism]) for skip in (True, False))
    found = elsewhere(observe, SHORT, True, [mechanism], **INTERPRETED)
    none: dict[str, list[str]] = {name: [] for name in SHORT}
    assert {name: differences(reference[name], stepped[name]) for name in SHORT} == none
    assert {name: differences(reference[name], found[name]) for name in SHORT} == none


@pytest.mark.long
@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_all_kernels_with_mechanisms(mechanism: str) -> None:
    others = [name for name in kernels.names() if name not in SHORT]
    reference, stepped = (elsewhere(observe, others, skip, [mechanism]) for skip in (True, False))
    assert {name: differences(reference[name], stepped[name]) for name in others} == {name: [] for name in others}


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param("", id="baseline"),
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name, each in MECHANISMS.items()
            if "path" in each.tenants
        ),
    ],
)
def test_a_register_file_that_refuses_results(mechanism: str) -> None:
    """Results come at other times, and are as right; skipping and interpreting change nothing."""
    named = [mechanism] if mechanism else []
    reference, stepped = (observe(SHORT, skip, named, 12) for skip in (True, False))
    assert {name: differences(reference[name], stepped[name]) for name in SHORT} == {name: [] for name in SHORT}
    free = observe(SHORT, True, named)
    for name in SHORT:
        assert [key for key in ("outputs", "memory") if reference[name][key] != free[name][key]] == []
        refused, taken = ([launch["gpu.cycles"] for launch in runs[name]["counts"]] for runs in (reference, free))
        assert refused != taken, name
    found = elsewhere(observe, ["histogram"], True, named, 12, **INTERPRETED)
    assert differences(reference["histogram"], found["histogram"]) == []


@pytest.mark.long
def test_same_command_twice() -> None:
    command = [sys.executable, "-m", "lockstep.cli", "run", "bfs", "--size", "tiny", "--json", "-"]
    first, second = (json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2))
    for result in (first, second):
        for measured in ("wall_seconds", "kwips"):
            assert result.pop(measured) > 0
    assert first == second and first["cycles"] > 0
