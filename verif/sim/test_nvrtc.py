"""CUDA C through NVRTC: compiled, kept, wrong, and without the library."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from lockstep.sim import Gpu, UsageError, nvrtc

SOURCE = """
__global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.0f;
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / "cache"))


def test_a_cuda_file_runs(tmp_path: Path) -> None:
    file = tmp_path / "twice.cu"
    file.write_text(SOURCE)
    gpu = Gpu("gtx480", core_sms=2)
    x = gpu.to_device(np.arange(100, dtype=np.float32))
    gpu.load(file).launch("twice", 4, 32, [x, 100])
    assert (gpu.from_device(x) == 2 * np.arange(100)).all()


def test_text_is_recognised(tmp_path: Path) -> None:
    assert "_Z5twicePfi" in Gpu("gtx480").load(SOURCE).program.kernels


def test_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_text(SOURCE)
    assert ".entry _Z5twicePfi" in first.read_text()
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("compiled again"))
    assert nvrtc.compile_text(SOURCE) == first
    whole = first.read_text()
    first.write_text(whole[:100])
    assert nvrtc.compile_text(SOURCE).read_text() == whole, "a damaged file is written anew"


def test_headers_may_change(tmp_path: Path) -> None:
    (tmp_path / "factor.h").write_text("#define FACTOR 3.0f\n")
    file = tmp_path / "scaled.cu"
    file.write_text('#include "factor.h"\n' + SOURCE.replace("2.0f", "FACTOR"))
    assert "0f40400000" in nvrtc.compile_file(file).read_text()
    (tmp_path / "factor.h").write_text("#define FACTOR 5.0f\n")
    assert "0f40A00000" in nvrtc.compile_file(file).read_text()


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.cu"
    file.write_text(SOURCE.replace("x[i]", "y[i]"))
    with pytest.raises(UsageError, match=r"wrong\.cu\(4\): error.*\"y\" is undefined"):
        nvrtc.compile_file(file)


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(UsageError, match=r"pip install 'lockstep-sm\[cuda\]'"):
        Gpu("gtx480").load(SOURCE)
