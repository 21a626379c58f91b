"""Kernels that print: from PTX as compilers write it to standard output, in order, and out of the way of JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.sim import Gpu, KernelFault, output
from lockstep.sim.cosim import run as cosim
from lockstep.sim.device.memory import Arena
from lockstep.sim.study.job import Job
from lockstep.sim.watch import Watch
from lockstep.verif.bench import elsewhere
from lockstep.verif.sim.cosim.bench import faulty

DISPATCHER = "cta.cta_dispatcher"

# As nvcc compiles printf("cta %d warp %d: %s %.1f\n", ...), in lane 0 of each warp; higher warps come first.
PTX = """
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);
.global .align 1 .b8 text[25] = {99, 116, 97, 32, 37, 100, 32, 119, 97, 114, 112, 32, 37, 100, 58, 32, 37, 115, 32, 37,
                                 46, 49, 102, 10};
.global .align 1 .b8 even[5] = {101, 118, 101, 110};
.global .align 1 .b8 odd[4] = {111, 100, 100};
.visible .entry hello(.param .u64 out, .param .u32 wrong)
{
  .local .align 8 .b8 depot[24];
  .reg .b64 %sp, %spl, %rd<9>; .reg .b32 %r<12>; .reg .f64 %fd<3>; .reg .pred %p<5>;
  mov.u64 %spl, depot;
  cvta.local.u64 %sp, %spl;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  and.b32 %r4, %r1, 31;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra $done;
  shr.u32 %r5, %r1, 5;
  sub.u32 %r6, 4, %r5;
  mul.lo.u32 %r6, %r6, 40;
$wait:
  sub.u32 %r6, %r6, 1;
  setp.gt.s32 %p2, %r6, 0;
  @%p2 bra $wait;
  st.local.u32 [%spl], %r2;
  st.local.u32 [%spl+4], %r5;
  and.b32 %r7, %r2, 1;
  setp.eq.u32 %p3, %r7, 0;
  cvta.global.u64 %rd2, even;
  cvta.global.u64 %rd3, odd;
  selp.b64 %rd4, %rd2, %rd3, %p3;
  st.local.u64 [%spl+8], %rd4;
  cvt.rn.f64.u32 %fd1, %r1;
  st.local.f64 [%spl+16], %fd1;
  cvta.global.u64 %rd5, text;
  {
  .param .b64 param0; st.param.b64 [param0+0], %rd5;
  .param .b64 param1; st.param.b64 [param1+0], %sp;
  .param .b32 retval0;
  call.uni (retval0), vprintf, (param0, param1);
  ld.param.b32 %r8, [retval0+0];
  }
  mad.lo.u32 %r9, %r2, %r3, %r1;
  mul.wide.u32 %rd6, %r9, 4;
  add.u64 %rd7, %rd1, %rd6;
  st.global.u32 [%rd7], %r8;
  ld.param.u32 %r10, [wrong];
  setp.ne.u32 %p4, %r10, 0;
  @%p4 st.global.u32 [4], %r8;
$done:
  ret;
}
"""
CTAS, WARPS = 9, 3
PRINTED = "".join(
    f"cta {cta} warp {warp}: {'odd' if cta % 2 else 'even'} {warp * 32:.1f}\n"
    for cta in range(CTAS)
    for warp in range(WARPS)
)

KERNEL = """
import numpy as np
TITLE, SUITE, PTX = "prints", "none", "hello.ptx"

def setup(size, seed):
    return {{}}

def run(gpu, module, data):
    out = gpu.to_device(np.zeros(9 * 96, np.uint32))
    for wrong in (0, {wrong}):
        module.launch("hello", 9, 96, [out, wrong])
    return {{"out": gpu.from_device(out)}}

def reference(data):
    return {{"out": np.where(np.arange(9 * 96) % 32 == 0, 4, 0).astype(np.uint32)}}
"""


def printed(strict: bool = False, ctas: int = CTAS, **settings: Any) -> list[str | int]:
    """The text of a launch, its cycles, and the sum of its results."""
    gpu = Gpu("gtx480", core_sms=2, strict=strict, **settings)
    gpu.on_print = None
    out = gpu.to_device(np.zeros(CTAS * WARPS * 32, np.uint32))
    run = gpu.load(PTX).launch("hello", ctas, 32 * WARPS, [out, 0])
    return [run.printed, run.cycles, int(gpu.from_device(out).sum())]


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    (tmp_path / "hello.ptx").write_text(PTX, encoding="utf-8")
    file = tmp_path / "hello.py"
    file.write_text(KERNEL.format(wrong=0), encoding="utf-8")
    return file


@pytest.mark.parametrize("strict", [False, True])
def test_text_is_ordered_by_cta_and_warp(strict: bool) -> None:
    text, _, results = printed(strict)
    assert text == PRINTED and results == 4 * CTAS * WARPS


@pytest.mark.exhaustive
@pytest.mark.long
def test_an_interpreted_run_prints_the_same() -> None:
    assert elsewhere(printed, NUMBA_DISABLE_JIT="1") == printed()


def test_kernels_print_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    gpu = Gpu("gtx480", core_sms=2)
    module, out = gpu.load(PTX), gpu.empty(CTAS * WARPS * 32, np.uint32)
    module.launch("hello", CTAS, 32 * WARPS, [out, 0])
    assert capsys.readouterr().out == PRINTED
    texts: list[str] = []
    gpu.on_print = texts.append
    module.launch("hello", 1, 32, [out, 0])
    assert texts == ["cta 0 warp 0: even 0.0\n"], "nothing of the launch before"
    with pytest.raises(KernelFault, match="out of bounds"):
        module.launch("hello", CTAS, 32 * WARPS, [out, 1])
    assert len(texts) == 2 and "cta 0 warp 2: even 64.0\n" in texts[1], "what came before the fault"
    assert capsys.readouterr().out == ""


def test_cuda_source_prints() -> None:
    gpu = Gpu("gtx480", core_sms=1)
    source = """
        struct Pair { int a; double b; };
        __global__ void show(Pair pair, const char *unused) {
            char own[4] = {'t', char('0' + threadIdx.x), 0};
            int count = printf("%s: %d %g %c%%\\n", own, pair.a, pair.b, 'x');
            if (threadIdx.x == 1) printf("%d %p\\n", count, unused);
        }
    """
    pair = np.array([(3, 0.5)], np.dtype([("a", "i4"), ("b", "f8")], align=True))
    gpu.on_print = None
    run = gpu.load(source).launch("show", 1, 2, [pair.tobytes(), np.uint64(0)])
    assert run.printed == "t0: 3 0.5 x%\nt1: 3 0.5 x%\n4 (nil)\n"


def test_a_run_prints_before_its_table(capsys: pytest.CaptureFixture[str], kernel: Path) -> None:
    assert cli.main(["run", str(kernel), "--set", "core.sms=2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(PRINTED * 2) and "checked: 864 elements agree" in out


def test_json_stays_json(capsys: pytest.CaptureFixture[str], kernel: Path) -> None:
    assert cli.main(["run", str(kernel), "--set", "core.sms=2", "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["printed"] == PRINTED * 2 and PRINTED * 2 in captured.err
    assert cli.main(["compare", str(kernel), "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)[0]["printed"] == PRINTED * 2 and PRINTED * 2 in captured.err


def test_what_came_before_a_fault_is_printed(capsys: pytest.CaptureFixture[str], kernel: Path) -> None:
    kernel.write_text(KERNEL.format(wrong=1), encoding="utf-8")
    assert cli.main(["run", str(kernel), "--set", "core.sms=2"]) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith(PRINTED) and captured.out.count("cta 0 warp 2") == 2
    assert captured.err.count("\n") == 1 and "out of bounds" in captured.err


class Listener(Watch):
    """What a job prints."""

    def __init__(self) -> None:
        self.text = ""

    def printed(self, text: str) -> None:
        self.text += text


@pytest.mark.parametrize("mode", ["shadow", "replace"])
def test_a_co_simulation_prints_once(kernel: Path, mode: str) -> None:
    watch, job = Listener(), Job(str(kernel), settings={"core.sms": 2})
    result = cosim.cosim(job, DISPATCHER, mode, watch=watch)
    assert result["mismatches"] == 0 and watch.text == result["printed"] == PRINTED * 2


@pytest.mark.exhaustive
@pytest.mark.long
def test_a_run_that_is_repeated_for_its_report_prints_once(kernel: Path, tmp_path: Path) -> None:
    """The hardware differs in the second launch, in a cycle that the first one, of one CTA, does not reach."""
    kernel.write_text(KERNEL.format(wrong=0).replace('"hello", 9', '"hello", len(gpu.runs) * 8 + 1'), encoding="utf-8")
    watch = Listener()
    job = Job(str(kernel), settings={"core.sms": 2, "instruction_cache.mode": "perfect"})  # it would be cold at first
    first = int(printed(ctas=1, instruction_cache_mode="perfect")[1])
    makes = {DISPATCHER: faulty(DISPATCHER, "remaining", 0, first + 1)}
    result = cosim.cosim(job, DISPATCHER, folder=tmp_path / "report", watch=watch, makes=makes)
    assert result["mismatches"] == 1 and result["difference"]["launch"] == 1
    first_launch = PRINTED[: PRINTED.index("cta 1")]
    assert watch.text.startswith(first_launch)
    rest = watch.text.removeprefix(first_launch).splitlines()  # what the second one has printed until it differs
    assert len(rest) == len(set(rest)) and set(rest) <= {*PRINTED.splitlines()}


def test_what_hardware_lets_a_kernel_print_is_compared() -> None:
    launches = []
    for text in ("same", "same", "other"):
        found = cosim._Launches()
        device: Any = SimpleNamespace(memory=Arena(1 << 16), after_launch=[])
        found.attach(device)
        device.after_launch[0](SimpleNamespace(raw={}, printed=text))
        launches.append(found)
    assert launches[0].differences(launches[1]) == []
    assert launches[0].differences(launches[2]) == ["launch 0: what it printed differs"]


def test_a_line_of_progress_makes_room(capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal it is taken away before a kernel's text, which would else be written into it."""
    with output.Display() as display:
        stopped = Mock(side_effect=lambda: sys.stdout.write("(stopped)"))
        display._live = SimpleNamespace(stop=stopped)
        display.printed("text\n")
        assert display._live is None
    assert capsys.readouterr().out == "(stopped)text\n"
