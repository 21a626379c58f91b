"""A replay runs as the execution does: under the recording's configuration, and under others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu, kernels
from lockstep.sim.cosim.run import cosim
from lockstep.sim.errors import UsageError
from lockstep.sim.study.job import Job
from lockstep.sim.traces import load, write
from lockstep.sim.traces.read import Trace
from lockstep.sim.traces.replay import replay
from lockstep.verif import replays
from lockstep.verif.sim.traces.programs import HEAD, launch, recorded, replayed, same

MECHANISMS = ("warppool", "mrpb", "register-sharing", "scratchpad-sharing", "dyncta", "rfv", "rfh", "working-set")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of ``WAYS``."""
    folder = tmp_path_factory.mktemp("traces") / "ways"
    recorded(folder)
    return folder


def test_recording_changes_nothing(tmp_path: Path) -> None:
    plain, other = Gpu("gtx480"), Gpu("gtx480")
    values = launch(plain)
    with other.recording(tmp_path / "trace"):
        assert (launch(other) == values).all()
    assert same(plain, other)


def test_the_same_configuration(folder: Path) -> None:
    execution = Gpu("gtx480")
    launch(execution)
    assert same(execution, replayed(folder))


@pytest.mark.parametrize("gpu", ["gtx980", "tesla-c2050"])
def test_other_gpus(gpu: str, folder: Path) -> None:
    """The code stays the recorded one, so as many instructions issue as were recorded."""
    again = replayed(folder, gpu)
    assert sum(run.warp_instructions for run in again.runs) == Trace(folder).manifest.launches[0].instructions


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms(mechanism: str, folder: Path) -> None:
    execution = Gpu("gtx480", [mechanism])
    launch(execution)
    assert same(execution, replayed(folder, mechanisms=[mechanism]))


def test_other_parameters(folder: Path) -> None:
    settings: dict[str, int] = {"core.schedulers": 1, "l1.mshrs": 4, "core.ctas": 2}
    execution = Gpu("gtx480", settings=settings)
    launch(execution)
    assert same(execution, replayed(folder, settings=settings))


def test_ctas_that_leave_and_come_back(folder: Path) -> None:
    """A warp goes on in its trace on whichever SM it comes back."""
    at = [(200, 0, 1, 700), (300, 1, 1, 500)]
    execution, again = (Gpu("gtx480", ["preemption"], {"core.sms": 2}) for _ in range(2))
    with execution.preempting(at):
        launch(execution)
    with again.preempting(at):
        replay(Trace(folder), again)
    assert execution.stats["sm.preempted_ctas"] > 0
    assert same(execution, again)


def test_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Of a warp whose trace is in many pieces, the pieces come when it gets there, and go."""
    from lockstep.models.traces import record

    monkeypatch.setattr(record.Recorder.__init__, "__defaults__", (40,))
    monkeypatch.setattr(write, "MOST_PENDING", 60)
    monkeypatch.setattr(write, "BLOCK", 10**9)
    monkeypatch.setattr(load, "MOST_BYTES", 0)
    device = recorded(tmp_path / "trace")
    trace = Trace(tmp_path / "trace")
    warps = trace.warps(trace.manifest.launches[0])
    assert warps.blocks > 20 and warps.pieces > 2 * 18
    assert same(device, replayed(tmp_path / "trace"))
    assert same(device, replayed(folder))
    execution = Gpu("gtx480", ["rfh"])
    launch(execution)
    assert same(execution, replayed(tmp_path / "trace", mechanisms=["rfh"]))


def test_an_unfinished_trace_can_be_read(tmp_path: Path) -> None:
    device, seen = Gpu("gtx480"), []
    with device.recording(tmp_path / "trace"):
        launch(device)
        seen.append(Trace(tmp_path / "trace", whole=False))
        with pytest.raises(UsageError, match="has not come to an end"):
            Trace(tmp_path / "trace")
        launch(device)
    assert [len(trace.manifest.launches) for trace in (seen[0], Trace(tmp_path / "trace"))] == [1, 2]


def test_values_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="regless: its compressor packs registers by their values"):
        replayed(folder, mechanisms=["regless"])


def test_lines_with_values_are_refused(folder: Path, tmp_path: Path) -> None:
    device = Gpu("gtx480", l1_values="lines")
    with pytest.raises(UsageError, match=r"l1\.values = lines: lines carry values"):
        replay(Trace(folder), device)
    with pytest.raises(UsageError, match=r"l1\.values = lines: .* without"), device.recording(tmp_path / "it"):
        launch(device)
    assert not (tmp_path / "it").exists()


@pytest.mark.parametrize("mechanism", ["rfv", "rfh", "register-sharing"])
def test_what_changes_the_code_is_not_recorded(mechanism: str, tmp_path: Path) -> None:
    device = Gpu("gtx480", [mechanism])
    with pytest.raises(UsageError, match="record without it"), device.recording(tmp_path / "trace"):
        launch(device)


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="new or empty"), Gpu("gtx480").recording(tmp_path):
        pass


def test_a_launch_that_fails_is_not_in_the_trace(tmp_path: Path) -> None:
    device = Gpu("gtx480")
    module = device.load(HEAD + ".visible .entry bad() { .reg .b32 %r<2>; .reg .b64 %rd<2>; mov.u64 %rd1, 4096;"
                         " st.global.u32 [%rd1], %r1; ret; }")  # fmt: skip
    with device.recording(tmp_path / "trace"):
        with pytest.raises(UsageError, match="out of bounds"):
            module.launch("bad", 1, 32)
        launch(device)
    assert len(Trace(tmp_path / "trace").manifest.launches) == 1
    assert len(replayed(tmp_path / "trace").runs) == 1


@pytest.mark.parametrize("kernel", ["saxpy", "bfs", "reduction", pytest.param("JPEG", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("mechanism", ["baseline", "warppool", "register-sharing", "dyncta"])
def test_kernels(kernel: str, mechanism: str) -> None:
    [row] = replays.rows(kernel, "gtx480", [mechanism], "tiny")
    assert not row.refused and not row.differs and row.cycles


@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("kernel", kernels.names()[::6])
def test_more_kernels(kernel: str) -> None:
    assert not [row for row in replays.rows(kernel, "gtx980", ["baseline", "warppool"], "tiny") if row.differs]


def test_memory_is_not_needed(folder: Path) -> None:
    """Nothing is read or written: a device that replays has allocated nothing."""
    assert replayed(folder).memory.used == 0
    assert np.isfinite(replayed(folder).stats["l1.accesses"])


@pytest.mark.long
@pytest.mark.parametrize(
    "mechanism, rtl",
    [
        ("baseline", "cta,scheduling"),
        pytest.param("warppool", "all", marks=pytest.mark.exhaustive),
        pytest.param("register-sharing", "all", marks=pytest.mark.exhaustive),
    ],
)
def test_hardware(mechanism: str, rtl: str, folder: Path, tmp_path: Path) -> None:
    """Hardware meets in a replay what it meets in an execution."""
    selected = [each for each in [mechanism] if each != "baseline"]
    result = cosim(Job("ways", mechanisms=selected, trace=str(folder)), rtl, folder=tmp_path)
    execution = Gpu("gtx480", selected)
    launch(execution)
    assert result["mismatches"] == 0 and result["compared_cycles"] > 0
    assert result["cycles"] == execution.runs[0].cycles
