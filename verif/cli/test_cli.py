"""The command line: results, JSON, exit codes, one-line errors, interrupts, and what a start imports."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from textwrap import indent

import pytest

from lockstep.cli import bench
from lockstep.cli import main as cli
from lockstep.sim import output
from lockstep.sim.errors import UsageError
from lockstep.spec.registry import MECHANISMS
from lockstep.verif.conftest import partly

RUN_KEYS = (
    "kernel", "gpu", "mechanisms", "cycles", "warp_instructions", "thread_instructions", "ipc", "checked",
    "wall_seconds", "kwips", "stats", "command", "code_version", "settings",
)  # fmt: skip
COMMAND = [sys.executable, "-m", "lockstep.cli"]

PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry fill(.param .u64 out)
{
  .reg .u64 %o; .reg .u32 %t; .reg .u64 %d;
  ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %d, %t, 4;
  add.u64 %o, %o, %d;
  st.global.u32 [%o], %t;
  ret;
}
"""

KERNEL = """
import numpy as np
TITLE, SUITE, PTX = "numbers from 0", "none", "fill.ptx"

def setup(size, seed):
    return {"n": {"tiny": 64, "small": 128, "full": 256}[size]}

def run(gpu, module, data):
    out = gpu.empty(data["n"], np.uint32)
    module.launch("fill", 1, data["n"], [out])
    return {"out": gpu.from_device(out)}

def reference(data):
    return {"out": np.arange(data["n"], dtype=np.uint32)}
"""


@pytest.fixture
def fill(tmp_path: Path) -> Path:
    (tmp_path / "fill.ptx").write_text(PTX, encoding="utf-8")
    file = tmp_path / "fill.py"
    file.write_text(KERNEL, encoding="utf-8")
    return file


def lockstep(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command in this process."""
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_run_prints_a_table(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    code, out, err = lockstep(capsys, "run", fill, "--size", "tiny", "--set", "core.sms=2")
    assert code == 0 and "lockstep:" not in err
    assert "checked: 64 elements agree" in out and "ipc" in out


def test_run_writes_json(
    capsys: pytest.CaptureFixture[str], fill: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else, where Python keeps bytecode."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    target = tmp_path / "run.json"
    code, out, _ = lockstep(capsys, "run", fill, "--set", "core.sms=2", "--set", "l1.mshrs=16", "--json", target)
    result = json.loads(target.read_text(encoding="utf-8"))
    assert code == 0 and str(target) in out
    assert all(key in result for key in RUN_KEYS)
    assert result["kernel"] == "fill" and result["gpu"] == "gtx480" and result["checked"] is True
    assert result["compared"] == 128 and result["configuration"]["l1.mshrs"] == 16
    assert result["ipc"] == result["warp_instructions"] / result["cycles"]
    assert result["stats"]["issue.warp_instructions"] == result["warp_instructions"] and len(result["per_sm"]) == 2
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fill.ptx", "fill.py", "run.json"]


def test_the_command_in_the_json_makes_the_same_run(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    options = ("--size", "tiny", "--seed", "7", "--strict", "--set", "core.sms=2", "--set", "core.scheduler=lrr")
    _, out, _ = lockstep(capsys, "run", fill, *options, "--with", "dyncta", "--with", "mrpb", "--json", "-")
    first = json.loads(out)
    program, *arguments = shlex.split(first["command"])
    assert program == "lockstep" and first["settings"] == {"core.sms": 2, "core.scheduler": "lrr"}
    _, out, _ = lockstep(capsys, *arguments, "--json", "-")
    again = json.loads(out)
    assert {key for key in first if again[key] != first[key]} <= {"wall_seconds", "kwips"}


def test_json_alone_on_standard_output(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    code, out, _ = lockstep(capsys, "run", fill, "--size", "tiny", "--set", "core.sms=2", "--json", "-")
    assert code == 0 and json.loads(out)["checked"] is True


def test_wrong_results_exit_1(capsys: pytest.CaptureFixture[str], fill: Path, tmp_path: Path) -> None:
    fill.write_text(KERNEL.replace("np.arange(data", "1 + np.arange(data"), encoding="utf-8")
    target = tmp_path / "run.json"
    code, out, err = lockstep(capsys, "run", fill, "--set", "core.sms=2", "--json", target)
    assert code == 1 and "WRONG" in out
    assert err.splitlines()[-1].startswith("lockstep: fill on gtx480: wrong result: out[0]: got 0, expected 1")
    assert json.loads(target.read_text(encoding="utf-8"))["checked"] is False


def test_nothing_compared_is_not_checked(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    fill.write_text(KERNEL.replace('return {"out": gpu.from_device(out)}', "return {}").replace(
        'return {"out": np.arange(data["n"], dtype=np.uint32)}', "return {}"), encoding="utf-8")  # fmt: skip
    code, out, _ = lockstep(capsys, "run", fill, "--size", "tiny", "--set", "core.sms=2", "--json", "-")
    assert code == 1 and json.loads(out)["checked"] is False


def test_bench(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    code, out, _ = lockstep(capsys, "bench", fill, "--size", "tiny")
    assert code == 0 and "kwips" in out and "Numba" in out and "cores" in out
    code, out, _ = lockstep(capsys, "bench", fill, "--size", "tiny", "--json", "-")
    (result,) = json.loads(out)
    assert all(key in result for key in RUN_KEYS) and result["machine"] == bench.machine()
    in_launches = result["warp_instructions"] / (1000 * result["kwips"])
    assert result["seconds_per_launch"] * result["launches"] == pytest.approx(in_launches)
    code, out, _ = lockstep(capsys, "bench", fill, "--size", "tiny", "--with", "dyncta")
    assert code == 0 and "gtx480 with dyncta, tiny" in " ".join(out.split())


@pytest.mark.long
@pytest.mark.exhaustive
def test_profile_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = lockstep(capsys, "bench", "gemm", "--profile")
    assert code == 0, err
    text = " ".join(out.split())
    assert "er cent of the launches' time, sampled" in text and "schedulers" in text
    assert max(map(len, out.splitlines()[:-1])) <= 80
    code, out, _ = lockstep(capsys, "bench", "gemm", "--profile", "--json", "-")
    (result,) = json.loads(out)
    assert sum(result["own_time"]["parts"].values()) == pytest.approx(1) and result["own_time"]["samples"] > 0


def test_a_profile_of_the_model_is_of_compiled_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    code, _, err = lockstep(capsys, "bench", "gemm", "--size", "tiny", "--profile")
    assert code == 2 and err == "lockstep: --profile: is for compiled code, which NUMBA_DISABLE_JIT leaves out\n"


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lockstep(capsys, "gpus", "--json", "-")
    gpus = {row["name"]: row for row in json.loads(out)}
    assert code == 0 and len(gpus) == 8 and gpus["gtx480"]["core.sms"] == 15
    code, out, _ = lockstep(capsys, "kernels", "--json", "-")
    kernels = {row["name"]: row for row in json.loads(out)}
    assert code == 0 and len(kernels) >= 14 and set(kernels["saxpy"]) >= {"name", "title", "suite"}
    assert "gtx580" in lockstep(capsys, "gpus")[1] and "saxpy" in lockstep(capsys, "kernels")[1]


def test_a_gpu_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = lockstep(capsys, "gpus", "gtx480", "--set", "core.sms=4", "--with", "dyncta", "--json", "-")
    explained = {row["key"]: row for row in json.loads(out)}
    assert code == 0 and explained["core.sms"]["value"] == 4 and explained["core.sms"]["source"] == "override"
    assert explained["l1.mshrs"]["unit"] == "MSHRs" and "Kloosterman" in explained["l1.mshrs"]["source"]
    code, out, _ = lockstep(capsys, "gpus", "gtx480")
    assert code == 0 and "mshrs = 32 MSHRs: lines in flight (1 to 256)\n    Kloosterman table 3.2\n" in out
    for wrong in (["gpus", "--with", "dyncta"], ["gpus", "gtx48"], ["gpus", "gtx480", "--set", "dram.tRAS=41"]):
        code, out, error = lockstep(capsys, *wrong)
        assert code == 2 and not out and error.count("\n") == 1


def test_version_and_help() -> None:
    for option, text in (("--version", "lockstep 0."), ("--help", "compare")):
        result = subprocess.run([*COMMAND, option], capture_output=True, encoding="utf-8")
        assert result.returncode == 0 and text in result.stdout


def test_an_option_given_twice_counts_twice(fill: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    assert cli.main(["run", str(fill), "--with", "dyncore", "--with", "dyncta,mrpb", "--json", str(out)]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["mechanisms"] == ["dyncore", "dyncta", "mrpb"]


def test_mechanisms_are_told_apart(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, what they fill or need, and what they do are there in whole."""
    monkeypatch.setenv("COLUMNS", "300")
    assert cli.main(["mechanisms"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, mechanism in MECHANISMS.items():
        [line] = [line for line in lines if line.startswith(f"│ {name} ")]
        assert mechanism.doc in line and all(word in line for word in mechanism.tenants or mechanism.requires)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("COMMAND",)),
        (("rnu",), ("rnu", "did you mean run")),
        (("run",), ("KERNEL",)),
        (("run", "saxpi"), ("saxpi", "did you mean saxpy")),
        (("run", "blackschole"), ("did you mean BlackScholes",)),
        (("run", "mine.cu"), ("mine.cu: cannot be run by itself", "FILE.py", "docs/tutorial.md")),
        (("run", "nowhere.py"), ("nowhere.py", "no such file")),
        (("run", "saxpy", "--size", "huge"), ("huge", "tiny")),
        (("run", "saxpy", "--size", "tyny"), ("did you mean tiny",)),
        (("run", "saxpy", "--sise", "tiny"), ("--sise", "did you mean --size")),
        (("run", "saxpy", "spmv"), ("unrecognized arguments: spmv (see",)),
        (("cosim", "saxpy", "--mode", "shado"), ("--mode", "did you mean shadow")),
        (("cosim", "saxpy", "--rtl", "warp_schedulr"), ("--rtl warp_schedulr", "did you mean warp_scheduler")),
        (("reproduce", "sharin"), ("sharin", "did you mean sharing")),
        (("verify", "warpool.writeback"), ("did you mean warppool.writeback",)),
        (("run", "saxpy", "--seed", "x"), ("--seed", "'x'", "0 or more")),
        (("compare", "saxpy", "--seed", "-1"), ("--seed", "'-1'", "0 or more")),
        (("run", "saxpy", "--set", "=3"), ("--set =3", "section.key=value")),
        (("run", "saxpy", "--gpu", "gtx48"), ("gtx48", "did you mean gtx480")),
        (("run", "saxpy", "--gpu", "nowhere.toml"), ("nowhere.toml", "no such file")),
        (("run", "saxpy", "--set", "l1.mshr=3"), ("l1.mshr", "did you mean l1.mshrs")),
        (("run", "saxpy", "--set", "l1.mshrs"), ("l1.mshrs", "section.key=value")),
        (("run", "saxpy", "--set", "l1.mshrs=9999"), ("l1.mshrs", "1 to 256")),
        (("run", "saxpy", "--with", "warpool"), ("warpool", "did you mean warppool")),
        (("run", "saxpy", "--json", "nowhere/out.json"), ("nowhere/out.json", "cannot be written")),
        (("compare",), ("KERNEL",)),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    code, out, err = lockstep(capsys, *arguments)
    assert code == 2 and out == ""
    assert err.startswith("lockstep: ") and err.count("\n") == 1
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("def reference", "def referense", ("fill.py", "does not define reference")),
        ('"fill.ptx"', '"full.ptx"', ("fill.py", "full.ptx")),
        ("import numpy as np", "import numpy as np (", ("fill.py:2",)),
        ('[out])', "[out, 1])", ("fill: 2 arguments given, it takes 1",)),
        ('[out])', "[out], shared_bytes=50000)", ("50000 bytes of shared memory", "49152")),
        ('launch("fill", 1, data["n"]', 'launch("fill", 1, 2048', ("2048 threads", "1024")),
        ('gpu.empty(data["n"]', 'gpu.empty(data["n"] - 1', ("out of bounds", "fill.ptx:11", "warp 1, lane 31")),
        ('{"n": {', '{"n": 1 // 0 * {', ("setup()", "fill.py:6", "ZeroDivisionError")),
        ('{"n": {', '{"n": exit("so\\nlong") * {', ("setup()", "fill.py:6", "SystemExit: so long")),
        ("TITLE, SUITE", "import sys; sys.exit(7)\nTITLE, SUITE", ("fill.py:3", "SystemExit: 7")),
        ("TITLE, SUITE", "{}[1]\nTITLE, SUITE", ("fill.py:3", "KeyError: 1")),
        ("import numpy", "import nothing, numpy", ("fill.py:2", "ModuleNotFoundError")),
        ('"fill.ptx"', "5", ("fill.py: PTX = 5: must be a str",)),
        ("TITLE, SUITE", "SIZES = 3\nTITLE, SUITE", ("fill.py: SIZES = 3",)),
        ("TITLE, SUITE", "TOLERANCE = []\nTITLE, SUITE", ("fill.py: TOLERANCE = []: must be a dict",)),
        ("def reference(data):\n    return", "def reference(data):\n    return 1,", ("reference()", "AttributeError")),
    ],
)  # fmt: skip
def test_mistakes_in_a_kernel(
    capsys: pytest.CaptureFixture[str], fill: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    assert KERNEL.count(old) == 1
    fill.write_text(KERNEL.replace(old, new), encoding="utf-8")
    code, _, err = lockstep(capsys, "run", fill, "--size", "tiny", "--set", "core.sms=2")
    assert code == 2 and err.startswith("lockstep: ") and err.count("\n") == 1
    for word in words:
        assert word in err, err


def test_an_unknown_instruction(capsys: pytest.CaptureFixture[str], fill: Path) -> None:
    (fill.parent / "fill.ptx").write_text(
        PTX.replace("mul.wide.u32 %d, %t, 4;", "frobnicate.u32 %t, %t;"), encoding="utf-8"
    )
    code, _, err = lockstep(capsys, "run", fill)
    assert code == 2 and "fill.ptx:9" in err and "frobnicate" in err and err.count("\n") == 1


SIGNALS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


@pytest.mark.long
@pytest.mark.parametrize(("number", "code", "word"), partly(SIGNALS, 2))
def test_an_interrupt_leaves_no_file(fill: Path, tmp_path: Path, number: int, code: int, word: str) -> None:
    (tmp_path / "fill.ptx").write_text(PTX.replace("  ret;", "$again:\n  bra $again;"), encoding="utf-8")
    arguments = ["run", str(fill), "--set", "launch.no_progress=1000000000000", "--json", str(tmp_path / "out.json")]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, encoding="utf-8")
    assert process.stderr is not None
    while "fill on gtx480" not in process.stderr.readline():  # the progress of a launch that is under way
        assert process.poll() is None
    try:
        process.send_signal(number)
        assert process.wait(60) == code
    finally:
        process.kill()
    assert process.stderr.read().splitlines()[-1] == f"lockstep: {word}"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fill.ptx", "fill.py"]


@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_an_error_that_an_interrupt_became_is_an_interrupt(
    number: int, code: int, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def half_imported(_: object) -> int:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise ImportError("could not import module datetime")

    monkeypatch.setattr("lockstep.cli.gpus.command", half_imported)
    assert lockstep(capsys, "gpus") == (code, "", f"lockstep: {word}\n")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        # An extension runs the code in which the interrupt comes.
        ("ctypes.pythonapi.PyRun_SimpleString(b'import signal; signal.raise_signal(signal.SIGTERM)')\n"
         "raise KeyboardInterrupt", 143, "lockstep: terminated\n"),
        # Who drops one raises it again.
        ("class Dropping:\n  def __del__(self): signal.raise_signal(signal.SIGINT)\nDropping()\nreturn 0", 0, ""),
    ],
    ids=["extension", "dropped"],
)  # fmt: skip
def test_interrupts_in_code_of_others(tmp_path: Path, command: str, code: int, said: str) -> None:
    text = f"import ctypes, signal\nfrom lockstep.cli import gpus, main\ndef command(_):\n{indent(command, '  ')}\n"
    (tmp_path / "it.py").write_text(f"{text}gpus.command = command\nmain.program()\n", encoding="utf-8")
    started = [sys.executable, "-m", "it", "gpus"]
    done = subprocess.run(started, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == code and done.stderr.endswith(said) and bool(done.stderr) == bool(said)


def test_json_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out.json"
    target.write_text("before", encoding="utf-8")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", interrupted)
        output.write_json(str(target), {"a": 1})
    assert target.read_text(encoding="utf-8") == "before" and len(list(tmp_path.iterdir())) == 1
    output.write_json(str(target), {"a": 1})
    assert json.loads(target.read_text(encoding="utf-8")) == {"a": 1} and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(UsageError):
        output.check_writable(str(tmp_path))


def test_a_closed_pipe_is_no_error() -> None:
    result = subprocess.run(
        f"{' '.join(COMMAND)} gpus --json - | head -1", shell=True, capture_output=True, encoding="utf-8"
    )
    assert result.stdout == "[\n" and result.stderr == ""


def test_progress_waits_two_seconds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.2)
    with output.Display() as display:
        display.phase("working")
    assert capsys.readouterr().err == ""
    with output.Display() as display:
        display.phase("working")
        display.progress(3, 5000, 1234)
        time.sleep(0.5)
    assert capsys.readouterr().err == "working: 3 of 5,000 CTAs, 1,234 cycles\n"


@pytest.mark.long
def test_a_warm_run_imports_no_more_than_it_needs(fill: Path) -> None:
    code = f"""if True:
        import sys
        from lockstep.cli import main as cli
        assert cli.main(["run", {str(fill)!r}, "--size", "tiny", "--set", "core.sms=2"]) == 0
        heavy = ("amaranth", "networkx", "lark", "cocotb", "lockstep.rtl")
        assert not [name for name in heavy if name in sys.modules], sys.modules.keys()
    """
    for _ in range(2):  # the first one fills the caches
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", env=os.environ)
    assert result.returncode == 0, result.stderr


# --------------------------------------------------------------------------------------------------------- CUDA C

WHOLE = """#include <vector>
#include "size.h"
template <int N> __global__ void scale(float *x) { x[threadIdx.x] *= N + sinf(x[SIZE]); }
__global__ void bad(int **x) { x[0] = (int *)malloc(SIZE + 4); }
int main() { std::vector<float> v; }
"""


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "size.h").write_text("#ifndef SIZE\n#define SIZE 4\n#endif\n", encoding="utf-8")
    file = tmp_path / "whole.cu"
    file.write_text(WHOLE, encoding="utf-8")
    return file


def instructions(shown: str) -> int:
    found = re.search(r"PTX instructions (\d+)", shown)
    assert found
    return int(found[1])


def test_a_whole_program(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("-I", whole.parent / "headers", "-D", "SIZE=8", "--name", "scale<3>")
    ptx = ("ptx", whole, "--show", "memory-regions", *options)
    code, shown, _ = lockstep(capsys, *ptx)
    assert code == 0 and "scale<3>: PTX instructions" in shown
    assert re.search(r"^bad: refused: .*malloc", shown, re.MULTILINE)
    exact = instructions(shown)
    code, shown, _ = lockstep(capsys, *ptx, "--fast-math", "--std", "c++14", "--arch", "sm_80")
    assert code == 0 and instructions(shown) < exact
    code, shown, _ = lockstep(capsys, "occupancy", whole, *options, "--json", "-")
    assert code == 0 and {row["kernel"] for row in json.loads(shown)} == {"scale<3>"}
    code, shown, _ = lockstep(capsys, "occupancy", whole, *options)
    assert code == 0 and re.search(r"^bad: refused: .*malloc", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "headers not found (-I): size.h"),
        (("-I", "nowhere"), "include: nowhere: no such folder"),
        (("-D", "SIZE=4", "--std", "c++98"), "must be one of c++11"),
        (("-D", "SIZE=4", "--name", "scale<int>"), "scale"),
    ],
)
def test_a_whole_program_that_does_not_compile(
    whole: Path, options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, error = lockstep(capsys, "ptx", whole, *options)
    assert code == 2 and words in error and error.count("\n") == 1


def test_a_program_of_templates(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole.write_text(
        "".join(line for line in WHOLE.splitlines(keepends=True) if "malloc" not in line), encoding="utf-8"
    )
    code, _, error = lockstep(capsys, "occupancy", whole, "-D", "SIZE=4")
    assert code == 2 and "whole.cu: has no kernels but templates, of which --name compiles instances: scale" in error


def test_options_for_cuda_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = lockstep(capsys, "ptx", "saxpy", "-D", "N=3")
    assert code == 2 and "saxpy: not a .cu file" in error
