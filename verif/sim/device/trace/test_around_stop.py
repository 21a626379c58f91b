"""What led to a stop: the trace around it is the end of the whole one, on the SM concerned, and reaches users."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lockstep.cli import main as cli
from lockstep.models import session as model
from lockstep.models.observe.trace import IN_A_CYCLE
from lockstep.models.stop import ModelFault
from lockstep.sim import Gpu, KernelFault
from lockstep.sim.device.trace import konata
from lockstep.sim.device.trace.trace import Trace
from lockstep.verif.sim.device.trace.test_trace import Log, packets

# Each warp works for some rounds; then the one asked for does what it must not.
SOURCE = r"""
__global__ void work(int *data, int rounds, int cta, int what) {
    __shared__ int own[128];
    int sum = 0;
    for (int k = 0; k < rounds; k++) {
        own[threadIdx.x] = data[(blockIdx.x * 128 + threadIdx.x + 97 * k) % 4096];
        __syncthreads();
        sum += own[threadIdx.x ^ 1];
    }
    data[blockIdx.x * 128 + threadIdx.x] = sum;
    if (blockIdx.x != cta || threadIdx.x / 32 != 1)
        return;
    if (what == 1)
        *(volatile int *) 4 = sum;
    if (what == 2)
        asm volatile("bar.sync 3, 128;" ::: "memory");
    while (what == 3)
        asm volatile("add.s32 %0, %0, 1; add.s32 %0, %0, -1;" : "+r"(sum));
}
"""
ADDRESS, BARRIER, SPIN = 1, 2, 3
CTAS, LIMIT = 5, 20_000


class Bench:
    def __init__(self) -> None:
        self.gpu = Gpu("gtx480", core_sms=2, launch_no_progress=LIMIT)
        self.module = self.gpu.load(SOURCE)

    def work(self, what: int, cta: int = 3, rounds: int = 60) -> None:
        data = self.gpu.to_device(np.zeros(4096, np.int32))
        try:
            self.module.launch("work", CTAS, 128, [data, rounds, cta, what])
        finally:
            self.gpu.free(data)  # so that all launches have the same addresses

    def stopped(self, what: int, **options: Any) -> tuple[Trace, KernelFault]:
        with self.gpu.trace(**options) as trace, pytest.raises(KernelFault) as caught:
            self.work(what)
        return trace, caught.value


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def rows(trace: Trace, first: int = 0) -> list[tuple[Any, ...]]:
    """All that a trace says of the instructions that were fetched, and issued, from a cycle on."""
    found = [one for one in trace.instructions if one.issue >= first]
    return [
        (one.issue, one.warp.slot, one.warp.cta, one.warp.index, one.pc, one.lanes, one.start, one.done, one.cut,
         one.waits if one.next > first else [], one.fetched if one.fetched > first else -1)
        for one in found
    ]  # fmt: skip


@pytest.mark.parametrize("what", [ADDRESS, BARRIER, SPIN])
@pytest.mark.parametrize("cycles", [1, 2000, 1 << 40])
def test_it_is_the_end_of_the_whole_trace(bench: Bench, what: int, cycles: int) -> None:
    part, fault = bench.stopped(what, around_stop=cycles)
    whole, _ = bench.stopped(what, sm=part.sm)
    (launch,), (all_of_it,) = part.launches, whole.launches
    stop = int(re.search(r"cycle (\d+)", str(fault))[1])  # type: ignore[index]
    assert launch.until == all_of_it.until == stop + 1
    assert launch.first <= max(stop + 1 - cycles, 0) and (launch.first == 0) == (cycles == 1 << 40)
    if what != SPIN:
        assert launch.until - launch.first < 2 * cycles + 1000 or cycles == 1 << 40
    # What flew when the trace begins is not in it, and what follows such an instruction may be taken for it.
    settled = launch.first + 600 if launch.first else 0
    assert rows(part, settled) == rows(whole, settled) and (cycles < 2000 or rows(part, settled))
    issues = [(one.issue, one.warp.slot, one.pc) for one in whole.instructions if one.issue >= launch.first]
    assert [(one.issue, one.warp.slot, one.pc) for one in part.instructions] == issues
    for ours, theirs in zip(*([w for w in t.warps if w.end == t.until] for t in (launch, all_of_it)), strict=True):
        assert (ours.slot, ours.cta, ours.index) == (theirs.slot, theirs.cta, theirs.index)
        for later in (True, False):
            mine, own = ([each for each in warp.states if (each[0] > launch.first) == later] for warp in (ours, theirs))
            if later or not own or own[-1][1] == "issues":
                assert not later or mine == own
            else:
                assert mine[-1][1] == own[-1][1]


@pytest.mark.parametrize("cta", [2, 3])
def test_it_shows_the_sm_and_the_instruction_of_the_stop(bench: Bench, cta: int) -> None:
    with bench.gpu.trace(around_stop=500) as trace, pytest.raises(KernelFault) as caught:
        bench.work(ADDRESS, cta)
    (launch,) = trace.launches
    last = list(launch.instructions)[-1]
    ptx = caught.value.ptx
    assert ptx is not None and launch.codes[0].places[last.pc].ptx_line == ptx[1]
    assert (last.warp.cta, last.warp.index, last.issue) == (cta, 1, launch.until - 1)
    assert trace.sm == cta % 2


def test_it_says_what_warps_wait_for_at_the_end(bench: Bench) -> None:
    trace, fault = bench.stopped(BARRIER, around_stop=500)
    at_barrier = {warp.warp for warp in fault.warps if "barrier" in warp.state}
    assert at_barrier == {1} and {warp.sm for warp in fault.warps} == {trace.sm}
    (warp,) = (each for each in trace.launches[0].warps if each.end == trace.launches[0].until and each.cta == 3)
    assert warp.index == 1 and warp.issued[-1].issue == fault.warps[1].since
    with bench.gpu.trace(around_stop=500) as trace, pytest.raises(KernelFault):
        bench.module.launch("work", 1, 128, [bench.gpu.to_device(np.zeros(4096, np.int32)), 5, 0, SPIN])
    (warp,) = (each for each in trace.launches[0].warps if each.end == trace.launches[0].until)
    assert len(warp.issued) > 50 and warp.index == 1


def test_its_size_is_bounded(bench: Bench) -> None:
    trace, _ = bench.stopped(SPIN, around_stop=1 << 40, events=1)
    (launch,) = trace.launches
    assert len(launch.events) <= 4 * IN_A_CYCLE and 0 < launch.first < launch.until - 100
    assert trace.full is None
    whole, _ = bench.stopped(SPIN, sm=trace.sm)
    last = [(one.issue, one.pc) for one in whole.instructions if one.issue >= launch.first]
    assert [(one.issue, one.pc) for one in trace.instructions] == last


def test_a_fault_of_the_model_has_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = model.run

    def run(*arguments: Any) -> None:
        real(*arguments)
        if bench.gpu.machine.state["now"] > 3000:
            bench.gpu.machine.state["fault"], bench.gpu.machine.state["fault_sm"] = model.Fault.MEMORY_ORDER, 1

    monkeypatch.setattr(model, "run", run)
    with bench.gpu.trace(around_stop=1000) as trace, pytest.raises(ModelFault) as caught:
        bench.work(0, rounds=1000)
    assert trace.sm == caught.value.stop.sm == 1 and trace.launches[0].until == caught.value.stop.cycle + 1
    assert trace.instructions


def test_what_ends_leaves_nothing_and_is_as_without(bench: Bench) -> None:
    """And the trace is of the first launch that stops; cycles are those of the run."""
    fresh = Bench()
    fresh.work(0)
    other = Bench()
    with other.gpu.trace(around_stop=1000) as trace:
        other.work(0)
        before = other.gpu.runs[0].cycles
        assert trace.launches == []
        for what in (ADDRESS, BARRIER):
            with pytest.raises(KernelFault):
                other.work(what)
    assert all(np.array_equal(fresh.gpu.runs[0].raw[name], raw) for name, raw in other.gpu.runs[0].raw.items())
    (launch,) = trace.launches
    assert launch.begin == before < launch.first
    last = max(trace.instructions, key=lambda one: one.issue)
    assert "st.volatile" in launch.codes[0].places[last.pc].ptx


def test_files_are_valid(bench: Bench, tmp_path: Path) -> None:
    for what in (ADDRESS, BARRIER, SPIN):
        trace, _ = bench.stopped(what, around_stop=700)
        log = Log(konata.text(trace.launches))
        assert len(log.begin) == len(trace.instructions) > 0
        trace.write(tmp_path / "x.pftrace")
        slices, _ = packets(tmp_path / "x.pftrace")
        assert slices["issue"] == len(trace.instructions)


KERNEL = """
import numpy as np
TITLE, SUITE, PTX = "stops", "none", "k.ptx"
def setup(size, seed):
    return {}
def run(gpu, module, data):
    there = gpu.to_device(np.zeros(4096, np.int32))
    module.launch("work", 5, 128, [there, 60, 3, WHAT])
    return {"sums": there.dtype.type(1).reshape(1)}
def reference(data):
    return {"sums": np.ones(1, np.int32)}
"""


@pytest.mark.parametrize(
    ("what", "options", "word"),
    [(BARRIER, ["--around-stop", "400"], "SM 1"), (ADDRESS, ["--sm", "0"], "SM 0"), (0, ["--around-stop", "400"], "")],
)
def test_the_command_line(
    what: int, options: list[str], word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], bench: Bench
) -> None:
    (tmp_path / "k.ptx").write_text(Path(bench.module.program.path).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "k.py").write_text(KERNEL.replace("WHAT", str(what)), encoding="utf-8")
    file = tmp_path / "x.kanata"
    code = cli.main(["run", str(tmp_path / "k.py"), "--set", "core.sms=2", "--timeline", str(file), *options])
    *before, error = capsys.readouterr().err.splitlines()
    assert file.exists() == bool(word) and code == (2 if word else 0)
    if not word:
        assert error == f"lockstep: {file}: not written, since no launch stopped early"
        return
    assert any(line.startswith("lockstep: work: ") for line in before)
    span = re.fullmatch(rf"{re.escape(str(file))}: timeline of {word}, cycles ([\d,]+) to ([\d,]+)", error)
    assert span and int(span[1].replace(",", "")) <= int(span[2].replace(",", "")) - (399 if word == "SM 1" else 0)
    assert len(Log(file.read_text(encoding="utf-8")).begin) > 10
