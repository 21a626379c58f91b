"""Launches that make no progress: which warps are named, what they wait for, where, and since when."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from lockstep.cli.main import main
from lockstep.models import waiting as model
from lockstep.models.observe import causes
from lockstep.models.waiting import REPEATING, Waiting
from lockstep.sim import Gpu, KernelFault
from lockstep.sim.device import diagnosis
from lockstep.sim.device.buffers import Buffer
from lockstep.sim.errors import StuckWarp

# Lines are counted from 1, and this text begins with a line break.
SOURCE = r"""
__device__ void note(long long *clock) { clock[threadIdx.x / 32] = clock64(); }

__global__ void dead(long long *clock) {
    note(clock);
    if (threadIdx.x / 32 == 2)
        return;
    asm volatile("bar.sync 3, 128;" ::: "memory");
}
__global__ void two(long long *clock) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1;" ::: "memory");
    else
        asm volatile("bar.sync 2, 96;" ::: "memory");
}
__global__ void flag(volatile long long *clock) {
    if (blockIdx.x == gridDim.x - 1) {
        clock[0] = 1;
        return;
    }
    if (threadIdx.x >= 64) {
        __syncthreads();
        return;
    }
    while (clock[0] == 0) {
        __threadfence_block();
    }
    __syncthreads();
}
__global__ void busy(volatile long long *clock) {
    int k = 0;
    if (threadIdx.x / 32 < 31)
        while (true)
            asm volatile("add.s32 %0, %0, 1; add.s32 %0, %0, -1; add.s32 %0, %0, 1; add.s32 %0, %0, -1;" : "+r"(k));
    clock[0] = 1;
}
__global__ void apart(volatile long long *clock) {
    if (blockIdx.x == 0)
        while (clock[1] == 0);
    if (blockIdx.x == 1)
        while (clock[2] == 0) __threadfence_block();
}
"""
LIMIT = 20_000


@pytest.fixture(scope="module")
def gpu() -> Gpu:
    return Gpu("gtx480", core_sms=2, launch_no_progress=LIMIT)


@pytest.fixture
def clock(gpu: Gpu) -> Buffer:
    return gpu.to_device(np.zeros(64, np.int64))


def stopped(gpu: Gpu, clock: Buffer, name: str, grid: int, block: int) -> KernelFault:
    module = gpu.load(SOURCE)
    with pytest.raises(KernelFault) as caught:
        module.launch(name, grid, block, [clock])
    return caught.value


def line(text: str) -> int:
    """The line of the source that has a text; of the first one."""
    return 1 + SOURCE[: SOURCE.index(text)].count("\n")


def test_a_barrier_that_a_warp_does_not_come_to(gpu: Gpu, clock: Buffer) -> None:
    fault = stopped(gpu, clock, "dead", 1, 128)
    came = gpu.from_device(clock)
    for warp in fault.warps:
        assert warp.source == ("<text>", *2 * [line("bar.sync 3" if warp.warp != 2 else "}\n__global__ void two")])
        assert came[warp.warp] < warp.since < came[warp.warp] + 100
    first, total = fault.__notes__
    since = [warp.since for warp in fault.warps if warp.warp != 2]
    assert first == (
        f"CTA (0, 0, 0): warps 0-1, 3 at barrier 3 (96 of 128 threads), <text>:{line('bar.sync 3')}, since cycles "
        f"{min(since)} to {max(since)}; warp 2 ended, <text>:{line('}' + chr(10) + '__global__ void two')}, "
        f"at cycle {fault.warps[2].since}"
    )
    assert total == "0 of 1 CTAs have ended; 0 have not begun."
    assert [warp.state for warp in fault.warps] == 2 * [fault.warps[0].state] + ["ended", fault.warps[0].state]
    assert fault.warps[0].ptx is not None and "bar.sync 3" in _ptx_line(fault.warps[0].ptx)


def _ptx_line(place: tuple[str, int, int]) -> str:
    return Path(place[0]).read_text(encoding="utf-8").splitlines()[place[1] - 1]


def test_two_barriers(gpu: Gpu, clock: Buffer) -> None:
    """Each has fewer threads than it waits for."""
    first, _ = stopped(gpu, clock, "two", 1, 96).__notes__
    assert re.match(
        rf"CTA \(0, 0, 0\): warp 0 at barrier 1 \(32 of 96 threads\), <text>:{line('bar.sync 1')}, since cycle \d+; "
        rf"warps 1-2 at barrier 2 \(64 of 96 threads\), <text>:{line('bar.sync 2')}, since cycles \d+ to \d+$",
        first,
    )


def test_ctas_that_wait_for_one_that_has_no_room(gpu: Gpu, clock: Buffer) -> None:
    fault = stopped(gpu, clock, "flag", 40, 96)
    assert "no progress" in str(fault) and "never chosen" not in str(fault)
    *ctas, total = fault.__notes__
    loop = f"<text>:{line('while (clock')}(-{line('__threadfence_block')})?"  # met at some of its instructions
    assert len(ctas) == 1
    assert re.match(
        rf"16 CTAs, \(0, 0, 0\) to \(15, 0, 0\): warps 0-1 repeating, {loop}, since cycle \d+; warp 2 at barrier 0 "
        rf"\(32 of 96 threads\), <text>:{line('__syncthreads')}, since cycles \d+ to \d+$",
        ctas[0],
    )
    assert total == "0 of 40 CTAs have ended; 24 have not begun."


def test_each_sm_has_its_own_warps(gpu: Gpu, clock: Buffer) -> None:
    """They repeat other instructions; a CTA that has ended is not named."""
    fault = stopped(gpu, clock, "apart", 3, 32)
    assert fault.__notes__[-1] == "1 of 3 CTAs have ended; 0 have not begun."
    assert [(warp.sm, warp.cta, warp.state, warp.source) for warp in fault.warps] == [
        (sm, (sm, 0, 0), "repeating", ("<text>", *2 * [line(f"while (clock[{sm + 1}]")])) for sm in (0, 1)
    ]


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        (causes.MEMORY, "waiting for memory"),
        (causes.INSTRUCTION_CACHE, "waiting for instruction cache"),
        (causes.MECHANISM, "held back by a mechanism"),
        (causes.LSU, "ready, never chosen"),
        (causes.PIPELINE, "ready, never chosen"),
        (causes.NOT_SELECTED, "ready, never chosen"),
    ],
)
def test_a_cause_in_words(cause: int, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "cause", lambda sm, slot, now: cause)
    assert model._not_issuing({"last": 0}, 0) == state


def test_starvation(gpu: Gpu, clock: Buffer) -> None:
    """Older warps that never wait leave a greedy scheduler no turn for the others; in turns, all get on."""
    fault = stopped(gpu, clock, "busy", 1, 1024)
    assert re.search(r"warps that are ready and never chosen: \d+ \(core.scheduler = gto starves them\)", str(fault))
    starved = {warp.warp for warp in fault.warps if warp.state == "ready, never chosen"}
    assert 30 in starved and {warp.state for warp in fault.warps} >= {"repeating", "ready, never chosen"}
    fair = Gpu("gtx480", core_sms=1, launch_no_progress=LIMIT, core_scheduler="lrr")
    fault = stopped(fair, fair.to_device(np.zeros(64, np.int64)), "busy", 1, 1024)
    assert "never chosen" not in str(fault)
    assert {warp.warp for warp in fault.warps if warp.state == "repeating"} == set(range(31))


def test_the_message_fits_on_a_screen() -> None:
    """Many CTAs, each in a state of its own, of many warps."""
    warps = [
        StuckWarp(0, (cta, 0, 0), warp, f"waiting for {cta * warp}", 7, ("k.ptx", warp, warp), None)
        for cta in range(100)
        for warp in range(32)
    ]
    lines = diagnosis.lines(warps, (200, 3, 97))
    assert len(lines) <= 20
    assert lines[-2] == "... and 84 more CTAs in other states"
    assert lines[-1] == "3 of 200 CTAs have ended; 97 have not begun."
    assert lines[3].endswith("; warp 5 waiting for 15, k.ptx:5, since cycle 7; ... and 26 more warps")


class Lines:
    """Instruction ``pc`` is in line ``pc`` of the PTX; from 100 on, of a file that it includes."""

    def ptx(self, pc: int) -> tuple[str, int]:
        return ("k.ptx" if pc < 100 else "other.ptx"), pc

    def source(self, pc: int) -> None:
        return None


def waiting(*warps: tuple[tuple[int, int, int], int, str, tuple[int, ...]]) -> list[StuckWarp]:
    stop = SimpleNamespace(waiting=[Waiting(0, cta, warp, state, at, 7) for cta, warp, state, at in warps])
    return list(diagnosis.stuck_warps(cast("Any", stop), cast("Any", Lines())))


def test_warps_stand_in_the_order_of_their_ctas() -> None:
    """x is the axis that grows first, as it is when CTAs begin."""
    ctas = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    found = waiting(*((cta, warp, "ended", (3,)) for cta in ctas for warp in (1, 0)))
    assert [(warp.cta, warp.warp) for warp in found] == [(cta, warp) for cta in ctas[::-1] for warp in (0, 1)]


def test_what_warps_repeat_is_one_loop_where_it_overlaps() -> None:
    """Each warp is seen at some instructions of it; lines are those of the file that the first one is in."""
    repeated = [(4, 6), (6, 9), (5, 6), (20, 22, 100)]
    found = waiting(*(((0, 0, 0), k, REPEATING, at) for k, at in enumerate(repeated)), ((0, 0, 0), 5, "ended", (5,)))
    loop = ("k.ptx", 4, 9)
    assert [warp.ptx for warp in found] == [loop, loop, loop, ("k.ptx", 20, 22), ("k.ptx", 5, 5)]


def test_warps_that_have_ended_are_named_last() -> None:
    warps = waiting(((0, 0, 0), 0, "ended", (9,)), ((0, 0, 0), 1, "at barrier 0", (3,)))
    assert diagnosis.lines(warps, (1, 0, 0))[0] == (
        "CTA (0, 0, 0): warp 1 at barrier 0, k.ptx:3, since cycle 7; warp 0 ended, k.ptx:9, at cycle 7"
    )


def test_all_ctas_that_are_left_out_are_counted() -> None:
    """Also those that are in the same state as another one."""
    warps = waiting(*(((cta, 0, 0), 0, f"waiting for {cta // 2}", (3,)) for cta in range(40)))
    assert diagnosis.lines(warps, (40, 0, 0))[-2] == "... and 8 more CTAs in other states"


def test_a_fault_survives_its_way_between_processes(gpu: Gpu, clock: Buffer) -> None:
    fault = stopped(gpu, clock, "dead", 1, 128)
    copy = pickle.loads(pickle.dumps(fault))
    assert (str(copy), copy.warps, copy.__notes__) == (str(fault), fault.warps, fault.__notes__)


def test_the_command_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.ptx").write_text(PTX, encoding="utf-8")
    (tmp_path / "k.py").write_text(KERNEL, encoding="utf-8")
    assert main(["run", str(tmp_path / "k.py"), "--size", "tiny", "--set", "core.sms=1"]) == 2
    error = capsys.readouterr().err.splitlines()[-3:]
    assert error[0].startswith("lockstep: half: barrier deadlock")
    assert re.match(r"CTA \(\d, 0, 0\): warp 0 at barrier 0 \(32 of 64 threads\), k.ptx:6, since cycle \d+$", error[1])
    assert error[2] == "0 of 3 CTAs have ended; 0 have not begun."


PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry half()
{
  bar.sync 0, 64;
  ret;
}
"""
KERNEL = '''
TITLE, SUITE, PTX = "half a barrier", "none", "k.ptx"

def setup(size, seed):
    return {}

def run(gpu, module, data):
    module.launch("half", 3, 32)

def reference(data):
    return {}
'''
