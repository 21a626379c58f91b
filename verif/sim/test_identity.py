"""The model gives the same statistics and memory compiled, interpreted, and without skipping."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from lockstep.cli.main import main
from lockstep.sim import kernels
from lockstep.spec.registry import MECHANISMS
from lockstep.verif import modes
from lockstep.verif.bench import elsewhere
from lockstep.verif.conftest import Shared
from lockstep.verif.modes import INTERPRETED, Observation, differences, observe

GROUPS = 2  # of kernels that share a process


@pytest.fixture
def compiled(shared: Shared) -> dict[str, Observation]:
    return shared("compiled", lambda: elsewhere(observe, kernels.names()))


@pytest.fixture
def unskipped(shared: Shared) -> dict[str, Observation]:
    return shared("unskipped", lambda: elsewhere(observe, kernels.names(), False))


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("group", range(GROUPS))
def test_interpreted(group: int) -> None:
    """Every twelfth kernel: ``lockstep verify modes --level random`` has all."""
    assert modes.interpreting(kernels.names()[::12][group::GROUPS]) == []


@pytest.mark.long
@pytest.mark.parametrize("kernel", kernels.names())
def test_without_skipping(kernel: str, compiled: dict[str, Observation], unskipped: dict[str, Observation]) -> None:
    assert differences({kernel: compiled[kernel]}, unskipped) == []


SHORT = ("spmv", "transpose-naive", "histogram", "histogram-atomics")  # gathers, scatters, atomics in both memories
BRIEF = ("reduction", "transpose-naive")  # where mechanisms count as much as elsewhere, but for DynCORE, which waits


@pytest.mark.long
@pytest.mark.exhaustive  # ``test_skipping`` has each mechanism without skipping
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms(mechanism: str) -> None:
    """Interpreting changes nothing with a mechanism either."""
    names = ["histogram"] if mechanism == "dyncore" else BRIEF
    found = elsewhere(observe, names, True, [mechanism], **INTERPRETED)
    assert differences(observe(names, True, [mechanism]), found) == []


@pytest.mark.long
def test_verify_runs_the_modes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernels, "names", lambda: ["saxpy"])
    monkeypatch.setattr(modes, "elsewhere", elsewhere_with_a_fault)
    assert main(["verify", "modes", "--level", "random", "--set", "core.sms=3"]) == 1
    told = capsys.readouterr()
    assert "without skipping, warppool" in told.out
    assert [line for line in told.err.splitlines() if "warppool" not in line] == []
    assert "modes: without skipping, warppool: saxpy: launch 0: gpu.cycles: " in told.err


def elsewhere_with_a_fault(*arguments: Any, **environment: str) -> dict[str, Observation]:
    """WarpPool counts no cycle without skipping."""
    _, names, skip, mechanisms, settings = arguments
    assert settings == {"core.sms": 3}
    found = observe(names, skip, mechanisms, settings)
    if mechanisms == ["warppool"] and not skip:
        found["saxpy"]["counts"][0]["gpu.cycles"] = [0]
    return found


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism",
    [pytest.param("", id="baseline"), *(name for name, each in MECHANISMS.items() if "path" in each.tenants)],
)
def test_a_register_file_that_refuses_results(mechanism: str) -> None:
    """Results come at other times, and are as right; skipping and interpreting change nothing."""
    named = [mechanism] if mechanism else []
    refusing = {"core.write_refusals": 12}
    reference, stepped = (observe(SHORT, skip, named, refusing) for skip in (True, False))
    assert differences(reference, stepped) == []
    free = observe(SHORT, True, named)
    for name in SHORT:
        assert [key for key in ("outputs", "memory") if reference[name][key] != free[name][key]] == []
        refused, taken = ([launch["gpu.cycles"] for launch in runs[name]["counts"]] for runs in (reference, free))
        assert refused != taken, name
    found = elsewhere(observe, ["transpose-naive"], True, named, refusing, **INTERPRETED)
    assert differences(found, reference) == []


@pytest.mark.exhaustive
@pytest.mark.long
def test_same_command_twice() -> None:
    command = [sys.executable, "-m", "lockstep.cli", "run", "bfs", "--size", "tiny", "--json", "-"]
    first, second = (json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2))
    for result in (first, second):
        for measured in ("wall_seconds", "kwips"):
            assert result.pop(measured) > 0
    assert first == second and first["cycles"] > 0
