"""Under a locale of ASCII alone: text is read and written as UTF-8, and what cannot be shown is escaped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from lockstep.verif.cli.test_cli import COMMAND, KERNEL, PTX
from lockstep.verif.conftest import partly

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def in_ascii(folder: Path, *arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, env=os.environ | ASCII, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("ascii")


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", partly(["gpus gtx480", "kernels", "mechanisms", "blocks", "--help", "run -h"], 3))
def test_lists(tmp_path: Path, command: str) -> None:
    assert in_ascii(tmp_path, *command.split())


@pytest.mark.long
def test_a_kernel_and_its_report(tmp_path: Path) -> None:
    (tmp_path / "fill.ptx").write_text(f"// groß\n{PTX}", encoding="utf-8")
    (tmp_path / "größe.py").write_text(KERNEL.replace("numbers from 0", "Größen"), encoding="utf-8")
    shown = in_ascii(tmp_path, "run", "größe.py", "--size", "full", "--set", "core.sms=2", "--json", "run.json")
    assert "checked: 256 elements agree" in shown
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["checked"]
    in_ascii(tmp_path, "report", "run.json", "-o", "page.html")
    assert "größe" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_a_cuda_file(tmp_path: Path) -> None:
    text = '// größer\nextern "C" __global__ void fill(unsigned *out) { out[threadIdx.x] = 1; }\n'
    (tmp_path / "größer.cu").write_text(text, encoding="utf-8")
    assert "ret;" in in_ascii(tmp_path, "ptx", "größer.cu")
    assert "fill" in in_ascii(tmp_path, "occupancy", "größer.cu")
