"""The model against recordings of real GPUs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu, UsageError
from lockstep.sim.device.buffers import Buffer
from lockstep.verif.conftest import partly
from lockstep.verif.silicon import recording
from lockstep.verif.silicon.__main__ import main
from lockstep.verif.silicon.approximations import error
from lockstep.verif.silicon.cases import Case
from lockstep.verif.silicon.recording import Recording

RECORDINGS = sorted(Path(__file__).parent.glob("*.npz"))
RECORDED = Recording.load(RECORDINGS[0])


@pytest.fixture
def gpu() -> Gpu:
    found = Gpu("gtx480")
    found.on_print = None
    return found


@pytest.mark.long
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_instructions(path: Path, gpu: Gpu) -> None:
    assert list(recording.differences(Recording.load(path), gpu)) == []


@pytest.mark.parametrize("name", RECORDED.kernels)
def test_kernels(name: str, gpu: Gpu) -> None:
    for path in RECORDINGS:
        assert recording.kernel_difference(Recording.load(path), gpu, name) == ""


class Altered:
    """A GPU of which one result of one case is wrong."""

    name = "altered"

    def __init__(self, gpu: Gpu, row: int, lane: int) -> None:
        self.gpu, self.row, self.lane = gpu, row, lane
        self.load, self.to_device, self.free = gpu.load, gpu.to_device, gpu.free

    def from_device(self, buffer: Buffer) -> np.ndarray:
        results = self.gpu.from_device(buffer)
        row, self.row = self.row, self.row - len(results)
        if 0 <= row < len(results):
            results[row, self.lane] ^= 1
        return results


@pytest.mark.parametrize("lane", partly([0, 1], 2), ids=["kept", "not kept"])
def test_a_wrong_bit_is_found(lane: int, gpu: Gpu) -> None:
    assert RECORDED.every > 1
    lines = list(recording.differences(RECORDED, Altered(gpu, 0, lane)))
    first = RECORDED.names.split("\n")[0]
    assert len(lines) == 1 and lines[0].startswith(f"{first}: {'differs' if lane else 'of 0x'}")


def test_errors_of_approximations() -> None:
    case = Case("rcp.approx.f32", ("f32",), "f32", "")
    wanted = np.array([0x3F80_0000, 0x3F80_0000, 0x3F80_0000, 0x7FFF_FFFF, 0x7F80_0000, 0x8000_0000], np.uint64)
    got = np.array([0x3F80_0000, 0x3F80_0002, 0x3F80_0003, 0x3F80_0000, 0x7F7F_FFFF, 0x0000_0000], np.uint64)
    assert error(case, [got], got, wanted).tolist() == [0, 1, 1.5, np.inf, np.inf, 0]


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    monkeypatch.setattr("sys.argv", ["silicon", "record", str(tmp_path / "new.npz")])
    assert main() == 2
    assert capsys.readouterr().err == "there is no NVIDIA driver here (libcuda.so.1)\n"
    assert not list(tmp_path.iterdir())


def test_recordings_that_do_not_fit(tmp_path: Path, gpu: Gpu) -> None:
    (tmp_path / "no.npz").write_text("no", encoding="utf-8")
    with pytest.raises(UsageError, match="not a recording"):
        Recording.load(tmp_path / "no.npz")
    other = Recording.load(RECORDINGS[0])
    other.names += "\nadd.u128"
    with pytest.raises(UsageError, match="record them again"):
        next(recording.differences(other, gpu))
